//! What crosses between a verb and its callers (the command line, another machine): Request → Events → Outcome.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Api, Exit, Finding, PromptSource, RunDocument, Sampling, Secret};

/// What a verb tells while it works. Events may be dropped by a slow listener; nothing rests on them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// One line of talk.
    Note {
        /// The line.
        text: String,
    },
    /// A finding, as soon as it is known.
    Finding {
        /// The finding.
        finding: Box<Finding>,
    },
    /// A step of the work began.
    Stage {
        /// What is being done now.
        name: String,
    },
    /// How far a measurement is.
    Progress(Progress),
}

/// How far a measurement is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Trial, from 1; 0 is warm-up.
    pub trial: u32,
    /// Trials in all.
    pub trials: u32,
    /// Measured requests that ended.
    pub done: u64,
    /// Measured requests to do, where the trial counts requests.
    pub total: Option<u64>,
    /// Seconds since the trial's start.
    pub elapsed_s: f64,
    /// Seconds that the trial lasts, where it counts time.
    pub total_s: Option<f64>,
    /// Requests in flight.
    pub in_flight: u64,
    /// Token-bearing events a second over the last interval.
    pub chunks_s: f64,
    /// Output tokens a second over the last interval, where their counts are known.
    pub tokens_s: Option<f64>,
    /// Median TTFT so far in milliseconds.
    pub ttft_ms: Option<f64>,
    /// Failed requests so far.
    pub failed: u64,
}

/// Listens to a verb's events.
pub trait Sink: Sync {
    /// Takes one event; must not block.
    fn event(&self, event: Event);
}

/// A listener that hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Sink for Silent {
    fn event(&self, _event: Event) {}
}

/// What keeps the prompts of one run from meeting the prefix cache of another.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Salt {
    /// A new one for each run.
    #[default]
    Random,
    /// This one.
    Text(String),
    /// None: prompts are sent bare, the same in every run.
    Bare,
}

/// Whether to ask for usage with every chunk (`continuous_usage_stats`): it tells the tokens of each chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChunkUsage {
    /// Where the engine is known to have it.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// Limits of a request, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RequestLimits {
    /// To connect.
    pub connect_s: f64,
    /// To the first token.
    pub first_token_s: f64,
    /// Between two reads once bytes have come.
    pub idle_s: f64,
    /// For the whole.
    pub total_s: f64,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            connect_s: 10.0,
            first_token_s: 300.0,
            idle_s: 120.0,
            total_s: 3600.0,
        }
    }
}

/// Measure one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchRequest {
    /// The server; `None` with `practice`.
    pub url: Option<String>,
    /// Start the built-in practice server for this run and measure that.
    pub practice: bool,
    /// Endpoint and dialect.
    pub api: Api,
    /// The model's name; the first listed when absent.
    pub model: Option<String>,
    /// Streams of the closed loop.
    pub concurrency: u32,
    /// When a trial has enough.
    pub stop: crate::Stop,
    /// Warm-up requests before the first trial.
    pub warmup: u32,
    /// Trials.
    pub trials: u32,
    /// Output tokens asked for.
    pub max_tokens: u32,
    /// How the model is asked to sample.
    pub sampling: Sampling,
    /// Where prompts come from.
    pub prompts: PromptSource,
    /// Seed of the order of the prompts and of synthetic ones.
    pub order_seed: u64,
    /// What keeps prompts out of the prefix cache.
    pub salt: Salt,
    /// Whether answers are streamed.
    pub stream: bool,
    /// Whether to ask for usage with every chunk.
    pub chunk_usage: ChunkUsage,
    /// Open a connection for each request.
    pub cold: bool,
    /// Keep prompts and answers in the bundle.
    pub keep_text: bool,
    /// Limits of each request.
    pub limits: RequestLimits,
    /// Share of failed requests that is accepted, 0 to 1.
    pub max_failures: f64,
    /// Runtime threads; chosen from the load when absent.
    pub threads: Option<u32>,
    /// Where bundles are kept; found when absent.
    pub store: Option<PathBuf>,
    /// Tags for the run.
    pub tags: Vec<String>,
    /// The API key, sent as a bearer token.
    pub api_key: Option<Secret>,
    /// Further request headers. Values are sent and never recorded.
    pub headers: Vec<(String, Secret)>,
}

/// What measuring one server came to.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchOutcome {
    /// The run.
    pub document: RunDocument,
    /// Where its bundle lies.
    pub bundle: PathBuf,
    /// How the process should end.
    pub exit: Exit,
}
