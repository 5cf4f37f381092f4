//! The built-in catalogue is sound, and a user's directory adds to it.

use std::collections::BTreeSet;
use std::path::Path;

use shakedown_engines::catalog::{Catalog, KINDS, check_built_in};
use shakedown_model::EngineKind;

#[test]
fn every_entry_parses_and_every_sample_behaves() {
    let faults = check_built_in();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn every_kind_has_a_file_of_its_name_and_every_file_a_kind() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog/engines");
    let files: BTreeSet<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let kinds: BTreeSet<String> = KINDS
        .iter()
        .map(|kind| format!("{}.toml", kind.as_str()))
        .collect();
    assert_eq!(files, kinds);
}

#[test]
fn nothing_forbidden_is_allowed_by_any_engine() {
    let catalog = Catalog::built_in();
    for entry in catalog.entries() {
        for path in &entry.probes.never {
            assert!(!catalog.allows(path), "{path} of {}", entry.kind);
        }
        for path in &entry.probes.allow {
            assert!(
                catalog.allows(path),
                "{path} of {} is forbidden by another engine",
                entry.kind
            );
        }
    }
    for path in [
        "/terminate",
        "/flush_cache",
        "/health_generate",
        "/perf_metrics",
        "/load_model",
        "/v1/chat/completions",
        "/generate",
    ] {
        assert!(!catalog.allows(path), "{path}");
    }
}

#[test]
fn identity_orders_are_the_classifiers() {
    let catalog = Catalog::built_in();
    let order_of = |kind: EngineKind| {
        catalog
            .entry(kind)
            .identity
            .iter()
            .map(|rule| rule.order)
            .min()
            .unwrap()
    };
    let expected = [
        EngineKind::Practice,
        EngineKind::LlamaCpp,
        EngineKind::Ollama,
        EngineKind::SglangRouter,
        EngineKind::Nim,
        EngineKind::Sglang,
        EngineKind::Tgi,
        EngineKind::Dynamo,
        EngineKind::Vllm,
        EngineKind::TensorRtLlm,
        EngineKind::LmDeploy,
    ];
    let orders: Vec<u32> = expected.iter().map(|kind| order_of(*kind)).collect();
    assert!(orders.windows(2).all(|pair| pair[0] < pair[1]), "{orders:?}");
    let mut all: Vec<u32> = catalog
        .entries()
        .flat_map(|entry| entry.identity.iter().map(|rule| rule.order))
        .collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "two rules share a place");
}

#[test]
fn default_ports() {
    let catalog = Catalog::built_in();
    let ports = catalog.default_ports();
    for port in [30000, 8000, 8080, 9931, 3000, 80, 11434, 23333, 1234] {
        assert!(ports.contains(&port), "{port}");
    }
    assert_eq!(catalog.entry(EngineKind::Sglang).listen[0].port, 30000);
}

#[test]
fn a_user_adds_and_overrides() {
    let directory = tempfile::tempdir().unwrap();
    let engines = directory.path().join("engines");
    std::fs::create_dir(&engines).unwrap();
    std::fs::write(
        engines.join("sglang.toml"),
        r#"
kind = "sglang"
listen = [{ host = "0.0.0.0", port = 31000 }]
[[process]]
field = "command"
role = "head"
pattern = { literals = ["our_launcher"], regex = '^our_launcher\.py' }
matches = ["python3 our_launcher.py"]
differs = ["vim our_launcher.py"]
[[flag]]
setting = "port"
names = ["--our-port"]
"#,
    )
    .unwrap();
    std::fs::write(engines.join("bad.toml"), "kind = 'vllm'\nunknown = 1").unwrap();
    std::fs::write(
        engines.join("bad2.toml"),
        "kind='vllm'\n[[process]]\nfield='title'\nrole='head'\npattern={literals=['x'],regex='('}\nmatches=['x']\ndiffers=['y']",
    )
    .unwrap();
    let catalog = Catalog::with_user(directory.path());
    assert_eq!(catalog.problems().len(), 2, "{:?}", catalog.problems());
    let entry = catalog.entry(EngineKind::Sglang);
    assert_eq!(entry.listen[0].port, 31000);
    assert_eq!(entry.listen[1].port, 30000);
    let ports: Vec<_> = entry.flag.iter().filter(|flag| flag.setting == "port").collect();
    assert_eq!(ports.len(), 1);
    assert_eq!(ports[0].names, ["--our-port"]);
    assert!(entry.process[0].pattern.is_match("our_launcher.py"));
    assert!(entry.process.len() > 1);
    // The others are as built in.
    assert_eq!(catalog.entry(EngineKind::Vllm).listen[0].port, 8000);
}

#[test]
fn a_missing_directory_is_no_problem() {
    let catalog = Catalog::with_user(Path::new("/nonexistent"));
    assert!(catalog.problems().is_empty());
    assert_eq!(catalog.entry(EngineKind::Ollama).listen[0].port, 11434);
}
