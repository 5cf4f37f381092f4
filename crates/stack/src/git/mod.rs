//! Git checkouts, read from their files: no git is run, so no hook, filter, pager or configured program is either.

mod history;
mod ignore;
mod index;
mod objects;
mod status;

use std::path::{Path, PathBuf};

use shakedown_model::{StackCheckout, Unread};

use crate::python::{DirectKind, Environment};
use crate::root::Root;

use objects::Objects;

/// Bytes of refs and link files that anything real has fewer of.
const MAX_REF: u64 = 64 << 10;
const MAX_PACKED_REFS: u64 = 64 << 20;

/// An object's name: SHA-1.
pub(crate) type Oid = [u8; 20];

/// A repository that is laid out as git lays one out.
#[derive(Debug)]
pub(crate) struct Repository<'a> {
    root: &'a Root,
    /// The working tree.
    tree: PathBuf,
    /// The directory of HEAD and the index.
    git: PathBuf,
    /// The directory of refs and objects, which linked working trees share.
    common: PathBuf,
}

pub(crate) fn parse_oid(text: &str) -> Option<Oid> {
    let text = text.trim();
    if text.len() != 40 {
        return None;
    }
    let mut oid = [0; 20];
    for (slot, pair) in oid.iter_mut().zip(text.as_bytes().chunks(2)) {
        *slot = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(oid)
}

impl<'a> Repository<'a> {
    /// The repository whose working tree holds `directory`.
    fn find(root: &'a Root, directory: &Path) -> Option<Self> {
        for tree in directory.ancestors() {
            let place = tree.join(".git");
            let git = if root.is_dir(&place) {
                place
            } else if let Some(text) = root.line(&place) {
                let target = text.strip_prefix("gitdir:")?.trim();
                crate::python::lexical(&tree.join(target))
            } else {
                continue;
            };
            let common = match root.line(git.join("commondir")) {
                Some(text) => crate::python::lexical(&git.join(text)),
                None => git.clone(),
            };
            return Some(Self {
                root,
                tree: tree.to_owned(),
                git,
                common,
            });
        }
        None
    }

    /// The commit that is checked out, and the branch.
    fn head(&self) -> (Option<Oid>, Option<String>) {
        let Some(text) = self.root.line(self.git.join("HEAD")) else {
            return (None, None);
        };
        match text.strip_prefix("ref:").map(str::trim) {
            Some(name) => {
                let branch = name.strip_prefix("refs/heads/").unwrap_or(name).to_owned();
                (self.reference(name), Some(branch))
            }
            None => (parse_oid(&text), None),
        }
    }

    fn reference(&self, name: &str) -> Option<Oid> {
        // A name with `..` would lead out of the refs.
        if name.split('/').any(|p| p == ".." || p.is_empty()) {
            return None;
        }
        for place in [&self.git, &self.common] {
            if let Some(oid) = self
                .root
                .read_text(&place.join(name), MAX_REF)
                .ok()
                .and_then(|t| parse_oid(&t))
            {
                return Some(oid);
            }
        }
        self.packed()
            .into_iter()
            .find(|(n, _, _)| n == name)
            .map(|(_, oid, _)| oid)
    }

    /// The packed refs: name, object, and what an annotated tag stands for.
    fn packed(&self) -> Vec<(String, Oid, Option<Oid>)> {
        let text = self
            .root
            .read_text(&self.common.join("packed-refs"), MAX_PACKED_REFS)
            .unwrap_or_default();
        let mut refs: Vec<(String, Oid, Option<Oid>)> = Vec::new();
        for line in text.lines() {
            if let Some(peeled) = line.strip_prefix('^') {
                if let Some(last) = refs.last_mut() {
                    last.2 = parse_oid(peeled);
                }
            } else if let Some((oid, name)) = line.split_once(' ')
                && let Some(oid) = parse_oid(oid)
            {
                refs.push((name.to_owned(), oid, None));
            }
        }
        refs
    }

    /// The tags: name, and the object that each names, peeled where that is known.
    fn tags(&self, objects: &Objects<'_>) -> Vec<(String, Oid)> {
        let mut tags: Vec<(String, Oid)> = Vec::new();
        let mut loose = Vec::new();
        self.loose_tags(&self.common.join("refs/tags"), "", 0, &mut loose);
        for (name, oid) in loose {
            tags.push((name, objects.peel(oid).unwrap_or(oid)));
        }
        for (name, oid, peeled) in self.packed() {
            if let Some(name) = name.strip_prefix("refs/tags/")
                && !tags.iter().any(|(n, _)| n == name)
            {
                tags.push((name.to_owned(), peeled.unwrap_or(oid)));
            }
        }
        tags
    }

    fn loose_tags(&self, directory: &Path, prefix: &str, depth: u32, out: &mut Vec<(String, Oid)>) {
        if depth > 8 || out.len() > 100_000 {
            return;
        }
        for name in self.root.list(directory).unwrap_or_default() {
            let path = directory.join(&name);
            if self.root.is_dir(&path) {
                self.loose_tags(&path, &format!("{prefix}{name}/"), depth + 1, out);
            } else if let Some(oid) = self
                .root
                .read_text(&path, MAX_REF)
                .ok()
                .and_then(|t| parse_oid(&t))
            {
                out.push((format!("{prefix}{name}"), oid));
            }
        }
    }
}

/// The checkouts behind the editable installations of an environment.
pub(crate) fn checkouts(
    root: &Root,
    environment: &Environment,
    unread: &mut Vec<Unread>,
) -> Vec<StackCheckout> {
    let mut found = Vec::new();
    for distribution in &environment.distributions {
        let Some(direct) = &distribution.direct else {
            continue;
        };
        if direct.kind != DirectKind::Editable {
            continue;
        }
        let Some(directory) = direct.directory() else {
            continue;
        };
        match Repository::find(root, &directory) {
            Some(repository) => found.push(describe(&repository, &distribution.name, unread)),
            None if root.is_dir(&directory) => {}
            None => unread.push(Unread {
                what: directory.display().to_string(),
                why: format!("{} is used from there, and nothing is there", distribution.name),
            }),
        }
    }
    found
}

/// Everything about one checkout.
fn describe(repository: &Repository<'_>, package: &str, unread: &mut Vec<Unread>) -> StackCheckout {
    let objects = Objects::open(repository.root, &repository.common.join("objects"));
    let (head, branch) = repository.head();
    let mut checkout = StackCheckout {
        package: package.to_owned(),
        path: repository.tree.display().to_string(),
        head: head.map(|h| crate::files::hex(&h)),
        branch,
        ..StackCheckout::default()
    };
    if let Some(head) = head {
        let tags = repository.tags(&objects);
        history::nearest_tag(&objects, head, &tags, &mut checkout);
    }
    if let Err(why) = status::compare(repository, &objects, head, &mut checkout) {
        unread.push(Unread {
            what: repository.git.display().to_string(),
            why: why.to_owned(),
        });
    }
    checkout
}
