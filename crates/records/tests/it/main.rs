//! Bundles, written and read back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "tests"
)]

mod bundles;
mod child;
mod foreign;
mod kill;
mod sample;
mod schemas;
mod size;
mod stores;
