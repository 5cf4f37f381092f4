//! What was changed by hand: files, hooks, switches, shared paths, checkouts.

use std::collections::BTreeMap;

use shakedown_model::{
    Applicability, ChangeKind, Confidence, Evidence, Finding, PackageOrigin, StackHookKind, Verdict,
};

use super::Facts;
use crate::catalog::{Catalog, Known};

/// Files that a finding names; the others are counted.
const NAMED: usize = 8;

pub(super) fn check(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    files(facts, findings);
    overlaps(facts, findings);
    hooks(facts, findings);
    switches(facts, findings);
    sources(facts, findings);
    unread(facts, findings);
}

fn files(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let mut groups: BTreeMap<(ChangeKind, &str), Vec<&shakedown_model::StackChange>> = BTreeMap::new();
    for change in &facts.stack.changes {
        groups
            .entry((change.kind, change.package.as_deref().unwrap_or("")))
            .or_default()
            .push(change);
    }
    for ((kind, package), changes) in groups {
        let (code, verdict, verb) = match kind {
            ChangeKind::Modified => ("stack-file-modified", Verdict::Warn, "not as installed"),
            ChangeKind::Added => ("stack-file-added", Verdict::Info, "of no package"),
            ChangeKind::Missing => ("stack-file-missing", Verdict::Warn, "missing"),
        };
        // A whole package of which nothing is left, or a module that is gone, stops an import.
        let gone = kind == ChangeKind::Missing
            && changes
                .iter()
                .any(|c| [".py", ".so"].iter().any(|e| c.path.ends_with(e)) || c.path.contains(".so."));
        let names: Vec<&str> = changes.iter().take(NAMED).map(|c| c.path.as_str()).collect();
        let rest = changes.len().saturating_sub(NAMED);
        let more = if rest > 0 {
            format!(" and {rest} more")
        } else {
            String::new()
        };
        let place = if package.is_empty() {
            "beside the packages".to_owned()
        } else {
            format!("in {package}")
        };
        let count = changes.len();
        let mut finding = Finding::new(
            code,
            if gone { Verdict::Fail } else { verdict },
            if package.is_empty() {
                names.first().copied().unwrap_or_default()
            } else {
                package
            },
            format!(
                "{count} file{} {place} {} {verb}: {}{more}",
                if count == 1 { "" } else { "s" },
                if count == 1 { "is" } else { "are" },
                names.join(", ")
            ),
        );
        for change in changes.iter().take(NAMED) {
            let lines = match (change.added, change.removed) {
                (Some(added), Some(removed)) => format!("+{added} -{removed} lines"),
                _ => change.sha256.as_ref().map_or_else(
                    || verb.to_owned(),
                    |h| format!("sha256 {}", h.get(..16).unwrap_or(h)),
                ),
            };
            finding = finding.evidence(Evidence::new(&change.path, lines));
        }
        if kind != ChangeKind::Added && !package.is_empty() {
            let version = facts.version(package).unwrap_or_default();
            finding = finding.fix(
                "install the package again, if this was not meant",
                Some(format!(
                    "pip install --force-reinstall --no-deps '{package}=={version}'"
                )),
                Applicability::Review,
            );
        }
        findings.push(finding);
    }
    for (package, path) in facts.verification.outside.iter().take(20) {
        findings.push(
            Finding::new(
                "stack-record-outside",
                Verdict::Warn,
                package,
                format!("the RECORD of {package} names a file outside the environment: {path}"),
            )
            .why("no installer writes that; it was not followed"),
        );
    }
}

fn overlaps(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    for overlap in &facts.verification.overlaps {
        let names = overlap.packages.join(" and ");
        let kernels = overlap.packages.iter().all(|p| p.contains("kernel"));
        let remove = if kernels {
            "sgl-kernel"
        } else {
            overlap.packages.first().map_or("", String::as_str)
        };
        findings.push(
            Finding::new(
                "stack-overlap",
                if kernels { Verdict::Fail } else { Verdict::Warn },
                overlap.packages.last().cloned().unwrap_or_default(),
                format!(
                    "{names} own the same {} file{} with different contents, for example {}",
                    overlap.files,
                    if overlap.files == 1 { "" } else { "s" },
                    overlap.example
                ),
            )
            .why("the one installed last has overwritten the other, and removing either breaks both")
            .evidence(Evidence::new(&overlap.example, &names))
            .fix(
                "remove both, then install the one that is wanted",
                Some(format!(
                    "pip uninstall -y {} && pip install {}",
                    overlap.packages.join(" "),
                    overlap
                        .packages
                        .iter()
                        .find(|p| *p != remove)
                        .map_or(remove, String::as_str)
                )),
                Applicability::Review,
            ),
        );
    }
}

fn hooks(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    for hook in facts.stack.hooks.iter().filter(|h| h.package.is_none()) {
        let (what, verdict) = match hook.kind {
            StackHookKind::Sitecustomize => {
                ("sitecustomize runs at every start of this Python", Verdict::Warn)
            }
            StackHookKind::Usercustomize => {
                ("usercustomize runs at every start of this Python", Verdict::Warn)
            }
            StackHookKind::PthLine => (
                "a line of a .pth file runs at every start of this Python",
                Verdict::Warn,
            ),
            StackHookKind::Preload => ("LD_PRELOAD puts a library before all others", Verdict::Warn),
        };
        findings.push(
            Finding::new(
                "stack-hook",
                verdict,
                &hook.path,
                format!("{what}: {}", hook.path),
            )
            .why("it can replace anything in the server, and no package brought it")
            .evidence(match hook.line {
                Some(line) => Evidence::at_line(&hook.path, line, &hook.text),
                None => Evidence::new(&hook.path, &hook.text),
            }),
        );
    }
    if let Some(path) = facts.variables.get("PYTHONPATH").filter(|p| !p.is_empty()) {
        findings.push(
            Finding::new(
                "stack-pythonpath",
                Verdict::Info,
                "PYTHONPATH",
                format!("PYTHONPATH comes before the packages: {path}"),
            )
            .why("a module there hides an installed one of the same name"),
        );
    }
    if let Some(path) = facts.variables.get("LD_LIBRARY_PATH").filter(|p| !p.is_empty()) {
        let cuda = path
            .split(':')
            .any(|p| p.contains("cuda") || p.contains("nvidia"));
        findings.push(
            Finding::new(
                "stack-library-path",
                if cuda { Verdict::Warn } else { Verdict::Info },
                "LD_LIBRARY_PATH",
                format!("LD_LIBRARY_PATH comes before RUNPATH and the system's directories: {path}"),
            )
            .why("a CUDA library there may be loaded in place of the one that a package brought"),
        );
    }
}

fn switches(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    for switch in Catalog::get().switches() {
        let Some(value) = facts.variables.get(&switch.name).filter(|v| switch.is_off(v)) else {
            continue;
        };
        findings.push(
            Finding::new(
                "stack-check-disabled",
                Verdict::Warn,
                &switch.name,
                format!("{}={value} turns a check off", switch.name),
            )
            .why(format!("it hides {}", switch.hides))
            .confidence(if switch.known == Known::Unverified {
                Confidence::Likely
            } else {
                Confidence::Certain
            })
            .evidence(Evidence::new("environment", format!("{}={value}", switch.name))),
        );
    }
}

fn sources(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    for checkout in &facts.stack.checkouts {
        let mut parts = Vec::new();
        if let Some(ahead) = checkout.ahead.filter(|n| *n > 0) {
            let tag = checkout.tag.as_deref().unwrap_or("its first commit");
            parts.push(format!(
                "{ahead} commit{} after {tag}",
                if ahead == 1 { "" } else { "s" }
            ));
        }
        if !checkout.dirty.is_empty() {
            let names: Vec<&str> = checkout
                .dirty
                .iter()
                .take(NAMED)
                .map(|c| c.path.as_str())
                .collect();
            parts.push(format!("{} changed ({})", checkout.dirty.len(), names.join(", ")));
        }
        if !checkout.untracked.is_empty() {
            let names: Vec<&str> = checkout
                .untracked
                .iter()
                .take(NAMED)
                .map(String::as_str)
                .collect();
            parts.push(format!(
                "{} not tracked ({})",
                checkout.untracked.len(),
                names.join(", ")
            ));
        }
        let clean = parts.is_empty();
        let head = checkout
            .head
            .as_deref()
            .map_or("no commit", |h| h.get(..12).unwrap_or(h));
        let state = if clean {
            "as committed".to_owned()
        } else {
            parts.join("; ")
        };
        let mut finding = Finding::new(
            "stack-checkout",
            if clean { Verdict::Info } else { Verdict::Warn },
            &checkout.package,
            format!(
                "{} is used from the checkout {} at {head}: {state}",
                checkout.package, checkout.path
            ),
        );
        for commit in checkout.commits_after_tag.iter().take(NAMED) {
            finding = finding.evidence(Evidence::new("commit", commit));
        }
        for change in checkout.dirty.iter().take(NAMED) {
            let stat = match (change.added, change.removed) {
                (Some(a), Some(r)) => format!("+{a} -{r} lines"),
                _ => format!("{:?}", change.kind).to_lowercase(),
            };
            finding = finding.evidence(Evidence::new(&change.path, stat));
        }
        findings.push(finding);
    }
    for package in &facts.stack.packages {
        let seen = facts.stack.checkouts.iter().any(|c| c.package == package.name);
        let origin = match &package.origin {
            PackageOrigin::Directory { url } => url.clone(),
            PackageOrigin::Vcs { url, commit } => format!("{url} at {commit}"),
            PackageOrigin::Editable { url } if !seen => url.clone(),
            _ => continue,
        };
        findings.push(
            Finding::new(
                "stack-source-install",
                Verdict::Info,
                &package.name,
                format!(
                    "{} {} was installed from source: edits before the build cannot be seen",
                    package.name, package.version
                ),
            )
            .evidence(Evidence::new("direct_url.json", origin))
            .fix(
                format!(
                    "compare it with the upstream wheel: --wheel {}-{}-….whl",
                    package.name.replace('-', "_"),
                    package.version
                ),
                None,
                Applicability::Safe,
            ),
        );
    }
}

fn unread(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    for unread in facts.stack.unread.iter().take(20) {
        findings.push(
            Finding::new(
                "stack-unread",
                Verdict::Unknown,
                &unread.what,
                format!("{} could not be read: {}", unread.what, unread.why),
            )
            .why("what it would say is missing from this answer"),
        );
    }
}
