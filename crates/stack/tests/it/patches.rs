//! What was changed by hand: all of it is named, and nothing else.

use shakedown_model::{ChangeKind, StackHookKind};
use shakedown_stack::files::HashCache;
use shakedown_stack::{Options, Root};

use super::support::Env;

fn engine(env: &Env) {
    env.install(
        "sglang",
        "0.5.30",
        "",
        "py3-none-any",
        &[
            ("sglang/__init__.py", b"a = 1\n"),
            ("sglang/srt/one.py", b"one = 1\n"),
            ("sglang/srt/two.py", b"two = 2\n"),
            ("sglang/srt/three.py", b"three = 3\n"),
            ("sglang/only/directories/four.py", b"four = 4\n"),
        ],
    );
    // What an interpreter leaves behind is no change.
    std::fs::create_dir_all(env.site().join("sglang/__pycache__")).unwrap();
    std::fs::write(env.site().join("sglang/__pycache__/x.cpython-311.pyc"), "x").unwrap();
}

#[test]
fn all_five_and_nothing_else() {
    let env = Env::new();
    engine(&env);
    env.pure("other", "1.0", "");
    std::fs::write(env.site().join("sglang/srt/one.py"), "one = 11\n").unwrap();
    // An edit that keeps the size.
    std::fs::write(env.site().join("sglang/srt/two.py"), "two = 3\n").unwrap();
    std::fs::write(env.site().join("sglang/srt/extra.py"), "x\n").unwrap();
    std::fs::write(env.site().join("sitecustomize.py"), "# by hand\nimport torch\n").unwrap();
    let read = env.read(
        &[
            ("SGLANG_DISABLE_CUDNN_CHECK", "1"),
            ("HF_TOKEN", "hf_verysecretvalue"),
        ],
        Options {
            sm: vec![120],
            ..Options::default()
        },
    );
    let changes: Vec<_> = read
        .reading
        .stack
        .changes
        .iter()
        .map(|c| (c.kind, c.path.as_str()))
        .collect();
    assert_eq!(
        changes,
        [
            (ChangeKind::Added, "sglang/srt/extra.py"),
            (ChangeKind::Modified, "sglang/srt/one.py"),
            (ChangeKind::Modified, "sglang/srt/two.py"),
        ]
    );
    let hooks: Vec<_> = read
        .reading
        .stack
        .hooks
        .iter()
        .filter(|h| h.package.is_none())
        .map(|h| (h.kind, h.text.as_str()))
        .collect();
    assert_eq!(hooks, [(StackHookKind::Sitecustomize, "import torch")]);
    let mut codes = read.codes();
    codes.sort_unstable();
    assert_eq!(
        codes,
        ["stack-check-disabled", "stack-file-modified", "stack-hook"]
    );
    assert_eq!(read.of("stack-file-added").len(), 1);
    let text =
        serde_json::to_string(&read.reading.stack).unwrap() + &serde_json::to_string(&read.check).unwrap();
    assert!(!text.contains("verysecret"), "a secret is in the document");
    let back: shakedown_model::Stack =
        serde_json::from_str(&serde_json::to_string(&read.reading.stack).unwrap()).unwrap();
    assert_eq!(back, read.reading.stack);
}

#[test]
fn missing_files_and_shared_paths() {
    let env = Env::new();
    engine(&env);
    std::fs::remove_file(env.site().join("sglang/srt/three.py")).unwrap();
    env.install(
        "sgl-kernel",
        "0.3.21",
        "",
        "py3-none-any",
        &[("sgl_kernel/__init__.py", b"old"), ("sgl_kernel/same.py", b"=")],
    );
    env.install(
        "sglang-kernel",
        "0.4.1",
        "",
        "py3-none-any",
        &[("sgl_kernel/__init__.py", b"new"), ("sgl_kernel/same.py", b"=")],
    );
    let read = env.read(
        &[],
        Options {
            sm: vec![120],
            ..Options::default()
        },
    );
    assert_eq!(read.of("stack-file-missing")[0].subject, "sglang");
    let overlap = read.of("stack-overlap")[0];
    assert!(
        overlap.what.contains("sgl-kernel and sglang-kernel") && overlap.what.contains("1 file "),
        "{overlap:?}"
    );
    assert_eq!(read.primary().unwrap().code, "stack-overlap");
}

#[test]
fn the_second_run_hashes_nothing_and_sees_what_changed_since() {
    let env = Env::new();
    engine(&env);
    let cache = env.dir.path().join("cache");
    // Files of the moment may change again within their time stamp: they are given an older one.
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    let age = |path: &str| {
        std::fs::File::open(env.site().join(path))
            .unwrap()
            .set_modified(old)
            .unwrap()
    };
    for path in [
        "sglang/__init__.py",
        "sglang/srt/one.py",
        "sglang/srt/two.py",
        "sglang/srt/three.py",
        "sglang/only/directories/four.py",
        "sglang-0.5.30.dist-info/METADATA",
        "sglang-0.5.30.dist-info/WHEEL",
    ] {
        age(path);
    }
    let run = || {
        env.read(
            &[],
            Options {
                cache: Some(cache.clone()),
                sm: vec![120],
                ..Options::default()
            },
        )
        .reading
    };
    let first = run();
    assert_eq!((first.verification.hashed, first.verification.remembered), (7, 0));
    let second = run();
    assert_eq!(
        (second.verification.hashed, second.verification.remembered),
        (0, 7)
    );
    assert_eq!(first.stack, second.stack);
    std::fs::write(env.site().join("sglang/srt/two.py"), "two = 3\n").unwrap();
    let third = run();
    assert_eq!(third.verification.hashed, 1);
    assert_eq!(third.stack.changes.len(), 1);
    assert_ne!(third.stack.fingerprint, first.stack.fingerprint);
    std::fs::write(env.site().join("sglang/srt/new.py"), "n\n").unwrap();
    assert_eq!(
        run().stack.changes.len(),
        2,
        "a directory that changed is looked at again"
    );
    let _ = HashCache::open(&cache, &env.prefix());
}

#[test]
fn the_fingerprint_is_of_what_matters() {
    let (a, b) = (Env::new(), Env::new());
    let read = |env: &Env, variables: &[(&str, &str)]| {
        env.read(variables, Options::default()).reading.stack.fingerprint
    };
    for env in [&a, &b] {
        engine(env);
    }
    assert_eq!(read(&a, &[]), read(&b, &[]), "the place does not matter");
    assert_eq!(
        read(&a, &[]),
        read(&a, &[("HOME", "/x"), ("CUDA_VISIBLE_DEVICES", "1")])
    );
    assert_ne!(read(&a, &[]), read(&a, &[("NCCL_P2P_DISABLE", "1")]));
    b.pure("torch", "2.9.1", "");
    assert_ne!(read(&a, &[]), read(&b, &[]));
}

#[test]
fn a_wheel_gives_the_diff() {
    let env = Env::new();
    engine(&env);
    std::fs::write(env.site().join("sglang/srt/one.py"), "one = 11\n").unwrap();
    let wheel = env.dir.path().join("sglang-0.5.30-py3-none-any.whl");
    let script = format!(
        "import zipfile\nz = zipfile.ZipFile({:?}, 'w', zipfile.ZIP_DEFLATED)\nz.writestr('sglang/srt/one.py', 'one = 1\\n')\nz.writestr('sglang/__init__.py', 'a = 1\\n')\nz.close()\n",
        wheel.display().to_string()
    );
    let made = std::process::Command::new("python3")
        .args(["-c", &script])
        .status();
    if !made.is_ok_and(|s| s.success()) {
        return;
    }
    let read = env.read(
        &[],
        Options {
            wheels: vec![wheel],
            sm: vec![120],
            ..Options::default()
        },
    );
    let change = &read.reading.stack.changes[0];
    assert_eq!((change.added, change.removed), (Some(1), Some(1)));
    assert!(
        change.diff.as_deref().unwrap().contains("-one = 1\n+one = 11\n"),
        "{change:?}"
    );
}

#[test]
fn a_container_is_read_inside_its_root() {
    let env = Env::new();
    engine(&env);
    let root = Root::new(env.dir.path());
    let environment = shakedown_stack::python::Environment::of_prefix(
        &root,
        std::path::Path::new("/opt/env"),
        &Default::default(),
    )
    .unwrap();
    assert_eq!(
        environment.distribution("sglang").unwrap().site,
        std::path::Path::new("/opt/env/lib/python3.11/site-packages")
    );
    std::fs::write(env.site().join("sglang/srt/one.py"), "one = 11\n").unwrap();
    let reading = shakedown_stack::read(
        &root,
        environment,
        Default::default(),
        Options {
            sm: vec![120],
            ..Options::default()
        },
    );
    assert_eq!(reading.stack.changes.len(), 1, "{:?}", reading.stack.changes);
}
