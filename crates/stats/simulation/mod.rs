//! The calibration of the verdicts: seeded simulations of comparisons whose truth is known.
//!
//! log throughput = launch effect (normal) + trial noise (AR(1), Student t with 4 degrees of freedom scaled to its
//! standard deviation). Shared by the example that prints every cell and the test that runs a few.

mod claims;
pub(crate) mod gates;
mod noise;

pub(crate) use claims::{Cell, Design, NoiseOf, run};
pub(crate) use gates::{GateCell, run_gate};
