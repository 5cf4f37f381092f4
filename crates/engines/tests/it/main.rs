//! Integration tests of the engines crate.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::float_cmp,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

mod canned;
mod catalog;
mod discover;
#[path = "../../../host/tests/it/fixture.rs"]
mod fixture;
mod recognise;
mod reports;
