//! The events of a script, in the dialect of the request.

use shakedown_model::{Api, Channel, WriteKind};

use super::{Act, Body, Text, When};
use crate::shape::{Delta, Finish, Shape, Tail, Usage, escape};
use crate::tokenizer::{self, Words};

/// An event's bytes without HTTP framing.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    pub(super) tokens: u32,
    pub(super) kind: WriteKind,
}

/// Makes the events of a script in order.
pub(super) struct Maker<'a> {
    body: &'a Body,
    shape: &'a Shape,
    words: Words,
    /// Words of the practice model said so far.
    spoken: u32,
    usage: Usage,
    continuous: bool,
    /// Everything said so far, escaped, for `/generate`.
    text: Vec<u8>,
    ids: Vec<u32>,
}

impl<'a> Maker<'a> {
    /// Begins with nothing said.
    pub(super) fn new(
        body: &'a Body,
        shape: &'a Shape,
        words: Words,
        usage: Usage,
        continuous: bool,
    ) -> Self {
        Self {
            body,
            shape,
            words,
            spoken: 0,
            usage,
            continuous,
            text: Vec::new(),
            ids: Vec::new(),
        }
    }

    /// The event of one step; none where the dialect has no such event, or nobody asked for it.
    pub(super) fn event(&mut self, act: &Act) -> Option<Piece> {
        let style = &self.body.style;
        let mut bytes = Vec::new();
        let generate = self.shape.api == Api::Generate;
        let mut tokens = 0;
        let kind = match act {
            Act::Role(content) => {
                if self.shape.api != Api::Chat {
                    return None;
                }
                let usage = self.continuous.then_some(self.usage);
                style.open(&mut bytes);
                self.shape.role(&mut bytes, *content, usage);
                style.close(&mut bytes);
                WriteKind::Role
            }
            Act::Content { text, finish } => {
                tokens = self.say(&mut bytes, Channel::Content, text, *finish, None);
                WriteKind::Content
            }
            Act::Reasoning(text) => {
                tokens = self.say(&mut bytes, Channel::Reasoning, text, None, None);
                WriteKind::Reasoning
            }
            Act::Tool { text, name } => {
                tokens = self.say(&mut bytes, Channel::ToolCall, text, None, name.as_deref());
                WriteKind::Tool
            }
            Act::Finish(reason) => {
                style.open(&mut bytes);
                if generate {
                    let finish = Some((*reason, self.usage.completion));
                    let tail = Tail::default();
                    self.shape
                        .generate(&mut bytes, &self.text, &self.ids, self.usage, finish, Some(&tail));
                } else {
                    let usage = self.continuous.then_some(self.usage);
                    self.shape.finish(&mut bytes, *reason, usage, None);
                }
                style.close(&mut bytes);
                WriteKind::Finish
            }
            Act::Usage { when, completion } => {
                let asked = match when {
                    When::Asked => self.shape.include_usage,
                    When::Always => true,
                    When::Never => false,
                };
                if !asked || generate {
                    return None;
                }
                let usage = Usage {
                    completion: completion.unwrap_or(self.usage.completion),
                    ..self.usage
                };
                style.open(&mut bytes);
                self.shape.usage(&mut bytes, usage, None);
                style.close(&mut bytes);
                WriteKind::Usage
            }
            Act::Error { message, code } => {
                style.open(&mut bytes);
                let message = escape(message);
                bytes.extend_from_slice(
                    format!(
                        r#"{{"error":{{"message":"{message}","type":"InternalServerError","param":null,"code":{code}}}}}"#
                    )
                    .as_bytes(),
                );
                style.close(&mut bytes);
                WriteKind::Error
            }
            Act::Done => {
                style.done(&mut bytes);
                WriteKind::Done
            }
            Act::Comment(text) => {
                style.comment(&mut bytes, text);
                WriteKind::Comment
            }
            Act::Raw {
                bytes: raw,
                tokens: count,
                kind,
            } => {
                bytes.extend_from_slice(raw);
                tokens = *count;
                self.usage.completion += count;
                *kind
            }
            Act::Giant(_) | Act::Endless(_) | Act::Cut | Act::Reset | Act::Stall => return None,
        };
        Some(Piece { bytes, tokens, kind })
    }

    /// A delta with text; gives its tokens.
    fn say(
        &mut self,
        out: &mut Vec<u8>,
        channel: Channel,
        text: &Text,
        finish: Option<Finish>,
        tool_name: Option<&str>,
    ) -> u32 {
        let mut said = Vec::new();
        let mut ids = Vec::new();
        let tokens = match text {
            Text::Words(count) => {
                let from = self.spoken;
                self.spoken += count;
                self.words.write(from, self.spoken, &mut said);
                ids.extend((from..self.spoken).map(|index| tokenizer::id(self.words.at(index))));
                *count
            }
            Text::Given(text, tokens) => {
                said.extend_from_slice(escape(text).as_bytes());
                ids = tokenizer::ids(text);
                ids.resize(*tokens as usize, 0);
                *tokens
            }
        };
        self.usage.completion += tokens;
        let style = &self.body.style;
        style.open(out);
        if self.shape.api == Api::Generate {
            self.text.extend_from_slice(&said);
            self.ids.extend_from_slice(&ids);
            let finish = finish.map(|finish| (finish, self.usage.completion));
            self.shape
                .generate(out, &self.text, &self.ids, self.usage, finish, None);
        } else {
            let delta = Delta {
                channel,
                text: &said,
                ids: &ids,
                finish,
                usage: self.continuous.then_some(self.usage),
                tool_name,
            };
            self.shape.delta(out, &delta, None);
        }
        style.close(out);
        tokens
    }
}
