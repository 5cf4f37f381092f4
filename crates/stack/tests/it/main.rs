//! Behaviour of `shakedown-stack` against files that the tests make, and against the real loader and interpreter.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::default_trait_access,
    clippy::format_collect,
    clippy::format_push_string,
    clippy::panic,
    clippy::semicolon_if_nothing_returned,
    clippy::single_match_else,
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
