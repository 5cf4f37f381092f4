//! Comparisons of run documents whose truth is known.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::float_cmp,
    missing_docs,
    reason = "tests"
)]

mod answers;
mod differ;
mod gates;
mod interleaved;
mod properties;
mod refused;
mod sample;
mod story;
