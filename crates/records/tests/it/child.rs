//! The test binary started again as a process of its own.

use std::process::{Command, Stdio};

/// Says to the child where to work.
pub(crate) const DIR: &str = "SHAKEDOWN_TEST_DIR";

/// A command that runs the ignored test `name` alone, with its standard output piped.
pub(crate) fn command(name: &str, dir: &std::path::Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", name, "--ignored", "--nocapture"])
        .env(DIR, dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// The directory that the parent named; `None` when nobody started this as a child.
pub(crate) fn dir() -> Option<std::path::PathBuf> {
    std::env::var_os(DIR).map(Into::into)
}
