//! The stack that a server runs on, read from files alone: no Python, no GPU and no server are needed.
//!
//! A [`Root`] is looked at; what is found goes into the document `shakedown.stack/1`, its faults into
//! `shakedown.stack-check/1`, and what two of them differ in into `shakedown.stack-diff/1`.

#![allow(
    clippy::case_sensitive_file_extension_comparisons,
    reason = "file names are case-sensitive where these files lie"
)]
#![allow(clippy::single_match_else, reason = "both arms matter")]

mod catalog;
pub mod check;
mod diff;
pub mod elf;
pub mod fatbin;
pub mod files;
mod fingerprint;
mod git;
pub mod loader;
pub mod machine;
mod mask;
pub mod plan;
pub mod process;
pub mod python;
mod root;
mod show;

pub use catalog::{Catalog, Consequence, Known, KnownGood, Plan, PlanExtension, PlanStep, Switch};
pub use diff::{diff, lines};
pub use root::{Root, RootError};
pub use show::{Options, Reading, read};
