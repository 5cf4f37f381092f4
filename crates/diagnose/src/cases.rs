//! Directories of cases with known truth: how often the verdict is right, and whether its confidence can be
//! believed.
//!
//! A case is a directory with `*.log`, an optional `facts.json` and a `truth.toml`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shakedown_model::{Confidence, DiagnosedState, Diagnosis, Verdict};
use thiserror::Error;

use crate::evidence::{Evidence, EvidenceError};
use crate::run::{DiagnoseError, Diagnoser};

/// A directory of cases could not be used.
#[derive(Debug, Error)]
pub enum CaseError {
    /// A directory could not be listed, or a file not read.
    #[error("read {path}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// A truth is not what it should be.
    #[error("read {path}")]
    Truth {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        error: Box<toml::de::Error>,
    },
    /// No case was found.
    #[error(
        "failed to find a case in {path}: a case is a directory with a truth.toml beside its *.log files"
    )]
    None {
        /// Where.
        path: PathBuf,
    },
    /// A case could not be judged.
    #[error("judge the case {path}")]
    Diagnose {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        error: Box<DiagnoseError>,
    },
}

/// What is true of a case.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Truth {
    /// Families that are right, the usual one first; `unknown` where the evidence does not decide.
    #[serde(default)]
    pub family: Vec<String>,
    /// Classes that are right; empty: any of the family.
    #[serde(default)]
    pub class: Vec<String>,
    /// The state that the server is in.
    #[serde(default)]
    pub state: Option<DiagnosedState>,
    /// The line that a good verdict quotes, in the case's first log.
    #[serde(default)]
    pub line: Option<u64>,
    /// Whether the evidence does not decide, so that `unknown` is right too.
    #[serde(default)]
    pub undecided: bool,
    /// Whether nothing is wrong.
    #[serde(default)]
    pub healthy: bool,
    /// Anything that a reader should know.
    #[serde(default)]
    pub note: String,
}

/// One case.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name: the directory's.
    pub name: String,
    /// Its directory.
    pub dir: PathBuf,
    /// What is true of it.
    pub truth: Truth,
}

/// What came of one case.
#[derive(Debug, Clone, Serialize)]
pub struct CaseResult {
    /// Its name.
    pub name: String,
    /// Family, class, code and confidence of the verdict.
    pub family: String,
    /// Class of the verdict.
    pub class: String,
    /// Code of the verdict.
    pub code: String,
    /// Its confidence.
    pub confidence: Confidence,
    /// The state that was told.
    pub state: DiagnosedState,
    /// Whether family, class and state are right.
    pub right: bool,
    /// Whether no cause was named.
    pub unknown: bool,
    /// Whether the line that should be quoted was.
    pub quoted: bool,
    /// Whether the evidence does not decide.
    pub undecided: bool,
}

/// How many were right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Summary {
    /// Cases.
    pub cases: u32,
    /// Cases that the evidence decides.
    pub decidable: u32,
    /// Of those, judged right.
    pub right: u32,
    /// No cause was named.
    pub unknown: u32,
    /// A wrong cause was named.
    pub wrong: u32,
    /// Verdicts called certain.
    pub certain: u32,
    /// Of those, right.
    pub certain_right: u32,
    /// Verdicts called likely.
    pub likely: u32,
    /// Of those, right.
    pub likely_right: u32,
    /// Verdicts called possible that name a cause.
    pub possible: u32,
    /// Of those, right.
    pub possible_right: u32,
}

/// The results of a directory of cases.
#[derive(Debug, Clone, Serialize)]
pub struct Cases {
    /// One for each case, by name.
    pub results: Vec<CaseResult>,
    /// All together.
    pub summary: Summary,
}

impl Case {
    /// The cases in `dir`: itself, or its subdirectories.
    pub fn all_in(dir: &Path) -> Result<Vec<Self>, CaseError> {
        let io = |error| CaseError::Io {
            path: dir.to_owned(),
            error,
        };
        if dir.join("truth.toml").is_file() {
            return Ok(vec![Self::load(dir)?]);
        }
        let mut cases = Vec::new();
        for entry in fs::read_dir(dir).map_err(io)? {
            let path = entry.map_err(io)?.path();
            if path.join("truth.toml").is_file() {
                cases.push(Self::load(&path)?);
            }
        }
        if cases.is_empty() {
            return Err(CaseError::None { path: dir.to_owned() });
        }
        cases.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(cases)
    }

    fn load(dir: &Path) -> Result<Self, CaseError> {
        let path = dir.join("truth.toml");
        let text = fs::read_to_string(&path).map_err(|error| CaseError::Io {
            path: path.clone(),
            error,
        })?;
        let truth = toml::from_str(&text).map_err(|error| CaseError::Truth {
            path,
            error: Box::new(error),
        })?;
        Ok(Self {
            name: dir
                .file_name()
                .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            dir: dir.to_owned(),
            truth,
        })
    }

    /// Its evidence.
    pub fn evidence(&self) -> Result<Evidence, EvidenceError> {
        Evidence::from_dir(&self.dir)
    }
}

impl CaseResult {
    /// Compares a diagnosis with the truth.
    pub fn new(name: &str, truth: &Truth, diagnosis: &Diagnosis) -> Self {
        let first = diagnosis.first();
        let word = |pick: fn(&shakedown_model::Diagnosed) -> &String| {
            first.map_or_else(String::new, |first| pick(first).clone())
        };
        let (family, class) = (word(|first| &first.family), word(|first| &first.class));
        let unknown = first.is_none_or(|first| first.finding.verdict == Verdict::Unknown);
        let named = |list: &[String], value: &str| list.is_empty() || list.iter().any(|one| one == value);
        let state = truth.state.is_none_or(|state| state == diagnosis.state);
        let right = if truth.healthy {
            first.is_some_and(|first| matches!(first.finding.verdict, Verdict::Ok | Verdict::Info)) && state
        } else {
            named(&truth.family, &family) && named(&truth.class, &class) && state
        };
        let quoted = truth.line.is_none_or(|line| {
            first.is_some_and(|first| {
                first
                    .finding
                    .evidence
                    .iter()
                    .any(|evidence| evidence.line == Some(line))
            })
        });
        Self {
            name: name.to_owned(),
            code: first.map_or_else(String::new, |first| first.finding.code.clone()),
            confidence: diagnosis.confidence,
            state: diagnosis.state,
            family,
            class,
            right,
            unknown,
            quoted,
            undecided: truth.undecided,
        }
    }
}

impl Cases {
    /// Judges all cases in `dir`.
    pub fn run(diagnoser: &Diagnoser, dir: &Path) -> Result<Self, CaseError> {
        let mut results = Vec::new();
        for case in Case::all_in(dir)? {
            let failed = |error: DiagnoseError| CaseError::Diagnose {
                path: case.dir.clone(),
                error: Box::new(error),
            };
            let evidence = case.evidence().map_err(|error| failed(error.into()))?;
            let diagnosis = diagnoser.diagnose(evidence).map_err(failed)?;
            results.push(CaseResult::new(&case.name, &case.truth, &diagnosis));
        }
        Ok(Self::of(results))
    }

    /// Sums results up.
    pub fn of(results: Vec<CaseResult>) -> Self {
        let mut summary = Summary::default();
        for result in &results {
            let right = result.right && (!result.unknown || result.undecided);
            summary.cases += 1;
            if !result.undecided {
                summary.decidable += 1;
                summary.right += u32::from(right);
            }
            if result.unknown {
                summary.unknown += 1;
                continue;
            }
            summary.wrong += u32::from(!right);
            let (count, good) = match result.confidence {
                Confidence::Certain => (&mut summary.certain, &mut summary.certain_right),
                Confidence::Likely => (&mut summary.likely, &mut summary.likely_right),
                Confidence::Possible => (&mut summary.possible, &mut summary.possible_right),
            };
            *count += 1;
            *good += u32::from(right);
        }
        Self { results, summary }
    }
}
