//! The shape of one engine's file in `catalog/engines/`.
//!
//! Everything but `kind` may be absent, so that a user's file can hold only what it adds or changes.

use serde::Deserialize;
use shakedown_model::{EngineKind, ProcessPart};

use super::pattern::Pattern;
use super::reply::ReplyRule;

/// How an entry is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// Neither run nor read: it never makes a finding certain.
    #[default]
    Unverified,
    /// Read in the engine's code, documentation or a thread.
    Source,
    /// From a run of ours.
    Seen,
}

/// One engine, as its file says it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Which engine.
    pub kind: EngineKind,
    /// A user's file replaces the built-in entry instead of adding to it.
    #[serde(default)]
    pub replace: bool,
    /// How the entry as a whole is known; a rule may say otherwise for itself.
    #[serde(default)]
    pub provenance: Provenance,
    /// The versions that it was read in or run with.
    #[serde(default)]
    pub checked: Vec<String>,
    /// Names of the Python distributions that install it.
    #[serde(default)]
    pub distributions: Vec<String>,
    /// Engines that it runs as its own children: one server with it, not servers of their own.
    #[serde(default)]
    pub absorbs: Vec<EngineKind>,
    /// Prefixes (or whole names) of environment variables that matter to it.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Where it listens when nobody says otherwise, the likeliest first.
    #[serde(default)]
    pub listen: Vec<Listen>,
    /// Ports that it may open beside the one for requests.
    #[serde(default)]
    pub other_ports: Vec<u16>,
    /// What its processes look like.
    #[serde(default)]
    pub process: Vec<ProcessRule>,
    /// How settings are asked for.
    #[serde(default)]
    pub flag: Vec<Flag>,
    /// What may be asked of it, and what never.
    #[serde(default)]
    pub probes: Probes,
    /// Replies that tell it from others.
    #[serde(default)]
    pub identity: Vec<IdentityRule>,
    /// Where it tells its version, first answer wins.
    #[serde(default)]
    pub version: Vec<VersionSource>,
    /// How ready differs from alive, first match wins.
    #[serde(default)]
    pub state: Vec<StateRule>,
    /// Its reports about itself.
    #[serde(default)]
    pub report: Vec<Report>,
    /// Settings in force and asked for, by our names.
    #[serde(default)]
    pub settings: Settings,
    /// Its metrics, by our names.
    #[serde(default)]
    pub metrics: Metrics,
}

/// A default address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listen {
    /// Versions that it holds for, for example `>=0.2,<0.5`; empty for all or where it is not known.
    #[serde(default)]
    pub versions: String,
    /// Host: an address, or `0.0.0.0` for all.
    pub host: String,
    /// Port.
    pub port: u16,
    /// How it is known, where that differs from the entry.
    #[serde(default)]
    pub provenance: Option<Provenance>,
}

/// What of a process a rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessField {
    /// The command, interpreter removed: see `Command`.
    Command,
    /// The title that a process gave itself in place of its arguments.
    Title,
    /// The base name of the executable.
    Executable,
}

/// A rule that recognises a process.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessRule {
    /// What it looks at.
    pub field: ProcessField,
    /// What such a process is.
    pub role: ProcessPart,
    /// The pattern.
    pub pattern: Pattern,
    /// How it is known, where that differs from the entry.
    #[serde(default)]
    pub provenance: Option<Provenance>,
    /// Command lines (or titles, or names) that it must match.
    pub matches: Vec<String>,
    /// Command lines (or titles, or names) that it must not match.
    pub differs: Vec<String>,
}

/// How one setting is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flag {
    /// Our name of the setting.
    pub setting: String,
    /// The flags, the usual one first.
    #[serde(default)]
    pub names: Vec<String>,
    /// A flag without a value means this.
    #[serde(default)]
    pub switch: Option<String>,
    /// The flag has a value, and whatever it is, it asks for this.
    #[serde(default)]
    pub means: Option<String>,
    /// The value is JSON, and the setting is at this pointer in it.
    #[serde(default)]
    pub at: Option<String>,
    /// The argument that follows one of these words is the value, unless it is a flag.
    #[serde(default)]
    pub after: Vec<String>,
    /// Environment variables that ask for it too.
    #[serde(default)]
    pub env: Vec<String>,
}

/// What may be asked of an engine by GET.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probes {
    /// Paths that change nothing.
    #[serde(default)]
    pub allow: Vec<String>,
    /// Paths that must never be asked for, though they answer to GET.
    #[serde(default)]
    pub never: Vec<String>,
}

/// A reply that tells the engine from others.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdentityRule {
    /// Place in the order of all engines' rules, ascending.
    pub order: u32,
    /// Path.
    pub path: String,
    /// What the reply must be.
    pub reply: ReplyRule,
    /// What the reply shows, for `recognised_by`, for example `a model_path in /model_info`.
    pub shows: String,
    /// It is the practice server; whose manners it wears is for the other rules to say.
    #[serde(default)]
    pub marks_practice: bool,
    /// How it is known, where that differs from the entry.
    #[serde(default)]
    pub provenance: Option<Provenance>,
    /// Replies that it must match.
    pub matches: Vec<SampleReply>,
    /// Replies that it must not match.
    pub differs: Vec<SampleReply>,
}

/// Where a version is told.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VersionSource {
    /// Path.
    pub path: String,
    /// JSON pointer.
    pub at: String,
    /// Values that say nothing.
    #[serde(default)]
    pub except: Vec<String>,
}

/// What a reply says of the server's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateWord {
    /// It answers requests.
    Ready,
    /// It is still loading or warming up.
    Loading,
    /// It says itself that it is not well.
    Unhealthy,
    /// It is well and holds no model: the next request loads one.
    Idle,
}

/// A reply that tells the state.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateRule {
    /// What it tells.
    pub state: StateWord,
    /// Path.
    pub path: String,
    /// What the reply must be.
    pub reply: ReplyRule,
    /// The reply must come within this time (milliseconds).
    #[serde(default)]
    pub within_ms: Option<u64>,
    /// How long a good reply may take (milliseconds); the usual probe deadline where absent.
    #[serde(default)]
    pub deadline_ms: Option<u64>,
    /// The probe makes the server generate: left out where a glance is asked for.
    #[serde(default)]
    pub generates: bool,
    /// Replies that it must match.
    pub matches: Vec<SampleReply>,
    /// Replies that it must not match.
    pub differs: Vec<SampleReply>,
}

/// A recorded or written reply, for the rules' samples.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleReply {
    /// Status.
    #[serde(default = "ok")]
    pub status: u16,
    /// Headers.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Body.
    #[serde(default)]
    pub body: String,
    /// How long it took (milliseconds).
    #[serde(default)]
    pub took_ms: u64,
}

const fn ok() -> u16 {
    200
}

/// A report about itself, in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Our name for it; the document's key is the path that answered.
    pub id: String,
    /// Paths, first answer wins.
    pub paths: Vec<String>,
    /// Top-level members that are left out: long, or not about settings.
    #[serde(default)]
    pub leave_out: Vec<String>,
}

/// Settings, by our names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Where a setting in force is found, `{}` standing for the engine's member; for settings that say nothing.
    #[serde(default)]
    pub in_force: String,
    /// The same for what was asked for.
    #[serde(default)]
    pub asked: String,
    /// Where the report holds the command line that was asked with.
    #[serde(default)]
    pub launch_command: Option<String>,
    /// The settings.
    #[serde(default)]
    pub list: Vec<SettingRule>,
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingRule {
    /// Our name.
    pub name: String,
    /// The engine's member, where it is not our name.
    #[serde(default)]
    pub member: Option<String>,
    /// Where it is found in force, first answer wins; the template where absent.
    ///
    /// `report#/pointer` (with `*` for every element of a list), or `metric:NAME{label}`.
    #[serde(default)]
    pub in_force: Option<Vec<String>>,
    /// Where it is found as asked for; the template where absent.
    #[serde(default)]
    pub asked: Option<Vec<String>>,
    /// Groups of values that mean the same.
    #[serde(default)]
    pub same: Vec<Vec<String>>,
    /// Values that leave the choice to the engine.
    #[serde(default)]
    pub open: Vec<String>,
    /// The engine may change it without harm: a difference is worth knowing, no more.
    #[serde(default)]
    pub adjusted: bool,
    /// Why it may not be in force, in one sentence.
    #[serde(default)]
    pub why: Option<String>,
}

/// Metrics, by our names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Paths of Prometheus text, first answer wins.
    #[serde(default)]
    pub paths: Vec<String>,
    /// What it needs to have them, for example a flag.
    #[serde(default)]
    pub needs: Option<String>,
    /// Labels that number copies of one figure (tensor-parallel ranks): copies are not added up.
    #[serde(default)]
    pub copies: Vec<String>,
    /// Prefix of its metric names, as it appears in the text.
    #[serde(default)]
    pub prefix: Option<String>,
    /// The metrics.
    #[serde(default)]
    pub list: Vec<MetricRule>,
}

/// How several samples of one metric become one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fold {
    /// Their sum.
    #[default]
    Sum,
    /// The largest.
    Max,
    /// Their mean.
    Mean,
}

/// One metric.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricRule {
    /// Our name: `docs/metrics.md` and `acceptance` say what each means.
    pub name: String,
    /// The engine's names, first one present wins; or `report#/pointer`.
    pub from: Vec<String>,
    /// Versions that it holds for; empty for all.
    #[serde(default)]
    pub versions: String,
    /// Only samples with these labels.
    #[serde(default)]
    pub only: std::collections::BTreeMap<String, String>,
    /// How several samples become one.
    #[serde(default)]
    pub fold: Fold,
}
