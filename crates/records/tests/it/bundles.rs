//! What is written is what is read.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use shakedown_model::{EngineMetrics, RunEnd};
use shakedown_records::{Bundle, BundleState, LineFault, ReadError, Store, WriteError};

use crate::{child, sample};

const ID: &str = "20261201-143012-k7q2";

#[test]
fn a_run_from_start_to_end() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path().join("deep/store"));
    let mut document = sample::document(ID);
    let writer = store.create(&document).unwrap();

    let bundle = Bundle::open(writer.dir()).unwrap();
    assert_eq!(bundle.state(), BundleState::Running, "its writer lives");
    assert_eq!(bundle.document(), &document);
    assert!(bundle.read_requests().unwrap().records.is_empty());
    assert!(bundle.server_samples().unwrap().is_none());

    let records: Vec<_> = (0..5)
        .map(|number| sample::answer(number, vec![0, 10_000, 9_900, 0]))
        .collect();
    for record in &records {
        writer.append(record).unwrap();
    }
    let sample = EngineMetrics {
        at_us: 7,
        values: BTreeMap::from([("requests_running".to_owned(), 1.5)]),
    };
    writer.append_server(&sample).unwrap();
    writer.append_server(&sample).unwrap();
    writer.append_gpu(&[1, 2]).unwrap();
    writer.write_json("stack.json", &["torch"]).unwrap();

    document.end = RunEnd::Complete;
    document.duration_s = Some(0.1 + 0.2);
    let path = writer.finish(&document).unwrap();

    for place in [path.clone(), path.join("run.json")] {
        let bundle = Bundle::open(place).unwrap();
        assert_eq!(bundle.state(), BundleState::Complete);
        assert_eq!(bundle.document(), &document);
        let set = bundle.read_requests().unwrap();
        assert_eq!(set.records, records);
        assert!(!set.torn);
        let samples: Vec<EngineMetrics> = bundle
            .server_samples()
            .unwrap()
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(samples, [sample.clone(), sample.clone()]);
        let gpus: Vec<[u32; 2]> = bundle
            .gpu_samples()
            .unwrap()
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(gpus, [[1, 2]]);
    }
    assert_eq!(
        fs::read_to_string(path.join("stack.json")).unwrap(),
        "[\n  \"torch\"\n]\n"
    );

    let mut files: Vec<_> = fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                entry.metadata().unwrap().permissions().mode(),
            )
        })
        .collect();
    files.sort();
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "gpu.jsonl",
            "requests.jsonl",
            "run.json",
            "server.jsonl",
            "stack.json"
        ]
    );
    assert!(
        files.iter().all(|(_, mode)| mode & 0o777 == 0o600),
        "others may read {files:?}"
    );
    for dir in [store.root(), path.parent().unwrap(), &path] {
        assert_eq!(
            fs::metadata(dir).unwrap().permissions().mode() & 0o777,
            0o700,
            "{}",
            dir.display()
        );
    }
}

#[test]
fn the_end_decides_the_state() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path());
    for (end, state) in [
        (RunEnd::Running, BundleState::Cut),
        (RunEnd::Complete, BundleState::Complete),
        (RunEnd::Interrupted, BundleState::Interrupted),
        (RunEnd::Failed, BundleState::Failed),
    ] {
        let mut document = sample::document(&format!("{end:?}"));
        let writer = store.create(&document).unwrap();
        document.end = end;
        let path = writer.finish(&document).unwrap();
        assert_eq!(Bundle::open(path).unwrap().state(), state);
    }
}

#[test]
fn threads_share_one_bundle() {
    let dir = tempfile::tempdir().unwrap();
    let writer = Store::at(dir.path()).create(&sample::document(ID)).unwrap();
    thread::scope(|scope| {
        for stream in 0..4_u64 {
            let writer = &writer;
            let mut appender = writer.appender();
            scope.spawn(move || {
                for number in 0..100 {
                    let record =
                        sample::answer(stream * 100 + number, sample::steady_gaps(500, 9_000, number));
                    if number % 2 == 0 {
                        appender.append(&record)
                    } else {
                        writer.append(&record)
                    }
                    .unwrap();
                }
            });
        }
    });
    let mut ids: Vec<String> = Bundle::open(writer.dir())
        .unwrap()
        .read_requests()
        .unwrap()
        .records
        .into_iter()
        .map(|record| record.id)
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 400);
}

#[test]
fn a_torn_last_line_is_no_error_and_a_bad_one_before_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let writer = Store::at(dir.path()).create(&sample::document(ID)).unwrap();
    for number in 0..3 {
        writer.append(&sample::answer(number, vec![0, 10_000])).unwrap();
    }
    let file = writer.dir().join("requests.jsonl");
    let whole = fs::read(&file).unwrap();
    let bundle = Bundle::open(writer.dir()).unwrap();
    let line = whole.len() / 3;

    // Cut at every byte of the last line.
    for cut in 2 * line..=whole.len() {
        fs::write(&file, &whole[..cut]).unwrap();
        let set = bundle.read_requests().unwrap();
        // Without its newline alone the line is whole.
        let kept = if cut >= whole.len() - 1 { 3 } else { 2 };
        assert_eq!(set.records.len(), kept, "cut at {cut} of {}", whole.len());
        assert_eq!(set.torn, kept == 2 && cut > 2 * line, "cut at {cut}");
    }

    fs::write(&file, &whole[..line]).unwrap();
    let mut append = OpenOptions::new().append(true).open(&file).unwrap();
    append.write_all(b"{\"id\": \"half\n\n").unwrap();
    append.write_all(&whole[line..]).unwrap();
    let mut lines = bundle.requests().unwrap();
    let read: Vec<_> = lines.by_ref().collect();
    assert_eq!(
        read.iter().map(Result::is_ok).collect::<Vec<_>>(),
        [true, false, true, true]
    );
    let error = read[1].as_ref().unwrap_err();
    assert!(matches!(
        error,
        ReadError::Line {
            line: 2,
            source: LineFault::Malformed(_),
            ..
        }
    ));
    assert_eq!(error.to_string(), format!("read line 2 of {}", file.display()));
    assert!(!lines.torn());
    assert!(matches!(
        bundle.read_requests(),
        Err(ReadError::Line { line: 2, .. })
    ));
}

#[test]
fn newer_members_are_read_and_other_schemas_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = Store::at(dir.path())
        .create(&sample::document(ID))
        .unwrap()
        .finish(&sample::document(ID))
        .unwrap();
    let file = path.join("run.json");
    let mut value: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    value["invented_later"] = serde_json::json!({ "deep": [1, 2] });
    value["server"]["invented_later"] = true.into();
    fs::write(&file, value.to_string()).unwrap();
    assert_eq!(Bundle::open(&path).unwrap().document(), &sample::document(ID));

    value["schema"] = "shakedown.run/2".into();
    value["workload"] = "something else altogether".into();
    fs::write(&file, value.to_string()).unwrap();
    assert_eq!(
        Bundle::open(&path).unwrap_err().to_string(),
        format!(
            "read {}: its schema is \"shakedown.run/2\", and this version reads \"shakedown.run/1\"",
            file.display()
        )
    );

    fs::write(&file, "{\"schema\": 1}").unwrap();
    assert!(matches!(Bundle::open(&path), Err(ReadError::Malformed { .. })));
    fs::write(&file, "").unwrap();
    assert!(matches!(Bundle::open(&path), Err(ReadError::Malformed { .. })));
    fs::remove_file(&file).unwrap();
    assert!(matches!(Bundle::open(&path), Err(ReadError::NotABundle { .. })));
    assert!(matches!(
        Bundle::open("/nowhere/at/all"),
        Err(ReadError::NotABundle { .. })
    ));
}

#[test]
fn what_would_not_read_back_is_refused_and_the_old_document_stays() {
    let dir = tempfile::tempdir().unwrap();
    let document = sample::document(ID);
    let writer = Store::at(dir.path()).create(&document).unwrap();
    let mut broken = document.clone();
    broken.pooled = Some(shakedown_model::Metrics {
        output_tok_s: Some(shakedown_model::Rate::exact(f64::NAN)),
        ..Default::default()
    });
    let path = writer.dir().to_owned();
    assert!(matches!(
        writer.finish(&broken),
        Err(WriteError::NotReadable { .. })
    ));
    assert_eq!(Bundle::open(path).unwrap().document(), &document);
}

#[test]
fn names_stay_inside() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path().join("store"));
    for id in ["../escape", "", "a/b", ".."] {
        assert!(
            matches!(
                store.create(&sample::document(id)),
                Err(WriteError::BadName { .. })
            ),
            "{id:?}"
        );
    }
    let writer = store.create(&sample::document(ID)).unwrap();
    for name in ["../escape.json", "", ".hidden", "a/b.json"] {
        assert!(
            matches!(writer.write_json(name, &1), Err(WriteError::BadName { .. })),
            "{name:?}"
        );
    }
    assert!(matches!(
        store.create(&sample::document(ID)),
        Err(WriteError::Exists { .. })
    ));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// Writes by this process so far and their bytes, as the kernel counts them.
#[cfg(target_os = "linux")]
fn writes() -> (u64, u64) {
    let io = fs::read_to_string("/proc/self/io").unwrap();
    let figure = |name: &str| {
        io.lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap()
            .trim()
            .parse::<u64>()
            .unwrap()
    };
    (figure("syscw:"), figure("wchar:"))
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "the child of an_append_is_one_write"]
fn counts_its_writes() {
    let Some(dir) = child::dir() else { return };
    let writer = Store::at(&dir).create(&sample::document(ID)).unwrap();
    let mut appender = writer.appender();
    let record = sample::answer(1, sample::steady_gaps(50_000, 20_000, 1));
    let (calls, bytes) = writes();
    for _ in 0..100 {
        appender.append(&record).unwrap();
    }
    let (after, bytes_after) = writes();
    let size = fs::metadata(writer.dir().join("requests.jsonl")).unwrap().len();
    assert_eq!((after - calls, bytes_after - bytes), (100, size));
    fs::write(dir.join("counted"), size.to_string()).unwrap();
}

/// By the kernel's own count, in a process where nothing else writes.
#[cfg(target_os = "linux")]
#[test]
fn an_append_is_one_write() {
    let dir = tempfile::tempdir().unwrap();
    let output = child::command("bundles::counts_its_writes", dir.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert!(dir.path().join("counted").exists());
}
