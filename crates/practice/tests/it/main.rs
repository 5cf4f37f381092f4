//! The practice server against raw sockets: its bytes, its order, its counts, its truth.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::float_cmp,
    missing_docs,
    reason = "tests; the numbers compared are whole"
)]

mod abuse;
mod client;
mod generation;
mod judge;
mod manners;
mod scripts;
mod streaming;
