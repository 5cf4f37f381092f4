//! A generation in the making: which bytes are due next, and when.

use shakedown_model::{Api, Channel, WriteKind};

use crate::ask::Ask;
use crate::counters::Counters;
use crate::options::{Manners, Options};
use crate::schedule::{Chunks, Schedule};
use crate::shape::{Delta, Finish, RoleContent, Shape, Tail, Timings, Usage};
use crate::sse::Style;
use crate::tokenizer::{self, Words};

/// What follows a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// Another step.
    Continue,
    /// Nothing: the answer is whole.
    Complete,
    /// The connection is closed.
    Cut,
    /// The connection is reset.
    Reset,
}

/// What one step put into the output: nothing, where `bytes` stayed empty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) tokens: u32,
    pub(crate) kind: WriteKind,
    pub(crate) then: Then,
}

/// The answer as decided when the request was read.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// Tokens to generate.
    pub(crate) tokens: u32,
    /// Tokens whose text is sent; the others are the stop string's.
    pub(crate) visible: u32,
    /// Bytes of text of the token behind `visible`, where a stop string begins inside it.
    pub(crate) partial: usize,
    pub(crate) finish: Finish,
}

/// Decides how long the answer is.
pub(crate) fn decide(options: &Options, ask: &Ask, words: &Words, room: u32) -> Answer {
    let limit = ask.max_tokens.unwrap_or(options.default_tokens).min(room);
    // A model without an end of its own goes on to the limit that is asked for, and ends by itself otherwise.
    let natural = options
        .eos_after
        .or_else(|| ask.max_tokens.is_none().then_some(options.default_tokens))
        .map(|natural| natural.max(ask.min_tokens));
    let (tokens, finish) = match natural {
        Some(natural) if !ask.ignore_eos && natural <= limit => (natural, Finish::Stop),
        _ => (limit, Finish::Length),
    };
    let whole = Answer {
        tokens,
        visible: tokens,
        partial: 0,
        finish,
    };
    if ask.stop.is_empty() {
        return whole;
    }
    stopped(&ask.stop, ask.min_tokens, words, tokens).unwrap_or(whole)
}

/// Cuts an answer of at most `tokens` tokens at the first stop string that is complete after `min_tokens`.
fn stopped(stops: &[String], min_tokens: u32, words: &Words, tokens: u32) -> Option<Answer> {
    let text = words.text(0, tokens);
    // Where the text of each token begins.
    let mut starts = Vec::with_capacity(tokens as usize + 1);
    let mut at = 0;
    for index in 0..tokens {
        starts.push(at);
        at += words.at(index).len() + usize::from(index > 0);
    }
    let tokens_of = |end: usize| starts.partition_point(|start| *start < end) as u32;
    stops
        .iter()
        .flat_map(|stop| {
            text.match_indices(stop.as_str())
                .map(|(begin, hit)| (begin + hit.len(), begin))
        })
        .filter(|(end, _)| tokens_of(*end) > min_tokens)
        .min()
        .map(|(end, begin)| {
            let visible = starts.partition_point(|start| *start <= begin).saturating_sub(1);
            Answer {
                tokens: tokens_of(end),
                visible: visible as u32,
                partial: begin - starts[visible],
                finish: Finish::Stop,
            }
        })
}

/// Where a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Role,
    Tokens,
    Finish,
    Usage,
    Done,
    Over,
}

/// A generation that runs.
#[derive(Debug)]
pub(crate) struct Stream {
    shape: Shape,
    style: Style,
    words: Words,
    answer: Answer,
    chunks: Chunks,
    schedule: Schedule,
    usage: Usage,
    continuous: bool,
    streamed: bool,
    stage: Stage,
    /// Tokens generated so far.
    emitted: u32,
    started: u64,
    read: u64,
    first: u64,
    last: u64,
    text: Vec<u8>,
    max_new: u32,
}

/// What a generation is made from.
pub(crate) struct Make<'a> {
    pub(crate) options: &'a Options,
    pub(crate) ask: &'a Ask,
    pub(crate) shape: Shape,
    pub(crate) usage: Usage,
    pub(crate) answer: Answer,
    pub(crate) words: Words,
    /// Number of the request, which decides its jitter and its acceptance.
    pub(crate) ordinal: u64,
    pub(crate) read: u64,
}

impl Stream {
    /// A generation that waits for [`Stream::start`].
    pub(crate) fn new(make: Make<'_>) -> Self {
        let Make { options, ask, .. } = make;
        Self {
            chunks: Chunks::new(options, make.ordinal, ask.prompt_kind),
            // Replaced when it starts.
            schedule: Schedule::new(options, make.ordinal, make.read, 0, 0),
            style: Style::default(),
            words: make.words,
            usage: make.usage,
            // llama.cpp knows no usage in every chunk.
            continuous: ask.continuous_usage && options.engine != Manners::LlamaCpp,
            streamed: ask.stream,
            stage: if ask.api == Api::Chat && ask.stream {
                Stage::Role
            } else {
                Stage::Tokens
            },
            emitted: 0,
            started: make.read,
            read: make.read,
            first: 0,
            last: 0,
            text: Vec::new(),
            max_new: ask.max_tokens.unwrap_or(make.answer.tokens),
            answer: make.answer,
            shape: make.shape,
        }
    }

    /// It begins to run.
    pub(crate) fn start(&mut self, options: &Options, ordinal: u64, at: u64, origin: u64, earliest: u64) {
        self.started = at;
        self.schedule = Schedule::new(options, ordinal, at, origin, earliest);
    }

    /// When the next step is due.
    pub(crate) const fn due(&self) -> u64 {
        match self.stage {
            Stage::Role | Stage::Tokens => self.schedule.due(),
            _ => self.last,
        }
    }

    /// Writes the next step.
    pub(crate) fn step(&mut self, out: &mut Vec<u8>, counters: &Counters) -> Step {
        match self.stage {
            Stage::Role => {
                let content = match self.shape.manners {
                    Manners::LlamaCpp => RoleContent::Null,
                    _ => RoleContent::Empty,
                };
                let usage = self.continuous.then_some(self.usage);
                self.style.open(out);
                self.shape.role(out, content, usage);
                self.style.close(out);
                self.stage = Stage::Tokens;
                Step {
                    tokens: 0,
                    kind: WriteKind::Role,
                    then: Then::Continue,
                }
            }
            Stage::Tokens => self.tokens(out, counters),
            Stage::Finish => {
                let usage = self.continuous.then_some(self.usage);
                let tail = self.tail();
                let last = !self.ends_with_usage();
                self.style.open(out);
                self.shape
                    .finish(out, self.answer.finish, usage, last.then_some(&tail));
                self.style.close(out);
                self.stage = if last { Stage::Done } else { Stage::Usage };
                Step {
                    // The tokens of a stop string have no text, but they were generated.
                    tokens: self.hidden(),
                    kind: WriteKind::Finish,
                    then: Then::Continue,
                }
            }
            Stage::Usage => {
                let tail = self.tail();
                self.style.open(out);
                self.shape.usage(out, self.usage, Some(&tail));
                self.style.close(out);
                self.stage = Stage::Done;
                Step {
                    tokens: 0,
                    kind: WriteKind::Usage,
                    then: Then::Continue,
                }
            }
            Stage::Done | Stage::Over => {
                self.stage = Stage::Over;
                self.style.done(out);
                Step {
                    tokens: 0,
                    kind: WriteKind::Done,
                    then: Then::Complete,
                }
            }
        }
    }

    const fn ends_with_usage(&self) -> bool {
        self.shape.include_usage && !matches!(self.shape.api, Api::Generate)
    }

    /// Tokens that the finish chunk accounts for.
    const fn hidden(&self) -> u32 {
        self.answer.tokens - self.shown()
    }

    /// Tokens that come with text.
    const fn shown(&self) -> u32 {
        self.answer.visible + (self.answer.partial > 0) as u32
    }

    fn tail(&self) -> Tail {
        let ms = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e6;
        let cached = self.usage.cached.unwrap_or(0);
        Tail {
            timings: Timings {
                prompt_n: self.usage.prompt - cached,
                cache_n: cached,
                prompt_ms: ms(self.started, self.first),
                predicted_n: self.usage.completion,
                predicted_ms: ms(self.first, self.last),
            },
            speculated: self.chunks.speculated(),
            e2e_s: ms(self.read, self.last) / 1e3,
        }
    }

    fn tokens(&mut self, out: &mut Vec<u8>, counters: &Counters) -> Step {
        let due = self.schedule.due();
        let from = self.emitted;
        let chunk = self.chunks.next(self.answer.tokens - from);
        let count = chunk.tokens;
        let to = from + count;
        if from == 0 {
            self.first = due;
        }
        self.last = due;
        self.emitted = to;
        self.usage.completion = to;
        counters.generated(chunk);
        self.schedule.next(counters.running());
        let over = to == self.answer.tokens;
        if !self.streamed {
            if !over {
                return Step {
                    tokens: 0,
                    kind: WriteKind::Raw,
                    then: Then::Continue,
                };
            }
            self.whole(out);
            return Step {
                tokens: to,
                kind: WriteKind::Body,
                then: Then::Complete,
            };
        }
        if self.shape.api == Api::Generate {
            return self.generate_event(out, count, over);
        }
        let shown = self.shown();
        let together = over && self.finish_with_text();
        if from >= shown && !together {
            // Nothing but the stop string: its tokens are told with the finish reason.
            self.stage = if over { Stage::Finish } else { Stage::Tokens };
            return Step {
                tokens: 0,
                kind: WriteKind::Raw,
                then: Then::Continue,
            };
        }
        self.text.clear();
        self.visible_text(from, to);
        let ids: Vec<u32> = if self.shape.token_ids {
            (from..to)
                .map(|index| tokenizer::id(self.words.at(index)))
                .collect()
        } else {
            Vec::new()
        };
        let last = together && !self.ends_with_usage();
        let tail = last.then(|| self.tail());
        let delta = Delta {
            channel: Channel::Content,
            text: &self.text,
            ids: &ids,
            finish: together.then_some(self.answer.finish),
            usage: self.continuous.then_some(self.usage),
            tool_name: None,
        };
        self.style.open(out);
        self.shape.delta(out, &delta, tail.as_ref());
        self.style.close(out);
        if over {
            self.stage = match (together, self.ends_with_usage()) {
                (false, _) => Stage::Finish,
                (true, true) => Stage::Usage,
                (true, false) => Stage::Done,
            };
        }
        Step {
            tokens: if together {
                to - from.min(shown)
            } else {
                to.min(shown) - from
            },
            kind: WriteKind::Content,
            then: Then::Continue,
        }
    }

    /// Whether the engine tells the finish reason with the last text.
    fn finish_with_text(&self) -> bool {
        match self.shape.manners {
            Manners::Vllm => true,
            Manners::Sglang => self.shape.api == Api::Completions,
            Manners::Plain | Manners::LlamaCpp => false,
        }
    }

    /// The text of the tokens `from..to`, stop strings left out, into `self.text`.
    fn visible_text(&mut self, from: u32, to: u32) {
        let visible = self.answer.visible;
        self.words.write(from, to.min(visible), &mut self.text);
        if self.answer.partial > 0 && from <= visible && visible < to {
            let mut token = Vec::new();
            self.words.write(visible, visible + 1, &mut token);
            self.text.extend_from_slice(&token[..self.answer.partial]);
        }
    }

    fn generate_event(&mut self, out: &mut Vec<u8>, count: u32, over: bool) -> Step {
        self.text.clear();
        self.visible_text(0, self.emitted);
        let ids: Vec<u32> = (0..self.emitted)
            .map(|index| tokenizer::id(self.words.at(index)))
            .collect();
        let finish = over.then_some((self.answer.finish, self.max_new));
        let tail = over.then(|| self.tail());
        self.style.open(out);
        self.shape
            .generate(out, &self.text, &ids, self.usage, finish, tail.as_ref());
        self.style.close(out);
        if over {
            self.stage = Stage::Done;
        }
        Step {
            tokens: count,
            kind: WriteKind::Content,
            then: Then::Continue,
        }
    }

    fn whole(&mut self, out: &mut Vec<u8>) {
        let to = self.emitted;
        self.stage = Stage::Over;
        self.text.clear();
        self.visible_text(0, to);
        let ids: Vec<u32> = if self.shape.token_ids {
            (0..to).map(|index| tokenizer::id(self.words.at(index))).collect()
        } else {
            Vec::new()
        };
        let tail = self.tail();
        if self.shape.api == Api::Generate {
            let finish = Some((self.answer.finish, self.max_new));
            self.shape
                .generate(out, &self.text, &ids, self.usage, finish, Some(&tail));
        } else {
            self.shape
                .whole(out, &self.text, &ids, self.answer.finish, self.usage, &tail);
        }
    }
}
