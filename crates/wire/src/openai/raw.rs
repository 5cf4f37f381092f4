//! The JSON of stream events and whole answers, as it is written.

use serde::Deserialize;

use super::few::Few;
use super::lenient::{Count, Length, Mixed, Object, Objects, Real, Text};

/// A frame of `/v1/chat/completions` or `/v1/completions`, streamed or whole.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Frame<'a> {
    #[serde(borrow)]
    pub(super) choices: Option<Choices<'a>>,
    pub(super) usage: Option<RawUsage>,
    pub(super) timings: Object<RawTimings>,
    /// vLLM: figures of this request, in the last frame.
    pub(super) metrics: Object<RawMetrics>,
    #[serde(borrow)]
    pub(super) error: Mixed<'a, RawError<'a>>,
    #[serde(borrow)]
    pub(super) object: Text<'a>,
    /// Beside `"object":"error"`.
    #[serde(borrow)]
    pub(super) message: Text<'a>,
}

/// One choice without an allocation, as nearly every frame has.
#[derive(Debug, Default)]
pub(super) struct Choices<'a>(pub(super) Few<Choice<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Choices<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ChoicesVisitor;
        impl<'de> serde::de::Visitor<'de> for ChoicesVisitor {
            type Value = Choices<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of choices")
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut choices = Few::default();
                while let Some(choice) = list.next_element()? {
                    choices.push(choice);
                }
                Ok(Choices(choices))
            }
        }
        deserializer.deserialize_seq(ChoicesVisitor)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    pub(super) index: Count,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    /// In place of `delta` in a whole answer.
    #[serde(borrow)]
    pub(super) message: Option<Delta<'a>>,
    /// Completions.
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) finish_reason: Text<'a>,
    pub(super) token_ids: Length,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub(super) role: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Mixed<'a, Part<'a>>,
    #[serde(borrow)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow)]
    pub(super) reasoning_content: Text<'a>,
    #[serde(borrow)]
    pub(super) reasoning: Text<'a>,
    #[serde(borrow)]
    pub(super) reasoning_details: Objects<Part<'a>>,
    #[serde(borrow)]
    pub(super) tool_calls: Objects<ToolCall<'a>>,
    #[serde(borrow)]
    pub(super) function_call: Object<Function<'a>>,
}

/// A part of a content or reasoning list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) summary: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCall<'a> {
    #[serde(borrow)]
    pub(super) function: Object<Function<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) arguments: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawUsage {
    pub(super) prompt_tokens: Count,
    pub(super) completion_tokens: Count,
    /// SGLang writes it beside the details.
    pub(super) reasoning_tokens: Count,
    pub(super) prompt_tokens_details: Object<PromptDetails>,
    pub(super) completion_tokens_details: Object<CompletionDetails>,
    pub(super) metrics: Object<RawMetrics>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PromptDetails {
    pub(super) cached_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompletionDetails {
    pub(super) reasoning_tokens: Count,
}

/// llama.cpp.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawTimings {
    pub(super) predicted_n: Count,
    pub(super) predicted_ms: Real,
    pub(super) predicted_per_second: Real,
    pub(super) prompt_n: Count,
    pub(super) cache_n: Count,
    pub(super) draft_n: Count,
    pub(super) draft_n_accepted: Count,
}

/// vLLM.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawMetrics {
    pub(super) speculative_decoding: Object<RawSpeculation>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawSpeculation {
    pub(super) mean_acceptance_length: Real,
    pub(super) draft_acceptance_rate: Real,
    pub(super) num_spec_steps: Count,
    pub(super) num_accepted_draft_tokens: Count,
    pub(super) num_draft_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawError<'a> {
    #[serde(borrow)]
    pub(super) message: Text<'a>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) code: Text<'a>,
}

/// A frame of SGLang's `/generate`, streamed or whole.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct GenerateFrame<'a> {
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    pub(super) index: Count,
    #[serde(borrow)]
    pub(super) meta_info: Option<MetaInfo<'a>>,
    #[serde(borrow)]
    pub(super) error: Mixed<'a, RawError<'a>>,
    #[serde(borrow)]
    pub(super) object: Text<'a>,
    #[serde(borrow)]
    pub(super) message: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MetaInfo<'a> {
    /// An object with `type`; older versions wrote the word alone.
    #[serde(borrow)]
    pub(super) finish_reason: Mixed<'a, RawError<'a>>,
    pub(super) prompt_tokens: Count,
    pub(super) completion_tokens: Count,
    pub(super) cached_tokens: Count,
    pub(super) reasoning_tokens: Count,
    pub(super) spec_accept_length: Real,
    pub(super) spec_accept_rate: Real,
    pub(super) spec_accept_token_num: Count,
    pub(super) spec_draft_token_num: Count,
    pub(super) spec_verify_ct: Count,
}
