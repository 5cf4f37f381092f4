//! Checks against values that SciPy, NumPy and statsmodels computed (`tests/data/generate.py`), properties, and a
//! part of the calibration.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::float_cmp,
    missing_docs,
    reason = "tests"
)]

mod calibration;
mod comparing;
mod data;
mod distributions;
mod samples;
#[path = "../../simulation/mod.rs"]
mod simulation;
