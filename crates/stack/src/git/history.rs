//! The nearest tag behind a commit, and what came after it.

use std::collections::{BinaryHeap, HashMap};

use shakedown_model::StackCheckout;

use super::Oid;
use super::objects::Objects;

/// Commits that are looked at before the search is given up, and that are named.
const MAX_WALK: usize = 50_000;
const MAX_NAMED: usize = 20;

const OF_HEAD: u8 = 1;
const OF_TAG: u8 = 2;

/// Finds the tag, newest commit first, and counts what HEAD has and the tag has not.
pub(super) fn nearest_tag(
    objects: &Objects<'_>,
    head: Oid,
    tags: &[(String, Oid)],
    checkout: &mut StackCheckout,
) {
    let by_commit: HashMap<Oid, &str> = {
        let mut map: HashMap<Oid, &str> = HashMap::new();
        for (name, oid) in tags {
            let known = map.entry(*oid).or_insert(name);
            if name.as_str() > *known {
                *known = name;
            }
        }
        map
    };
    let mut flags: HashMap<Oid, u8> = HashMap::new();
    let mut queue: BinaryHeap<(i64, Oid)> = BinaryHeap::new();
    let mut tag: Option<&str> = None;
    let mut after: Vec<Oid> = Vec::new();
    let Some(first) = objects.commit(&head) else {
        return;
    };
    flags.insert(head, OF_HEAD);
    queue.push((first.time, head));
    let mut walked = 0;
    while let Some((_, oid)) = queue.pop() {
        walked += 1;
        if walked > MAX_WALK {
            return;
        }
        let mut own = flags.get(&oid).copied().unwrap_or(0);
        if tag.is_none()
            && let Some(name) = by_commit.get(&oid)
        {
            tag = Some(name);
            own |= OF_TAG;
            flags.insert(oid, own);
        }
        if own & OF_TAG == 0 {
            after.push(oid);
        }
        let Some(commit) = objects.commit(&oid) else {
            continue;
        };
        for parent in &commit.parents {
            let old = flags.get(parent).copied();
            if old.is_none_or(|f| f | own != f) {
                flags.insert(*parent, old.unwrap_or(0) | own);
                if let Some(parent_commit) = objects.commit(parent) {
                    queue.push((parent_commit.time, *parent));
                }
            }
        }
        // Once the tag is found, what is left is of interest only while something is not of the tag.
        if tag.is_some()
            && queue
                .iter()
                .all(|(_, o)| flags.get(o).is_some_and(|f| f & OF_TAG != 0))
        {
            break;
        }
    }
    // A commit may have been met before it was known to be of the tag.
    after.retain(|oid| flags.get(oid).is_some_and(|f| f & OF_TAG == 0));
    let mut seen = std::collections::HashSet::new();
    after.retain(|oid| seen.insert(*oid));
    checkout.tag = tag.map(str::to_owned);
    checkout.ahead = Some(after.len() as u64);
    if tag.is_some() {
        checkout.commits_after_tag = after
            .iter()
            .take(MAX_NAMED)
            .filter_map(|oid| {
                let subject = &objects.commit(oid)?.subject;
                Some(format!("{} {subject}", crate::files::hex(oid).get(..9)?))
            })
            .collect();
    }
}
