//! The stack that a server runs on, read from files alone: no Python, no GPU and no server are needed.
//!
//! A [`Root`] is looked at; what is found goes into the document `shakedown.stack/1`, its faults into
//! `shakedown.stack-check/1`, and what two of them differ in into `shakedown.stack-diff/1`.

pub mod elf;
pub mod fatbin;
pub mod loader;
mod mask;
pub mod python;
mod root;

pub use root::{Root, RootError};
