//! Where things of this checkout lie.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// The directory that cargo builds into.
pub(crate) fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// Where engines, models and peers are kept: `SHAKEDOWN_ENGINES`, so that several checkouts can share one, else
/// `engines` in the target directory.
pub(crate) fn engines() -> PathBuf {
    match env::var_os("SHAKEDOWN_ENGINES") {
        Some(dir) => root().join(dir),
        None => target().join("engines"),
    }
}

/// A command that runs cargo: the one that runs this, else the one in the path. Both carry the choice of toolchain on
/// to rustc, which would otherwise take it from a file in a dependency's directory.
pub(crate) fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
}
