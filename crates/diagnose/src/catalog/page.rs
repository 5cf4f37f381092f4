//! The page of one entry, for `explain CODE` and for the documentation's list.

use serde::Serialize;
use shakedown_model::{Fix, Provenance};

use super::{Catalog, Failure, Role};
use crate::judge::fill;

/// Everything that the catalogue says of one code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Page {
    /// Stable code.
    pub code: String,
    /// What it is, in a few words.
    pub title: String,
    /// Group of kinds.
    pub family: String,
    /// The kind.
    pub class: String,
    /// How it is known.
    pub known: Provenance,
    /// Whether it is a cause, a consequence, or harmless.
    pub role: &'static str,
    /// The cause, with general words for what a log would fill in.
    pub what: String,
    /// Why it is so.
    pub why: String,
    /// How to mend it.
    pub fixes: Vec<Fix>,
    /// How to prove it mended.
    pub verify: Option<String>,
    /// What it is recognised by.
    pub recognised_by: Vec<String>,
    /// What speaks for it.
    pub confirmed_by: Vec<String>,
    /// What speaks against it.
    pub ruled_out_by: Vec<String>,
    /// What only follows from it.
    pub leads_to: Vec<String>,
    /// Where it was read.
    pub source: String,
}

impl Page {
    fn new(failure: &Failure) -> Self {
        let general = |text: &str| fill(text, &|_| None);
        let says = |conditions: &[super::Condition]| {
            conditions
                .iter()
                .filter_map(|condition| condition.says.as_deref().map(general))
                .collect()
        };
        Self {
            code: failure.code.clone(),
            title: failure.title.clone(),
            family: failure.family.clone(),
            class: failure.class.clone(),
            known: failure.known,
            role: match failure.role {
                Role::Cause => "cause",
                Role::Symptom => "symptom",
                Role::Cascade => "consequence",
                Role::Benign => "harmless",
                Role::NotInForce => "asked for and not in force",
            },
            what: general(&failure.what),
            why: general(&failure.why),
            fixes: failure
                .fixes
                .iter()
                .map(|fix| Fix {
                    text: general(&fix.text),
                    command: fix.run.as_deref().map(general),
                    applicability: fix.risk,
                })
                .collect(),
            verify: failure.verify.as_deref().map(general),
            recognised_by: failure
                .patterns
                .iter()
                .flat_map(|pattern| pattern.literals.iter().cloned())
                .collect(),
            confirmed_by: says(&failure.confirm),
            ruled_out_by: says(&failure.refute),
            leads_to: failure.folds.clone(),
            source: failure.source.clone(),
        }
    }
}

impl Catalog {
    /// The page of `code`.
    pub fn explain(&self, code: &str) -> Option<Page> {
        self.get(code).map(Page::new)
    }

    /// All pages, in the catalogue's order.
    pub fn pages(&self) -> Vec<Page> {
        self.failures.iter().map(Page::new).collect()
    }
}
