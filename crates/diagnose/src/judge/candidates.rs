//! Explanations: catalogue entries that matched and stood their conditions, and which of them is the cause.

use std::collections::{BTreeMap, BTreeSet};

use shakedown_model::{Evidence, Provenance};

use super::conditions::{Asked, Holds};
use super::view::{Placed, View};
use crate::catalog::{Failure, Role};
use crate::log::{How, Level};

/// From this weight on an explanation can be certain.
pub(super) const CERTAIN: u8 = 90;
/// From this weight on an explanation is likely.
pub(super) const LIKELY: u8 = 60;
/// Explanations this close in weight are equals, and the earlier one is the cause.
const EQUALS: u8 = 6;

/// An explanation that stands.
pub(super) struct Candidate<'a> {
    pub(super) failure: &'a Failure,
    /// Its events, in order; empty where only facts show it.
    pub(super) events: Vec<Placed<'a>>,
    /// How much speaks for it, 0 to 100.
    pub(super) weight: u8,
    /// Whether it ended something: an exception, or a line as loud as one.
    pub(super) fatal: bool,
    /// What confirmed it, with the sentence of the catalogue.
    pub(super) confirmed: Vec<(String, Evidence)>,
    /// What fills its sentences.
    pub(super) captures: Vec<(String, String)>,
    /// Codes and first events of what it explains.
    pub(super) folded: Vec<Folded<'a>>,
}

/// Something that a cause explains.
pub(super) struct Folded<'a> {
    pub(super) failure: &'a Failure,
    pub(super) first: Option<Placed<'a>>,
    pub(super) count: u64,
}

/// An explanation that does not stand.
pub(super) struct Dropped<'a> {
    pub(super) failure: &'a Failure,
    pub(super) first: Option<Placed<'a>>,
    pub(super) reason: String,
    pub(super) evidence: Option<Evidence>,
}

/// All entries, sorted by what became of them.
#[derive(Default)]
pub(super) struct Sorted<'a> {
    /// Possible causes.
    pub(super) causes: Vec<Candidate<'a>>,
    /// What only says that something is wrong.
    pub(super) symptoms: Vec<Candidate<'a>>,
    /// What only follows.
    pub(super) cascades: Vec<Candidate<'a>>,
    /// What looks bad and means nothing.
    pub(super) benign: Vec<Candidate<'a>>,
    /// Asked for and not in force.
    pub(super) off: Vec<Candidate<'a>>,
    /// Considered and dropped.
    pub(super) dropped: Vec<Dropped<'a>>,
    /// Places of the events of which a standing explanation speaks.
    pub(super) spoken_of: BTreeSet<usize>,
}

impl<'a> Candidate<'a> {
    /// Place of its first event; facts alone come before everything.
    pub(super) fn order(&self) -> usize {
        self.events.first().map_or(0, |placed| placed.order)
    }

    /// Place of its last event.
    pub(super) fn last_order(&self) -> usize {
        self.events.last().map_or(0, |placed| placed.order)
    }

    /// Lines that say so.
    pub(super) fn count(&self) -> u64 {
        self.events.iter().map(|placed| placed.event.count).sum()
    }

    fn fold(self, into: &mut Vec<Folded<'a>>) {
        into.push(Folded {
            failure: self.failure,
            first: self.events.first().copied(),
            count: self.count(),
        });
        into.extend(self.folded);
    }
}

/// Whether `cause` says that it explains `other`.
pub(super) fn explains(cause: &Failure, other: &Failure) -> bool {
    cause.folds.iter().any(|name| {
        name == &other.code
            || name.strip_prefix("class:").is_some_and(|class| {
                other.class == class
                    || class
                        .strip_suffix(".*")
                        .is_some_and(|area| other.class.split('.').next() == Some(area))
            })
            || name
                .strip_prefix("family:")
                .is_some_and(|family| other.family == family)
    })
}

impl<'a> View<'a> {
    /// Every entry that matched, or that facts alone can show, judged by its conditions.
    pub(super) fn sort(&self) -> Sorted<'a> {
        let mut by_entry: BTreeMap<usize, Vec<Placed<'a>>> = BTreeMap::new();
        for placed in &self.events {
            for hit in &placed.event.hits {
                by_entry.entry(hit.entry).or_default().push(*placed);
            }
        }
        for (entry, failure) in self.catalog.failures.iter().enumerate() {
            if failure.patterns.is_empty() {
                by_entry.entry(entry).or_default();
            }
        }
        let mut sorted = Sorted::default();
        let (harmless, others): (Vec<_>, Vec<_>) = by_entry
            .into_iter()
            .filter_map(|(entry, events)| Some((entry, self.failure(entry)?, events)))
            .partition(|(_, failure, _)| failure.role == Role::Benign);
        for (entry, failure, events) in harmless {
            self.weigh(entry, failure, &events, &mut sorted);
        }
        // What a line that means nothing quotes is no failure.
        let quiet: BTreeSet<usize> = sorted
            .benign
            .iter()
            .flat_map(|candidate| &candidate.events)
            .map(|placed| placed.order)
            .collect();
        for (entry, failure, mut events) in others {
            let asked = events.len();
            if failure.role == Role::Cause && !failure.when_up {
                events.retain(|placed| !quiet.contains(&placed.order));
            }
            if asked == 0 || !events.is_empty() {
                self.weigh(entry, failure, &events, &mut sorted);
            }
        }
        for list in [
            &mut sorted.causes,
            &mut sorted.symptoms,
            &mut sorted.cascades,
            &mut sorted.benign,
            &mut sorted.off,
        ] {
            list.sort_by_key(|candidate| (candidate.order(), u8::MAX - candidate.weight));
            sorted.spoken_of.extend(
                list.iter()
                    .flat_map(|candidate| &candidate.events)
                    .map(|placed| placed.order),
            );
        }
        sorted
    }

    fn weigh(&self, entry: usize, failure: &'a Failure, events: &[Placed<'a>], sorted: &mut Sorted<'a>) {
        // Each line is asked by itself first, so that one refuted line does not speak for another.
        let asked = Asked::new(self, events);
        for condition in &failure.require {
            match asked.holds(condition) {
                Holds::Yes(_) => {}
                Holds::No(evidence) => {
                    if let (Some(says), false) = (&condition.says, events.is_empty()) {
                        sorted.dropped.push(Dropped {
                            failure,
                            first: events.first().copied(),
                            reason: says.clone(),
                            evidence,
                        });
                    }
                    return;
                }
                // That something is not so may be taken as long as nothing says otherwise.
                Holds::NotGiven if condition.not => {}
                Holds::NotGiven => return,
            }
        }
        for condition in &failure.refute {
            if let Holds::Yes(evidence) = asked.holds(condition) {
                sorted.dropped.push(Dropped {
                    failure,
                    first: events.first().copied(),
                    reason: condition.says.clone().unwrap_or_default(),
                    evidence,
                });
                return;
            }
        }
        let mut weight = failure.weight;
        let mut confirmed = Vec::new();
        for condition in &failure.require {
            if let (Some(says), Holds::Yes(Some(evidence))) = (&condition.says, asked.holds(condition)) {
                confirmed.push((says.clone(), evidence));
            }
        }
        for condition in &failure.confirm {
            if let Holds::Yes(evidence) = asked.holds(condition) {
                weight = weight.max(condition.to.unwrap_or(95));
                if let Some(evidence) = evidence {
                    confirmed.push((condition.says.clone().unwrap_or_default(), evidence));
                }
            }
        }
        if failure.known == Provenance::Unverified {
            weight = weight.min(CERTAIN - 1);
        }
        let fatal = events.iter().any(|placed| {
            placed.event.said.is_some() || placed.event.level.is_some_and(|level| level >= Level::Error)
        });
        let mut captures: Vec<(String, String)> = Vec::new();
        for placed in events {
            for hit in placed.event.hits.iter().filter(|hit| hit.entry == entry) {
                captures.extend(hit.captures.iter().cloned());
            }
        }
        captures.extend(asked.captures.take());
        let candidate = Candidate {
            failure,
            events: events.to_vec(),
            weight,
            fatal,
            confirmed,
            captures,
            folded: Vec::new(),
        };
        match failure.role {
            Role::Cause => sorted.causes.push(candidate),
            Role::Symptom => sorted.symptoms.push(candidate),
            Role::Cascade => sorted.cascades.push(candidate),
            Role::Benign => sorted.benign.push(candidate),
            Role::NotInForce => sorted.off.push(candidate),
        }
    }

    /// Whether `later` is another wording of `first`: the same line, or an exception raised from its exception.
    fn same_story(&self, first: &Candidate<'a>, later: &Candidate<'a>) -> bool {
        let (Some(a), Some(b)) = (first.events.first(), later.events.first()) else {
            return false;
        };
        if a.order == b.order {
            return true;
        }
        match (self.trace_of(a), self.trace_of(b)) {
            (Some((trace, _)), Some((other, _))) => std::ptr::eq(trace, other),
            _ => false,
        }
    }

    /// Whether the two speak of different exceptions of one traceback, not of lines of one message.
    fn other_exception(one: &Candidate<'a>, other: &Candidate<'a>) -> bool {
        let said = |candidate: &Candidate<'a>| candidate.events.first().and_then(|placed| placed.event.said);
        said(one) != said(other)
    }

    /// Whether the exception of `outer` was raised while that of `inner` was being handled, not because of it.
    fn only_during(&self, inner: &Candidate<'a>, outer: &Candidate<'a>) -> bool {
        let (Some(a), Some(b)) = (inner.events.first(), outer.events.first()) else {
            return false;
        };
        match (self.trace_of(a), self.trace_of(b)) {
            (Some((trace, from)), Some((other, to))) if std::ptr::eq(trace, other) && to > from => {
                trace.chain.get(to).is_some_and(|raised| {
                    raised.how == How::During
                        && !repeats(
                            &raised.message,
                            trace.chain.get(from).map_or("", |inner| &inner.message),
                        )
                })
            }
            _ => false,
        }
    }

    /// Puts explanations that tell one story together and orders the rest: the cause first.
    pub(super) fn rank(&self, causes: Vec<Candidate<'a>>) -> Vec<Candidate<'a>> {
        // What an explanation names as its consequence is folded under it, the weightiest explanation first.
        let mut by_weight = causes;
        by_weight.sort_by_key(|candidate| {
            (
                u8::MAX - candidate.weight,
                candidate.events.is_empty(),
                candidate.order(),
            )
        });
        let mut roots: Vec<Candidate<'a>> = Vec::new();
        for candidate in by_weight {
            let named = roots.iter().position(|root| {
                explains(root.failure, candidate.failure) && !explains(candidate.failure, root.failure)
            });
            if let Some(at) = named {
                if let Some(root) = roots.get_mut(at) {
                    candidate.fold(&mut root.folded);
                }
                continue;
            }
            // A lighter explanation that names a weightier one as its consequence takes it over.
            let mut own = candidate;
            let mut at = 0;
            while at < roots.len() {
                if explains(own.failure, roots[at].failure)
                    && !explains(roots[at].failure, own.failure)
                    && own.order() <= roots[at].order()
                    && own.weight >= LIKELY
                {
                    let root = roots.remove(at);
                    root.fold(&mut own.folded);
                } else {
                    at += 1;
                }
            }
            let same = roots.iter().position(|root| self.same_story(root, &own));
            match same {
                Some(at) => {
                    let root = &roots[at];
                    // The original exception is the cause, unless it is much the weaker reading of the two, or the
                    // later one was only raised while it was being handled.
                    let original = own.order() < root.order()
                        && Self::other_exception(&own, root)
                        && own.weight + 15 >= root.weight
                        && !self.only_during(&own, root);
                    if original {
                        let root = roots.remove(at);
                        root.fold(&mut own.folded);
                        roots.push(own);
                    } else if let Some(root) = roots.get_mut(at) {
                        own.fold(&mut root.folded);
                    }
                }
                None => roots.push(own),
            }
        }
        let best = roots.iter().map(|root| root.weight).max().unwrap_or(0);
        let near = |root: &Candidate<'_>| root.weight + EQUALS >= best;
        roots.sort_by_key(|root| {
            (
                !near(root),
                if near(root) { 0 } else { u8::MAX - root.weight },
                !root.fatal,
                root.order(),
            )
        });
        roots
    }
}

/// Whether the outer exception's message repeats the inner one's.
pub(super) fn repeats(outer: &str, inner: &str) -> bool {
    let inner = inner.lines().next().unwrap_or("").trim();
    let core: String = inner.chars().take(60).collect();
    core.len() >= 12 && outer.contains(&core)
}
