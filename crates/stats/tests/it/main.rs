//! Checks against values that SciPy and NumPy computed (`tests/data/generate.py`) and properties.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::float_cmp,
    missing_docs,
    reason = "tests"
)]

mod data;
mod distributions;
mod samples;
