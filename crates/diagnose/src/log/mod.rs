//! Reading logs: bytes → lines → events, tracebacks, stages and launches, in one pass and flat memory.

mod clean;
mod launch;
mod line;
mod read;
mod scan;
mod time;
mod trace;

pub use launch::{Event, Hit, Launch, Observed, StageHit, bounded};
pub use line::{Level, Line, Proc, parse as parse_line};
pub use scan::{Part0, Scanned, Scanner};
pub use time::{Time, parse as parse_time};
pub use trace::{Frame, How, Raised, Trace, short_name};
