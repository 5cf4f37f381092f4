//! Writing one bundle while its run goes on.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::Serialize;
use shakedown_model::{EngineMetrics, RequestRecord, RunDocument};

use crate::bundle::{GPU_FILE, REQUESTS_FILE, RUN_FILE, SERVER_FILE};
use crate::log::Log;
use crate::{WriteError, is_run_id, line};

/// A bundle that is being written. All methods may be called from any thread.
#[derive(Debug)]
pub struct BundleWriter {
    dir: PathBuf,
    requests: Arc<Log>,
    buffer: Mutex<Vec<u8>>,
    server: OnceLock<Log>,
    gpu: OnceLock<Log>,
}

impl BundleWriter {
    /// Makes the directory of `document` within `runs` and writes its `run.json`.
    pub(crate) fn create(runs: &Path, document: &RunDocument) -> Result<Self, WriteError> {
        if !is_run_id(&document.id) {
            return Err(WriteError::BadName {
                name: document.id.clone(),
                what: "a run",
            });
        }
        make_private_dirs(runs)?;
        let dir = runs.join(&document.id);
        DirBuilder::new()
            .mode(0o700)
            .create(&dir)
            .map_err(|source| match source.kind() {
                std::io::ErrorKind::AlreadyExists => WriteError::Exists { path: dir.clone() },
                _ => WriteError::io("create", &dir, source),
            })?;
        let requests = Log::create(dir.join(REQUESTS_FILE))?;
        requests.hold();
        let writer = Self {
            dir,
            requests: Arc::new(requests),
            buffer: Mutex::new(Vec::new()),
            server: OnceLock::new(),
            gpu: OnceLock::new(),
        };
        writer.write_document(document)?;
        Ok(writer)
    }

    /// The bundle's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A handle with a buffer of its own for one thread: it encodes without holding a lock.
    pub fn appender(&self) -> RequestAppender {
        RequestAppender {
            log: Arc::clone(&self.requests),
            buffer: Vec::new(),
        }
    }

    /// Appends one ended request. When this returns, the line outlives the process.
    pub fn append(&self, record: &RequestRecord) -> Result<(), WriteError> {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        append(&self.requests, record, &mut buffer)
    }

    /// Appends a sample of the server's own metrics.
    pub fn append_server(&self, sample: &EngineMetrics) -> Result<(), WriteError> {
        self.append_sample(&self.server, SERVER_FILE, sample)
    }

    /// Appends a sample of the GPUs.
    pub fn append_gpu<T: Serialize>(&self, sample: &T) -> Result<(), WriteError> {
        self.append_sample(&self.gpu, GPU_FILE, sample)
    }

    fn append_sample<T: Serialize>(
        &self,
        log: &OnceLock<Log>,
        file: &str,
        sample: &T,
    ) -> Result<(), WriteError> {
        // Held while the file is made, so that it is made once.
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let log = if let Some(log) = log.get() {
            log
        } else {
            let made = Log::create(self.dir.join(file))?;
            log.get_or_init(|| made)
        };
        buffer.clear();
        serde_json::to_writer(&mut *buffer, sample).map_err(|source| WriteError::NotReadable {
            path: log.path().to_owned(),
            source,
        })?;
        buffer.push(b'\n');
        log.append(&buffer)
    }

    /// Writes `value` as the file `name` of the bundle, whole or not at all.
    pub fn write_json<T: Serialize>(&self, name: &str, value: &T) -> Result<(), WriteError> {
        let plain = !name.is_empty()
            && !name.starts_with('.')
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        if !plain {
            return Err(WriteError::BadName {
                name: name.to_owned(),
                what: "a file of the bundle",
            });
        }
        let path = self.dir.join(name);
        let mut bytes = serde_json::to_vec_pretty(value).map_err(|source| WriteError::NotReadable {
            path: path.clone(),
            source,
        })?;
        bytes.push(b'\n');
        self.replace(&path, &bytes)
    }

    /// Writes the run's document anew, whole or not at all; the run goes on.
    pub fn write_document(&self, document: &RunDocument) -> Result<(), WriteError> {
        let path = self.dir.join(RUN_FILE);
        let bad = |source| WriteError::NotReadable {
            path: path.clone(),
            source,
        };
        let mut bytes = serde_json::to_vec_pretty(document).map_err(bad)?;
        bytes.push(b'\n');
        // JSON has no infinity and no NaN: such a figure would become null, and the bundle unreadable.
        serde_json::from_slice::<RunDocument>(&bytes).map_err(bad)?;
        self.replace(&path, &bytes)
    }

    /// Puts `bytes` at `path`, one file at a time: two writers of one file would share its temporary name.
    fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
        let _one = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        replace(path, bytes)
    }

    /// Writes the document of the ended run and closes the bundle. Appenders that are left may still append.
    pub fn finish(self, document: &RunDocument) -> Result<PathBuf, WriteError> {
        self.write_document(document)?;
        Ok(self.dir)
    }
}

/// Appends ended requests from one thread.
#[derive(Debug)]
pub struct RequestAppender {
    log: Arc<Log>,
    buffer: Vec<u8>,
}

impl RequestAppender {
    /// Appends one ended request. When this returns, the line outlives the process.
    pub fn append(&mut self, record: &RequestRecord) -> Result<(), WriteError> {
        append(&self.log, record, &mut self.buffer)
    }
}

fn append(log: &Log, record: &RequestRecord, buffer: &mut Vec<u8>) -> Result<(), WriteError> {
    buffer.clear();
    line::encode(record, buffer).map_err(|source| WriteError::NotReadable {
        path: log.path().to_owned(),
        source,
    })?;
    log.append(buffer)
}

/// Makes `dir` and what leads to it; what is made is for its owner only.
pub(crate) fn make_private_dirs(dir: &Path) -> Result<(), WriteError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|source| WriteError::io("create", dir, source))
}

/// Puts `bytes` at `path` by a rename: a reader sees the file as it was or as it is, never a part.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .and_then(|mut file| file.write_all(bytes))
        .map_err(|source| WriteError::io("write", path, source));
    let placed = written
        .and_then(|()| fs::rename(&new, path).map_err(|source| WriteError::io("replace", path, source)));
    if placed.is_err() {
        // What is left of it helps nobody.
        let _ = fs::remove_file(&new);
    }
    placed
}
