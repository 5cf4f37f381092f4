//! The failure catalogue's nouns, as `catalog/failures/*.toml` writes them.

use std::sync::OnceLock;

use regex::Regex;
use serde::Deserialize;
use shakedown_model::{Applicability, DiagnosedState, EngineKind, Provenance};

use crate::judge::Sign;

/// What a matched line means for the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It can be the cause.
    #[default]
    Cause,
    /// It says that something is wrong and not what; a verdict only where nothing explains it.
    Symptom,
    /// It only ever follows from something else; never a verdict.
    Cascade,
    /// It looks bad and means nothing.
    Benign,
    /// Something asked for that is not in force.
    NotInForce,
}

/// How a line is recognised: a literal that is looked for in raw bytes, and a regex that is run only where the
/// literal stands.
#[derive(Debug)]
pub struct Pattern {
    /// Literals of which at least one stands in the line, letter case aside.
    pub literals: Vec<String>,
    /// What the line must match besides; its named groups fill the explanation.
    pub regex: Option<LazyRegex>,
    /// What the line must not match.
    pub unless: Option<LazyRegex>,
}

impl Pattern {
    /// Tries the pattern on a text of which nothing is known yet; the named groups on success.
    pub fn find_in(&self, text: &str) -> Option<Vec<(String, String)>> {
        let lower = text.to_ascii_lowercase();
        let stands = self
            .literals
            .iter()
            .any(|literal| lower.contains(&literal.to_ascii_lowercase()));
        if stands { self.captures(text, text) } else { None }
    }

    /// Tries the regexes on a line whose literal is known to stand there: those that are tied to the start on
    /// its message, others on the whole line.
    pub fn captures(&self, text: &str, message: &str) -> Option<Vec<(String, String)>> {
        let subject = |regex: &LazyRegex| {
            if regex.source().starts_with('^') || regex.source().starts_with("(?i)^") {
                message
            } else {
                text
            }
        };
        if let Some(unless) = &self.unless
            && unless.is_match(subject(unless))
        {
            return None;
        }
        let Some(lazy) = &self.regex else {
            return Some(Vec::new());
        };
        let regex = lazy.get()?;
        let found = regex.captures(subject(lazy))?;
        Some(
            regex
                .capture_names()
                .flatten()
                .filter_map(|name| {
                    let value = found.name(name)?.as_str();
                    Some((name.to_owned(), crate::log::bounded(value, 1024).to_owned()))
                })
                .collect(),
        )
    }
}

/// A regex that is compiled when it is first needed.
#[derive(Debug)]
pub struct LazyRegex {
    source: String,
    compiled: OnceLock<Option<Regex>>,
}

impl LazyRegex {
    /// Keeps the source for later.
    pub fn new(source: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            compiled: OnceLock::new(),
        }
    }

    /// The regex, compiled now if it was not; `None` where it does not compile (the catalogue's test finds those).
    pub fn get(&self) -> Option<&Regex> {
        self.compiled
            .get_or_init(|| Regex::new(&self.source).ok())
            .as_ref()
    }

    /// The source.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether `text` matches.
    pub fn is_match(&self, text: &str) -> bool {
        self.get().is_some_and(|regex| regex.is_match(text))
    }
}

impl<'de> Deserialize<'de> for LazyRegex {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

/// A pattern as TOML writes it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum PatternToml {
    Literal(String),
    Full(PatternTable),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternTable {
    lit: OneOrMany,
    #[serde(default)]
    re: Option<LazyRegex>,
    #[serde(default)]
    unless: Option<LazyRegex>,
}

/// One value or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl OneOrMany {
    /// As a list.
    pub fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(one) => vec![one],
            Self::Many(many) => many,
        }
    }

    /// As a slice.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match PatternToml::deserialize(deserializer)? {
            PatternToml::Literal(literal) => Self {
                literals: vec![literal],
                regex: None,
                unless: None,
            },
            PatternToml::Full(table) => Self {
                literals: table.lit.into_vec(),
                regex: table.re,
                unless: table.unless,
            },
        })
    }
}

/// One thing that speaks for or against an explanation. All members that are given must hold.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// A derived sign of the machine or the log.
    #[serde(default)]
    pub sign: Option<Sign>,
    /// A fact by its key, `key` or `key.sub`; several: any of them.
    #[serde(default)]
    pub fact: Option<OneOrMany>,
    /// An observation of the log by its name.
    #[serde(default)]
    pub seen: Option<String>,
    /// Another entry that matched, by its code; several: any of them.
    #[serde(default)]
    pub code: Option<OneOrMany>,
    /// The stage in which it happened (`draft` for the draft's second pass); several: any of them.
    #[serde(default)]
    pub stage: Option<OneOrMany>,
    /// The engine.
    #[serde(default)]
    pub engine: Option<EngineKind>,
    /// A regex on the file and function of a frame of the same traceback, or of the line's own text.
    #[serde(default)]
    pub frame: Option<LazyRegex>,
    /// A regex on the lines in which the entry matched.
    #[serde(default)]
    pub text: Option<LazyRegex>,
    /// An argument of the server, without leading dashes, underscores for dashes.
    #[serde(default)]
    pub arg: Option<String>,
    /// What the fact, sign, observation or argument must match.
    #[serde(default)]
    pub matches: Option<LazyRegex>,
    /// Smallest value of its first number.
    #[serde(default)]
    pub min: Option<f64>,
    /// Value that its first number must stay below.
    #[serde(default)]
    pub below: Option<f64>,
    /// Turns the condition round; a fact that was not given never holds either way.
    #[serde(default)]
    pub not: bool,
    /// The weight that the explanation has when this holds (confirmations).
    #[serde(default)]
    pub to: Option<u8>,
    /// What it says, in a sentence for the reader.
    #[serde(default)]
    pub says: Option<String>,
}

/// One way to mend it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixEntry {
    /// What to do.
    #[serde(rename = "do")]
    pub text: String,
    /// The command.
    #[serde(default)]
    pub run: Option<String>,
    /// Whether it can be applied as it stands.
    #[serde(default = "review")]
    pub risk: Applicability,
}

fn review() -> Applicability {
    Applicability::Review
}

/// A log that must, or must not, be judged so.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Sample {
    /// Lines alone.
    Log(String),
    /// Lines with facts.
    Full {
        /// The lines.
        log: String,
        /// The facts, as in `facts.json`.
        #[serde(default)]
        facts: toml::Table,
    },
}

impl Sample {
    /// The lines.
    pub fn log(&self) -> &str {
        match self {
            Self::Log(log) | Self::Full { log, .. } => log,
        }
    }
}

/// One failure, or one thing that looks like one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// Stable code, kebab-case.
    pub code: String,
    /// What it is, in a few words.
    pub title: String,
    /// Group of kinds; the file's where absent.
    #[serde(default)]
    pub family: String,
    /// The kind, `area.kind`.
    pub class: String,
    /// How it is known.
    pub known: Provenance,
    /// What it means.
    #[serde(default)]
    pub role: Role,
    /// How far the text alone decides, 0 to 100: from 90 on it can be certain, from 60 on it is likely.
    pub weight: u8,
    /// Whether it holds even where the server came up after it.
    #[serde(default)]
    pub when_up: bool,
    /// Whether it stands only where no exception that nobody explains came before it.
    #[serde(default)]
    pub alone: bool,
    /// The state of the server that it means, where it is not the usual one.
    #[serde(default)]
    pub state: Option<DiagnosedState>,
    /// How it is recognised; empty for what only facts show.
    #[serde(default, rename = "match")]
    pub patterns: Vec<Pattern>,
    /// What must hold besides.
    #[serde(default)]
    pub require: Vec<Condition>,
    /// What raises its weight.
    #[serde(default)]
    pub confirm: Vec<Condition>,
    /// What rules it out.
    #[serde(default)]
    pub refute: Vec<Condition>,
    /// Codes of what it causes; `class:…` and `family:…` name groups.
    #[serde(default)]
    pub folds: Vec<String>,
    /// The cause in one sentence, with placeholders.
    pub what: String,
    /// Why it is so, in one sentence.
    pub why: String,
    /// How to mend it.
    #[serde(default, rename = "fix")]
    pub fixes: Vec<FixEntry>,
    /// The command that proves it mended.
    #[serde(default)]
    pub verify: Option<String>,
    /// Where it was read.
    pub source: String,
    /// Logs that must be judged so.
    #[serde(default)]
    pub yes: Vec<Sample>,
    /// Logs that must not be judged so.
    #[serde(default)]
    pub no: Vec<Sample>,
}

/// A stage of bring-up, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The process prints its first line.
    Start,
    /// Processes find each other.
    Distributed,
    /// Weights are fetched.
    Downloading,
    /// Weights are read.
    LoadingWeights,
    /// Room for the KV cache is taken.
    AllocatingKv,
    /// Kernels are compiled or tuned.
    Compiling,
    /// Graphs are captured.
    CapturingGraphs,
    /// The HTTP server starts.
    Listening,
    /// A first request of its own is served.
    WarmingUp,
    /// It says that it is ready.
    Ready,
    /// It serves requests.
    Serving,
    /// It was asked to end, or says that it ends.
    Stopping,
}

impl Stage {
    /// The words for a sentence.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Start => "starting",
            Self::Distributed => "connecting its processes",
            Self::Downloading => "downloading weights",
            Self::LoadingWeights => "loading weights",
            Self::AllocatingKv => "allocating the KV cache",
            Self::Compiling => "compiling kernels",
            Self::CapturingGraphs => "capturing graphs",
            Self::Listening => "opening its port",
            Self::WarmingUp => "warming up",
            Self::Ready => "ready",
            Self::Serving => "serving",
            Self::Stopping => "stopping",
        }
    }

    /// The name in data and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Distributed => "distributed",
            Self::Downloading => "downloading",
            Self::LoadingWeights => "loading-weights",
            Self::AllocatingKv => "allocating-kv",
            Self::Compiling => "compiling",
            Self::CapturingGraphs => "capturing-graphs",
            Self::Listening => "listening",
            Self::WarmingUp => "warming-up",
            Self::Ready => "ready",
            Self::Serving => "serving",
            Self::Stopping => "stopping",
        }
    }
}

/// A line that marks a stage.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageMark {
    /// Which stage.
    pub stage: Stage,
    /// Whether the line ends the stage.
    #[serde(default)]
    pub end: bool,
    /// Whether it is a launch's first line.
    #[serde(default)]
    pub launch: bool,
    /// The engine that prints it, where it is one's own.
    #[serde(default)]
    pub engine: Option<EngineKind>,
    /// How it is recognised.
    #[serde(rename = "match")]
    pub patterns: Vec<Pattern>,
}

/// A line that tells a value.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observe {
    /// The value's name.
    pub name: String,
    /// How it is recognised; the group `value` is the value, the others fill placeholders.
    #[serde(rename = "match")]
    pub patterns: Vec<Pattern>,
}

/// One file of the catalogue.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CatalogFile {
    /// Family of the entries that name none.
    #[serde(default)]
    pub(super) family: String,
    /// Failures.
    #[serde(default)]
    pub(super) failure: Vec<Failure>,
    /// Stage marks.
    #[serde(default)]
    pub(super) stage: Vec<StageMark>,
    /// Observations.
    #[serde(default)]
    pub(super) observe: Vec<Observe>,
}
