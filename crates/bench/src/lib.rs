//! Measures one server: workload, load, the request loop, outcomes, metrics, validity.
//!
//! [`run`] sends what a [`Plan`] says and keeps a record of every request; [`metrics::of`] turns records into
//! figures, and [`validity::findings`] says whether they can be believed.

mod client;
mod health;
pub mod metrics;
mod plan;
mod run;
pub mod validity;
pub mod workload;

pub use plan::{Control, Limits, Plan};
pub use run::{Keep, Measured, MeasuredTrial, RunError, run};
