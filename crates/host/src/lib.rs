//! One machine, read from `/proc` below a root: `/`, or a directory of fixtures.
//!
//! Everything is read once, with caps, and what cannot be read for want of privileges is an error that says so. The
//! parsers in [`parse`] are pure. A socket that is bound and does not listen (vLLM while it loads) is in no table of
//! the kernel that is read here: its port looks free, and a connection is refused.

mod error;
mod facts;
mod files;
mod logs;
mod namespaces;
pub mod parse;
mod process;
mod root;
mod sockets;

pub use error::{HostError, Reason};
pub use facts::{CpuTimes, Facts};
pub use files::{OpenFile, OpenTarget};
pub use logs::{LogPlace, LogSearch};
pub use parse::{Group, Limits, Listener, ListenerAddress, Stat};
pub use process::{Process, Processes};
pub use root::Host;
pub use sockets::{Listeners, owners};
