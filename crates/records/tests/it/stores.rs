//! Where runs are kept and how one is named.

use std::fs;
use std::path::{Path, PathBuf};

use shakedown_records::{Places, Store, StoreError};

use crate::sample;

#[test]
fn the_first_place_that_is_named_wins() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("project");
    let deep = project.join("a/b");
    fs::create_dir_all(&deep).unwrap();
    let mut places = Places {
        explicit: Some("/explicit".into()),
        environment: Some("/environment".into()),
        working_dir: Some(deep.clone()),
        data_home: Some("/data".into()),
        home: Some("/home/me".into()),
    };
    fs::create_dir(project.join(".shakedown")).unwrap();
    let store = |places: &Places| places.store().unwrap().root().to_owned();
    assert_eq!(store(&places), Path::new("/explicit"));
    places.explicit = None;
    assert_eq!(store(&places), Path::new("/environment"));
    places.environment = None;
    assert_eq!(store(&places), project.join(".shakedown"));
    fs::create_dir(deep.join(".shakedown")).unwrap();
    assert_eq!(store(&places), deep.join(".shakedown"));
    // A file of that name is no store.
    fs::remove_dir(deep.join(".shakedown")).unwrap();
    fs::write(deep.join(".shakedown"), "").unwrap();
    assert_eq!(store(&places), project.join(".shakedown"));
    fs::remove_dir(project.join(".shakedown")).unwrap();
    assert_eq!(store(&places), Path::new("/data/shakedown"));
    places.data_home = Some("relative".into());
    assert_eq!(store(&places), Path::new("/home/me/.local/share/shakedown"));
    places.home = None;
    assert!(matches!(places.store(), Err(StoreError::NoPlace)));
}

#[cfg(target_os = "linux")]
#[test]
fn a_store_that_another_user_left_is_passed_over() {
    if !nix_is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trap = dir.path().join(".shakedown");
    fs::create_dir(&trap).unwrap();
    let places = Places {
        working_dir: Some(dir.path().to_owned()),
        home: Some("/home/me".into()),
        ..Places::default()
    };
    assert_eq!(places.store().unwrap().root(), trap);
    std::os::unix::fs::chown(&trap, Some(12345), None).unwrap();
    assert_eq!(
        places.store().unwrap().root(),
        Path::new("/home/me/.local/share/shakedown")
    );
}

/// Only root can give a directory away.
#[cfg(target_os = "linux")]
fn nix_is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn store_with(ids: &[&str]) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    for id in ids {
        store.create(&sample::document(id)).unwrap();
    }
    (dir, store)
}

#[test]
fn newest_first_and_only_runs() {
    let (dir, store) = store_with(&[
        "20261201-143012-k7q2",
        "20261130-090000-zzzz",
        "20261201-143012-a000",
    ]);
    let runs = dir.path().join("runs");
    fs::create_dir(runs.join("20270101-000000-cut0")).unwrap();
    fs::write(runs.join("notes.txt"), "").unwrap();
    let ids: Vec<String> = store.list().unwrap().into_iter().map(|entry| entry.id).collect();
    assert_eq!(
        ids,
        [
            "20261201-143012-k7q2",
            "20261201-143012-a000",
            "20261130-090000-zzzz"
        ]
    );
    assert_eq!(
        store.list().unwrap()[0].open().unwrap().document().id,
        "20261201-143012-k7q2"
    );
    assert!(Store::at("/nowhere").list().unwrap().is_empty());
}

#[test]
fn a_run_by_any_of_its_names() {
    let (dir, store) = store_with(&[
        "20261201-143012-k7q2",
        "20261130-090000-zzzz",
        "20261201-150000-a000",
    ]);
    let runs = dir.path().join("runs");
    for (wanted, id) in [
        ("latest", "20261201-150000-a000"),
        ("latest~0", "20261201-150000-a000"),
        ("latest~2", "20261130-090000-zzzz"),
        ("20261201-143012-k7q2", "20261201-143012-k7q2"),
        ("20261201-14", "20261201-143012-k7q2"),
        ("k7q2", "20261201-143012-k7q2"),
    ] {
        assert_eq!(store.resolve(wanted).unwrap(), runs.join(id), "{wanted}");
    }
    let path = runs.join("20261130-090000-zzzz");
    assert_eq!(store.resolve(path.to_str().unwrap()).unwrap(), path);
    assert_eq!(
        store.resolve("./somewhere").unwrap(),
        PathBuf::from("./somewhere")
    );

    let error = store.resolve("20261201").unwrap_err();
    assert_eq!(
        error.to_string(),
        "choose among 2 runs that match \"20261201\": 20261201-150000-a000, 20261201-143012-k7q2"
    );
    let error = store.resolve("latest~3").unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("find run \"latest~3\": {} holds 3", dir.path().display())
    );
    for wanted in ["", "latest~x", "latest-1", "nothing", "-"] {
        assert!(
            matches!(store.resolve(wanted), Err(StoreError::NoSuchRun { .. })),
            "{wanted:?}"
        );
    }
}
