//! Tests of the crate from outside: real recordings, independent readers, real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "tests"
)]

mod allocations;
mod client;
mod recordings;
mod response;
mod response_hyper;
mod socket;
mod sse;
mod untrusted;

/// At least `cases` cases; `PROPTEST_CASES` asks for more.
fn cases(cases: u32) -> proptest::test_runner::Config {
    let config = proptest::test_runner::Config::default();
    proptest::test_runner::Config {
        cases: config.cases.max(cases),
        ..config
    }
}
