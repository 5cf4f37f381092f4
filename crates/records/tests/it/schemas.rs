//! The published schemas are those of the code, and what is written satisfies them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use shakedown_model::{Channel, RunEnd};
use shakedown_records::{Store, schemas};

use crate::sample;

fn published() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas")
}

/// `UPDATE_SCHEMAS=1` writes them anew.
#[test]
fn published_schemas_are_those_of_the_code() {
    for schema in schemas() {
        let path = published().join(schema.file);
        let text = format!("{}\n", serde_json::to_string_pretty(&schema.schema).unwrap());
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            fs::create_dir_all(published()).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let there = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            there == text,
            "{} is out of date: run with UPDATE_SCHEMAS=1",
            path.display()
        );
    }
}

fn validator(file: &str) -> jsonschema::Validator {
    let schema = schemas().into_iter().find(|schema| schema.file == file).unwrap();
    jsonschema::validator_for(&schema.schema).unwrap()
}

fn assert_valid(validator: &jsonschema::Validator, value: &Value) {
    let faults: Vec<String> = validator
        .iter_errors(value)
        .map(|fault| format!("{} at {}", fault, fault.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn a_written_bundle_satisfies_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut document = sample::full_document("20261201-143012-k7q2");
    let writer = Store::at(dir.path()).create(&document).unwrap();
    writer.append(&sample::answer(1, vec![0, 10_000, 9_000])).unwrap();
    let mut odd = sample::answer(2, vec![0, 10_000, 0]);
    odd.channels = vec![(Channel::Reasoning, 1), (Channel::Content, 2)];
    odd.chunk_tokens = None;
    odd.stamps.connect_start = Some(3);
    odd.error = Some("boom".to_owned());
    writer.append(&odd).unwrap();
    writer.append(&sample::answer(3, Vec::new())).unwrap();
    document.end = RunEnd::Complete;
    let path = writer.finish(&document).unwrap();

    let run = validator("shakedown.run.1.json");
    let mut value: Value = serde_json::from_slice(&fs::read(path.join("run.json")).unwrap()).unwrap();
    assert_valid(&run, &value);
    let request = validator("shakedown.request.1.json");
    for line in fs::read_to_string(path.join("requests.jsonl")).unwrap().lines() {
        assert_valid(&request, &serde_json::from_str(line).unwrap());
    }

    // They refuse what is none.
    value["schema"] = "shakedown.run/2".into();
    assert!(!run.is_valid(&value));
    value["schema"] = "shakedown.run/1".into();
    value["end"] = "unknown".into();
    assert!(!run.is_valid(&value));
    let line = fs::read_to_string(path.join("requests.jsonl")).unwrap();
    let mut line: Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
    line["stamps_us"].as_array_mut().unwrap().pop();
    assert!(!request.is_valid(&line));
}
