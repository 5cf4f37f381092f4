//! The working tree against the index and the index against HEAD; untracked files.

use std::collections::{BTreeMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sha2::{Digest, Sha256};
use shakedown_model::{ChangeKind, StackChange, StackCheckout};

use super::ignore::Patterns;
use super::index::{Entry, Index};
use super::objects::{Kind, Objects};
use super::{Oid, Repository};
use crate::files::unified;

const MAX_INDEX: u64 = 512 << 20;
/// Bytes of a file whose contents are compared.
const MAX_FILE: u64 = 64 << 20;
/// Files that are named in each list.
const MAX_NAMED: usize = 200;
const MAX_DEPTH: u32 = 64;

/// Fills in what differs.
pub(super) fn compare(
    repository: &Repository<'_>,
    objects: &Objects<'_>,
    head: Option<Oid>,
    checkout: &mut StackCheckout,
) -> Result<(), &'static str> {
    let path = repository.git.join("index");
    let bytes = match repository.root.read(&path, MAX_INDEX) {
        Ok(bytes) => bytes,
        Err(error) if error.is_absent() => {
            return Err("the checkout has no index: what differs cannot be told");
        }
        Err(_) => return Err("the index cannot be read"),
    };
    let written = repository.root.metadata(&path).map_or(0, |m| m.mtime());
    let index = Index::parse(&bytes).ok_or("the index is of a form that is not known")?;
    let mut dirty: BTreeMap<String, StackChange> = BTreeMap::new();
    for entry in index.entries.iter().filter(|e| !e.skipped) {
        if entry.stage > 0 {
            dirty.insert(entry.path.clone(), change(&entry.path, ChangeKind::Modified));
        } else if let Some(found) = working(repository, objects, entry, written) {
            dirty.insert(entry.path.clone(), found);
        }
    }
    staged(objects, &index, head, &mut dirty);
    checkout.dirty = dirty.into_values().take(MAX_NAMED).collect();
    let tracked: HashSet<&str> = index.entries.iter().map(|e| e.path.as_str()).collect();
    let mut directories: HashSet<&str> = HashSet::new();
    for path in &tracked {
        let mut rest = *path;
        while let Some((parent, _)) = rest.rsplit_once('/') {
            if !directories.insert(parent) {
                break;
            }
            rest = parent;
        }
    }
    let exclude = repository
        .root
        .read_text(&repository.common.join("info/exclude"), 1 << 20)
        .unwrap_or_default();
    let mut walk = Walk {
        repository,
        tracked,
        directories,
        found: Vec::new(),
    };
    walk.directory("", &[(String::new(), Patterns::parse(&exclude))], 0);
    walk.found.sort();
    checkout.untracked = walk.found;
    Ok(())
}

fn change(path: &str, kind: ChangeKind) -> StackChange {
    StackChange {
        package: None,
        path: path.to_owned(),
        kind,
        sha256: None,
        added: None,
        removed: None,
        diff: None,
    }
}

/// Whether a file of the working tree differs from what is staged.
fn working(
    repository: &Repository<'_>,
    objects: &Objects<'_>,
    entry: &Entry,
    written: i64,
) -> Option<StackChange> {
    // A path that leads out of the tree was not written by git.
    if entry
        .path
        .split('/')
        .any(|p| p == ".." || p.is_empty() || p == ".git")
    {
        return None;
    }
    let kind = entry.mode >> 12;
    if kind != 0o10 {
        // Links (012) and submodules (016) carry no code of their own.
        return None;
    }
    let path = repository.tree.join(&entry.path);
    let Ok(meta) = repository.root.metadata(&path) else {
        return Some(change(&entry.path, ChangeKind::Missing));
    };
    let same_size = meta.len() as u32 == entry.size;
    let mtime = (meta.mtime() as u32, meta.mtime_nsec() as u32);
    // Of files changed in the second in which the index was written the time says nothing.
    if same_size && mtime == entry.mtime && meta.mtime() < written {
        return None;
    }
    let now = repository.root.read(&path, MAX_FILE).ok()?;
    let before = match objects.get(&entry.oid) {
        Some((Kind::Blob, data)) => data,
        _ if same_size => return None,
        _ => Vec::new(),
    };
    // What a filter stores is not what it checks out: large files by pointer, other line ends.
    if before == now
        || before.starts_with(b"version https://git-lfs")
        || same_but_for_line_ends(&before, &now)
    {
        return None;
    }
    let mut found = change(&entry.path, ChangeKind::Modified);
    found.sha256 = Some(crate::files::hex(&Sha256::digest(&now)));
    if let Some(diff) = unified(&before, &now, &entry.path) {
        found.added = Some(diff.added);
        found.removed = Some(diff.removed);
        found.diff = Some(diff.text);
    }
    Some(found)
}

fn same_but_for_line_ends(a: &[u8], b: &[u8]) -> bool {
    let plain = |bytes: &[u8]| bytes.iter().copied().filter(|b| *b != b'\r').collect::<Vec<u8>>();
    (a.contains(&b'\r') || b.contains(&b'\r')) && plain(a) == plain(b)
}

/// What is staged and not committed.
fn staged(
    objects: &Objects<'_>,
    index: &Index,
    head: Option<Oid>,
    dirty: &mut BTreeMap<String, StackChange>,
) {
    let Some(tree) = head.and_then(|h| objects.commit(&h)).map(|c| c.tree) else {
        return;
    };
    if index.tree == Some(tree) {
        return;
    }
    let mut committed = BTreeMap::new();
    if list(objects, &tree, "", 0, &mut committed).is_none() {
        return;
    }
    for entry in index.entries.iter().filter(|e| e.stage == 0) {
        match committed.remove(&entry.path) {
            Some(oid) if oid == entry.oid => {}
            Some(oid) => {
                dirty.entry(entry.path.clone()).or_insert_with(|| {
                    let mut found = change(&entry.path, ChangeKind::Modified);
                    let blob = |oid: &Oid| objects.get(oid).map(|(_, data)| data);
                    if let (Some(before), Some(after)) = (blob(&oid), blob(&entry.oid)) {
                        found.sha256 = Some(crate::files::hex(&Sha256::digest(&after)));
                        if let Some(diff) = unified(&before, &after, &entry.path) {
                            found.added = Some(diff.added);
                            found.removed = Some(diff.removed);
                            found.diff = Some(diff.text);
                        }
                    }
                    found
                });
            }
            None => {
                dirty
                    .entry(entry.path.clone())
                    .or_insert_with(|| change(&entry.path, ChangeKind::Added));
            }
        }
    }
    for path in committed.into_keys() {
        dirty
            .entry(path.clone())
            .or_insert_with(|| change(&path, ChangeKind::Missing));
    }
}

fn list(
    objects: &Objects<'_>,
    tree: &Oid,
    prefix: &str,
    depth: u32,
    out: &mut BTreeMap<String, Oid>,
) -> Option<()> {
    if depth > MAX_DEPTH || out.len() > 1_000_000 {
        return None;
    }
    for (mode, name, oid) in objects.tree(tree)? {
        let path = format!("{prefix}{name}");
        match mode >> 12 {
            0o4 => list(objects, &oid, &format!("{path}/"), depth + 1, out)?,
            _ => {
                out.insert(path, oid);
            }
        }
    }
    Some(())
}

struct Walk<'a> {
    repository: &'a Repository<'a>,
    tracked: HashSet<&'a str>,
    directories: HashSet<&'a str>,
    found: Vec<String>,
}

impl Walk<'_> {
    fn directory(&mut self, relative: &str, outer: &[(String, Patterns)], depth: u32) {
        if depth > MAX_DEPTH {
            return;
        }
        let place = self.repository.tree.join(relative);
        let mut patterns = outer.to_vec();
        if let Ok(text) = self.repository.root.read_text(&place.join(".gitignore"), 1 << 20) {
            patterns.push((relative.to_owned(), Patterns::parse(&text)));
        }
        for name in self.repository.root.list(&place).unwrap_or_default() {
            if name == ".git" || self.found.len() >= MAX_NAMED {
                continue;
            }
            let path = if relative.is_empty() {
                name.clone()
            } else {
                format!("{relative}/{name}")
            };
            if self.tracked.contains(path.as_str()) {
                continue;
            }
            let full = place.join(&name);
            let is_link = self.repository.root.is_link(&full);
            let is_directory = !is_link && self.repository.root.is_dir(&full);
            let known = is_directory && self.directories.contains(path.as_str());
            if !known && ignored(&patterns, &path, is_directory) {
                continue;
            }
            if known {
                self.directory(&path, &patterns, depth + 1);
            } else if is_directory {
                // A directory of which nothing is tracked is one line, as in git's own short status.
                if self.has_files(&full, &path, &patterns, depth) {
                    self.found.push(format!("{path}/"));
                }
            } else {
                self.found.push(path);
            }
        }
    }

    fn has_files(&self, full: &Path, relative: &str, patterns: &[(String, Patterns)], depth: u32) -> bool {
        depth < MAX_DEPTH
            && self
                .repository
                .root
                .list(full)
                .unwrap_or_default()
                .iter()
                .any(|name| {
                    let path = format!("{relative}/{name}");
                    let inner = full.join(name);
                    let is_directory =
                        !self.repository.root.is_link(&inner) && self.repository.root.is_dir(&inner);
                    !ignored(patterns, &path, is_directory)
                        && (!is_directory || self.has_files(&inner, &path, patterns, depth + 1))
                })
    }
}

/// What the innermost file that says something says.
fn ignored(patterns: &[(String, Patterns)], path: &str, is_directory: bool) -> bool {
    patterns
        .iter()
        .rev()
        .find_map(|(base, rules)| {
            let inner = if base.is_empty() {
                path
            } else {
                path.strip_prefix(base.as_str())?.strip_prefix('/')?
            };
            rules.verdict(inner, is_directory)
        })
        .unwrap_or(false)
}
