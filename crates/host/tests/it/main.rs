//! Integration tests of the host crate.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

mod fixture;
mod fixtures;
#[cfg(target_os = "linux")]
mod live;
mod total;
