//! How one request ended, and where its token count came from.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How one request ended. Only [`RequestOutcome::Ok`] and [`RequestOutcome::OkShort`] are successes: a stream
/// that lacks its finish reason, ends early or carries an error is none, whatever its HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestOutcome {
    /// Finished, with everything that a finished stream has.
    Ok,
    /// Finished of itself before the length asked for although the request said `ignore_eos` or `min_tokens`.
    OkShort,
    /// Finished, and not one token came.
    Empty,
    /// The stream ended without a finish reason or without its terminator.
    Truncated,
    /// An error arrived inside a stream that had begun with success.
    ErrorInStream,
    /// A 3xx answer: we do not follow redirects.
    Redirect,
    /// A 429 answer.
    RateLimited,
    /// Any other 4xx answer.
    #[serde(rename = "http_4xx")]
    Http4xx,
    /// A 5xx answer.
    #[serde(rename = "http_5xx")]
    Http5xx,
    /// Nobody accepted the connection.
    Refused,
    /// The connection could not be made for another reason (unreachable, TLS, no descriptors).
    ConnectFailed,
    /// Closed or reset before the first byte of the answer.
    ResetBeforeFirstByte,
    /// Reset after the first byte of the answer.
    ResetAfterFirstByte,
    /// A reused connection turned out to be closed; the request was not repeated.
    StaleConnection,
    /// Connecting took longer than allowed.
    TimeoutConnect,
    /// The first token took longer than allowed.
    TimeoutFirstToken,
    /// The stream fell silent for longer than allowed.
    TimeoutIdle,
    /// The whole took longer than allowed.
    TimeoutTotal,
    /// One line of the stream was longer than the cap.
    LineTooLong,
    /// The stream went on beyond the cap on its size.
    TooLarge,
    /// A Content-Encoding that we had asked not to get.
    UnexpectedEncoding,
    /// Bytes that are not HTTP, not an event stream or not the JSON of the dialect.
    Malformed,
    /// Stopped by us: the run was over or interrupted. Neither a success nor a failure.
    Cancelled,
}

impl RequestOutcome {
    /// Whether the answer came whole.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Ok | Self::OkShort)
    }

    /// Whether the server (or the way to it) failed the request.
    pub const fn is_failure(self) -> bool {
        !matches!(self, Self::Ok | Self::OkShort | Self::Cancelled)
    }

    /// The word used in documents and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::OkShort => "ok_short",
            Self::Empty => "empty",
            Self::Truncated => "truncated",
            Self::ErrorInStream => "error_in_stream",
            Self::Redirect => "redirect",
            Self::RateLimited => "rate_limited",
            Self::Http4xx => "http_4xx",
            Self::Http5xx => "http_5xx",
            Self::Refused => "refused",
            Self::ConnectFailed => "connect_failed",
            Self::ResetBeforeFirstByte => "reset_before_first_byte",
            Self::ResetAfterFirstByte => "reset_after_first_byte",
            Self::StaleConnection => "stale_connection",
            Self::TimeoutConnect => "timeout_connect",
            Self::TimeoutFirstToken => "timeout_first_token",
            Self::TimeoutIdle => "timeout_idle",
            Self::TimeoutTotal => "timeout_total",
            Self::LineTooLong => "line_too_long",
            Self::TooLarge => "too_large",
            Self::UnexpectedEncoding => "unexpected_encoding",
            Self::Malformed => "malformed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for RequestOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why the server says that it stopped.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// An end token or a stop string.
    Stop,
    /// The length asked for, or the context.
    Length,
    /// It wants a tool called.
    ToolCalls,
    /// The engine gave the request up.
    Abort,
    /// Something else, in the server's word.
    Other(String),
}

impl FinishReason {
    /// Reads the server's word. Spellings differ: `eos` and `stop_sequence` are stops too.
    pub fn from_word(word: &str) -> Self {
        match word {
            "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" => Self::Stop,
            "length" | "max_tokens" => Self::Length,
            "tool_calls" | "function_call" => Self::ToolCalls,
            "abort" | "cancelled" | "error" => Self::Abort,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// Where a token count came from, best first. It is never the requested length and never the number of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenSource {
    /// The server's final usage, or its equivalent (`meta_info`, `timings`).
    ServerUsage,
    /// Usage that came with each chunk; it holds for a stream that was cut as well.
    ContinuousUsage,
    /// Token ids that came with each chunk.
    TokenIds,
    /// The server's own tokenizer, asked afterwards.
    ServerTokenize,
    /// Not known.
    Unknown,
}

impl TokenSource {
    /// The word used in documents and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ServerUsage => "server_usage",
            Self::ContinuousUsage => "continuous_usage",
            Self::TokenIds => "token_ids",
            Self::ServerTokenize => "server_tokenize",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_agree_with_serde() {
        for outcome in [
            RequestOutcome::Ok,
            RequestOutcome::Http4xx,
            RequestOutcome::Http5xx,
            RequestOutcome::ResetBeforeFirstByte,
            RequestOutcome::TimeoutFirstToken,
            RequestOutcome::LineTooLong,
        ] {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.as_str());
        }
    }
}
