//! All literals of the catalogue in one automaton, and what each of them may mean.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::{Catalog, CatalogError, Pattern, Stage};

/// What a literal may mean: which pattern to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Use {
    /// A pattern of a failure.
    Failure {
        /// Which failure.
        entry: u16,
        /// Which of its patterns.
        pattern: u8,
    },
    /// A pattern of a stage mark.
    Stage {
        /// Which mark.
        mark: u16,
        /// Which of its patterns.
        pattern: u8,
    },
    /// A pattern of an observation.
    Observe {
        /// Which observation.
        observe: u16,
        /// Which of its patterns.
        pattern: u8,
    },
    /// A word that errors use.
    Generic,
}

/// Words that make a line worth a look even where the catalogue does not know it.
const GENERIC: [&str; 30] = [
    "error",
    "exception",
    "traceback (most",
    "fatal",
    "failed",
    "failure",
    "abort",
    "panic",
    "critical",
    "assert",
    "cannot ",
    "can't ",
    "could not",
    "couldn't",
    "unable to",
    "not found",
    "not supported",
    "denied",
    "refused",
    "timed out",
    "timeout",
    "killed",
    "terminated",
    "signal",
    "segfault",
    "core dumped",
    "unsupported",
    "invalid",
    "out of memory",
    "during handling of",
];

/// The automaton and what its literals mean.
#[derive(Debug)]
pub struct Index {
    /// Finds the literals, letter case aside.
    pub automaton: AhoCorasick,
    uses: Vec<Vec<Use>>,
    /// Literals that only mark a running server: seen once, their later hits need no look.
    pub frequent: Vec<bool>,
}

/// Result of a lookup in one line.
#[derive(Debug, Default)]
pub struct Found {
    /// Patterns to try, each once, in the catalogue's order.
    pub uses: Vec<Use>,
    /// Whether a generic error word stands in the line.
    pub generic: bool,
}

impl Index {
    /// Indexes `catalog`. `large` input is worth a bigger, faster automaton.
    pub fn new(catalog: &Catalog, large: bool) -> Result<Self, CatalogError> {
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut literals: Vec<String> = Vec::new();
        let mut uses: Vec<Vec<Use>> = Vec::new();
        let mut add = |literal: &str, meaning: Use| {
            let literal = literal.to_ascii_lowercase();
            let at = *places.entry(literal.clone()).or_insert_with(|| {
                literals.push(literal);
                uses.push(Vec::new());
                uses.len() - 1
            });
            if let Some(uses) = uses.get_mut(at) {
                uses.push(meaning);
            }
        };
        let each = |patterns: &[Pattern], add: &mut dyn FnMut(&str, u8)| {
            for (number, pattern) in patterns.iter().enumerate() {
                for literal in &pattern.literals {
                    add(literal, u8::try_from(number).unwrap_or(u8::MAX));
                }
            }
        };
        for (number, failure) in catalog.failures.iter().enumerate() {
            let entry = u16::try_from(number).unwrap_or(u16::MAX);
            each(&failure.patterns, &mut |literal, pattern| {
                add(literal, Use::Failure { entry, pattern });
            });
        }
        for (number, stage) in catalog.stages.iter().enumerate() {
            let mark = u16::try_from(number).unwrap_or(u16::MAX);
            each(&stage.patterns, &mut |literal, pattern| {
                add(literal, Use::Stage { mark, pattern });
            });
        }
        for (number, observe) in catalog.observes.iter().enumerate() {
            let observe_number = u16::try_from(number).unwrap_or(u16::MAX);
            each(&observe.patterns, &mut |literal, pattern| {
                add(
                    literal,
                    Use::Observe {
                        observe: observe_number,
                        pattern,
                    },
                );
            });
        }
        for word in GENERIC {
            add(word, Use::Generic);
        }
        let frequent = uses
            .iter()
            .map(|uses| {
                uses.iter().all(|meaning| match meaning {
                    Use::Stage { mark, .. } => catalog
                        .stages
                        .get(usize::from(*mark))
                        .is_some_and(|mark| mark.stage == Stage::Serving),
                    _ => false,
                })
            })
            .collect();
        let kind = if large {
            AhoCorasickKind::DFA
        } else {
            AhoCorasickKind::ContiguousNFA
        };
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(kind))
            .build(&literals)?;
        Ok(Self {
            automaton,
            uses,
            frequent,
        })
    }

    /// What one literal may mean.
    pub fn uses_of(&self, literal: usize) -> &[Use] {
        self.uses.get(literal).map_or(&[], Vec::as_slice)
    }

    /// Everything that stands in `text`.
    pub fn find(&self, text: &str) -> Found {
        let mut found = Found::default();
        for hit in self.automaton.find_overlapping_iter(text) {
            for meaning in self.uses.get(hit.pattern().as_usize()).into_iter().flatten() {
                if *meaning == Use::Generic {
                    found.generic = true;
                } else {
                    found.uses.push(*meaning);
                }
            }
        }
        found.uses.sort_unstable();
        found.uses.dedup();
        found
    }

    /// The literals themselves, for a comparison with another searcher.
    pub fn literals(catalog: &Catalog) -> Vec<String> {
        let mut all: Vec<String> = catalog
            .failures
            .iter()
            .map(|failure| &failure.patterns)
            .chain(catalog.stages.iter().map(|stage| &stage.patterns))
            .chain(catalog.observes.iter().map(|observe| &observe.patterns))
            .flatten()
            .flat_map(|pattern| &pattern.literals)
            .map(|literal| literal.to_ascii_lowercase())
            .chain(GENERIC.iter().map(|word| (*word).to_owned()))
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
