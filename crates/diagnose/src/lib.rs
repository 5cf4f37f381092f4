//! Why a server is not up, or that it is: evidence → log events → matches → causes → ranked findings.
//!
//! The entry is [`diagnose`]. What is known of failures is data: `catalog/failures/*.toml`.

mod cases;
pub mod catalog;
mod evidence;
mod facts;
mod judge;
mod log;
mod mask;
mod run;

pub use cases::{Case, CaseError, CaseResult, Cases, Summary, Truth};
pub use catalog::{Catalog, CatalogError, Page};
pub use evidence::{Evidence, EvidenceError, Log, LogPart, Source, facts_from};
pub use facts::{Fact, Facts, FactsError, key};
pub use mask::mask;
pub use run::{DiagnoseError, Diagnoser, diagnose, save};
