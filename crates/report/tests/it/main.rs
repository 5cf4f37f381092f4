//! Documents made by hand, and what is shown of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests"
)]

mod columns;
mod looks;
mod runs;
mod sample;
