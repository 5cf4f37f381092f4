//! Behaviour of `shakedown-stack` against files that the tests make, and against the real loader and interpreter.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

mod checkout;
mod differences;
mod findings;
mod hostile;
mod loader;
mod oracle;
mod patches;
mod real;
mod support;
