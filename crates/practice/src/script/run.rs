//! A script carried out: its steps made into writes when the request is read, then sent at their times.

use std::collections::VecDeque;

use shakedown_model::WriteKind;

use super::events::{Maker, Piece};
use super::{Act, Body, Framing, HeadAt, Join, Script, Step, Tear, Text, When};
use crate::options::Options;
use crate::reply::{self, Body as Length};
use crate::shape::{Shape, Usage};
use crate::sse;
use crate::stream::{self, Then};
use crate::tokenizer::Words;

/// Bytes of a giant line in one chunk.
const PIECE: u64 = 64 * 1024;
const GIANT_HEAD: &[u8] = br#"{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":""#;
const GIANT_TAIL: &[u8] = br#""},"finish_reason":null}]}"#;

/// One write to come, or the end.
#[derive(Debug)]
enum Action {
    /// Bytes as they go over the wire.
    Write {
        bytes: Vec<u8>,
        tokens: u32,
        kind: WriteKind,
    },
    /// The rest of a giant line, in chunks.
    Giant {
        left: u64,
        begun: bool,
    },
    /// The same bytes again and again.
    Endless {
        every: u64,
        bytes: Vec<u8>,
        begun: bool,
    },
    End(Then),
    Never,
}

/// A script that runs.
#[derive(Debug)]
pub(crate) struct ScriptRun {
    actions: VecDeque<(u64, Action)>,
    framing: Framing,
    style: sse::Style,
}

/// What the request has to do with how a script looks.
pub(crate) struct Context<'a> {
    pub(crate) options: &'a Options,
    pub(crate) shape: Shape,
    pub(crate) usage: Usage,
    pub(crate) continuous_asked: bool,
    pub(crate) words: Words,
    pub(crate) read: u64,
    pub(crate) keep_alive: bool,
}

impl ScriptRun {
    /// Prepares all writes of `script`.
    pub(crate) fn new(script: &Script, mut context: Context<'_>) -> Self {
        let body = script.body();
        if let Some(reasoning) = body.reasoning {
            context.shape.reasoning = reasoning;
        }
        let continuous = match body.continuous_usage {
            When::Asked => context.continuous_asked,
            When::Always => true,
            When::Never => false,
        };
        let mut maker = Maker::new(
            body,
            &context.shape,
            context.words.clone(),
            context.usage,
            continuous,
        );
        let mut run = Self {
            actions: VecDeque::new(),
            framing: body.framing,
            style: body.style.clone(),
        };
        run.prepare(body, &mut maker, context.read);
        if let Some(error) = &body.error {
            let bytes = reply::error_body(context.options.engine, body.status, error, None).into_bytes();
            run.actions.push_front((
                context.read,
                Action::Write {
                    bytes,
                    tokens: 0,
                    kind: WriteKind::Body,
                },
            ));
        }
        run.put_head(body, &context);
        run
    }

    /// Writes the steps out into actions.
    fn prepare(&mut self, body: &Body, maker: &mut Maker<'_>, read: u64) {
        // What waits to be joined: framed chunks, and events of the chunk that is not closed yet.
        let mut held = Held::default();
        let mut last = read;
        for step in &body.steps {
            for round in 0..step.repeat {
                let at = read + step.at + step.every * u64::from(round);
                last = at;
                match &step.act {
                    Act::Cut => self.actions.push_back((at, Action::End(Then::Cut))),
                    Act::Reset => self.actions.push_back((at, Action::End(Then::Reset))),
                    Act::Stall => self.actions.push_back((u64::MAX, Action::Never)),
                    Act::Giant(left) => self.actions.push_back((
                        at,
                        Action::Giant {
                            left: *left,
                            begun: false,
                        },
                    )),
                    Act::Endless(every) => {
                        if let Some(piece) = maker.event(&Act::Content {
                            text: Text::Words(1),
                            finish: None,
                        }) {
                            self.actions.push_back((
                                at,
                                Action::Endless {
                                    every: *every,
                                    bytes: self.framed(&piece.bytes),
                                    begun: false,
                                },
                            ));
                        }
                    }
                    act => {
                        if let Some(piece) = maker.event(act) {
                            self.add(step, at, &piece, &mut held);
                        }
                    }
                }
            }
        }
        let ends = matches!(
            self.actions.back(),
            Some((_, Action::End(_) | Action::Never | Action::Endless { .. }))
        );
        if !ends {
            if self.framing == Framing::Chunked {
                // The last chunk goes with the last write, where that is one.
                if let Some((_, Action::Write { bytes, .. })) = self.actions.back_mut() {
                    bytes.extend_from_slice(sse::LAST_CHUNK);
                } else {
                    let bytes = sse::LAST_CHUNK.to_vec();
                    self.actions.push_back((
                        last,
                        Action::Write {
                            bytes,
                            tokens: 0,
                            kind: WriteKind::Raw,
                        },
                    ));
                }
            }
            self.actions.push_back((last, Action::End(Then::Complete)));
        }
    }

    fn framed(&self, bytes: &[u8]) -> Vec<u8> {
        if self.framing == Framing::Chunked {
            let mut out = Vec::with_capacity(bytes.len() + 12);
            sse::chunk(&mut out, bytes);
            out
        } else {
            bytes.to_vec()
        }
    }

    /// Adds one event: held back, torn or as it is.
    fn add(&mut self, step: &Step, at: u64, piece: &Piece, held: &mut Held) {
        if held.kind.is_none() || (held.tokens == 0 && piece.tokens > 0) {
            held.kind = Some(piece.kind);
        }
        held.tokens += piece.tokens;
        held.open.extend_from_slice(&piece.bytes);
        match step.join {
            Some(Join::Chunk) => return,
            Some(Join::Write) => {
                let chunk = self.framed(&std::mem::take(&mut held.open));
                held.framed.extend_from_slice(&chunk);
                return;
            }
            None => {}
        }
        let Held {
            framed,
            open,
            tokens,
            kind,
        } = std::mem::take(held);
        let kind = kind.unwrap_or(piece.kind);
        let Some(tear) = &step.tear else {
            let mut bytes = framed;
            bytes.extend_from_slice(&self.framed(&open));
            self.actions
                .push_back((at, Action::Write { bytes, tokens, kind }));
            return;
        };
        let whole = if step.tear_framing {
            self.framed(&open)
        } else {
            open
        };
        let points = tear_points(tear, &whole);
        let count = points.len();
        let mut from = 0;
        for (index, to) in points.into_iter().enumerate() {
            let part = &whole[from..to];
            from = to;
            let mut bytes = if index == 0 { framed.clone() } else { Vec::new() };
            if step.tear_framing {
                bytes.extend_from_slice(part);
            } else {
                bytes.extend_from_slice(&self.framed(part));
            }
            // The event can be read once its last part is there.
            let whole_now = index + 1 == count;
            self.actions.push_back((
                at + step.tear_gap * index as u64,
                Action::Write {
                    bytes,
                    tokens: if whole_now { tokens } else { 0 },
                    kind: if whole_now { kind } else { WriteKind::Raw },
                },
            ));
        }
    }

    /// Puts the head in front.
    fn put_head(&mut self, body: &Body, context: &Context<'_>) {
        let length = match self.framing {
            Framing::None => return,
            Framing::Chunked => Length::Chunked,
            Framing::Close => Length::UntilClose,
            Framing::Length => Length::Length(
                self.actions
                    .iter()
                    .map(|(_, action)| match action {
                        Action::Write { bytes, .. } => bytes.len(),
                        _ => 0,
                    })
                    .sum(),
            ),
        };
        let engine = context.options.engine;
        let mut extra = String::new();
        for (name, value) in &body.headers {
            extra.push_str(name);
            extra.push_str(": ");
            extra.push_str(value);
            extra.push_str("\r\n");
        }
        let kind = body.content_type.as_deref().unwrap_or(if body.status == 200 {
            "text/event-stream"
        } else {
            reply::json_type(engine)
        });
        let head = reply::head(
            context.options,
            body.status,
            kind,
            &extra,
            length,
            context.keep_alive,
        );
        match (body.head, self.actions.front_mut()) {
            (HeadAt::WithFirst, Some((_, Action::Write { bytes, .. }))) => {
                bytes.splice(0..0, head);
            }
            // A script that ends before any byte of its own sends no head either, unless it says so.
            (HeadAt::WithFirst, Some((_, Action::End(Then::Cut | Then::Reset) | Action::Never))) => {}
            _ => self.actions.push_front((
                context.read,
                Action::Write {
                    bytes: head,
                    tokens: 0,
                    kind: WriteKind::Head,
                },
            )),
        }
    }

    /// When the next step is due.
    pub(crate) fn due(&self) -> u64 {
        self.actions.front().map_or(u64::MAX, |(at, _)| *at)
    }

    /// Whether the connection can carry another request when the script is over.
    pub(crate) fn keeps_alive(script: &Script) -> bool {
        !matches!(script.body().framing, Framing::Close | Framing::None)
    }

    /// Puts the next step into `frame`, as it goes over the wire.
    pub(crate) fn step(&mut self, frame: &mut Vec<u8>) -> stream::Step {
        let nothing = |then| stream::Step {
            tokens: 0,
            kind: WriteKind::Raw,
            then,
        };
        let chunked = self.framing == Framing::Chunked;
        let Some((at, action)) = self.actions.front_mut() else {
            return nothing(Then::Complete);
        };
        let step = match action {
            Action::Never => return nothing(Then::Continue),
            Action::End(then) => return nothing(*then),
            Action::Write { bytes, tokens, kind } => {
                frame.append(bytes);
                stream::Step {
                    tokens: *tokens,
                    kind: *kind,
                    then: Then::Continue,
                }
            }
            Action::Endless { every, bytes, begun } => {
                frame.extend_from_slice(bytes);
                *begun = true;
                *at += *every;
                return stream::Step {
                    tokens: 1,
                    kind: WriteKind::Content,
                    then: Then::Continue,
                };
            }
            Action::Giant { left, begun } => {
                let mut piece = Vec::with_capacity(PIECE as usize + 256);
                if !*begun {
                    *begun = true;
                    self.style.open(&mut piece);
                    piece.extend_from_slice(GIANT_HEAD);
                }
                let fill = PIECE.min(*left);
                piece.resize(piece.len() + fill as usize, b'x');
                *left -= fill;
                if *left == 0 {
                    piece.extend_from_slice(GIANT_TAIL);
                    self.style.close(&mut piece);
                }
                if chunked {
                    sse::chunk(frame, &piece);
                } else {
                    frame.append(&mut piece);
                }
                if *left > 0 {
                    return nothing(Then::Continue);
                }
                // The line is one word.
                stream::Step {
                    tokens: 1,
                    kind: WriteKind::Content,
                    then: Then::Continue,
                }
            }
        };
        self.actions.pop_front();
        // The end goes with the last write.
        if let Some((_, Action::End(Then::Complete))) = self.actions.front() {
            return stream::Step {
                then: Then::Complete,
                ..step
            };
        }
        step
    }
}

/// Bytes that wait for the next step.
#[derive(Debug, Default)]
struct Held {
    framed: Vec<u8>,
    open: Vec<u8>,
    tokens: u32,
    kind: Option<WriteKind>,
}

/// Where the parts of `whole` end, the last at its end.
fn tear_points(tear: &Tear, whole: &[u8]) -> Vec<usize> {
    let mut points: Vec<usize> = match tear {
        Tear::Parts(parts) => {
            let parts = (*parts).min(whole.len()).max(1);
            (1..parts).map(|part| whole.len() * part / parts).collect()
        }
        Tear::Behind(text, plus) => whole
            .windows(text.len().max(1))
            .position(|window| window == text.as_bytes())
            .map(|begin| (begin + text.len() + plus).min(whole.len()))
            .into_iter()
            .collect(),
    };
    points.retain(|point| *point > 0 && *point < whole.len());
    points.push(whole.len());
    points
}
