//! One diagnosis from end to end: read the logs, judge, tell; and saving evidence for somebody else.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use shakedown_model::{Covered, Diagnosis};
use thiserror::Error;

use crate::catalog::{Catalog, CatalogError, Index};
use crate::evidence::{Evidence, EvidenceError, Log, LogPart, Source};
use crate::judge;
use crate::log::{Scanned, Scanner};
use crate::mask::mask;

/// From this many bytes on a larger automaton is worth its building.
const LARGE: u64 = 16 * 1024 * 1024;
/// Longest line that is saved.
const LONGEST_SAVED: u64 = 1024 * 1024;

/// A diagnosis could not be made.
#[derive(Debug, Error)]
pub enum DiagnoseError {
    /// The catalogue is broken.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The evidence cannot be read.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// A log cannot be read.
    #[error("read {name}")]
    Read {
        /// Which log.
        name: String,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// Evidence cannot be saved.
    #[error("save evidence to {path}")]
    Save {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
}

/// The catalogue, loaded and indexed once, for many diagnoses.
pub struct Diagnoser {
    catalog: Catalog,
    small: Index,
    large: std::sync::OnceLock<Option<Index>>,
}

impl Diagnoser {
    /// With the built-in catalogue.
    pub fn new() -> Result<Self, CatalogError> {
        Self::with(Catalog::built_in()?)
    }

    /// With another catalogue.
    pub fn with(catalog: Catalog) -> Result<Self, CatalogError> {
        let small = Index::new(&catalog, false)?;
        Ok(Self {
            catalog,
            small,
            large: std::sync::OnceLock::new(),
        })
    }

    /// The catalogue.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn index(&self, bytes: Option<u64>) -> &Index {
        if bytes.is_some_and(|bytes| bytes < LARGE) {
            return &self.small;
        }
        self.large
            .get_or_init(|| Index::new(&self.catalog, true).ok())
            .as_ref()
            .unwrap_or(&self.small)
    }

    /// Judges `evidence`.
    pub fn diagnose(&self, evidence: Evidence) -> Result<Diagnosis, DiagnoseError> {
        let mut scanned: Vec<Scanned> = Vec::new();
        let mut covered: Vec<Covered> = Vec::new();
        for log in evidence.logs {
            let index = self.index(log.size());
            let mut scanner = Scanner::new(&self.catalog, index, evidence.pid);
            let mut idle: Vec<Option<u64>> = Vec::new();
            for part in log.parts {
                idle.push(part.idle_s);
                let reader = part.source.open()?;
                scanner
                    .part(&part.name, reader)
                    .map_err(|error| DiagnoseError::Read {
                        name: part.name,
                        error,
                    })?;
            }
            let one = scanner.finish();
            covered.extend(cover(&one, &idle));
            scanned.push(one);
        }
        Ok(judge::judge(&self.catalog, &evidence.facts, &scanned, covered))
    }
}

fn cover(scanned: &Scanned, idle: &[Option<u64>]) -> Vec<Covered> {
    let launch = &scanned.launch;
    scanned
        .parts
        .iter()
        .enumerate()
        .map(|(at, part)| {
            let (first, last) = (part.lines_before + 1, part.lines_before + part.lines);
            // The judged launch may lie in some of the parts only.
            let from = launch.first_line.max(first);
            let to = launch.last_line.min(last);
            Covered {
                source: part.name.clone(),
                bytes: part.bytes,
                lines: part.lines,
                launches: scanned.launches,
                judged_launch: scanned.number,
                judged_lines: (from <= to).then(|| (from - part.lines_before, to - part.lines_before)),
                first_stamp: launch.stamps.as_ref().map(|(first, _)| first.clone()),
                last_stamp: launch.stamps.as_ref().map(|(_, last)| last.clone()),
                idle_s: idle.get(at).copied().flatten(),
                notes: part.notes.clone(),
            }
        })
        .collect()
}

impl Log {
    /// Bytes of its parts, where all are known.
    fn size(&self) -> Option<u64> {
        self.parts
            .iter()
            .map(|part| match &part.source {
                Source::File(path) => fs::metadata(path).ok().map(|metadata| metadata.len()),
                Source::Bytes(bytes) => Some(bytes.len() as u64),
                Source::Stream(_) => None,
            })
            .sum()
    }
}

/// Judges `evidence` with the built-in catalogue.
pub fn diagnose(evidence: Evidence) -> Result<Diagnosis, DiagnoseError> {
    Diagnoser::new()?.diagnose(evidence)
}

/// Writes `evidence` into the directory `dir`, secrets masked, so that it can be judged elsewhere.
pub fn save(evidence: Evidence, dir: &Path) -> Result<(), DiagnoseError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| DiagnoseError::Save { path, error }
    };
    fs::create_dir_all(dir).map_err(failed(dir))?;
    if !evidence.facts.is_empty() {
        let path = dir.join("facts.json");
        let text = serde_json::to_vec_pretty(&evidence.facts.to_json())
            .map_err(|error| failed(&path)(io::Error::other(error)))?;
        fs::write(&path, text).map_err(failed(&path))?;
    }
    for (number, log) in evidence.logs.into_iter().enumerate() {
        for LogPart { name, source, .. } in log.parts {
            let plain: String = name
                .trim_end_matches(".gz")
                .chars()
                .map(|c| {
                    if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') {
                        c
                    } else {
                        '_'
                    }
                })
                .collect();
            let stem = plain.trim_end_matches(".log").trim_start_matches('.');
            let path = dir.join(format!("{number:02}-{stem}.log"));
            copy_masked(source.open()?, &path).map_err(failed(&path))?;
        }
    }
    Ok(())
}

fn copy_masked(reader: Box<dyn Read + Send>, path: &Path) -> io::Result<()> {
    let mut reader = BufReader::new(reader);
    let mut out = io::BufWriter::new(fs::File::create(path)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        let got = (&mut reader).take(LONGEST_SAVED).read_until(b'\n', &mut line)?;
        if got == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        out.write_all(mask(&text).as_bytes())?;
    }
    out.flush()
}
