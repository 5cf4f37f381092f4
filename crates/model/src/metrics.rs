//! Figures of a trial or a run. Times are milliseconds, rates are per second; what was not observed is absent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{PromptKind, RequestOutcome, TokenSource};

/// A percentile with its 95% confidence interval from order statistics.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentile {
    /// Which: 50, 90, 95, 99.
    pub p: f64,
    /// The value, interpolated as `numpy.percentile(..., method="linear")` does.
    pub value: f64,
    /// Lower end of the interval; absent where the sample is too small to bound it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of the interval; absent where the sample is too small to bound it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// A sample, summarised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Sample size.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation (n − 1); absent for one value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sd: Option<f64>,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// The percentiles that the sample is large enough for.
    pub percentiles: Vec<Percentile>,
}

impl Distribution {
    /// The percentile `p`, where the sample is large enough for it.
    pub fn percentile(&self, p: f64) -> Option<&Percentile> {
        self.percentiles
            .iter()
            .find(|percentile| (percentile.p - p).abs() < 1e-9)
    }

    /// The median, which every sample is large enough for.
    pub fn median(&self) -> Option<f64> {
        self.percentile(50.0).map(|percentile| percentile.value)
    }
}

/// A rate over a window. Exact, it has no bounds. Where some token counts in the window are not known exactly it
/// lies between `low` and `high`; where they have no upper bound, only `low` is there and the rate is "at least".
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// Per second; the middle of the bounds, or the lower bound where there is no upper one.
    pub value: f64,
    /// Lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

impl Rate {
    /// A rate without doubt.
    pub const fn exact(value: f64) -> Self {
        Self {
            value,
            low: None,
            high: None,
        }
    }
}

/// How many requests ended in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutcomeCount {
    /// The way.
    pub outcome: RequestOutcome,
    /// How many.
    pub count: u64,
}

/// Tokens a chunk, over all chunks whose count is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChunkSizes {
    /// Share of all chunks whose token count is known, 0 to 1.
    pub known: f64,
    /// `[tokens, chunks]`, ascending.
    pub histogram: Vec<[u64; 2]>,
}

/// Where an acceptance figure came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AcceptanceSource {
    /// Counters of the engine's metrics, difference over the run.
    EngineCounters,
    /// A gauge of the engine's metrics or state; it covers the engine's own interval, not the run.
    EngineGauge,
    /// Figures in the replies.
    PerRequest,
    /// Tokens per chunk of the stream: one chunk is taken for one verify step.
    TokensPerChunk,
}

/// Speculative decoding, in one definition: tokens produced per verify step, bonus token included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Acceptance {
    /// The prompts it is about; absent for all together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<PromptKind>,
    /// Tokens per verify step, bonus token included (1 = nothing accepted).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<f64>,
    /// Draft tokens accepted / proposed, bonus tokens in neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Where it came from.
    pub source: AcceptanceSource,
    /// The engine's own figure and how it was converted, in one sentence.
    pub derivation: String,
}

/// Prefix cache hits by the server's own count.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheHits {
    /// Prompt tokens from the cache.
    pub cached_tokens: u64,
    /// Prompt tokens of the requests that reported it.
    pub input_tokens: u64,
    /// Requests that reported it.
    pub requests: u64,
}

/// How late the client read, by the kernel's receive stamps, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadLag {
    /// Sampled reads.
    pub samples: u64,
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Largest.
    pub max_us: f64,
}

/// What the client can say of itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClientHealth {
    /// Lag of reads behind the kernel; absent where the kernel gives no stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_lag: Option<ReadLag>,
    /// 99th percentile of sent − scheduled, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_lag_p99_us: Option<f64>,
    /// Busiest second of the busiest runtime thread, as a share of one CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_thread_cpu: Option<f64>,
    /// CPU time of the whole client over the run, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// Share of the machine's CPU time stolen by the hypervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal: Option<f64>,
    /// Reads that brought token-bearing events.
    pub reads: u64,
    /// Token-bearing events.
    pub events: u64,
    /// Share of token-bearing events that came in the same read as the one before.
    pub coalesced: f64,
    /// Runtime threads.
    pub threads: u32,
    /// Whether the server was seen to keep connections open after an answer; absent where that was not seen. Where
    /// it does not, each request opens its own, outside TTFT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_alive: Option<bool>,
}

/// Comparison with the practice server's own stamps: error = client − server's stamp before the write.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Truth {
    /// Chunks compared.
    pub chunks: u64,
    /// Chunks whose client stamp was before the server's: must be 0.
    pub early: u64,
    /// Median error in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile of the error in milliseconds.
    pub p99_ms: f64,
    /// Largest error in milliseconds.
    pub max_ms: f64,
    /// TTFT p99 of the client in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_p99_ms: Option<f64>,
    /// TTFT p99 by the server's own stamps (request read to first token written) in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_ttft_p99_ms: Option<f64>,
    /// 99th percentile of the server's own lateness against its schedule in milliseconds.
    pub server_late_p99_ms: f64,
}

/// Figures of a trial, or pooled over a run. The definitions are in `docs/metrics.md`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    /// Measured requests by outcome, most frequent first.
    pub outcomes: Vec<OutcomeCount>,
    /// Length of the window in seconds; absent for one stream, whose rate is per request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_s: Option<f64>,
    /// All output tokens stamped in the window / its length. The primary metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tok_s: Option<Rate>,
    /// Successful measured requests ended in the window / its length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_s: Option<f64>,
    /// Time to first generated token in any channel, from `sent` (closed loop) or `scheduled` (open loop), ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<Distribution>,
    /// The same from `sent` in an open loop, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_ttft_ms: Option<Distribution>,
    /// Time to first output that is not reasoning, ms; present where it differs from TTFT for some request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttfo_ms: Option<Distribution>,
    /// Gap between tokens, a chunk of k tokens counted as k gaps of 1/k, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub itl_ms: Option<Distribution>,
    /// Gap between chunks as the user sees it, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icl_ms: Option<Distribution>,
    /// (last token − first token) / (tokens − 1), per request, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpot_ms: Option<Distribution>,
    /// From `sent` (or `scheduled`) to the last token, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub e2e_ms: Option<Distribution>,
    /// From `sent` to the last token in an open loop, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_e2e_ms: Option<Distribution>,
    /// Last token to end of stream, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail_ms: Option<Distribution>,
    /// Connect, where a measured request opened its connection, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_ms: Option<Distribution>,
    /// From `scheduled` to `sent`, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_lag_ms: Option<Distribution>,
    /// Output tokens / E2E of one request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_tok_s: Option<Distribution>,
    /// (tokens − 1) / (last token − first token) of one request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decode_tok_s: Option<Distribution>,
    /// The same by the server's own figures, where it gives them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_decode_tok_s: Option<Distribution>,
    /// Output tokens per successful request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<Distribution>,
    /// Prompt tokens per request by the server's count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<Distribution>,
    /// Requests by where their output count came from.
    pub token_sources: Vec<(TokenSource, u64)>,
    /// Tokens a chunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk_sizes: Option<ChunkSizes>,
    /// Speculative decoding, all prompts together first, then by kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<Acceptance>,
    /// Prefix cache hits; absent is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_hits: Option<CacheHits>,
}

impl Metrics {
    /// Measured requests that the server (or the way to it) failed.
    pub fn failures(&self) -> u64 {
        self.outcomes
            .iter()
            .filter(|entry| entry.outcome.is_failure())
            .map(|entry| entry.count)
            .sum()
    }

    /// Measured requests that were answered whole.
    pub fn successes(&self) -> u64 {
        self.outcomes
            .iter()
            .filter(|entry| entry.outcome.is_success())
            .map(|entry| entry.count)
            .sum()
    }
}
