//! `cargo metadata`, read.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// The workspace and, if asked for, everything it resolves to.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) workspace_members: Vec<String>,
}

#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) id: String,
    pub(crate) license: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    pub(crate) kind: Option<String>,
}

impl Metadata {
    /// The workspace's own packages.
    pub(crate) fn workspace() -> Self {
        Self::ask(&["--no-deps"])
    }

    /// The workspace's packages and all that they resolve to on Linux.
    pub(crate) fn resolved() -> Self {
        Self::ask(&["--filter-platform", "x86_64-unknown-linux-gnu"])
    }

    fn ask(args: &[&str]) -> Self {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1"])
            .args(args)
            .current_dir(root())
            .output()
            .unwrap();
        let talk = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "cargo metadata failed:\n{talk}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .iter()
            .filter(|package| self.workspace_members.contains(&package.id))
    }
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
