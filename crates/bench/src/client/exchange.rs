//! One request and its answer: bytes in, a record out. No I/O.

use std::ops::ControlFlow;

use sha2::{Digest, Sha256};
use shakedown_model::{
    Api, Channel, FinishReason, Phase, PromptKind, PromptRef, RequestOutcome, RequestRecord, Stamp, Stamps,
    TextRef, TokenSource, Tokens,
};
use shakedown_wire::openai::{self, SpecFigures, StreamEvent, Timings, Usage};
use shakedown_wire::response::{self, Framing, Piece, ResponseReader};
use shakedown_wire::sse::{SseEvent, SseReader};

use super::chunks::ChunkLog;
use super::outcome::{Ending, Seen, judge};
use crate::plan::Limits;
use crate::workload::hex;

/// Most bytes of an error's body that are looked at.
const ERROR_BODY_CAP: usize = 16 << 10;

/// What is asked of the server and how the record names it.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) id: String,
    pub(super) trial: u32,
    pub(super) phase: Phase,
    pub(super) stream: u32,
    pub(super) prompt_index: u32,
    pub(super) prompt_kind: PromptKind,
    pub(super) max_tokens: u32,
    /// Fewer output tokens than this means that the server stopped short.
    pub(super) least: Option<u64>,
    pub(super) api: Api,
    pub(super) streamed: bool,
    pub(super) keep_text: bool,
    /// The connection has served a request before.
    pub(super) reused: bool,
}

/// Stamps as they are taken.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) scheduled: Stamp,
    pub(super) dequeued: Stamp,
    pub(super) connect_start: Option<Stamp>,
    pub(super) connected: Option<Stamp>,
    pub(super) secured: Option<Stamp>,
    pub(super) sent: Option<Stamp>,
    pub(super) first_byte: Option<Stamp>,
    pub(super) first_event: Option<Stamp>,
    pub(super) first_output: Option<Stamp>,
    pub(super) finish: Option<Stamp>,
    /// When bytes last came.
    pub(super) last_read: Option<Stamp>,
}

/// One request in flight.
pub(super) struct Exchange {
    pub(super) asked: Asked,
    pub(super) times: Times,
    origin: Stamp,
    response: ResponseReader,
    sse: SseReader,
    answer: Answer,
    /// The body of an answer that is not a stream.
    body: Vec<u8>,
    body_cap: usize,
    answer_bytes: u64,
    answer_cap: u64,
    reads: u32,
}

/// What the events of the answer said.
#[derive(Default)]
struct Answer {
    chunks: ChunkLog,
    events: u32,
    done: bool,
    error: Option<String>,
    malformed: Option<String>,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    /// Usage came with the finish reason or after it, so it is the whole.
    usage_final: bool,
    /// Every token-bearing chunk so far came with usage.
    usage_continuous: bool,
    usage_seen_output: u64,
    token_ids: Option<u64>,
    token_ids_complete: bool,
    timings: Option<Timings>,
    spec: Option<SpecFigures>,
    cumulative_text: usize,
    text_bytes: u64,
    text_hash: Sha256,
    text: Option<String>,
}

impl Exchange {
    pub(super) fn new(asked: Asked, times: Times, origin: Stamp, limits: &Limits) -> Self {
        let answer = Answer {
            chunks: ChunkLog::new(),
            usage_continuous: true,
            token_ids_complete: true,
            text: asked.keep_text.then(String::new),
            ..Answer::default()
        };
        let body_cap = if asked.streamed {
            ERROR_BODY_CAP
        } else {
            limits.line
        };
        Self {
            asked,
            times,
            origin,
            response: ResponseReader::new(response::Limits::default()),
            sse: SseReader::new(limits.line),
            answer,
            body: Vec::new(),
            body_cap,
            answer_bytes: 0,
            answer_cap: limits.answer,
            reads: 0,
        }
    }

    /// Takes the bytes of one read. Returns the ending when the exchange is over.
    pub(super) fn on_bytes(&mut self, bytes: &[u8], at: Stamp) -> Option<Ending> {
        self.reads += 1;
        self.times.first_byte.get_or_insert(at);
        self.times.last_read = Some(at);
        self.answer_bytes += bytes.len() as u64;
        if self.answer_bytes > self.answer_cap {
            return Some(Ending::TooLarge);
        }
        let mut rest = bytes;
        loop {
            match self.response.read(rest) {
                Err(error) => return Some(Ending::Malformed(error.to_string())),
                Ok((consumed, piece)) => {
                    rest = &rest[consumed..];
                    match piece {
                        Piece::NeedMore => return None,
                        Piece::Head => {}
                        Piece::Body(body) => {
                            if let Some(ending) = self.on_body(body, at) {
                                return Some(ending);
                            }
                        }
                        Piece::End => return Some(self.completed(at)),
                    }
                }
            }
        }
    }

    /// The peer closed.
    pub(super) fn on_eof(&mut self, at: Stamp) -> Ending {
        match self.response.eof() {
            Ok(()) => self.completed(at),
            Err(_) => Ending::Closed,
        }
    }

    /// Whether the connection can carry another request.
    pub(super) fn reusable(&self) -> bool {
        self.response.is_done() && self.response.head().is_some_and(|head| head.keep_alive)
    }

    /// Whether [DONE] has come: whatever is still to come is not part of the answer.
    pub(super) fn terminated(&self) -> bool {
        self.answer.done
    }

    pub(super) fn any_token(&self) -> bool {
        !self.answer.chunks.is_empty()
    }

    /// Whether every token so far can be placed in time.
    pub(super) fn tokens_placed(&self) -> bool {
        self.answer.chunks.is_empty() || self.answer.chunks.token_sum().is_some()
    }

    pub(super) fn chunk_count(&self) -> u64 {
        self.answer.chunks.len()
    }

    pub(super) fn token_count(&self) -> Option<u64> {
        self.answer.chunks.token_sum()
    }

    /// Whether the body is to be read as an event stream.
    fn is_stream(&self) -> bool {
        self.asked.streamed
            && self.response.head().is_some_and(|head| {
                head.status == 200
                    && head.content_encoding.is_none()
                    && head
                        .content_type
                        .as_deref()
                        .is_none_or(|kind| !kind.starts_with("application/json"))
            })
    }

    fn on_body(&mut self, body: &[u8], at: Stamp) -> Option<Ending> {
        if !self.is_stream() {
            let room = self.body_cap.saturating_sub(self.body.len());
            self.body.extend_from_slice(&body[..body.len().min(room)]);
            if room < body.len() && !self.asked.streamed {
                return Some(Ending::TooLarge);
            }
            return None;
        }
        let (answer, times) = (&mut self.answer, &mut self.times);
        let (api, origin, read) = (self.asked.api, self.origin, self.reads);
        let pushed = self.sse.push(body, |event| {
            answer.on_event(&event, api, at, origin, read, times)
        });
        if let Some(error) = self.answer.malformed.take() {
            return Some(Ending::Malformed(error));
        }
        pushed.err().map(|_| Ending::LineTooLong)
    }

    /// HTTP says that the answer is complete.
    fn completed(&mut self, at: Stamp) -> Ending {
        if self.is_stream() {
            let (answer, times) = (&mut self.answer, &mut self.times);
            let (api, origin, read) = (self.asked.api, self.origin, self.reads);
            let cut = self.sse.has_unfinished_line();
            let finished = self
                .sse
                .finish(|event| answer.on_event(&event, api, at, origin, read, times));
            let unframed = self
                .response
                .head()
                .is_some_and(|head| head.framing == Framing::UntilClose);
            return match self.answer.malformed.take() {
                // A body that ends with its connection does not tell an end from a cut: half a line is a cut.
                Some(_) if cut && unframed => Ending::Closed,
                Some(error) => Ending::Malformed(error),
                None if finished.is_err() => Ending::LineTooLong,
                None => Ending::Complete,
            };
        }
        if self
            .response
            .head()
            .is_some_and(|head| head.status == 200 && head.content_encoding.is_none())
        {
            if self.asked.streamed {
                return match openai::parse_error_body(&self.body) {
                    Some(error) => {
                        self.answer.error = Some(error);
                        Ending::Complete
                    }
                    None => Ending::Malformed("answered with JSON where a stream was asked for".to_owned()),
                };
            }
            return self.whole_answer(at);
        }
        Ending::Complete
    }

    /// Reads an answer that was not asked to be streamed. Its tokens have no stamps of their own.
    fn whole_answer(&mut self, at: Stamp) -> Ending {
        if let Some(error) = openai::parse_error_body(&self.body) {
            self.answer.error = Some(error);
            return Ending::Complete;
        }
        match openai::parse_whole(self.asked.api, &self.body) {
            Err(error) => Ending::Malformed(error.to_string()),
            Ok(reply) => {
                self.answer.finish = reply.finish_reason.as_deref().map(FinishReason::from_word);
                self.times.finish = self.answer.finish.is_some().then_some(at);
                self.answer.usage = reply.usage;
                self.answer.usage_final = reply.usage.is_some();
                self.answer.timings = reply.timings;
                self.answer.spec = reply.spec;
                for (_, text) in &reply.texts {
                    self.answer.take_text(text);
                }
                Ending::Complete
            }
        }
    }

    /// The record of the ended exchange.
    pub(super) fn into_record(self, ending: &Ending, at: Stamp) -> RequestRecord {
        let head = self.response.head();
        let answer = self.answer;
        let (output, source) = answer.token_count();
        let error_body = openai::parse_error_body(&self.body)
            .or_else(|| (!self.body.is_empty()).then(|| printable(&self.body)))
            .filter(|_| head.is_some_and(|head| head.status != 200));
        let seen = Seen {
            ending,
            status: head.map(|head| head.status),
            content_encoding: head.and_then(|head| head.content_encoding.as_deref()),
            location: head.and_then(|head| head.location.as_deref()),
            reused: self.asked.reused,
            streamed: self.asked.streamed,
            any_byte: self.times.first_byte.is_some(),
            any_token: !answer.chunks.is_empty() || answer.text_bytes > 0,
            error_in_stream: answer.error.as_deref(),
            error_body: error_body.as_deref(),
            finish: answer.finish.as_ref(),
            done: answer.done,
            tokens: output,
            least: self.asked.least,
        };
        let (outcome, error) = judge(&seen);
        let status = seen.status;
        let since = |stamp: Stamp| stamp.micros_since(self.origin);
        let stamps = Stamps {
            scheduled: since(self.times.scheduled),
            dequeued: since(self.times.dequeued),
            connect_start: self.times.connect_start.map(since),
            connected: self.times.connected.map(since),
            secured: self.times.secured.map(since),
            sent: self.times.sent.map(since),
            first_byte: self.times.first_byte.map(since),
            first_event: self.times.first_event.map(since),
            first_token: answer.chunks.first_us(),
            first_output: self.times.first_output.map(since),
            last_token: answer.chunks.last_us(),
            finish: self.times.finish.map(since),
            end: since(at),
        };
        let usage = answer.usage;
        let tokens = Tokens {
            output,
            source,
            timed: answer.timings.as_ref().and_then(|timings| timings.predicted_n),
            input: usage.and_then(|usage| usage.input),
            cached: usage.and_then(|usage| usage.cached),
            reasoning: usage.and_then(|usage| usage.reasoning),
            drafted: answer
                .spec
                .as_ref()
                .and_then(|spec| spec.drafted)
                .or(answer.timings.as_ref().and_then(|timings| timings.draft_n)),
            accepted: answer.spec.as_ref().and_then(|spec| spec.accepted).or(answer
                .timings
                .as_ref()
                .and_then(|timings| timings.draft_n_accepted)),
            verify_steps: answer.spec.as_ref().and_then(|spec| spec.verify_steps),
        };
        let text = (answer.text_bytes > 0).then(|| {
            let mut sha256 = hex(&answer.text_hash.finalize());
            sha256.truncate(16);
            TextRef {
                sha256,
                bytes: answer.text_bytes,
                text: answer.text,
            }
        });
        let parts = answer
            .chunks
            .into_parts(output.filter(|_| outcome != RequestOutcome::Cancelled));
        RequestRecord {
            id: self.asked.id,
            trial: self.asked.trial,
            phase: self.asked.phase,
            stream: self.asked.stream,
            prompt: PromptRef {
                index: self.asked.prompt_index,
                kind: self.asked.prompt_kind,
                sha256: String::new(),
                bytes: 0,
                text: None,
            },
            max_tokens: self.asked.max_tokens,
            outcome,
            error,
            status,
            finish_reason: answer.finish,
            stamps,
            tokens,
            gaps_us: parts.gaps_us,
            chunk_tokens: parts.tokens,
            channels: parts.channels,
            reads: self.reads,
            events: answer.events,
            text,
            server_decode_tok_s: answer
                .timings
                .as_ref()
                .and_then(|timings| timings.predicted_per_second),
        }
    }
}

impl Answer {
    fn on_event(
        &mut self,
        event: &SseEvent<'_>,
        api: Api,
        at: Stamp,
        origin: Stamp,
        read: u32,
        times: &mut Times,
    ) -> ControlFlow<()> {
        let SseEvent::Data { data, .. } = event else {
            return ControlFlow::Continue(());
        };
        self.events += 1;
        times.first_event.get_or_insert(at);
        match openai::parse_event(api, data) {
            Ok(event) => {
                self.on_chunk(&event, at, origin, read, times);
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.malformed = Some(format!("event {}: {error}", self.events));
                ControlFlow::Break(())
            }
        }
    }

    fn on_chunk(&mut self, event: &StreamEvent<'_>, at: Stamp, origin: Stamp, read: u32, times: &mut Times) {
        if event.done {
            self.done = true;
            return;
        }
        if let Some(error) = &event.error {
            self.error.get_or_insert_with(|| error.clone().into_owned());
        }
        let channel = self.take_texts(event);
        let count = self.count_chunk(event, channel.is_some());
        // An empty chunk is a token only where the server's running count says so (a special token).
        let channel = channel.or_else(|| count.is_some_and(|count| count > 0).then_some(Channel::Content));
        if let Some(channel) = channel {
            self.chunks.push(at, origin, read, channel, count);
            if channel != Channel::Reasoning {
                times.first_output.get_or_insert(at);
            }
        }
        if let Some(word) = &event.finish_reason {
            self.finish = Some(FinishReason::from_word(word));
            times.finish.get_or_insert(at);
        }
        if let Some(usage) = event.usage {
            // Usage beside the finish reason is the whole, unless it is only the last of a running count.
            let running = self.usage.is_some() && self.usage_continuous;
            self.usage_final |= is_usage_only(event) || (self.finish.is_some() && !running);
            self.usage = Some(usage);
        }
        if event.timings.is_some() {
            self.timings.clone_from(&event.timings);
        }
        if event.spec.is_some() {
            self.spec.clone_from(&event.spec);
        }
    }

    /// Hashes the event's text. Returns the channel of its first text, where it has any.
    fn take_texts(&mut self, event: &StreamEvent<'_>) -> Option<Channel> {
        if let Some(text) = &event.generate_text {
            // `/generate` sends the whole text so far in every event.
            let new = text.get(self.cumulative_text..).filter(|new| !new.is_empty())?;
            self.take_text(new);
            self.cumulative_text = text.len();
            return Some(Channel::Content);
        }
        let mut first = None;
        for (channel, text) in &event.deltas {
            if !text.is_empty() {
                self.take_text(text);
                first.get_or_insert(*channel);
            }
        }
        first
    }

    fn take_text(&mut self, text: &str) {
        self.text_hash.update(text.as_bytes());
        self.text_bytes += text.len() as u64;
        if let Some(kept) = &mut self.text {
            kept.push_str(text);
        }
    }

    /// Tokens of this chunk, where the server says: token ids, else the growth of its running count.
    fn count_chunk(&mut self, event: &StreamEvent<'_>, has_text: bool) -> Option<u32> {
        if let Some(ids) = event.token_ids {
            *self.token_ids.get_or_insert(0) += u64::from(ids);
            return Some(ids);
        }
        if has_text {
            self.token_ids_complete = false;
        }
        let running = event
            .generate_tokens
            .or_else(|| event.usage.and_then(|usage| usage.output));
        let Some(running) = running.filter(|_| self.usage_continuous && !is_usage_only(event)) else {
            // Usage at the end alone is no running count.
            self.usage_continuous &= !has_text;
            return None;
        };
        // A count that first comes with the finish reason of a text-less chunk is a total, not a running count.
        let started = !self.chunks.is_empty() || self.usage.is_some() || has_text;
        if !started {
            return None;
        }
        let grown = running.checked_sub(self.usage_seen_output)?;
        self.usage_seen_output = running;
        u32::try_from(grown).ok()
    }

    /// Output tokens of the request and where the count came from. Never the requested length, never the number
    /// of chunks.
    fn token_count(&self) -> (Option<u64>, TokenSource) {
        let usage = self.usage.and_then(|usage| usage.output);
        if let Some(output) = usage.filter(|_| self.usage_final) {
            return (Some(output), TokenSource::ServerUsage);
        }
        if let Some(output) = self.timings.as_ref().and_then(|timings| timings.predicted_n) {
            return (Some(output), TokenSource::ServerUsage);
        }
        if let Some(ids) = self.token_ids.filter(|_| self.token_ids_complete) {
            return (Some(ids), TokenSource::TokenIds);
        }
        match usage.or_else(|| self.chunks.token_sum().filter(|_| self.usage_continuous)) {
            Some(output) if self.usage_continuous => (Some(output), TokenSource::ContinuousUsage),
            _ => (None, TokenSource::Unknown),
        }
    }
}

/// Whether the event is the usage chunk that stands alone at the end.
fn is_usage_only(event: &StreamEvent<'_>) -> bool {
    event.usage.is_some()
        && event.deltas.is_empty()
        && !event.role
        && !event.empty_content
        && event.finish_reason.is_none()
        && event.generate_text.is_none()
}

/// The start of a body that is no JSON, fit for one line.
fn printable(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(200)]);
    text.chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect::<String>()
        .trim()
        .to_owned()
}
