//! One event of a stream, reduced to what measuring needs.

use std::borrow::Cow;

use shakedown_model::{Api, Channel};

use super::few::Few;
use super::lenient::{Mixed, Object, Text};
use super::raw::{
    Choice, Delta, Frame, GenerateFrame, MetaInfo, Part, RawError, RawMetrics, RawTimings, RawUsage,
};
use super::{ParseError, check_object};

/// Generated text by channel.
pub type Deltas<'a> = Few<(Channel, Cow<'a, str>)>;

/// What one stream event says. Only the choice with index 0 counts: more than one is never asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamEvent<'a> {
    /// The terminator, `[DONE]`.
    pub done: bool,
    /// An error, in the server's words, whatever the HTTP status was.
    pub error: Option<Cow<'a, str>>,
    /// Generated text that is not empty, in the order of generation: reasoning, content, tool calls (the name
    /// before the arguments). A server that sends the same reasoning under several names is heard once.
    pub deltas: Deltas<'a>,
    /// Text was there, but empty, and no role came with it: perhaps a token without text. Token ids or usage must
    /// tell.
    pub empty_content: bool,
    /// A role was named, as the first chunk does before any token.
    pub role: bool,
    /// Why the server says that it stopped.
    pub finish_reason: Option<Cow<'a, str>>,
    /// Token counts so far or in all, where the event carries them.
    pub usage: Option<Usage>,
    /// How many token ids the chunk carries, where it carries a list of them.
    pub token_ids: Option<u32>,
    /// llama.cpp's own figures.
    pub timings: Option<Timings>,
    /// Speculative decoding of this request, by the engine's own figures.
    pub spec: Option<SpecFigures>,
    /// `/generate`: all text so far (a server with incremental output sends only what is new).
    pub generate_text: Option<Cow<'a, str>>,
    /// `/generate`: all output tokens so far.
    pub generate_tokens: Option<u64>,
    /// The event was about other choices than the first.
    pub other_choice: bool,
}

/// Token counts by the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Prompt tokens.
    pub input: Option<u64>,
    /// Output tokens, reasoning included.
    pub output: Option<u64>,
    /// Prompt tokens from the prefix cache; absent is unknown.
    pub cached: Option<u64>,
    /// Reasoning tokens.
    pub reasoning: Option<u64>,
}

/// llama.cpp's `timings`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Timings {
    /// Output tokens.
    pub predicted_n: Option<u64>,
    /// Time to generate them, milliseconds.
    pub predicted_ms: Option<f64>,
    /// Decode rate in tokens a second.
    pub predicted_per_second: Option<f64>,
    /// Prompt tokens processed, those from the cache not included.
    pub prompt_n: Option<u64>,
    /// Prompt tokens from the cache.
    pub cache_n: Option<u64>,
    /// Draft tokens proposed.
    pub draft_n: Option<u64>,
    /// Draft tokens accepted.
    pub draft_n_accepted: Option<u64>,
}

/// Speculative decoding of one request, from SGLang's `meta_info` or vLLM's `metrics.speculative_decoding`. Both
/// count the bonus token in the length and not in the rate.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SpecFigures {
    /// Verify steps.
    pub verify_steps: Option<u64>,
    /// Draft tokens proposed.
    pub drafted: Option<u64>,
    /// Draft tokens accepted, bonus tokens not included.
    pub accepted: Option<u64>,
    /// Tokens per verify step, bonus token included.
    pub length: Option<f64>,
    /// Draft tokens accepted / proposed.
    pub rate: Option<f64>,
}

/// Reads the data of one event. `[DONE]` is the terminator; empty data says nothing.
///
/// # Errors
/// [`ParseError`] when the data is not the JSON of the dialect.
pub fn parse_event(api: Api, data: &[u8]) -> Result<StreamEvent<'_>, ParseError> {
    // Nearly all data begins with a brace; the rest is looked at only when it does not.
    if data.first() != Some(&b'{') {
        let trimmed = data.trim_ascii();
        if trimmed == b"[DONE]" {
            return Ok(StreamEvent {
                done: true,
                ..StreamEvent::default()
            });
        }
        if trimmed.is_empty() {
            return Ok(StreamEvent::default());
        }
        check_object(data)?;
    }
    match api {
        Api::Chat | Api::Completions => {
            let frame: Frame<'_> = serde_json::from_slice(data)?;
            Ok(event_of_frame(frame, |choice| choice.delta.take()))
        }
        Api::Generate => Ok(event_of_generate(serde_json::from_slice(data)?)),
    }
}

/// `delta_of` picks `delta` of a streamed choice or `message` of a whole one.
pub(super) fn event_of_frame<'a>(
    frame: Frame<'a>,
    delta_of: impl Fn(&mut Choice<'a>) -> Option<Delta<'a>>,
) -> StreamEvent<'a> {
    let mut event = StreamEvent {
        error: error_of(frame.error, &frame.object, frame.message),
        timings: frame.timings.0.map(Timings::from),
        ..StreamEvent::default()
    };
    let mut spec = frame.metrics;
    if let Some(mut usage) = frame.usage {
        if spec.0.is_none() {
            spec = std::mem::take(&mut usage.metrics);
        }
        event.usage = Usage::from_raw(&usage);
    }
    event.spec = spec.0.and_then(SpecFigures::from_metrics);
    for mut choice in frame.choices.into_iter().flat_map(|choices| choices.0) {
        if choice.index.0.unwrap_or(0) != 0 {
            event.other_choice = true;
            continue;
        }
        if let Some(delta) = delta_of(&mut choice) {
            event.add_delta(delta);
        }
        event.add_text(choice.text);
        if let Some(reason) = choice.finish_reason.filled() {
            event.finish_reason = Some(reason);
        }
        event.token_ids = choice.token_ids.0.or(event.token_ids);
    }
    event
}

impl<'a> StreamEvent<'a> {
    /// Whether the event brings generated text.
    pub fn has_text(&self) -> bool {
        !self.deltas.is_empty() || self.generate_text.as_ref().is_some_and(|text| !text.is_empty())
    }

    fn add_delta(&mut self, delta: Delta<'a>) {
        let role = delta.role.filled().is_some();
        self.role |= role;
        let before = self.deltas.len();
        // One and the same text under several names, by engine and version: the first that is filled counts.
        let reasoning = delta
            .reasoning_content
            .filled()
            .or_else(|| delta.reasoning.filled());
        match reasoning {
            Some(text) => self.deltas.push((Channel::Reasoning, text)),
            None => {
                for part in delta.reasoning_details.0 {
                    self.add(Channel::Reasoning, part_text(part));
                }
            }
        }
        let mut empty = false;
        match delta.content {
            Mixed::Text(text) if text.is_empty() => empty = true,
            Mixed::Text(text) => self.deltas.push((Channel::Content, text)),
            Mixed::Object(part) => self.add(Channel::Content, part_text(part)),
            Mixed::List(parts) => {
                for part in parts {
                    self.add(Channel::Content, part_text(part));
                }
            }
            Mixed::Absent => {}
        }
        self.add(Channel::Content, delta.refusal.filled());
        for call in delta.tool_calls.0 {
            self.add_function(call.function);
        }
        self.add_function(delta.function_call);
        self.empty_content |= empty && !role && self.deltas.len() == before;
    }

    fn add_function(&mut self, function: Object<super::raw::Function<'a>>) {
        if let Some(function) = function.0 {
            self.add(Channel::ToolCall, function.name.filled());
            self.add(Channel::ToolCall, function.arguments.filled());
        }
    }

    fn add_text(&mut self, text: Text<'a>) {
        match text.0 {
            Some(text) if text.is_empty() => self.empty_content |= self.deltas.is_empty() && !self.role,
            Some(text) => self.deltas.push((Channel::Content, text)),
            None => {}
        }
    }

    fn add(&mut self, channel: Channel, text: Option<Cow<'a, str>>) {
        self.deltas.extend(text.map(|text| (channel, text)));
    }
}

fn part_text(part: Part<'_>) -> Option<Cow<'_, str>> {
    part.text.filled().or_else(|| part.summary.filled())
}

pub(super) fn event_of_generate(frame: GenerateFrame<'_>) -> StreamEvent<'_> {
    let mut event = StreamEvent {
        error: error_of(frame.error, &frame.object, frame.message),
        ..StreamEvent::default()
    };
    if frame.index.0.unwrap_or(0) != 0 {
        event.other_choice = true;
        return event;
    }
    event.generate_text = frame.text.0;
    if let Some(meta) = frame.meta_info {
        event.generate_tokens = meta.completion_tokens.0;
        event.usage = Usage {
            input: meta.prompt_tokens.0,
            output: meta.completion_tokens.0,
            cached: meta.cached_tokens.0,
            reasoning: meta.reasoning_tokens.0,
        }
        .if_any();
        event.spec = SpecFigures::from_meta(&meta);
        event.finish_reason = match meta.finish_reason {
            Mixed::Text(word) => Some(word).filter(|word| !word.is_empty()),
            Mixed::Object(RawError { message, kind, .. }) => {
                // An abort tells its cause in the finish reason, and nowhere else.
                let kind = kind.filled();
                if kind.as_deref() == Some("abort") && event.error.is_none() {
                    event.error = message.filled();
                }
                kind
            }
            Mixed::Absent | Mixed::List(_) => None,
        };
    }
    event
}

/// The error of a frame: a member `error` that is neither null nor empty, or `"object":"error"`.
pub(super) fn error_of<'a>(
    error: Mixed<'a, RawError<'a>>,
    object: &Text<'a>,
    message: Text<'a>,
) -> Option<Cow<'a, str>> {
    const NAMELESS: Cow<'static, str> = Cow::Borrowed("an error without a message");
    match error {
        Mixed::Text(text) if !text.is_empty() => Some(text),
        Mixed::Object(error) => Some(
            error
                .message
                .filled()
                .or_else(|| error.kind.filled())
                .or_else(|| error.code.filled())
                .unwrap_or(NAMELESS),
        ),
        Mixed::List(mut errors) if !errors.is_empty() => {
            Some(errors.swap_remove(0).message.filled().unwrap_or(NAMELESS))
        }
        _ if object.0.as_deref() == Some("error") => Some(message.filled().unwrap_or(NAMELESS)),
        _ => None,
    }
}

impl Usage {
    fn from_raw(raw: &RawUsage) -> Option<Self> {
        let details = raw.completion_tokens_details.0.as_ref();
        Self {
            input: raw.prompt_tokens.0,
            output: raw.completion_tokens.0,
            cached: raw
                .prompt_tokens_details
                .0
                .as_ref()
                .and_then(|details| details.cached_tokens.0),
            reasoning: details
                .and_then(|details| details.reasoning_tokens.0)
                .or(raw.reasoning_tokens.0),
        }
        .if_any()
    }

    fn if_any(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

impl From<RawTimings> for Timings {
    fn from(raw: RawTimings) -> Self {
        Self {
            predicted_n: raw.predicted_n.0,
            predicted_ms: raw.predicted_ms.0,
            predicted_per_second: raw.predicted_per_second.0,
            prompt_n: raw.prompt_n.0,
            cache_n: raw.cache_n.0,
            draft_n: raw.draft_n.0,
            draft_n_accepted: raw.draft_n_accepted.0,
        }
    }
}

impl SpecFigures {
    fn from_metrics(raw: RawMetrics) -> Option<Self> {
        let raw = raw.speculative_decoding.0?;
        Self {
            verify_steps: raw.num_spec_steps.0,
            drafted: raw.num_draft_tokens.0,
            accepted: raw.num_accepted_draft_tokens.0,
            length: raw.mean_acceptance_length.0,
            rate: raw.draft_acceptance_rate.0,
        }
        .if_any()
    }

    fn from_meta(meta: &MetaInfo<'_>) -> Option<Self> {
        Self {
            verify_steps: meta.spec_verify_ct.0,
            drafted: meta.spec_draft_token_num.0,
            accepted: meta.spec_accept_token_num.0,
            length: meta.spec_accept_length.0,
            rate: meta.spec_accept_rate.0,
        }
        .if_any()
    }

    fn if_any(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

#[cfg(test)]
mod tests;
