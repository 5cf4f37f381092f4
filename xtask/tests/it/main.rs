//! What the documents promise, held: the structure, the licences, and that every figure and code is explained.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests"
)]

mod docs;
mod edges;
mod licences;
mod metadata;
mod sizes;
