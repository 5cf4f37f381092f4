//! The document of a run: `run.json`, schema `shakedown.run/1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ClientHealth, Finding, Load, Metrics, Server, Stop, Truth, Workload};

/// Name and version of the run document's schema.
pub const RUN_SCHEMA: &str = "shakedown.run/1";

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// Still going, or cut: a bundle that stays in this state was killed.
    Running,
    /// All trials were done.
    Complete,
    /// The user interrupted it; what was measured is kept.
    Interrupted,
    /// It gave up: the target could not be measured.
    Failed,
}

/// The machine and the process that measured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Client {
    /// Host name.
    pub host: String,
    /// Kernel name and release.
    pub kernel: String,
    /// CPUs that the process may use.
    pub cpus: u32,
    /// CPU model, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Boot id: stamps of two runs compare only within one boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
}

/// Which launch of the server a run belongs to: reserved for comparing, where the unit is the launch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LaunchRef {
    /// Identity of the launch: the same for two runs exactly when the server was not restarted between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Block of an interleaved comparison, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u32>,
    /// Place within that block, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<u32>,
}

/// One repetition of the workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Number, from 1.
    pub number: u32,
    /// Start of its window in microseconds since the run's origin.
    pub start_us: u64,
    /// End of its window.
    pub end_us: u64,
    /// Its figures.
    pub metrics: Metrics,
    /// Hashes of the answers to the canary prompts, in order: reserved for comparing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub canaries: Vec<String>,
}

/// One run: what was measured, on what, how, and what came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunDocument {
    /// [`RUN_SCHEMA`].
    pub schema: String,
    /// Identity of the run.
    pub id: String,
    /// Version of the tool.
    pub tool_version: String,
    /// Start in RFC 3339, UTC.
    pub started: String,
    /// Wall clock of the run's origin in microseconds since the epoch.
    pub origin_unix_us: u64,
    /// Monotonic clock of the run's origin in nanoseconds.
    pub origin_monotonic_ns: u64,
    /// How it ended.
    pub end: RunEnd,
    /// Length of the run in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// The server.
    pub server: Server,
    /// The launch it belongs to.
    pub launch: LaunchRef,
    /// The machine and process that measured.
    pub client: Client,
    /// What was sent.
    pub workload: Workload,
    /// How it was sent.
    pub load: Load,
    /// When a trial had enough.
    pub stop: Stop,
    /// Warm-up requests before the first trial.
    pub warmup_requests: u32,
    /// Whether each request opened its own connection.
    pub cold: bool,
    /// Judged facts: what limits the validity of the figures first.
    pub findings: Vec<Finding>,
    /// The trials.
    pub trials: Vec<Trial>,
    /// Figures over all trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooled: Option<Metrics>,
    /// What the client says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_health: Option<ClientHealth>,
    /// Comparison with the server's own stamps, against the practice server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth: Option<Truth>,
    /// Fingerprint of the stack: reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_fingerprint: Option<String>,
    /// Tags that the user gave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}
