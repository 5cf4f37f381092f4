//! The reference documents name everything that the program can print.

use std::collections::BTreeSet;
use std::fs;

use schemars::{JsonSchema, schema_for};
use serde_json::Value;
use shakedown_model::{
    AcceptanceSource, ClientHealth, Exit, Metrics, Phase, RequestOutcome, Stamps, TokenSource, Truth,
};

use crate::metadata::root;

fn read(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap()
}

/// The words in `code` spans of a document.
fn code_words(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The words of an enum of words, as its schema lists them.
fn words<T: JsonSchema>() -> Vec<String> {
    let schema = schema_for!(T).to_value();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let all: Vec<String> = match &schema["oneOf"] {
        Value::Array(variants) => variants
            .iter()
            .flat_map(|variant| match &variant["const"] {
                Value::Null => variant["enum"].as_array().unwrap().iter().map(word).collect(),
                one => vec![word(one)],
            })
            .collect(),
        _ => schema["enum"].as_array().unwrap().iter().map(word).collect(),
    };
    assert!(all.len() > 1);
    all
}

/// The members of a struct, as its schema lists them.
fn members<T: JsonSchema>() -> Vec<String> {
    let schema = schema_for!(T).to_value();
    let all: Vec<String> = schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert!(all.len() > 1);
    all
}

#[test]
fn every_figure_is_defined() {
    let text = read("metrics.md");
    let defined = code_words(&text);
    let all = [
        members::<Metrics>(),
        members::<ClientHealth>(),
        members::<Stamps>(),
        words::<AcceptanceSource>(),
        words::<RequestOutcome>(),
        words::<TokenSource>(),
    ];
    let missing: Vec<String> = all
        .into_iter()
        .flatten()
        .filter(|word| !defined.contains(word.as_str()))
        .collect();
    assert!(missing.is_empty(), "docs/metrics.md does not define {missing:?}");
    let unexplained: Vec<String> = members::<Truth>()
        .into_iter()
        // The number of chunks compared needs no definition.
        .filter(|word| word != "chunks" && !defined.contains(word.as_str()))
        .collect();
    assert!(
        unexplained.is_empty(),
        "docs/metrics.md does not define {unexplained:?}"
    );
    for phase in words::<Phase>() {
        let row = format!("| {} |", phase.replace("warmup", "warm-up"));
        assert!(
            text.contains(&row),
            "docs/metrics.md has no row for the phase {phase}"
        );
    }
}

/// Rows of the outcomes table: the outcomes in the first cell, the word in the second.
#[test]
fn every_outcome_is_called_what_it_is() {
    let text = read("metrics.md");
    let mut documented = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        for word in code_words(cells[0]) {
            let Ok(outcome) = serde_json::from_value::<RequestOutcome>(Value::from(word)) else {
                continue;
            };
            let expected = match (outcome.is_success(), outcome.is_failure()) {
                (true, _) => "yes",
                (_, true) => "no",
                _ => "neither",
            };
            assert_eq!(cells[1], expected, "{word}");
            documented.insert(word.to_owned());
        }
    }
    assert_eq!(documented, words::<RequestOutcome>().into_iter().collect());
}

/// Every exit code, in order. A new one does not compile here before it is added.
fn exits() -> Vec<u8> {
    let next = |exit: Exit| match exit {
        Exit::Yes => Some(Exit::No),
        Exit::No => Some(Exit::Usage),
        Exit::Usage => Some(Exit::Unreachable),
        Exit::Unreachable => Some(Exit::Nothing),
        Exit::Nothing => Some(Exit::NotEnoughEvidence),
        Exit::NotEnoughEvidence => Some(Exit::Remote),
        Exit::Remote => Some(Exit::Bug),
        Exit::Bug => Some(Exit::Interrupted),
        Exit::Interrupted => None,
    };
    std::iter::successors(Some(Exit::Yes), |exit| next(*exit))
        .map(Exit::code)
        .collect()
}

#[test]
fn every_exit_code_is_in_the_table() {
    let text = read("exit-codes.md");
    let documented: Vec<u8> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok())
        .collect();
    assert_eq!(documented, exits());
}
