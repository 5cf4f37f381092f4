//! Whatever is given: a clear error, or an honest `unknown`.

use std::fs;
use std::io::{self, Read};

use shakedown_diagnose::{Evidence, EvidenceError};
use shakedown_model::{Confidence, DiagnosedState};

use crate::{DIAGNOSER, code, judge};

/// An error and all that it came from.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(next) = source {
        text.push_str(": ");
        text.push_str(&next.to_string());
        source = next.source();
    }
    text
}

#[test]
fn an_empty_log() {
    let diagnosis = judge("", "");
    assert_eq!(diagnosis.state, DiagnosedState::Unknown);
    assert_eq!(diagnosis.confidence, Confidence::Possible);
    assert_eq!(diagnosis.exit().code(), 5);
}

#[test]
fn binary_bytes() {
    let mut bytes = Vec::new();
    for round in 0_u32..40_000 {
        bytes.extend_from_slice(&round.wrapping_mul(2_654_435_761).to_le_bytes());
        bytes.extend_from_slice(&[0, 0, 0, 0]);
    }
    bytes.extend_from_slice(b"error\0failed\0exception\0\n");
    let diagnosis = DIAGNOSER
        .diagnose(Evidence::new().with_log("a.log", bytes))
        .unwrap();
    assert_eq!(diagnosis.state, DiagnosedState::Unknown);
    assert!(
        diagnosis.covered[0]
            .notes
            .iter()
            .any(|note| note.contains("not text"))
    );
}

/// A reader that makes its bytes as they are read.
struct Made {
    left: u64,
    tail: &'static [u8],
}

impl Read for Made {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left > 0 {
            let count = into.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
            into[..count].fill(b'x');
            self.left -= count as u64;
            return Ok(count);
        }
        let count = into.len().min(self.tail.len());
        into[..count].copy_from_slice(&self.tail[..count]);
        self.tail = &self.tail[count..];
        Ok(count)
    }
}

/// What stands after the gigabyte.
const TAIL: &[u8] =
    b"\nRuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist\n";

#[test]
fn a_line_of_a_gigabyte() {
    let stream = Made {
        left: 1 << 30,
        tail: TAIL,
    };
    let diagnosis = DIAGNOSER
        .diagnose(Evidence::new().with_stream("huge.log", Box::new(stream)))
        .unwrap();
    assert_eq!(code(&diagnosis), "nvcc-missing");
    assert_eq!(diagnosis.first().unwrap().finding.evidence[0].line, Some(2));
    assert_eq!(diagnosis.covered[0].bytes, (1 << 30) + TAIL.len() as u64);
    assert!(
        diagnosis.covered[0]
            .notes
            .iter()
            .any(|note| note.contains("longer than"))
    );
}

#[test]
fn other_encodings() {
    let text = "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist\r\n";
    let mut wide = vec![0xff, 0xfe];
    wide.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    let diagnosis = DIAGNOSER
        .diagnose(Evidence::new().with_log("a.log", wide))
        .unwrap();
    assert_eq!(code(&diagnosis), "nvcc-missing");
    let latin: Vec<u8> = [b"caf\xe9 \xff\n".as_slice(), text.as_bytes()].concat();
    let diagnosis = DIAGNOSER
        .diagnose(Evidence::new().with_log("a.log", latin))
        .unwrap();
    assert_eq!(code(&diagnosis), "nvcc-missing");
}

#[test]
fn broken_compression_is_noted() {
    let diagnosis = DIAGNOSER
        .diagnose(Evidence::new().with_log("a.log.gz", vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3, 4]))
        .unwrap();
    assert_eq!(diagnosis.state, DiagnosedState::Unknown);
    assert!(
        diagnosis.covered[0]
            .notes
            .iter()
            .any(|note| note.contains("could not be read"))
    );
}

#[test]
fn directories_pipes_and_missing_files() {
    let dir = tempfile::tempdir().unwrap();
    let error = |result: Result<Evidence, EvidenceError>| chain(&result.err().unwrap());
    assert!(error(Evidence::from_files(vec![dir.path().to_owned()])).contains("a directory"));
    assert!(error(Evidence::from_files(vec![dir.path().join("no.log")])).contains("no.log"));
    assert!(error(Evidence::from_dir(dir.path())).contains("no *.log"));
    assert!(error(Evidence::from_dir(&dir.path().join("nowhere"))).contains("nowhere"));
    let pipe = dir.path().join("pipe.log");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if made.is_ok_and(|status| status.success()) {
        // Reading it would wait for ever.
        assert!(error(Evidence::from_files(vec![pipe.clone()])).contains("a pipe"));
        assert!(error(Evidence::from_dir(dir.path())).contains("a pipe"));
    }
}

#[test]
fn malformed_facts() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.log"), "x\n").unwrap();
    for (text, says) in [
        ("{", "as JSON"),
        ("[1, 2]", "a list"),
        ("", "as JSON"),
        ("null", "null"),
        ("\"x\"", "a text"),
    ] {
        fs::write(dir.path().join("facts.json"), text).unwrap();
        let error = chain(&Evidence::from_dir(dir.path()).err().unwrap());
        assert!(error.contains(says) && error.contains("facts.json"), "{error}");
    }
    // Odd values are taken as they are.
    fs::write(
        dir.path().join("facts.json"),
        r#"{"argv": 7, "env": [[1], {"A": {"B": null}}], "x": {"y": [true]}}"#,
    )
    .unwrap();
    let evidence = Evidence::from_dir(dir.path()).unwrap();
    DIAGNOSER.diagnose(evidence).unwrap();
}

#[cfg(unix)]
#[test]
fn an_unreadable_file() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    fs::write(&path, "x\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o0)).unwrap();
    // Root reads everything: then there is nothing to refuse.
    if fs::File::open(&path).is_err() {
        let evidence = Evidence::from_files(vec![path]).unwrap();
        let error = chain(&DIAGNOSER.diagnose(evidence).err().unwrap());
        assert!(error.contains("a.log"), "{error}");
    }
}

#[test]
fn rotated_and_compressed_parts_are_one_log() {
    use std::io::Write;
    let dir = tempfile::tempdir().unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(b"[2026-05-01 10:00:00] server_args=ServerArgs(model_path='/m')\n[2026-05-01 10:00:01 TP0] Load weight begin. avail mem=9 GB\n").unwrap();
    fs::write(dir.path().join("server.log.2.gz"), gz.finish().unwrap()).unwrap();
    fs::write(
        dir.path().join("server.log.1"),
        "[2026-05-01 10:00:02 TP0] Scheduler hit an exception: Traceback (most recent call last):\n",
    )
    .unwrap();
    fs::write(dir.path().join("server.log"), "  File \"/x/a.py\", line 1, in f\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.\n").unwrap();
    let diagnosis = DIAGNOSER
        .diagnose(Evidence::from_dir(dir.path()).unwrap())
        .unwrap();
    assert_eq!(
        code(&diagnosis),
        "weights-do-not-fit",
        "the stage is in another part than the failure"
    );
    let evidence = &diagnosis.first().unwrap().finding.evidence[0];
    assert_eq!((evidence.source.as_str(), evidence.line), ("server.log", Some(2)));
    let sources: Vec<&str> = diagnosis
        .covered
        .iter()
        .map(|covered| covered.source.as_str())
        .collect();
    assert_eq!(sources, ["server.log.2.gz", "server.log.1", "server.log"]);
}
