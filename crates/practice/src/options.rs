//! What the practice server is told to be.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shakedown_model::{PromptKind, Secret};

use crate::script::Script;

/// Whose manners the server wears: its default port, endpoints, headers, shapes and metric names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Manners {
    /// Nobody's: the shapes of OpenAI's API, and every endpoint at once.
    #[default]
    Plain,
    /// SGLang's.
    Sglang,
    /// vLLM's.
    Vllm,
    /// llama-server's.
    #[serde(rename = "llama.cpp")]
    LlamaCpp,
}

impl Manners {
    /// The port where a server of this kind listens unless told otherwise.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Plain => 8910,
            Self::Sglang => 30000,
            Self::Vllm => 8000,
            Self::LlamaCpp => 8080,
        }
    }

    /// The word used on the command line and in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Sglang => "sglang",
            Self::Vllm => "vllm",
            Self::LlamaCpp => "llama.cpp",
        }
    }
}

/// When the streams that run together emit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Each at its own multiples of `itl`, counted from its own first token.
    #[default]
    Spread,
    /// All at the same multiples of `itl`, as an engine that emits its whole batch at once.
    Aligned,
}

/// Speculative decoding: how many tokens a verify step yields. The first chunk of a stream is the prefill's one
/// token and no verify step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Acceptance {
    /// Weight of a step yielding 1, 2, … tokens, bonus token included; its length less one is the number of
    /// drafts proposed each step.
    pub weights: Vec<f64>,
    /// Other weights for prompts of a kind; each list must be as long as `weights`.
    #[serde(default)]
    pub by_kind: BTreeMap<PromptKind, Vec<f64>>,
}

impl Acceptance {
    /// The weights for a prompt of `kind`.
    pub fn weights_for(&self, kind: Option<PromptKind>) -> &[f64] {
        kind.and_then(|kind| self.by_kind.get(&kind))
            .unwrap_or(&self.weights)
    }

    /// Drafts proposed in each verify step.
    pub fn drafts(&self) -> u32 {
        self.weights.len().saturating_sub(1) as u32
    }
}

/// Steps of coming up, each measured from the start of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Startup {
    /// The address is taken. With port 0 it is taken at once, whatever this says.
    #[serde(rename = "bound_ms", with = "millis")]
    pub bound: Duration,
    /// Connections are accepted; refused before.
    #[serde(rename = "listening_ms", with = "millis")]
    pub listening: Duration,
    /// `/health` answers 200; 503 before (llama.cpp: every endpoint answers 503).
    #[serde(rename = "healthy_ms", with = "millis")]
    pub healthy: Duration,
    /// `/v1/models` lists the model; an empty list before.
    #[serde(rename = "listed_ms", with = "millis")]
    pub listed: Duration,
    /// No first token leaves before.
    #[serde(rename = "first_token_ms", with = "millis")]
    pub first_token: Duration,
}

/// Everything that can be set. Times are milliseconds in serde, under names that end in `_ms`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Host to listen on.
    pub host: String,
    /// Port to listen on: absent for the manners' default, 0 for any.
    pub port: Option<u16>,
    /// Whose manners to wear.
    pub engine: Manners,
    /// Name of the model served.
    pub model: String,
    /// From the request read (or its slot granted) to the first token due.
    #[serde(rename = "ttft_ms", with = "millis")]
    pub ttft: Duration,
    /// From one chunk due to the next due: with one token a chunk, the inter-token latency.
    #[serde(rename = "itl_ms", with = "millis")]
    pub itl: Duration,
    /// Each chunk is due up to this much before or after its place in the schedule (uniform, seeded), never
    /// before the chunk before it. The schedule itself does not drift.
    #[serde(rename = "jitter_ms", with = "millis")]
    pub jitter: Duration,
    /// Tokens in each chunk. Not together with `acceptance`.
    pub tokens_per_chunk: u32,
    /// Speculative decoding; absent for none.
    pub acceptance: Option<Acceptance>,
    /// Requests that run at the same time; the others wait in order of arrival. Absent for no bound.
    pub slots: Option<u32>,
    /// The gap after a chunk grows by this share of `itl` for each other request that runs.
    pub itl_growth: f64,
    /// When streams emit.
    pub phase: Phase,
    /// Tokens generated for a request that sets no limit.
    pub default_tokens: u32,
    /// The model ends by itself after so many tokens, unless the request says `ignore_eos` or a larger
    /// `min_tokens`; absent for a model that goes on to the limit.
    pub eos_after: Option<u32>,
    /// Largest prompt and output together, in tokens.
    pub context: u32,
    /// Required of every request but the engine's public ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Secret>,
    /// Answers every generation request, unless the request names another script.
    #[serde(skip)]
    pub script: Option<Script>,
    /// Threads that serve, at least 1.
    pub threads: u32,
    /// Seed of texts, jitter and acceptance.
    pub seed: u64,
    /// Keep method and path of the newest requests for [`crate::Practice::requests_log`] and `/requests`.
    pub log_requests: bool,
    /// Serve `/metrics`.
    pub metrics: bool,
    /// Keep prompts in a prefix cache. It never changes timing.
    pub prefix_cache: bool,
    /// Tell cached prompt tokens in usage: absent for the manners' default (plain and llama.cpp do).
    pub report_cached: Option<bool>,
    /// Settings asked for, in SGLang's report of its arguments.
    pub settings_asked: BTreeMap<String, serde_json::Value>,
    /// Settings in force where they differ from those asked, in SGLang's `internal_states`.
    pub settings_in_force: BTreeMap<String, serde_json::Value>,
    /// Steps of coming up.
    pub startup: Startup,
    /// Idle time after which a connection is closed: absent for the manners' default.
    #[serde(rename = "keep_alive_ms", with = "millis_option")]
    pub keep_alive: Option<Duration>,
    /// Time that a request may take to arrive.
    #[serde(rename = "request_timeout_ms", with = "millis")]
    pub request_timeout: Duration,
    /// Newest requests kept for `/truth`.
    pub truth_requests: usize,
    /// Writes kept for `/truth` over all requests; the oldest requests go first.
    pub truth_writes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: None,
            engine: Manners::Plain,
            model: "practice".to_owned(),
            ttft: Duration::from_millis(50),
            itl: Duration::from_millis(10),
            jitter: Duration::ZERO,
            tokens_per_chunk: 1,
            acceptance: None,
            slots: None,
            itl_growth: 0.0,
            phase: Phase::Spread,
            default_tokens: 128,
            eos_after: None,
            context: 131_072,
            api_key: None,
            script: None,
            threads: 1,
            seed: 0,
            log_requests: true,
            metrics: true,
            prefix_cache: true,
            report_cached: None,
            settings_asked: BTreeMap::new(),
            settings_in_force: BTreeMap::new(),
            startup: Startup::default(),
            keep_alive: None,
            request_timeout: Duration::from_secs(30),
            truth_requests: 20_000,
            truth_writes: 4_000_000,
        }
    }
}

/// What is wrong with the options, if anything: the option and why.
pub(crate) fn fault(options: &Options) -> Option<(&'static str, &'static str)> {
    let weights_ok = |weights: &[f64], length: usize| {
        weights.len() == length
            && length <= MAX_STEP_TOKENS
            && weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0)
            && weights.iter().sum::<f64>() > 0.0
    };
    if let Some(acceptance) = &options.acceptance {
        let length = acceptance.weights.len();
        let all_ok = std::iter::once(&acceptance.weights)
            .chain(acceptance.by_kind.values())
            .all(|weights| weights_ok(weights, length));
        if !all_ok {
            return Some((
                "acceptance",
                "needs 1 to 64 weights that are not negative and not all zero, as many for every kind",
            ));
        }
        if options.tokens_per_chunk != 1 {
            return Some(("tokens_per_chunk", "cannot be set together with acceptance"));
        }
    }
    if options.tokens_per_chunk == 0 || options.tokens_per_chunk > 1024 {
        return Some(("tokens_per_chunk", "must be 1 to 1024"));
    }
    if options.threads == 0 || options.threads > 256 {
        return Some(("threads", "must be 1 to 256"));
    }
    if options.slots == Some(0) {
        return Some(("slots", "must be at least 1"));
    }
    if !options.itl_growth.is_finite() || !(0.0..=1000.0).contains(&options.itl_growth) {
        return Some(("itl_growth", "must be 0 to 1000"));
    }
    if options.phase == Phase::Aligned && (options.itl.is_zero() || options.itl_growth > 0.0) {
        return Some(("phase", "aligned needs an itl above zero that does not grow"));
    }
    if options.default_tokens == 0 || options.eos_after == Some(0) {
        return Some(("default_tokens", "must be at least 1"));
    }
    if options.startup.bound > options.startup.listening {
        return Some(("startup", "cannot listen before it is bound"));
    }
    if options.model.is_empty() || options.model.len() > 512 {
        return Some(("model", "must be 1 to 512 bytes"));
    }
    None
}

/// Largest number of tokens in one verify step.
pub(crate) const MAX_STEP_TOKENS: usize = 64;

/// A duration as milliseconds, fractions allowed.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64() * 1e3)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(value / 1e3).map_err(D::Error::custom)
    }
}

/// The same, optional.
#[expect(clippy::ref_option, reason = "serde's `with` passes the field by reference")]
mod millis_option {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(duration) => serializer.serialize_some(&(duration.as_secs_f64() * 1e3)),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Option::<f64>::deserialize(deserializer)?
            .map(|value| Duration::try_from_secs_f64(value / 1e3).map_err(D::Error::custom))
            .transpose()
    }
}
