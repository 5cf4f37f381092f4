//! One hash over what affects a server: equal for two stacks exactly when nothing that matters differs.

use sha2::{Digest, Sha256};
use shakedown_model::{PackageOrigin, Stack};

use crate::catalog::Catalog;

/// Absolute places, the number of CPUs, secrets and what only tells where things lie are left out: the same stack in
/// another directory has the same fingerprint.
pub(crate) fn of(stack: &Stack) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut put = |kind: &str, parts: &[&str]| lines.push(format!("{kind}\t{}", parts.join("\t")));
    if let Some(python) = &stack.python {
        put("python", &[&python.version]);
    }
    for package in &stack.packages {
        let origin = match &package.origin {
            PackageOrigin::Vcs { commit, .. } => commit.clone(),
            PackageOrigin::Directory { .. } => "directory".to_owned(),
            PackageOrigin::Editable { .. } => "editable".to_owned(),
            PackageOrigin::Index | PackageOrigin::Archive { .. } => String::new(),
        };
        put("package", &[&package.name, &package.version, &origin]);
    }
    for library in &stack.libraries {
        put(
            "library",
            &[
                &library.name,
                &library.soname,
                library.version.as_deref().unwrap_or_default(),
            ],
        );
    }
    for toolkit in stack.toolkits.iter().filter(|t| !t.selected_by.is_empty()) {
        put("toolkit", &[toolkit.version.as_deref().unwrap_or_default()]);
    }
    for tool in &stack.tools {
        put("tool", &[&tool.name, tool.version.as_deref().unwrap_or_default()]);
    }
    let driver = &stack.driver;
    put(
        "driver",
        &[
            driver.module.as_deref().unwrap_or_default(),
            driver.library.as_deref().unwrap_or_default(),
        ],
    );
    for gpu in &stack.gpus {
        put("gpu", &[&gpu.name, &gpu.pcie_width.unwrap_or(0).to_string()]);
    }
    let host = &stack.host;
    put(
        "host",
        &[
            host.kernel.as_deref().unwrap_or_default(),
            host.glibc.as_deref().unwrap_or_default(),
            host.cpu.as_deref().unwrap_or_default(),
            host.governor.as_deref().unwrap_or_default(),
        ],
    );
    for (name, value) in stack
        .environment
        .iter()
        .filter(|(n, _)| !Catalog::get().is_place(n))
    {
        put("environment", &[name, value]);
    }
    for hook in &stack.hooks {
        let name = hook.path.rsplit('/').next().unwrap_or_default();
        put("hook", &[name, hook.sha256.as_deref().unwrap_or_default()]);
    }
    for change in &stack.changes {
        let kind = format!("{:?}", change.kind);
        put(
            "change",
            &[&kind, &change.path, change.sha256.as_deref().unwrap_or_default()],
        );
    }
    for checkout in &stack.checkouts {
        put(
            "checkout",
            &[&checkout.package, checkout.head.as_deref().unwrap_or_default()],
        );
        for change in &checkout.dirty {
            put(
                "dirty",
                &[&change.path, change.sha256.as_deref().unwrap_or_default()],
            );
        }
    }
    lines.sort_unstable();
    lines.dedup();
    crate::files::hex(&Sha256::digest(lines.join("\n")))
}
