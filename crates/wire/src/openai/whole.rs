//! Answers that are not streamed.

use shakedown_model::{Api, Channel};

use super::event::{SpecFigures, StreamEvent, Timings, Usage, event_of_frame, event_of_generate};
use super::raw::Frame;
use super::{ParseError, check_object};

/// A whole answer: the choice with index 0.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WholeReply {
    /// Its text by channel: reasoning, content, tool calls.
    pub texts: Vec<(Channel, String)>,
    /// Why the server says that it stopped.
    pub finish_reason: Option<String>,
    /// Token counts.
    pub usage: Option<Usage>,
    /// How many token ids it carries, where it carries a list of them.
    pub token_ids: Option<u32>,
    /// llama.cpp's own figures.
    pub timings: Option<Timings>,
    /// Speculative decoding, by the engine's own figures.
    pub spec: Option<SpecFigures>,
    /// An error, whatever the HTTP status was.
    pub error: Option<String>,
}

impl WholeReply {
    /// All text of one channel.
    pub fn text(&self, channel: Channel) -> String {
        self.texts
            .iter()
            .filter(|(known, _)| *known == channel)
            .map(|(_, text)| text.as_str())
            .collect()
    }
}

/// Reads the body of an answer that is not streamed.
///
/// # Errors
/// [`ParseError`] when the body is not the JSON of the dialect.
pub fn parse_whole(api: Api, body: &[u8]) -> Result<WholeReply, ParseError> {
    check_object(body)?;
    let event = match api {
        Api::Chat | Api::Completions => {
            event_of_frame(serde_json::from_slice::<Frame<'_>>(body)?, |choice| {
                choice.message.take()
            })
        }
        Api::Generate => event_of_generate(serde_json::from_slice(body)?),
    };
    Ok(WholeReply::from(event))
}

impl From<StreamEvent<'_>> for WholeReply {
    fn from(event: StreamEvent<'_>) -> Self {
        let generated = event.generate_text.filter(|text| !text.is_empty());
        Self {
            texts: event
                .deltas
                .into_iter()
                .chain(generated.map(|text| (Channel::Content, text)))
                .map(|(channel, text)| (channel, text.into_owned()))
                .collect(),
            finish_reason: event.finish_reason.map(Into::into),
            usage: event.usage,
            token_ids: event.token_ids,
            timings: event.timings,
            spec: event.spec,
            error: event.error.map(Into::into),
        }
    }
}
