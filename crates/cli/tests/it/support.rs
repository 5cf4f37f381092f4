//! Runs the binary and reads what it left.

use std::path::Path;
use std::process::{Command, Output};

use shakedown_model::{RequestRecord, RunDocument};
use shakedown_verbs::practice::{Options, Practice};
use shakedown_verbs::runs::Bundle;
use tempfile::TempDir;

/// The binary, with a store of its own and none of the caller's settings.
pub fn shakedown(store: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shakedown"));
    command
        .env_remove("SHAKEDOWN_STORE")
        .env("NO_COLOR", "1")
        .current_dir(store);
    command
}

/// What a bench left behind.
pub struct Measurement {
    pub exit: i32,
    pub document: RunDocument,
    pub records: Vec<RequestRecord>,
    pub stderr: String,
    _store: TempDir,
}

/// Measures `url` with `arguments` and reads the document and the bundle.
pub fn bench(url: &str, arguments: &[&str]) -> Measurement {
    let store = tempfile::tempdir().unwrap();
    let output = run(
        store.path(),
        &[&["bench", url, "--format", "json", "--store", "."], arguments].concat(),
    );
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let document: RunDocument = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}\n{}\n{stderr}", String::from_utf8_lossy(&output.stdout)));
    let bundle = Bundle::open(store.path().join("runs").join(&document.id)).unwrap();
    let records = bundle.requests().unwrap().map(Result::unwrap).collect();
    Measurement {
        exit: output.status.code().unwrap(),
        document,
        records,
        stderr,
        _store: store,
    }
}

pub fn run(store: &Path, arguments: &[&str]) -> Output {
    shakedown(store).args(arguments).output().unwrap()
}

/// A practice server on any port.
pub fn practice(options: Options) -> Practice {
    Practice::start(Options {
        port: Some(0),
        ..options
    })
    .unwrap()
}
