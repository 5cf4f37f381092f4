//! The measuring client: threads that each own their connections, and what they hand over.

mod chunks;
mod core;
mod exchange;
mod leg;
mod outcome;
mod reuse;
mod slot;

pub(crate) use core::{Core, CoreReport, Counters, Shared};
pub(crate) use leg::Leg;
pub(crate) use reuse::Reuse;
