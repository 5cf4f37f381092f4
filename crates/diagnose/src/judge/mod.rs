//! From events and facts to one verdict: causes, not matches.

mod candidates;
mod conditions;
mod ends;
mod fill;
mod gpu;
mod net;
mod signs;
mod size;
mod state;
mod tell;
mod verdict;
mod view;

use shakedown_model::{Covered, Diagnosis};

pub(crate) use fill::fill;
pub use signs::Sign;

use crate::catalog::Catalog;
use crate::facts::Facts;
use crate::log::Scanned;

/// Judges what was read.
pub(crate) fn judge(catalog: &Catalog, facts: &Facts, logs: &[Scanned], covered: Vec<Covered>) -> Diagnosis {
    let view = view::View::new(catalog, facts, logs);
    let sorted = view.sort();
    let decision = view.decide(sorted);
    view.tell(decision, covered)
}
