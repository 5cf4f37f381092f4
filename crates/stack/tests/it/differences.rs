//! The two sides of the story: one upgrade, twelve changes, read like a changelog.

use shakedown_model::{
    ChangeKind, Stack, StackChange, StackGpu, StackGroup, StackHook, StackHookKind, StackPackage,
    StackToolkit,
};
use shakedown_stack::{Catalog, diff, lines};

fn package(name: &str, version: &str) -> StackPackage {
    StackPackage {
        name: name.to_owned(),
        version: version.to_owned(),
        group: Catalog::get().group(name),
        ..StackPackage::default()
    }
}

fn side(packages: &[(&str, &str)], toolkit: &str, driver: &str) -> Stack {
    let mut stack = Stack {
        packages: packages.iter().map(|(n, v)| package(n, v)).collect(),
        toolkits: vec![StackToolkit {
            path: "/usr/local/cuda".into(),
            version: Some(toolkit.into()),
            selected_by: vec!["/usr/local/cuda".into()],
            nvcc: true,
        }],
        gpus: (0..8)
            .map(|index| StackGpu {
                index,
                name: "RTX PRO 6000".into(),
                sm: Some(120),
                ..StackGpu::default()
            })
            .collect(),
        ..Stack::default()
    };
    stack.driver.module = Some(driver.into());
    for i in 0..40 {
        stack.packages.push(package(&format!("helper-{i}"), "1.0"));
    }
    stack
}

fn story() -> (Stack, Stack) {
    let before = side(
        &[
            ("torch", "2.9.1+cu128"),
            ("sgl-kernel", "0.3.21"),
            ("flashinfer-python", "0.6.1"),
            ("sglang", "0.5.8"),
            ("nvidia-nccl-cu12", "2.27.5"),
            ("nvidia-cudnn-cu12", "9.10.2.21"),
            ("triton", "3.5.1"),
            ("transformers", "4.57.1"),
        ],
        "12.8.1",
        "575.57.08",
    );
    let mut after = side(
        &[
            ("torch", "2.9.1+cu130"),
            ("sgl-kernel", "0.3.21+cu130"),
            ("flashinfer-python", "0.6.4"),
            ("sglang", "0.5.9"),
            ("nvidia-nccl-cu13", "2.28.9"),
            ("nvidia-cudnn-cu13", "9.13.0.50"),
            ("triton", "3.5.1"),
            ("transformers", "4.57.1"),
        ],
        "13.0.1",
        "580.95.05",
    );
    for path in [
        "sglang/srt/layers/attention/flashinfer_backend.py",
        "sglang/srt/distributed/parallel_state.py",
    ] {
        after.changes.push(StackChange {
            package: Some("sglang".into()),
            path: path.into(),
            kind: ChangeKind::Modified,
            sha256: Some("ab".repeat(32)),
            added: Some(3),
            removed: Some(1),
            diff: None,
        });
    }
    after.hooks.push(StackHook {
        kind: StackHookKind::Sitecustomize,
        path: "/v/sitecustomize.py".into(),
        line: None,
        text: "import torch".into(),
        package: None,
        sha256: Some("cd".repeat(32)),
    });
    after
        .environment
        .insert("SGLANG_DISABLE_CUDNN_CHECK".into(), "1".into());
    (before, after)
}

#[test]
fn all_twelve_and_nothing_else() {
    let (before, after) = story();
    let found = diff(&before, &after);
    let all: Vec<_> = found
        .groups
        .iter()
        .flat_map(|g| g.differences.iter().map(move |d| (g.group, d.subject.as_str())))
        .collect();
    assert_eq!(
        all,
        [
            (StackGroup::Engine, "sglang"),
            (StackGroup::Patches, "sitecustomize"),
            (StackGroup::Patches, "sglang/srt/distributed/parallel_state.py"),
            (
                StackGroup::Patches,
                "sglang/srt/layers/attention/flashinfer_backend.py"
            ),
            (StackGroup::Settings, "SGLANG_DISABLE_CUDNN_CHECK"),
            (StackGroup::Kernels, "sgl-kernel"),
            (StackGroup::Attention, "flashinfer-python"),
            (StackGroup::Collectives, "nvidia-nccl"),
            (StackGroup::Framework, "torch"),
            (StackGroup::Cuda, "cuda toolkit"),
            (StackGroup::Cuda, "nvidia-cudnn"),
            (StackGroup::Driver, "driver"),
        ]
    );
    let of = |subject: &str| {
        found
            .groups
            .iter()
            .flat_map(|g| &g.differences)
            .find(|d| d.subject == subject)
            .unwrap()
    };
    assert!(
        of("torch")
            .consequence
            .as_deref()
            .unwrap()
            .contains("CUDA major 12 to 13")
    );
    assert_eq!(
        of("nvidia-nccl").before.as_deref(),
        Some("nvidia-nccl-cu12 2.27.5")
    );
    assert_eq!(
        of("nvidia-nccl").after.as_deref(),
        Some("nvidia-nccl-cu13 2.28.9")
    );
    assert!(of("sitecustomize").before.is_none() && of("sitecustomize").consequence.is_some());
    let (shown, more) = lines(&found, 20);
    assert_eq!((shown.len(), more), (12, 0));
}

#[test]
fn twenty_lines_at_most_and_every_group_among_them() {
    let (before, mut after) = story();
    for package in after.packages.iter_mut().filter(|p| p.name.starts_with("helper")) {
        package.version = "2.0".into();
    }
    let found = diff(&before, &after);
    let (shown, more) = lines(&found, 20);
    assert_eq!((shown.len(), more), (20, 32));
    let (shown, _) = lines(&found, 12);
    assert!(
        shown.iter().all(|(group, _)| *group != StackGroup::Other),
        "what has no known role waits"
    );
}

#[test]
fn a_stack_does_not_differ_from_itself() {
    let (before, _) = story();
    assert!(diff(&before, &before).groups.is_empty());
    let back = diff(&story().1, &story().0);
    assert_eq!(back.groups.len(), diff(&story().0, &story().1).groups.len());
}
