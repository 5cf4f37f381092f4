//! What a diagnosis rests on: logs and facts, from files, a directory or memory.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::facts::{Facts, FactsError, LARGEST};

/// The evidence could not be read.
#[derive(Debug, Error)]
pub enum EvidenceError {
    /// A file or directory could not be opened or listed.
    #[error("read {path}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// A log must be a regular file.
    #[error("read {path}: it is {kind}, and evidence must be in regular files")]
    NotAFile {
        /// Which.
        path: PathBuf,
        /// What it is instead.
        kind: &'static str,
    },
    /// An evidence directory without logs and facts.
    #[error("find evidence in {path}: it holds no *.log file and no facts.json")]
    Empty {
        /// Which.
        path: PathBuf,
    },
    /// The facts are not what they should be.
    #[error("read {path}")]
    Facts {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        error: FactsError,
    },
}

/// Where one part of a log comes from.
pub enum Source {
    /// A file.
    File(PathBuf),
    /// Bytes in memory.
    Bytes(Vec<u8>),
    /// A stream, read once to its end.
    Stream(Box<dyn Read + Send>),
}

/// One part of a log: its name and where it comes from.
pub struct LogPart {
    /// The name to quote it by.
    pub name: String,
    /// Where it comes from.
    pub source: Source,
    /// Seconds since its last write, where that is known.
    pub idle_s: Option<u64>,
}

/// One log; rotated parts, oldest first.
#[derive(Default)]
pub struct Log {
    /// Its parts.
    pub parts: Vec<LogPart>,
}

/// Everything that a diagnosis rests on.
#[derive(Default)]
pub struct Evidence {
    /// The logs: one for each process, rank or node, or one for all.
    pub logs: Vec<Log>,
    /// What was true of the machine.
    pub facts: Facts,
    /// The process that was asked about: its launch is judged, else the last one.
    pub pid: Option<u32>,
}

impl Evidence {
    /// No evidence.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a log that is in memory.
    #[must_use]
    pub fn with_log(mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        self.logs.push(Log {
            parts: vec![LogPart {
                name: name.into(),
                source: Source::Bytes(bytes.into()),
                idle_s: None,
            }],
        });
        self
    }

    /// Adds a log that is a stream.
    #[must_use]
    pub fn with_stream(mut self, name: impl Into<String>, stream: Box<dyn Read + Send>) -> Self {
        self.logs.push(Log {
            parts: vec![LogPart {
                name: name.into(),
                source: Source::Stream(stream),
                idle_s: None,
            }],
        });
        self
    }

    /// Sets the facts.
    #[must_use]
    pub fn with_facts(mut self, facts: Facts) -> Self {
        self.facts = facts;
        self
    }

    /// The evidence of a directory: its `*.log` files (rotated and compressed ones too) and its `facts.json`.
    pub fn from_dir(dir: &Path) -> Result<Self, EvidenceError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| EvidenceError::Io { path, error }
        };
        let mut paths = Vec::new();
        for entry in fs::read_dir(dir).map_err(failed(dir))? {
            let path = entry.map_err(failed(dir))?.path();
            if path
                .file_name()
                .and_then(|name| name.to_str())
                .is_some_and(is_log_name)
            {
                paths.push(path);
            }
        }
        let facts_path = dir.join("facts.json");
        let facts = match fs::symlink_metadata(&facts_path) {
            Ok(_) => facts_from(&facts_path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Facts::new(),
            Err(error) => return Err(failed(&facts_path)(error)),
        };
        if paths.is_empty() && facts.is_empty() {
            return Err(EvidenceError::Empty { path: dir.to_owned() });
        }
        Ok(Self {
            logs: group(paths)?,
            facts,
            pid: None,
        })
    }

    /// Evidence of log files by name; rotated parts of one log are put together.
    pub fn from_files(paths: Vec<PathBuf>) -> Result<Self, EvidenceError> {
        Ok(Self {
            logs: group(paths)?,
            facts: Facts::new(),
            pid: None,
        })
    }
}

/// Reads a `facts.json`.
pub fn facts_from(path: &Path) -> Result<Facts, EvidenceError> {
    regular(path)?;
    let io_error = |error| EvidenceError::Io {
        path: path.to_owned(),
        error,
    };
    let mut bytes = Vec::new();
    File::open(path)
        .map_err(io_error)?
        .take(LARGEST)
        .read_to_end(&mut bytes)
        .map_err(io_error)?;
    Facts::from_json(&bytes).map_err(|error| EvidenceError::Facts {
        path: path.to_owned(),
        error,
    })
}

fn is_log_name(name: &str) -> bool {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let name = rotation(name).0;
    Path::new(name)
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("log"))
}

/// A log's name without its rotation, and the age that the rotation tells (higher is older).
fn rotation(name: &str) -> (&str, u32) {
    match name.rsplit_once('.') {
        Some((base, number)) if !base.is_empty() && number.len() <= 4 => {
            number.parse().map_or((name, 0), |age| (base, age))
        }
        _ => (name, 0),
    }
}

/// Opening a pipe would wait for a writer, and reading a device may never end: only regular files are read.
fn regular(path: &Path) -> Result<fs::Metadata, EvidenceError> {
    let metadata = fs::metadata(path).map_err(|error| EvidenceError::Io {
        path: path.to_owned(),
        error,
    })?;
    if metadata.is_file() {
        return Ok(metadata);
    }
    Err(EvidenceError::NotAFile {
        path: path.to_owned(),
        kind: kind_of(&metadata),
    })
}

#[cfg(unix)]
fn kind_of(metadata: &fs::Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(not(unix))]
fn kind_of(metadata: &fs::Metadata) -> &'static str {
    if metadata.is_dir() {
        "a directory"
    } else {
        "no regular file"
    }
}

fn group(paths: Vec<PathBuf>) -> Result<Vec<Log>, EvidenceError> {
    let mut keyed: Vec<(String, u32, PathBuf, Option<u64>)> = Vec::new();
    for path in paths {
        let metadata = regular(&path)?;
        let idle_s = metadata
            .modified()
            .ok()
            .and_then(|when| when.elapsed().ok())
            .map(|age| age.as_secs());
        let name = path.to_string_lossy().into_owned();
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        let (base, age) = rotation(plain);
        keyed.push((base.to_owned(), age, path, idle_s));
    }
    keyed.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    let mut logs: Vec<Log> = Vec::new();
    let mut last: Option<String> = None;
    for (base, _, path, idle_s) in keyed {
        let part = LogPart {
            name: path.file_name().map_or_else(
                || path.to_string_lossy().into_owned(),
                |name| name.to_string_lossy().into_owned(),
            ),
            source: Source::File(path),
            idle_s,
        };
        match logs.last_mut() {
            Some(log) if last.as_deref() == Some(base.as_str()) => log.parts.push(part),
            _ => logs.push(Log { parts: vec![part] }),
        }
        last = Some(base);
    }
    Ok(logs)
}

impl Source {
    /// Opens it for reading.
    pub(crate) fn open(self) -> Result<Box<dyn Read + Send>, EvidenceError> {
        Ok(match self {
            Self::File(path) => {
                regular(&path)?;
                Box::new(File::open(&path).map_err(|error| EvidenceError::Io { path, error })?)
            }
            Self::Bytes(bytes) => Box::new(io::Cursor::new(bytes)),
            Self::Stream(stream) => stream,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_logs() {
        for name in ["server.log", "a.log.1", "a.log.2.gz", "rank3.LOG", "x.log.gz"] {
            assert!(is_log_name(name), "{name}");
        }
        for name in ["facts.json", "log", "a.txt", "truth.toml", "a.log.bak"] {
            assert!(!is_log_name(name), "{name}");
        }
        assert_eq!(rotation("a.log.10"), ("a.log", 10));
        assert_eq!(rotation("a.log"), ("a.log", 0));
    }
}
