//! Where runs are kept, and how one of them is named.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use shakedown_model::RunDocument;

use crate::bundle::RUN_FILE;
use crate::{Bundle, BundleWriter, ReadError, StoreError, WriteError, is_run_id};

/// Name of a project's own store.
const PROJECT_STORE: &str = ".shakedown";

/// Ids shown when a name is ambiguous.
const SHOWN: usize = 8;

/// What decides where the store is.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// `--store`.
    pub explicit: Option<PathBuf>,
    /// `SHAKEDOWN_STORE`.
    pub environment: Option<PathBuf>,
    /// The working directory, from which a `.shakedown` is looked for upwards.
    pub working_dir: Option<PathBuf>,
    /// `XDG_DATA_HOME`.
    pub data_home: Option<PathBuf>,
    /// `HOME`.
    pub home: Option<PathBuf>,
}

impl Places {
    /// The places of this process; empty variables count as unset.
    pub fn of_process(explicit: Option<&Path>) -> Self {
        let var = |name| {
            env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        Self {
            explicit: explicit.map(Path::to_owned),
            environment: var("SHAKEDOWN_STORE"),
            working_dir: env::current_dir().ok(),
            data_home: var("XDG_DATA_HOME"),
            home: var("HOME"),
        }
    }

    /// The store: the explicit one, else the environment's, else the nearest `.shakedown` upwards that belongs
    /// to this user, else the one in the user's data directory.
    pub fn store(&self) -> Result<Store, StoreError> {
        if let Some(root) = self.explicit.as_ref().or(self.environment.as_ref()) {
            return Ok(Store::at(root));
        }
        if let Some(root) = self.project_store() {
            return Ok(Store::at(root));
        }
        // The specification of base directories says to ignore relative ones.
        let data = self.data_home.clone().filter(|path| path.is_absolute());
        data.or_else(|| self.home.as_ref().map(|home| home.join(".local/share")))
            .map(|data| Store::at(data.join("shakedown")))
            .ok_or(StoreError::NoPlace)
    }

    /// The nearest project store. One that another user left above us (in `/tmp`, say) is not ours to fill.
    fn project_store(&self) -> Option<PathBuf> {
        let owner = nix::unistd::geteuid().as_raw();
        self.working_dir
            .as_deref()?
            .ancestors()
            .map(|dir| dir.join(PROJECT_STORE))
            .find(|dir| fs::metadata(dir).is_ok_and(|dir| dir.is_dir() && dir.uid() == owner))
    }
}

/// A directory of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    root: PathBuf,
}

/// One run of a store, not yet read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its id.
    pub id: String,
    /// Its bundle's directory.
    pub path: PathBuf,
}

impl Entry {
    /// Reads it.
    pub fn open(&self) -> Result<Bundle, ReadError> {
        Bundle::open(&self.path)
    }
}

impl Store {
    /// The store that this process should use; `explicit` is the user's `--store`. Nothing is created yet.
    pub fn locate(explicit: Option<&Path>) -> Result<Self, StoreError> {
        Places::of_process(explicit).store()
    }

    /// The store at `root`, which need not exist yet.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Its directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// Begins a bundle: `runs/<id>/` with a `run.json` that says what `document` says.
    pub fn create(&self, document: &RunDocument) -> Result<BundleWriter, WriteError> {
        BundleWriter::create(&self.runs(), document)
    }

    /// All runs, newest first. Only names are read.
    pub fn list(&self) -> Result<Vec<Entry>, StoreError> {
        let runs = self.runs();
        let failed = |source| StoreError::Io {
            path: runs.clone(),
            source,
        };
        let directory = match fs::read_dir(&runs) {
            Ok(directory) => directory,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut entries = Vec::new();
        for entry in directory {
            let entry = entry.map_err(failed)?;
            let Ok(id) = entry.file_name().into_string() else {
                continue;
            };
            let path = entry.path();
            if is_run_id(&id) && path.join(RUN_FILE).is_file() {
                entries.push(Entry { id, path });
            }
        }
        entries.sort_by(|a, b| b.cmp(a));
        Ok(entries)
    }

    /// The bundle that `wanted` names: a path, `latest`, `latest~N` (N before the latest), an id, the beginning
    /// of one, or its last part.
    pub fn resolve(&self, wanted: &str) -> Result<PathBuf, StoreError> {
        let as_path = Path::new(wanted);
        if wanted.contains('/') || wanted == "." || wanted == ".." {
            return Ok(as_path.to_owned());
        }
        let entries = self.list()?;
        let missing = || StoreError::NoSuchRun {
            wanted: wanted.to_owned(),
            store: self.root.clone(),
        };
        if let Some(back) = back_from_latest(wanted) {
            return entries
                .get(back)
                .map(|entry| entry.path.clone())
                .ok_or_else(|| StoreError::TooFewRuns {
                    wanted: wanted.to_owned(),
                    store: self.root.clone(),
                    runs: entries.len(),
                });
        }
        if let Some(entry) = entries.iter().find(|entry| entry.id == wanted) {
            return Ok(entry.path.clone());
        }
        let matches = |entry: &&Entry| {
            !wanted.is_empty()
                && (entry.id.starts_with(wanted) || entry.id.rsplit('-').next() == Some(wanted))
        };
        let matching: Vec<&Entry> = entries.iter().filter(matches).collect();
        match matching.as_slice() {
            [entry] => Ok(entry.path.clone()),
            [] if as_path.join(RUN_FILE).is_file() => Ok(as_path.to_owned()),
            [] => Err(missing()),
            several => Err(StoreError::Ambiguous {
                wanted: wanted.to_owned(),
                matches: several.iter().take(SHOWN).map(|entry| entry.id.clone()).collect(),
            }),
        }
    }
}

/// N of `latest~N`; `latest` is 0.
fn back_from_latest(wanted: &str) -> Option<usize> {
    let rest = wanted.strip_prefix("latest")?;
    if rest.is_empty() {
        Some(0)
    } else {
        rest.strip_prefix('~')?.parse().ok()
    }
}
