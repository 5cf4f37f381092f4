//! Reading one bundle.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use shakedown_model::{EngineMetrics, RUN_SCHEMA, RequestRecord, RunDocument, RunEnd};

use crate::{Lines, ReadError, Requests, read_requests};

pub(crate) const RUN_FILE: &str = "run.json";
pub(crate) const REQUESTS_FILE: &str = "requests.jsonl";
pub(crate) const SERVER_FILE: &str = "server.jsonl";
pub(crate) const GPU_FILE: &str = "gpu.jsonl";

/// Largest `run.json` that is read, in bytes; real ones have tens of kilobytes.
const RUN_CAP: u64 = 64 << 20;

/// How the run of a bundle stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BundleState {
    /// All trials were done.
    Complete,
    /// The user interrupted it; what was measured is kept.
    Interrupted,
    /// It gave up.
    Failed,
    /// A process is writing it now.
    Running,
    /// Its process died: what had ended before is kept, and there are no figures.
    Cut,
}

/// A bundle that was read.
#[derive(Debug)]
pub struct Bundle {
    path: PathBuf,
    document: RunDocument,
    state: BundleState,
}

/// All requests of a bundle.
#[derive(Debug)]
pub struct RequestSet {
    /// The requests, in the order in which they ended.
    pub records: Vec<RequestRecord>,
    /// Whether the last line was cut by a kill: that request is lost.
    pub torn: bool,
}

impl Bundle {
    /// Reads the bundle at `path`: its directory, or its `run.json`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let dir = match path.file_name() {
            Some(name) if name == RUN_FILE && path.is_file() => path.parent().unwrap_or(path),
            _ => path,
        };
        let document = read_document(dir)?;
        let state = match document.end {
            RunEnd::Complete => BundleState::Complete,
            RunEnd::Interrupted => BundleState::Interrupted,
            RunEnd::Failed => BundleState::Failed,
            RunEnd::Running if is_held(&dir.join(REQUESTS_FILE)) => BundleState::Running,
            RunEnd::Running => BundleState::Cut,
        };
        Ok(Self {
            path: dir.to_owned(),
            document,
            state,
        })
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its document.
    pub const fn document(&self) -> &RunDocument {
        &self.document
    }

    /// Its document, and nothing else of it.
    pub fn into_document(self) -> RunDocument {
        self.document
    }

    /// How its run stands.
    pub const fn state(&self) -> BundleState {
        self.state
    }

    /// Its requests one by one: memory for one line at a time.
    pub fn requests(&self) -> Result<Requests<BufReader<File>>, ReadError> {
        let path = self.path.join(REQUESTS_FILE);
        let source = open(&path)?;
        Ok(read_requests(source, &path))
    }

    /// All its requests; the first bad line is the error.
    pub fn read_requests(&self) -> Result<RequestSet, ReadError> {
        let mut lines = self.requests()?;
        let records = lines.by_ref().collect::<Result<Vec<_>, _>>()?;
        Ok(RequestSet {
            records,
            torn: lines.torn(),
        })
    }

    /// The samples of the server's own metrics; `None` where none were taken.
    pub fn server_samples(&self) -> Result<Option<Lines<BufReader<File>, EngineMetrics>>, ReadError> {
        self.samples(SERVER_FILE)
    }

    /// The samples of the GPUs; `None` where none were taken.
    pub fn gpu_samples<T: DeserializeOwned>(&self) -> Result<Option<Lines<BufReader<File>, T>>, ReadError> {
        self.samples(GPU_FILE)
    }

    fn samples<T: DeserializeOwned>(
        &self,
        file: &str,
    ) -> Result<Option<Lines<BufReader<File>, T>>, ReadError> {
        let path = self.path.join(file);
        match open(&path) {
            Ok(source) => Ok(Some(Lines::new(source, &path))),
            Err(ReadError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn open(path: &Path) -> Result<BufReader<File>, ReadError> {
    File::open(path)
        .map(|file| BufReader::with_capacity(64 << 10, file))
        .map_err(|source| ReadError::Io {
            path: path.to_owned(),
            source,
        })
}

/// Whether a writer holds the bundle. Where that cannot be told, nobody is said to.
fn is_held(requests: &Path) -> bool {
    File::open(requests)
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock)))
}

/// The part of a document that says what the rest is.
#[derive(Deserialize)]
struct Head {
    schema: String,
}

fn read_document(dir: &Path) -> Result<RunDocument, ReadError> {
    let path = dir.join(RUN_FILE);
    let mut bytes = Vec::new();
    File::open(&path)
        .and_then(|file| file.take(RUN_CAP + 1).read_to_end(&mut bytes))
        .map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                ReadError::NotABundle { path: dir.to_owned() }
            }
            _ => ReadError::Io {
                path: path.clone(),
                source,
            },
        })?;
    if bytes.len() as u64 > RUN_CAP {
        return Err(ReadError::TooLarge { path, cap: RUN_CAP });
    }
    let malformed = |source| ReadError::Malformed {
        path: path.clone(),
        source,
    };
    let head: Head = serde_json::from_slice(&bytes).map_err(malformed)?;
    if head.schema != RUN_SCHEMA {
        return Err(ReadError::OtherSchema {
            path,
            found: head.schema,
            expected: RUN_SCHEMA,
        });
    }
    serde_json::from_slice(&bytes).map_err(malformed)
}
