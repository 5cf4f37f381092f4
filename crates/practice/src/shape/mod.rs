//! The bytes of stream events and whole answers, in the shape of each engine.
//!
//! Written by hand as literals: they are the oracle, so no library decides how they look.

mod whole;

use std::io::Write as _;

use shakedown_model::{Api, Channel};

use crate::options::Manners;
use crate::schedule::Speculated;
use whole::{timings, vllm_metrics};

/// Why a stream ends, in the engine's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    Stop,
    Length,
    ToolCalls,
}

impl Finish {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
        }
    }
}

/// What the role chunk has for `content`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RoleContent {
    /// The empty string.
    #[default]
    Empty,
    /// `null`.
    Null,
    /// No such member.
    Absent,
}

/// How reasoning is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReasoningField {
    /// `reasoning_content`.
    ReasoningContent,
    /// `reasoning`.
    Reasoning,
}

impl ReasoningField {
    const fn as_str(self) -> &'static str {
        match self {
            Self::ReasoningContent => "reasoning_content",
            Self::Reasoning => "reasoning",
        }
    }
}

/// Token counts as usage tells them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) prompt: u32,
    pub(crate) completion: u32,
    /// Cached prompt tokens, where they are told.
    pub(crate) cached: Option<u32>,
}

/// Times of one request as llama.cpp tells them, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Timings {
    pub(crate) prompt_n: u32,
    pub(crate) cache_n: u32,
    pub(crate) prompt_ms: f64,
    pub(crate) predicted_n: u32,
    pub(crate) predicted_ms: f64,
}

/// What an engine adds at the end of an answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail {
    pub(crate) timings: Timings,
    pub(crate) speculated: Option<Speculated>,
    /// Seconds from the request read to now.
    pub(crate) e2e_s: f64,
}

/// One delta of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delta<'a> {
    pub(crate) channel: Channel,
    /// The text, already escaped for JSON.
    pub(crate) text: &'a [u8],
    /// Ids of its tokens.
    pub(crate) ids: &'a [u32],
    /// Set where the finish reason comes with the text.
    pub(crate) finish: Option<Finish>,
    /// Usage to tell with it.
    pub(crate) usage: Option<Usage>,
    /// The first chunk of a tool call names it.
    pub(crate) tool_name: Option<&'a str>,
}

/// What one answer is like. Every event is written as JSON alone; [`crate::sse`] frames it.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) manners: Manners,
    pub(crate) api: Api,
    pub(crate) id: String,
    pub(crate) created: u64,
    /// Escaped for JSON.
    pub(crate) model: String,
    /// The client asked for usage at the end.
    pub(crate) include_usage: bool,
    /// The client asked for token ids (vLLM).
    pub(crate) token_ids: bool,
    pub(crate) prompt_ids: Vec<u32>,
    pub(crate) reasoning: ReasoningField,
}

/// Appends formatted text; a `Vec` takes everything.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => { let _ = write!($out, $($arg)*); };
}
use put;

impl Shape {
    /// The object word of a stream's events.
    const fn object(&self) -> &'static str {
        match self.api {
            Api::Completions => "text_completion",
            _ => "chat.completion.chunk",
        }
    }

    /// The chunk that only names the role. Only chats have one.
    pub(crate) fn role(&self, out: &mut Vec<u8>, content: RoleContent, usage: Option<Usage>) {
        let content = match content {
            RoleContent::Empty => r#","content":"""#,
            RoleContent::Null => r#","content":null"#,
            RoleContent::Absent => "",
        };
        self.open(out);
        match self.manners {
            Manners::LlamaCpp => {
                put!(
                    out,
                    r#"{{"finish_reason":null,"index":0,"delta":{{"role":"assistant"{content}}}}}"#
                );
            }
            Manners::Sglang => {
                put!(
                    out,
                    r#"{{"index":0,"delta":{{"role":"assistant"{content},"reasoning_content":null,"tool_calls":null}},"logprobs":null,"finish_reason":null,"matched_stop":null}}"#
                );
            }
            Manners::Plain | Manners::Vllm => {
                put!(
                    out,
                    r#"{{"index":0,"delta":{{"role":"assistant"{content}}},"logprobs":null,"finish_reason":null}}"#
                );
            }
        }
        self.close(out, usage, None);
        if self.manners == Manners::Vllm {
            out.pop();
            if self.token_ids {
                out.extend_from_slice(br#","prompt_token_ids":"#);
                ids(out, &self.prompt_ids);
            } else {
                out.extend_from_slice(br#","prompt_token_ids":null"#);
            }
            out.extend_from_slice(br#","prompt_text":null}"#);
        }
    }

    /// A delta with text. `tail` is given with the very last event of an answer.
    pub(crate) fn delta(&self, out: &mut Vec<u8>, delta: &Delta<'_>, tail: Option<&Tail>) {
        self.open(out);
        let sglang = self.manners == Manners::Sglang;
        if self.manners == Manners::LlamaCpp {
            finish_word(out, "{", delta.finish);
            out.extend_from_slice(br#","index":0"#);
        } else {
            out.extend_from_slice(br#"{"index":0"#);
        }
        if self.api == Api::Completions {
            put!(out, r#","text":""#);
            out.extend_from_slice(delta.text);
            out.push(b'"');
        } else {
            out.extend_from_slice(br#","delta":{"#);
            if sglang {
                out.extend_from_slice(br#""role":null,"#);
            }
            self.delta_members(out, delta);
            out.push(b'}');
        }
        if self.manners != Manners::LlamaCpp {
            out.extend_from_slice(br#","logprobs":null"#);
            finish_word(out, ",", delta.finish);
        }
        match self.manners {
            Manners::Sglang => out.extend_from_slice(br#","matched_stop":null"#),
            Manners::Vllm => {
                if delta.finish.is_some() || self.api == Api::Completions {
                    out.extend_from_slice(br#","stop_reason":null"#);
                }
                if self.token_ids {
                    out.extend_from_slice(br#","token_ids":"#);
                    ids(out, delta.ids);
                } else {
                    out.extend_from_slice(br#","token_ids":null"#);
                }
            }
            Manners::Plain | Manners::LlamaCpp => {}
        }
        out.push(b'}');
        self.close(out, delta.usage, tail);
    }

    fn delta_members(&self, out: &mut Vec<u8>, delta: &Delta<'_>) {
        let text = |out: &mut Vec<u8>, name: &str| {
            put!(out, r#""{name}":""#);
            out.extend_from_slice(delta.text);
            out.push(b'"');
        };
        let sglang = self.manners == Manners::Sglang;
        match delta.channel {
            Channel::Content => {
                text(out, "content");
                if sglang {
                    out.extend_from_slice(br#","reasoning_content":null,"tool_calls":null"#);
                }
            }
            Channel::Reasoning => {
                if sglang {
                    out.extend_from_slice(br#""content":null,"#);
                }
                text(out, self.reasoning.as_str());
                if sglang {
                    out.extend_from_slice(br#","tool_calls":null"#);
                }
            }
            Channel::ToolCall => {
                if sglang {
                    out.extend_from_slice(br#""content":null,"reasoning_content":null,"#);
                }
                out.extend_from_slice(br#""tool_calls":[{"index":0"#);
                if let Some(name) = delta.tool_name {
                    put!(
                        out,
                        r#","id":"call_practice_0","type":"function","function":{{"name":"{name}",""#
                    );
                } else {
                    out.extend_from_slice(br#","function":{""#);
                }
                out.extend_from_slice(br#"arguments":""#);
                out.extend_from_slice(delta.text);
                out.extend_from_slice(br#""}}]"#);
            }
        }
    }

    /// The finish reason in a chunk of its own, with no text.
    pub(crate) fn finish(
        &self,
        out: &mut Vec<u8>,
        reason: Finish,
        usage: Option<Usage>,
        tail: Option<&Tail>,
    ) {
        let word = reason.as_str();
        self.open(out);
        let completions = self.api == Api::Completions;
        match self.manners {
            Manners::LlamaCpp if completions => {
                put!(
                    out,
                    r#"{{"finish_reason":"{word}","index":0,"text":"","logprobs":null}}"#
                );
            }
            Manners::LlamaCpp => {
                put!(out, r#"{{"finish_reason":"{word}","index":0,"delta":{{}}}}"#);
            }
            _ if completions => {
                put!(
                    out,
                    r#"{{"index":0,"text":"","logprobs":null,"finish_reason":"{word}"}}"#
                );
            }
            Manners::Sglang => {
                put!(
                    out,
                    r#"{{"index":0,"delta":{{"role":null,"content":null,"reasoning_content":null,"tool_calls":null}},"logprobs":null,"finish_reason":"{word}","matched_stop":null}}"#
                );
            }
            Manners::Vllm => {
                put!(
                    out,
                    r#"{{"index":0,"delta":{{"content":""}},"logprobs":null,"finish_reason":"{word}","stop_reason":null,"token_ids":null}}"#
                );
            }
            Manners::Plain => {
                put!(
                    out,
                    r#"{{"index":0,"delta":{{}},"logprobs":null,"finish_reason":"{word}"}}"#
                );
            }
        }
        self.close(out, usage, tail);
    }

    /// The usage in a chunk of its own, without choices.
    pub(crate) fn usage(&self, out: &mut Vec<u8>, usage: Usage, tail: Option<&Tail>) {
        self.open(out);
        self.close(out, Some(usage), tail);
        if self.manners == Manners::Vllm {
            out.pop();
            out.extend_from_slice(br#","system_fingerprint":"vllm-practice"}"#);
        }
    }

    /// Everything before the members of the only choice.
    fn open(&self, out: &mut Vec<u8>) {
        let (id, created, model) = (&self.id, self.created, &self.model);
        if self.manners == Manners::LlamaCpp {
            out.extend_from_slice(br#"{"choices":["#);
        } else {
            put!(
                out,
                r#"{{"id":"{id}","object":"{}","created":{created},"model":"{model}","choices":["#,
                self.object()
            );
        }
    }

    /// Everything behind the choices.
    fn close(&self, out: &mut Vec<u8>, usage: Option<Usage>, tail: Option<&Tail>) {
        out.push(b']');
        match self.manners {
            Manners::LlamaCpp => {
                put!(
                    out,
                    r#","created":{},"id":"{}","model":"{}","system_fingerprint":"b0-practice","object":"{}""#,
                    self.created,
                    self.id,
                    self.model,
                    self.object()
                );
                if let Some(usage) = usage {
                    out.push(b',');
                    self.usage_member(out, usage);
                }
                if let Some(tail) = tail {
                    timings(out, tail);
                }
            }
            Manners::Plain => {
                out.extend_from_slice(br#","system_fingerprint":"practice""#);
                if let Some(usage) = usage {
                    out.push(b',');
                    self.usage_member(out, usage);
                } else if self.include_usage {
                    out.extend_from_slice(br#","usage":null"#);
                }
            }
            Manners::Sglang => {
                out.push(b',');
                if let Some(usage) = usage {
                    self.usage_member(out, usage);
                } else {
                    out.extend_from_slice(br#""usage":null"#);
                }
            }
            Manners::Vllm => {
                if let Some(usage) = usage {
                    out.push(b',');
                    self.usage_member(out, usage);
                }
                if let Some(tail) = tail.filter(|tail| tail.speculated.is_some()) {
                    vllm_metrics(out, tail);
                }
            }
        }
        out.push(b'}');
    }

    fn usage_member(&self, out: &mut Vec<u8>, usage: Usage) {
        let (prompt, completion, total) = (usage.prompt, usage.completion, usage.prompt + usage.completion);
        match self.manners {
            Manners::LlamaCpp => {
                put!(
                    out,
                    r#""usage":{{"completion_tokens":{completion},"prompt_tokens":{prompt},"total_tokens":{total}"#
                );
            }
            Manners::Plain => {
                put!(
                    out,
                    r#""usage":{{"prompt_tokens":{prompt},"completion_tokens":{completion},"total_tokens":{total}"#
                );
            }
            Manners::Sglang | Manners::Vllm => {
                put!(
                    out,
                    r#""usage":{{"prompt_tokens":{prompt},"total_tokens":{total},"completion_tokens":{completion}"#
                );
            }
        }
        match (usage.cached, self.manners) {
            (Some(cached), _) => {
                put!(out, r#","prompt_tokens_details":{{"cached_tokens":{cached}}}"#);
            }
            (None, Manners::Sglang) => out.extend_from_slice(br#","prompt_tokens_details":null"#),
            (None, _) => {}
        }
        if self.manners == Manners::Sglang {
            out.extend_from_slice(br#","reasoning_tokens":0"#);
        }
        out.push(b'}');
    }
}

fn finish_word(out: &mut Vec<u8>, before: &str, finish: Option<Finish>) {
    match finish {
        None => {
            put!(out, r#"{before}"finish_reason":null"#);
        }
        Some(reason) => {
            put!(out, r#"{before}"finish_reason":"{}""#, reason.as_str());
        }
    }
}

fn ids(out: &mut Vec<u8>, ids: &[u32]) {
    out.push(b'[');
    for (index, id) in ids.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put!(out, "{id}");
    }
    out.push(b']');
}

/// Escapes `text` for a JSON string, quotes not included.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if (control as u32) < 0x20 => {
                out.push_str("\\u00");
                for shift in [4, 0] {
                    let digit = (control as u32 >> shift) & 0xf;
                    out.push(char::from_digit(digit, 16).unwrap_or('0'));
                }
            }
            other => out.push(other),
        }
    }
    out
}
