//! Judging change: are two sides comparable, which is faster, do they answer alike, and what differs.
//!
//! Pure functions over run documents that the caller has loaded. The launch of a server is the unit, trials are
//! nested in it; `docs/comparing.md` says why.

mod answers;
mod compare;
mod differences;
mod estimate;
mod gate;
mod history;
mod launches;
mod notes;
mod options;
mod refuse;
mod units;

pub use compare::{CompareError, compare};
pub use differences::{KNOWN_MOVERS, differences, sort_differences};
pub use gate::gate;
pub use history::restart_spread;
pub use options::{Options, Side};
pub use refuse::refusals;
