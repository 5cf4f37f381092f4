//! The dynamic loader, simulated: which files a process would map, in which order, and what it would lack.
//!
//! The rules are glibc's (`dl-load.c`, `dl-deps.c`, `dl-lookup.c`, `dl-version.c`). "Loads" never means "the ABI
//! fits": it means that every library, version and symbol is found.

mod cache;
mod process;
mod search;

pub use cache::{Cache, CacheEntry};
pub use process::{Fault, Loaded, ObjectId, Opened, Process};
pub use search::{Search, Via};
