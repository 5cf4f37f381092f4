//! What the practice server says of its own timing: the document of `/truth`, schema `shakedown.truth/1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name and version of the truth document's schema.
pub const TRUTH_SCHEMA: &str = "shakedown.truth/1";

/// The clock of every stamp in a [`ServerTruth`].
pub const TRUTH_CLOCK: &str = "CLOCK_MONOTONIC";

/// How the server ended a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestEnd {
    /// The answer was written whole.
    Complete,
    /// The server closed the connection in the middle, as a script said.
    Cut,
    /// The server reset the connection, as a script said.
    Reset,
    /// The client went away first.
    ClientGone,
}

/// What one write carried. A write with several events has the kind of its first token-bearing one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteKind {
    /// Status line and headers alone.
    Head,
    /// The chunk that only names the role.
    Role,
    /// Tokens of reasoning.
    Reasoning,
    /// Tokens of the answer.
    Content,
    /// Tokens of a tool call.
    Tool,
    /// The finish reason without text.
    Finish,
    /// Usage alone.
    Usage,
    /// The `[DONE]` line.
    Done,
    /// An SSE comment.
    Comment,
    /// An error inside the stream.
    Error,
    /// A whole answer that is not a stream.
    Body,
    /// Bytes without meaning of their own: a part of an event, or bytes that a script wrote out.
    Raw,
}

/// The writes of one request in order, one array per member, all of the same length.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WritesTruth {
    /// When each was due, in nanoseconds.
    pub due_ns: Vec<u64>,
    /// Stamp before the first system call of each, in nanoseconds: no client can have read it earlier.
    pub before_ns: Vec<u64>,
    /// Stamp after the kernel took its last byte, in nanoseconds.
    pub after_ns: Vec<u64>,
    /// Tokens that became readable with each.
    pub tokens: Vec<u32>,
    /// What each carried.
    pub kind: Vec<WriteKind>,
}

/// One request as the server saw it. All times are nanoseconds on the document's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestTruth {
    /// The request's `X-Request-Id`, where it had one.
    pub id: Option<String>,
    /// Its path.
    pub path: String,
    /// The stream script that answered it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// HTTP status of the answer; absent where none was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Its connection was accepted.
    pub accepted_ns: u64,
    /// Its last byte arrived: received by the kernel, or read where the kernel does not tell. A busy server may
    /// accept the connection after that.
    pub read_ns: u64,
    /// It began to run: equal to `read_ns` unless it had to wait for a slot. Absent where it never ran.
    pub slot_ns: Option<u64>,
    /// It ended.
    pub end_ns: u64,
    /// How it ended.
    pub end: RequestEnd,
    /// Prompt tokens by the server's tokenizer, chat template included.
    pub prompt_tokens: u32,
    /// Tokens in the writes that the kernel took whole.
    pub tokens: u64,
    /// Its writes.
    pub writes: WritesTruth,
    /// Writes that were made but not kept, because a request has room for only so many.
    #[serde(default)]
    pub writes_dropped: u64,
}

/// What the practice server says of its own timing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerTruth {
    /// [`TRUTH_SCHEMA`].
    pub schema: String,
    /// Boot of the machine: stamps of another boot are not comparable.
    pub boot_id: String,
    /// Time namespace of the server (the target of `/proc/self/ns/time`), where the kernel tells: stamps of
    /// another one are not comparable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_namespace: Option<String>,
    /// [`TRUTH_CLOCK`].
    pub clock: String,
    /// Median of `before_ns − due_ns` over all writes since the start or the last clearing, to 2%. Writes that
    /// waited for the client to read are not counted.
    pub late_p50_ns: u64,
    /// 99th percentile of the same, to 2%.
    pub late_p99_ns: u64,
    /// Largest of the same.
    pub late_max_ns: u64,
    /// The newest ended requests, in the order of their end.
    pub requests: Vec<RequestTruth>,
    /// Ended requests that were not kept, because there is room for only so many.
    #[serde(default)]
    pub requests_dropped: u64,
}
