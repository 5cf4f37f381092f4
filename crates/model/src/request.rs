//! One request as it is recorded: one line of `requests.jsonl`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FinishReason, PromptKind, RequestOutcome, TokenSource};

/// Which part of a trial a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Sent before the measurement; in no figure.
    Warmup,
    /// In the latency sample.
    Measured,
    /// Sent to hold the load while the last measured requests end; its tokens count for throughput while the
    /// window lasts, its latencies do not.
    Filler,
}

/// What a generated token belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// The answer.
    Content,
    /// Thinking before or between the answer.
    Reasoning,
    /// The arguments of a tool call.
    ToolCall,
}

/// The prompt that was sent, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptRef {
    /// Index into the workload's prompts.
    pub index: u32,
    /// What it is like.
    pub kind: PromptKind,
    /// First 16 hexadecimal digits of the SHA-256 of its text.
    pub sha256: String,
    /// Length in bytes of its text.
    pub bytes: u32,
    /// The text, only when the user asked to keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The text that came back, without the text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TextRef {
    /// First 16 hexadecimal digits of the SHA-256 of all channels' text in order of arrival.
    pub sha256: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// The text, only when the user asked to keep it or the prompt is a canary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Times of one request in microseconds since the run's origin, each where it was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stamps {
    /// When it should have been sent: the arrival in an open loop, the moment the stream became free in a
    /// closed one.
    pub scheduled: u64,
    /// When a core took it up.
    pub dequeued: u64,
    /// Start of the connect, where this request opened the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_start: Option<u64>,
    /// End of the connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected: Option<u64>,
    /// End of the TLS handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secured: Option<u64>,
    /// Last byte of the request handed to the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// First byte of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<u64>,
    /// First event of the stream, be it only the role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_event: Option<u64>,
    /// First generated token in any channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token: Option<u64>,
    /// First token that is not reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_output: Option<u64>,
    /// Last generated token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_token: Option<u64>,
    /// The finish reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<u64>,
    /// End of the stream, or the moment at which it failed.
    pub end: u64,
}

/// Token counts of one request; what was not observed is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    /// Output tokens, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Where `output` came from.
    pub source: TokenSource,
    /// Output tokens by the engine's own timings (llama.cpp's `predicted_n`): a second count to hold `output`
    /// against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed: Option<u64>,
    /// Prompt tokens by the server's count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Prompt tokens that the server took from its prefix cache; absent is unknown, not none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// Reasoning tokens, where the server tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    /// Draft tokens proposed for this request, where the server tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drafted: Option<u64>,
    /// Draft tokens accepted, bonus tokens not included, where the server tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<u64>,
    /// Verify steps of speculative decoding, where the server tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_steps: Option<u64>,
}

/// One ended request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestRecord {
    /// Identity within the run, also sent as `X-Request-Id`.
    pub id: String,
    /// Trial, from 1; warm-up before the first trial is 0.
    pub trial: u32,
    /// Part of the trial.
    pub phase: Phase,
    /// Stream (closed loop) or connection slot (open loop) that sent it.
    pub stream: u32,
    /// The prompt.
    pub prompt: PromptRef,
    /// Output tokens asked for.
    pub max_tokens: u32,
    /// How it ended.
    pub outcome: RequestOutcome,
    /// The error in one line, secrets masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// HTTP status, where one came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why the server says that it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// Its times.
    pub stamps: Stamps,
    /// Its token counts.
    pub tokens: Tokens,
    /// Microseconds from one token-bearing chunk to the next, the first counted from `stamps.first_token` (so
    /// it is 0). Any other 0 means "in the same read as the one before": no gap was observed.
    pub gaps_us: Vec<u32>,
    /// Tokens in each of those chunks, run-length coded as `[tokens, chunks]`; absent where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk_tokens: Option<Vec<[u32; 2]>>,
    /// Channel of each of those chunks, run-length coded as `[channel, chunks]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<(Channel, u32)>,
    /// Reads that brought the answer.
    pub reads: u32,
    /// Events of the stream, comments excepted.
    pub events: u32,
    /// The text that came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextRef>,
    /// What the server itself says of its decode rate in tokens a second (llama.cpp's `timings`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_decode_tok_s: Option<f64>,
}
