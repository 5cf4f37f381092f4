//! Integration tests of `shakedown-diagnose`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

mod bad_input;
mod cases;
mod catalog;
mod healthy;
mod launches;
mod mutations;
mod prop;
mod secrets;
mod states;

use std::path::PathBuf;
use std::sync::LazyLock;

use shakedown_diagnose::{Diagnoser, Evidence, Facts};
use shakedown_model::Diagnosis;

/// One catalogue for all tests: loading it is most of a diagnosis of a small log.
pub static DIAGNOSER: LazyLock<Diagnoser> = LazyLock::new(|| Diagnoser::new().unwrap());

/// The test data.
pub fn cases_dir(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cases")
        .join(name)
}

/// Judges one log with facts in JSON.
pub fn judge(log: &str, facts: &str) -> Diagnosis {
    let facts = if facts.is_empty() {
        Facts::new()
    } else {
        Facts::from_json(facts.as_bytes()).unwrap()
    };
    DIAGNOSER
        .diagnose(
            Evidence::new()
                .with_log("server.log", log.as_bytes())
                .with_facts(facts),
        )
        .unwrap()
}

/// Code of the verdict.
pub fn code(diagnosis: &Diagnosis) -> &str {
    &diagnosis.first().unwrap().finding.code
}

/// Line numbers that the verdict quotes.
pub fn lines(diagnosis: &Diagnosis) -> Vec<u64> {
    diagnosis
        .first()
        .unwrap()
        .finding
        .evidence
        .iter()
        .filter_map(|evidence| evidence.line)
        .collect()
}
