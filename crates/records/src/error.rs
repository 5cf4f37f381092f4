//! What can go wrong with bundles: messages read after "failed to", and causes stand in the chain.

use std::io;
use std::path::{Path, PathBuf};

/// A bundle could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file system, or the user's share of it, is full. Lines written before it stay whole.
    #[error("write {}: no space left", path.display())]
    DiskFull {
        /// The file that did not fit.
        path: PathBuf,
    },
    /// A run of this id is in the store already.
    #[error("create {}: a run of this id exists", path.display())]
    Exists {
        /// Its directory.
        path: PathBuf,
    },
    /// An id or a file name that would leave the bundle.
    #[error("use {name:?} as the name of {what}")]
    BadName {
        /// The name.
        name: String,
        /// What it was to name.
        what: &'static str,
    },
    /// The document cannot be written as JSON that reads back, for example because a figure is not finite.
    #[error("write {} so that it reads back", path.display())]
    NotReadable {
        /// The file that was to be written; what stood there before still does.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Anything else that the operating system refused.
    #[error("{what} {}", path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// To which file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl WriteError {
    /// The error of doing `what` to `path`, typed by the system's reason.
    pub(crate) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ => Self::Io { what, path, source },
        }
    }
}

/// A bundle could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no bundle here.
    #[error("find a run at {}: it has no run.json", path.display())]
    NotABundle {
        /// The place.
        path: PathBuf,
    },
    /// The file is JSON of another kind, or of a version that this program does not know.
    #[error("read {}: its schema is {found:?}, and this version reads {expected:?}", path.display())]
    OtherSchema {
        /// The file.
        path: PathBuf,
        /// The schema that it names.
        found: String,
        /// The schema that we read.
        expected: &'static str,
    },
    /// The file is not a document of the schema that it names.
    #[error("read {}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// The file is too large to be what it says.
    #[error("read {}: larger than {cap} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The cap in bytes.
        cap: u64,
    },
    /// One line is bad; the lines around it can still be read.
    #[error("read line {line} of {}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: u64,
        /// What is wrong with it.
        source: LineFault,
    },
    /// The operating system refused.
    #[error("read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// What is wrong with one line.
#[derive(Debug, thiserror::Error)]
pub enum LineFault {
    /// Not the JSON of such a line.
    #[error(transparent)]
    Malformed(#[from] serde_json::Error),
    /// Longer than any real line.
    #[error("longer than {cap} bytes")]
    TooLong {
        /// The cap in bytes.
        cap: usize,
    },
    /// A chunk gap that does not fit: base and offset leave the range of 32 bits.
    #[error("gap {index} is out of range")]
    Gap {
        /// Which gap, from 0.
        index: usize,
    },
    /// A stamp before the run's origin.
    #[error("stamp {name:?} is before the run's origin")]
    Stamp {
        /// Which stamp.
        name: &'static str,
    },
}

/// A run or the store itself could not be found.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Neither an option nor the environment says where runs are kept.
    #[error("find a place for runs: neither SHAKEDOWN_STORE nor XDG_DATA_HOME nor HOME is set")]
    NoPlace,
    /// No run matches.
    #[error("find run {wanted:?} in {}", store.display())]
    NoSuchRun {
        /// What was asked for.
        wanted: String,
        /// Where it was looked for.
        store: PathBuf,
    },
    /// There are fewer runs than asked for.
    #[error("find run {wanted:?}: {} holds {runs}", store.display())]
    TooFewRuns {
        /// What was asked for.
        wanted: String,
        /// Where it was looked for.
        store: PathBuf,
        /// Runs there.
        runs: usize,
    },
    /// Several runs match.
    #[error("choose among {} runs that match {wanted:?}: {}", matches.len(), matches.join(", "))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// The first of the ids that match.
        matches: Vec<String>,
    },
    /// The operating system refused.
    #[error("read {}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}
