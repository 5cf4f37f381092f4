//! Reading logs: bytes → lines → events, tracebacks, stages and launches, in one pass and flat memory.

mod clean;
mod launch;
mod line;
mod read;
mod scan;
mod time;
mod trace;

pub(crate) use launch::{Event, Observed, StageHit, bounded};
pub(crate) use line::{Level, Proc};
pub(crate) use scan::{Scanned, Scanner};
pub(crate) use time::Time;
pub(crate) use trace::{How, Trace};
