//! The document of a comparison: schema `shakedown.compare/1`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Exit, Finding, Metric, MetricUnit};

/// Name and version of the comparison document's schema.
pub const COMPARISON_SCHEMA: &str = "shakedown.compare/1";

/// What the figures of one metric say of B beside A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpeedVerdict {
    /// B is better.
    Faster,
    /// B is worse.
    Slower,
    /// They are the same within the margin.
    Same,
    /// The figures do not say.
    CannotTell,
}

impl SpeedVerdict {
    /// The words used on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::CannotTell => "cannot tell",
        }
    }
}

impl fmt::Display for SpeedVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the whole comparison comes to: the verdict of the primary metric, unless the answers forbid it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// B is faster.
    Faster,
    /// B is slower.
    Slower,
    /// They are the same within the margin.
    Same,
    /// The figures do not say.
    CannotTell,
    /// B does not answer as A does: how fast it does so is no merit.
    WrongAnswers,
}

impl Conclusion {
    /// The words used on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::CannotTell => "cannot tell",
            Self::WrongAnswers => "wrong answers",
        }
    }

    /// How the process ends.
    pub const fn exit(self) -> Exit {
        match self {
            Self::Faster | Self::Same => Exit::Yes,
            Self::Slower | Self::WrongAnswers => Exit::No,
            Self::CannotTell => Exit::NotEnoughEvidence,
        }
    }
}

impl From<SpeedVerdict> for Conclusion {
    fn from(verdict: SpeedVerdict) -> Self {
        match verdict {
            SpeedVerdict::Faster => Self::Faster,
            SpeedVerdict::Slower => Self::Slower,
            SpeedVerdict::Same => Self::Same,
            SpeedVerdict::CannotTell => Self::CannotTell,
        }
    }
}

/// What the interval rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Several launches on at least one side: a statement on what another launch would do.
    Launches,
    /// Interleaved blocks, both servers launched anew between them: the same statement.
    FreshBlocks,
    /// One launch a side: a statement on these two launches, with a restart spread allowed for that was not seen here.
    TwoLaunches,
    /// Interleaved blocks over one launch a side: the same, free of drift.
    Blocks,
    /// The same launch on both sides: a statement on two times of one launch.
    SameLaunch,
    /// The same launch on both sides, interleaved.
    SameLaunchBlocks,
}

impl Basis {
    /// The unit whose number decides how exact the comparison is.
    pub const fn unit(self) -> ComparisonUnit {
        match self {
            Self::Launches | Self::FreshBlocks | Self::TwoLaunches => ComparisonUnit::Launches,
            Self::Blocks | Self::SameLaunchBlocks => ComparisonUnit::Blocks,
            Self::SameLaunch => ComparisonUnit::Trials,
        }
    }

    /// Whether restarts vary the figures and were not seen to.
    pub const fn assumes_restart_spread(self) -> bool {
        matches!(self, Self::TwoLaunches | Self::Blocks)
    }
}

/// What there can be more of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonUnit {
    /// Launches a side.
    Launches,
    /// Interleaved blocks.
    Blocks,
    /// Trials a side.
    Trials,
}

impl ComparisonUnit {
    /// The word used on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Launches => "launches a side",
            Self::Blocks => "blocks",
            Self::Trials => "trials a side",
        }
    }
}

/// How many more units would give a verdict other than "cannot tell" with a chance of 80%, if the true difference is the
/// one seen. A range, for the spread behind it is itself an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MoreNeeded {
    /// Of what.
    pub unit: ComparisonUnit,
    /// If the spread is at the lower end of its 80% interval; absent: more than 2000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<u32>,
    /// If the spread is at the upper end; absent: more than 2000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<u32>,
}

/// Where the restart spread came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum RestartSource {
    /// Earlier launches of this server with the same settings and workload.
    History {
        /// How many.
        launches: u32,
    },
    /// The user.
    Given,
    /// Nobody: assumed, not measured.
    Assumed,
}

/// How far launches of one server lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RestartSpread {
    /// Standard deviation of ln(mean of a launch): 0.015 is about 1.5%.
    pub sd: f64,
    /// Where it came from.
    #[serde(flatten)]
    pub source: RestartSource,
}

/// One metric of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricComparison {
    /// Which.
    pub metric: Metric,
    /// Its unit.
    pub unit: MetricUnit,
    /// Whether more is better.
    pub higher_is_better: bool,
    /// Figure of A: the geometric mean over its launches of that over their trials.
    pub a: f64,
    /// Figure of B.
    pub b: f64,
    /// B / A, as the units pair them.
    pub ratio: f64,
    /// Lower end of the ratio's interval; absent where there are too few units for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The verdict.
    pub verdict: SpeedVerdict,
    /// Two-sided p-value of "no difference".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// The same by Holm's method over all metrics but the primary one, which alone is judged by `p`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_adjusted: Option<f64>,
    /// The interval alone would say more; the restart spread, which was not seen here, forbids it.
    #[serde(default)]
    pub capped: bool,
    /// The restart spread that was allowed for, where one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_spread: Option<RestartSpread>,
    /// What would tell, where the verdict is "cannot tell" and enough is known to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_needed: Option<MoreNeeded>,
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ComparedSide {
    /// What the user called it.
    pub label: String,
    /// Identities of its runs.
    pub runs: Vec<String>,
    /// Launches of the server.
    pub launches: u32,
    /// Trials.
    pub trials: u32,
    /// The server's base URL; the first of several.
    pub url: String,
    /// Engine and version, in one line, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// The model's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Why two sides are not comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefusalReason {
    /// A side has no run, or one run twice, or a run is on both sides.
    Sides,
    /// A run was cut, failed, or has no trial.
    Incomplete,
    /// Their figures are defined differently.
    Definitions,
    /// The client itself was the limit, or its stamps cannot be trusted.
    ClientLimited,
    /// Something else used the machine or the server.
    Contaminated,
    /// Another model.
    Model,
    /// Another endpoint, or streamed and not.
    Endpoint,
    /// Other kinds of prompts.
    PromptKinds,
    /// Other sampling.
    Sampling,
    /// Another workload in another way.
    Workload,
    /// Another load.
    Load,
    /// Tokens were counted differently.
    TokenSource,
}

/// One thing that makes two sides incomparable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// Why.
    pub reason: RefusalReason,
    /// What is so, in one sentence.
    pub what: String,
}

/// Whether both sides answer alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswersVerdict {
    /// As alike as A is to itself.
    Agree,
    /// Some answers differ.
    Differ,
    /// Most answers differ, from near their beginning.
    Wrong,
    /// There is nothing to compare, or A does not even agree with itself.
    Unknown,
}

/// The first prompt whose answers differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Divergence {
    /// Number of the prompt, from 1.
    pub prompt: u32,
    /// Bytes that both answers have in common before they part, where the texts were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_bytes: Option<u64>,
    /// The answer of A from a little before that point on (or its hash, where the texts were not kept).
    pub a: String,
    /// The answer of B.
    pub b: String,
}

/// The answers of both sides to the same seeded greedy prompts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerComparison {
    /// The verdict.
    pub verdict: AnswersVerdict,
    /// Prompts that both sides answered.
    pub prompts: u32,
    /// Chance that an answer of A and one of B to the same prompt are equal, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<f64>,
    /// The same of two answers of A; absent where each prompt was answered once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_a: Option<f64>,
    /// The same of two answers of B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_b: Option<f64>,
    /// Where answers differ: how far they go together on average, as a share of the longer one; known where texts were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_share: Option<f64>,
    /// The first divergence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Divergence>,
}

/// What kind of thing differs, in the order of how near it is to the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// A setting in force, by the engine's own report.
    InForce,
    /// The engine or its version.
    Engine,
    /// An argument of the server.
    Argument,
    /// A variable of its environment.
    Environment,
    /// A file changed by hand.
    Patch,
    /// Code that runs at start-up.
    Hook,
    /// What the server runs on: packages, libraries, driver.
    Stack,
    /// The machine of the server or the one that measured.
    Host,
    /// Clocks, power and links of the GPUs.
    Gpu,
}

/// One thing that differs between the sides: a candidate, never a cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// What kind.
    pub kind: DifferenceKind,
    /// Its name.
    pub name: String,
    /// Its value in A; absent where A has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a: Option<String>,
    /// Its value in B; absent where B has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<String>,
    /// Whether it is known to move the metrics compared.
    pub can_move: bool,
    /// What else is known, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Two sides, compared: the figures, the answers, and what differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// [`COMPARISON_SCHEMA`].
    pub schema: String,
    /// Version of the tool.
    pub tool_version: String,
    /// The side that is the yardstick.
    pub a: ComparedSide,
    /// The side that is judged.
    pub b: ComparedSide,
    /// What it comes to.
    pub conclusion: Conclusion,
    /// What the intervals rest on.
    pub basis: Basis,
    /// Units on the side of A (blocks or pairs of launches where the sides are interleaved).
    pub units_a: u32,
    /// Units on the side of B.
    pub units_b: u32,
    /// Confidence of the intervals.
    pub level: f64,
    /// Ratios between 1 / (1 + margin) and 1 + margin are the same.
    pub margin: f64,
    /// The metrics, the primary one first.
    pub metrics: Vec<MetricComparison>,
    /// The answers.
    pub answers: AnswerComparison,
    /// What differs, nearest and most able to move the figures first.
    pub differences: Vec<Difference>,
    /// What is to be known beside the verdict: drift, outliers, assumptions.
    pub notes: Vec<Finding>,
    /// What would have been refused, had the user not insisted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forced: Vec<Refusal>,
}

impl Comparison {
    /// The primary metric's comparison.
    pub fn primary(&self) -> Option<&MetricComparison> {
        self.metrics.first()
    }
}
