//! What differs.

use shakedown_compare::sort_differences;
use shakedown_model::{Difference, DifferenceKind, Engine, EngineKind, InForce, RunDocument};

use crate::sample::{codes, compared, setting, side_of};

fn with_backend(mut runs: Vec<RunDocument>, backend: &str) -> Vec<RunDocument> {
    for run in &mut runs {
        run.server.in_force = Some(InForce {
            settings: vec![
                setting("attention_backend", backend),
                setting("tp_size", "8"),
                setting("port", "30000"),
            ],
            asked: vec![setting("tp_size", "8")],
        });
    }
    runs
}

#[test]
fn the_backend_in_force_comes_first_without_any_argument() {
    let a = with_backend(side_of("a", 83.9, 4, 0.005, 0.005), "triton");
    let mut b = with_backend(side_of("b", 92.6, 4, 0.005, 0.005), "flashinfer");
    for run in &mut b {
        run.server.environment.insert("NCCL_ALGO".into(), "Ring".into());
        run.server.environment.insert("HF_HOME".into(), "/data".into());
        run.client.kernel = "Linux 6.11".into();
        run.server.in_force.as_mut().unwrap().settings[2].value = "8000".into();
    }
    let comparison = compared(&a, &b);
    let first = &comparison.differences[0];
    assert_eq!(
        (first.kind, first.name.as_str(), first.can_move),
        (DifferenceKind::InForce, "attention_backend", true)
    );
    assert_eq!(
        (first.a.as_deref(), first.b.as_deref()),
        (Some("triton"), Some("flashinfer"))
    );
    assert!(first.note.as_ref().unwrap().contains("the engine chose"));
    assert!(
        comparison
            .differences
            .iter()
            .all(|difference| difference.kind != DifferenceKind::Argument)
    );
    let names: Vec<_> = comparison
        .differences
        .iter()
        .map(|difference| difference.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["attention_backend", "port", "NCCL_ALGO", "HF_HOME", "kernel"]
    );
}

#[test]
fn a_port_on_one_side_only_is_among_the_differences() {
    let a = side_of("a", 89.5, 1, 0.0, 0.005);
    let mut b = side_of("b", 83.9, 1, 0.0, 0.005);
    b[0].server
        .arguments
        .extend(["--port", "8000"].map(str::to_owned));
    let comparison = compared(&a, &b);
    let port = comparison
        .differences
        .iter()
        .find(|difference| difference.name == "--port")
        .unwrap();
    assert_eq!(
        (port.kind, port.a.as_deref(), port.b.as_deref()),
        (DifferenceKind::Argument, None, Some("8000"))
    );
    assert!(!port.can_move, "a port moves no figure");
}

#[test]
fn versions_stacks_and_values_that_vary_within_a_side() {
    let engine = |version: &str| Engine {
        kind: EngineKind::Sglang,
        version: Some(version.into()),
        recognised_by: "/server_info".into(),
        practice: false,
    };
    let mut a = side_of("a", 89.5, 2, 0.005, 0.005);
    let mut b = side_of("b", 83.9, 2, 0.005, 0.005);
    for run in &mut a {
        run.server.engine = Some(engine("0.5.8"));
        run.stack_fingerprint = Some("f1".into());
    }
    for run in &mut b {
        run.server.engine = Some(engine("0.5.9"));
        run.stack_fingerprint = Some("f2".into());
    }
    b[1].server.arguments.push("--enable-metrics".into());
    let comparison = compared(&a, &b);
    let seen: Vec<_> = comparison
        .differences
        .iter()
        .map(|difference| (difference.kind, difference.name.as_str(), difference.b.as_deref()))
        .collect();
    assert_eq!(
        seen,
        [
            (DifferenceKind::Engine, "version", Some("0.5.9")),
            (
                DifferenceKind::Argument,
                "--enable-metrics",
                Some("(absent) | given")
            ),
            (DifferenceKind::Stack, "fingerprint", Some("f2")),
        ]
    );
    assert_eq!(
        comparison.differences[1].note.as_deref(),
        Some("it varies among the runs of B")
    );
}

#[test]
fn an_engine_that_does_not_tell_lacks_nothing() {
    let a = with_backend(side_of("a", 89.5, 1, 0.0, 0.005), "triton");
    let mut b = side_of("b", 83.9, 1, 0.0, 0.005);
    b[0].server.in_force = None;
    let comparison = compared(&a, &b);
    assert!(comparison.differences.is_empty(), "{:?}", comparison.differences);
    let note = comparison
        .notes
        .iter()
        .find(|note| note.code == "in-force-unknown")
        .unwrap();
    assert!(note.what.starts_with("B does not tell"), "{}", note.what);
    assert!(
        !codes(&compared(
            &a,
            &with_backend(side_of("b", 83.9, 1, 0.0, 0.005), "triton")
        ))
        .contains(&"in-force-unknown")
    );
}

#[test]
fn differences_from_elsewhere_are_sorted_in() {
    let difference = |kind, name: &str, can_move| Difference {
        kind,
        name: name.into(),
        a: None,
        b: None,
        can_move,
        note: None,
    };
    let mut all = vec![
        difference(DifferenceKind::Gpu, "clock", true),
        difference(DifferenceKind::Argument, "--port", false),
        difference(DifferenceKind::Patch, "layernorm.py", true),
        difference(DifferenceKind::Argument, "--tp", true),
        difference(DifferenceKind::InForce, "tp_size", true),
    ];
    sort_differences(&mut all, &["tp_size".into(), "tp".into()]);
    let names: Vec<_> = all.iter().map(|difference| difference.name.as_str()).collect();
    assert_eq!(names, ["tp_size", "--tp", "--port", "layernorm.py", "clock"]);
}
