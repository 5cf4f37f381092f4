//! What differs between two stacks, grouped by what could matter, with what is known to follow.

use std::collections::BTreeMap;

use shakedown_model::{
    PackageOrigin, STACK_DIFF_SCHEMA, Stack, StackDiff, StackDiffGroup, StackDifference, StackGroup,
    StackHookKind,
};

use crate::catalog::Catalog;

type Values = BTreeMap<(StackGroup, String), String>;

/// Everything of a stack that is compared: subject and value, by group.
fn values(stack: &Stack) -> Values {
    let mut out = Values::new();
    let mut put = |group: StackGroup, subject: &str, value: String| {
        if !value.is_empty() {
            out.insert((group, subject.to_owned()), value);
        }
    };
    for package in &stack.packages {
        let origin = match &package.origin {
            PackageOrigin::Index => String::new(),
            PackageOrigin::Archive { .. } => " (archive)".to_owned(),
            PackageOrigin::Directory { .. } => " (from source)".to_owned(),
            PackageOrigin::Editable { .. } => " (editable)".to_owned(),
            PackageOrigin::Vcs { commit, .. } => format!(" (commit {})", commit.get(..9).unwrap_or(commit)),
        };
        put(
            package.group,
            &package.name,
            format!("{}{origin}", package.version),
        );
    }
    if let Some(python) = &stack.python {
        put(StackGroup::Python, "python", python.version.clone());
    }
    for (name, value) in &stack.environment {
        if !Catalog::get().is_place(name) {
            put(StackGroup::Settings, name, value.clone());
        }
    }
    for hook in &stack.hooks {
        let file = hook.path.rsplit('/').next().unwrap_or_default();
        let subject = match hook.kind {
            StackHookKind::Sitecustomize => "sitecustomize".to_owned(),
            StackHookKind::Usercustomize => "usercustomize".to_owned(),
            StackHookKind::PthLine | StackHookKind::Preload => file.to_owned(),
        };
        // What a package brings is told by its version.
        if hook.package.is_none() {
            let hash = hook
                .sha256
                .as_deref()
                .map_or("present", |h| h.get(..12).unwrap_or(h));
            put(StackGroup::Patches, &subject, hash.to_owned());
        }
    }
    for change in &stack.changes {
        let mut value = format!("{:?}", change.kind).to_lowercase();
        if let (Some(added), Some(removed)) = (change.added, change.removed) {
            value = format!("{value} (+{added} -{removed})");
        } else if let Some(hash) = &change.sha256 {
            value = format!("{value} ({})", hash.get(..12).unwrap_or(hash));
        }
        put(StackGroup::Patches, &change.path, value);
    }
    for checkout in &stack.checkouts {
        let head = checkout
            .head
            .as_deref()
            .map_or("no commit", |h| h.get(..9).unwrap_or(h));
        let dirty = if checkout.dirty.is_empty() {
            String::new()
        } else {
            format!(", {} changed", checkout.dirty.len())
        };
        put(
            StackGroup::Patches,
            &format!("checkout of {}", checkout.package),
            format!("{head}{dirty}"),
        );
    }
    put(
        StackGroup::Driver,
        "driver",
        stack
            .driver
            .module
            .clone()
            .or(stack.driver.library.clone())
            .unwrap_or_default(),
    );
    if let Some(toolkit) = stack.toolkits.iter().find(|t| !t.selected_by.is_empty()) {
        put(
            StackGroup::Cuda,
            "cuda toolkit",
            toolkit.version.clone().unwrap_or_default(),
        );
    }
    for tool in &stack.tools {
        put(
            StackGroup::Compiler,
            &tool.name,
            tool.version.clone().unwrap_or_default(),
        );
    }
    // A library from a wheel is told by the wheel's version; one from elsewhere is not.
    for library in stack.libraries.iter().filter(|l| l.package.is_none()) {
        put(
            StackGroup::Cuda,
            &library.name,
            library.version.clone().unwrap_or_else(|| library.soname.clone()),
        );
    }
    let mut gpus: BTreeMap<&str, u32> = BTreeMap::new();
    for gpu in &stack.gpus {
        *gpus.entry(&gpu.name).or_default() += 1;
    }
    let gpus: Vec<String> = gpus.iter().map(|(name, n)| format!("{n}x {name}")).collect();
    put(StackGroup::Gpu, "gpus", gpus.join(", "));
    let host = &stack.host;
    for (name, value) in [
        ("kernel", &host.kernel),
        ("os", &host.os),
        ("glibc", &host.glibc),
        ("cpu", &host.cpu),
        ("governor", &host.governor),
    ] {
        put(StackGroup::Host, name, value.clone().unwrap_or_default());
    }
    put(StackGroup::Host, "cpus", host.cpus.to_string());
    put(
        StackGroup::Host,
        "memory GiB",
        (host.memory_mib / 1024).to_string(),
    );
    out
}

/// The name by which two spellings of one thing are compared: the CUDA major version is in the name of NVIDIA's wheels.
fn family(name: &str) -> &str {
    let stem = name
        .strip_suffix("-cu11")
        .or_else(|| name.strip_suffix("-cu12"))
        .or_else(|| name.strip_suffix("-cu13"));
    stem.filter(|_| name.starts_with("nvidia-")).unwrap_or(name)
}

/// Joins values of one family on both sides: `nvidia-nccl-cu12 2.27.3` became `nvidia-nccl-cu13 2.28.9`.
fn by_family(values: Values) -> BTreeMap<(StackGroup, String), (String, String)> {
    values
        .into_iter()
        .map(|((group, name), value)| ((group, family(&name).to_owned()), (name, value)))
        .collect()
}

/// How two stacks differ.
pub fn diff(before: &Stack, after: &Stack) -> StackDiff {
    let (a, b) = (by_family(values(before)), by_family(values(after)));
    let mut groups: BTreeMap<StackGroup, Vec<StackDifference>> = BTreeMap::new();
    for key in a.keys().chain(b.keys().filter(|k| !a.contains_key(k))) {
        let (old, new) = (a.get(key), b.get(key));
        if old == new {
            continue;
        }
        let renamed = matches!((old, new), (Some((x, _)), Some((y, _))) if x != y);
        let show = |side: Option<&(String, String)>| {
            side.map(|(name, value)| {
                if renamed {
                    format!("{name} {value}")
                } else {
                    value.clone()
                }
            })
        };
        let subject = match (old, new) {
            _ if renamed => key.1.clone(),
            (Some((name, _)), _) | (_, Some((name, _))) => name.clone(),
            _ => key.1.clone(),
        };
        let (old_value, new_value) = (old.map(|(_, v)| v.as_str()), new.map(|(_, v)| v.as_str()));
        let consequence = Catalog::get()
            .consequence(&subject, old_value, new_value)
            .map(|c| c.text.clone());
        groups.entry(key.0).or_default().push(StackDifference {
            subject,
            before: show(old),
            after: show(new),
            consequence,
        });
    }
    StackDiff {
        schema: STACK_DIFF_SCHEMA.to_owned(),
        before: before.fingerprint.clone(),
        after: after.fingerprint.clone(),
        groups: groups
            .into_iter()
            .map(|(group, mut differences)| {
                // What has a known consequence comes first within its group.
                differences.sort_by_key(|d| d.consequence.is_none());
                StackDiffGroup { group, differences }
            })
            .collect(),
    }
}

/// The lines of a difference that are worth showing first: group, difference, at most `limit` of them, and how many
/// more there are. No group is left out while another shows more than its share.
pub fn lines(diff: &StackDiff, limit: usize) -> (Vec<(StackGroup, &StackDifference)>, usize) {
    let total: usize = diff.groups.iter().map(|g| g.differences.len()).sum();
    let mut taken: Vec<usize> = vec![0; diff.groups.len()];
    let mut left = limit;
    // Packages of no known role, and the machine's small print, wait until all others have had their turn.
    let late = |group: StackGroup| matches!(group, StackGroup::Other);
    for want_late in [false, true] {
        loop {
            let mut grew = false;
            for (slot, group) in taken.iter_mut().zip(&diff.groups) {
                if left > 0 && late(group.group) == want_late && *slot < group.differences.len() {
                    *slot += 1;
                    left -= 1;
                    grew = true;
                }
            }
            if !grew {
                break;
            }
        }
    }
    let shown: Vec<_> = diff
        .groups
        .iter()
        .zip(taken)
        .flat_map(|(group, n)| group.differences.iter().take(n).map(|d| (group.group, d)))
        .collect();
    let more = total - shown.len();
    (shown, more)
}
