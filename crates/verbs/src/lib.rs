//! Composition: one file per verb, each Request → Events → Outcome. The only crate that sees all others.

pub mod bench;
mod client;
mod error;
pub mod practice;
pub mod runs;
mod sampler;
mod server;
mod truth;

pub use error::VerbError;
pub use shakedown_bench::Control;
