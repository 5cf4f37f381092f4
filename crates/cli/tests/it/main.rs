//! The binary, end to end, against the practice server's own truth.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::float_cmp,
    clippy::print_stderr,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

mod cut;
mod llama;
mod measured;
mod mocks;
mod scripts;
mod support;
mod surface;
