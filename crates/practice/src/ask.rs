//! What a generation request asks for, read from its JSON.

use serde::Deserialize;
use serde_json::Value;
use shakedown_model::{Api, PromptKind};

use crate::http::Head;
use crate::tokenizer;

/// One generation request, understood.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) api: Api,
    pub(crate) model: Option<String>,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    pub(crate) continuous_usage: bool,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) min_tokens: u32,
    pub(crate) ignore_eos: bool,
    pub(crate) stop: Vec<String>,
    pub(crate) seed: u64,
    /// `return_token_ids`.
    pub(crate) token_ids: bool,
    /// The prompt as the model sees it.
    pub(crate) prompt: String,
    pub(crate) prompt_kind: Option<PromptKind>,
}

#[derive(Deserialize)]
struct OpenAiBody {
    model: Option<String>,
    messages: Option<Vec<Message>>,
    prompt: Option<Prompt>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    min_tokens: Option<u32>,
    ignore_eos: Option<bool>,
    stop: Option<OneOrMany>,
    seed: Option<i64>,
    n: Option<u32>,
    return_token_ids: Option<bool>,
    metadata: Option<Value>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
    continuous_usage_stats: Option<bool>,
}

/// One message of a conversation.
#[derive(Deserialize)]
pub(crate) struct Message {
    role: String,
    content: Option<Content>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Prompt {
    Text(String),
    Ids(Vec<u32>),
    Texts(Vec<String>),
    ManyIds(Vec<Vec<u32>>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn into_vec(self) -> Vec<String> {
        let mut texts = match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        };
        texts.retain(|text| !text.is_empty());
        texts
    }
}

#[derive(Deserialize)]
struct GenerateBody {
    model: Option<String>,
    text: Option<Prompt>,
    input_ids: Option<Prompt>,
    sampling_params: Option<SamplingParams>,
    stream: Option<bool>,
    metadata: Option<Value>,
}

#[derive(Deserialize)]
struct SamplingParams {
    max_new_tokens: Option<u32>,
    min_new_tokens: Option<u32>,
    ignore_eos: Option<bool>,
    stop: Option<OneOrMany>,
    sampling_seed: Option<i64>,
}

/// The prompt that messages make.
pub(crate) fn render_messages(messages: Vec<Message>) -> String {
    let messages: Vec<(String, String)> = messages
        .into_iter()
        .map(|message| {
            let content = match message.content {
                Some(Content::Text(text)) => text,
                Some(Content::Parts(parts)) => parts
                    .into_iter()
                    .filter_map(|part| part.text)
                    .collect::<Vec<_>>()
                    .join(" "),
                None => String::new(),
            };
            (message.role, content)
        })
        .collect();
    tokenizer::render(
        messages
            .iter()
            .map(|(role, content)| (role.as_str(), content.as_str())),
    )
}

fn prompt_text(prompt: Prompt) -> Result<String, String> {
    // Given as ids, each is one word, so the count is kept.
    let ids_text = |ids: Vec<u32>| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let single = "only one prompt a request is supported";
    match prompt {
        Prompt::Text(text) => Ok(text),
        Prompt::Ids(ids) => Ok(ids_text(ids)),
        Prompt::Texts(mut texts) => match (texts.pop(), texts.is_empty()) {
            (Some(text), true) => Ok(text),
            _ => Err(single.to_owned()),
        },
        Prompt::ManyIds(mut lists) => match (lists.pop(), lists.is_empty()) {
            (Some(ids), true) => Ok(ids_text(ids)),
            _ => Err(single.to_owned()),
        },
    }
}

impl Ask {
    /// Reads the body of a request to `api`; the error is a sentence for the client.
    pub(crate) fn read(api: Api, head: &Head, body: &[u8]) -> Result<Self, String> {
        let broken = |error: serde_json::Error| format!("invalid request body: {error}");
        let mut ask = if api == Api::Generate {
            let body: GenerateBody = serde_json::from_slice(body).map_err(broken)?;
            let prompt = body
                .text
                .or(body.input_ids)
                .ok_or("either text or input_ids is required")?;
            let sampling = body.sampling_params;
            let of = |get: fn(&SamplingParams) -> Option<u32>| sampling.as_ref().and_then(get);
            Self {
                api,
                model: body.model,
                stream: body.stream.unwrap_or(false),
                include_usage: true,
                continuous_usage: true,
                max_tokens: of(|sampling| sampling.max_new_tokens),
                min_tokens: of(|sampling| sampling.min_new_tokens).unwrap_or(0),
                ignore_eos: sampling
                    .as_ref()
                    .and_then(|sampling| sampling.ignore_eos)
                    .unwrap_or(false),
                seed: sampling
                    .as_ref()
                    .and_then(|sampling| sampling.sampling_seed)
                    .unwrap_or(0) as u64,
                stop: sampling
                    .and_then(|sampling| sampling.stop)
                    .map(OneOrMany::into_vec)
                    .unwrap_or_default(),
                token_ids: true,
                prompt_kind: kind_from_metadata(body.metadata.as_ref()),
                prompt: prompt_text(prompt)?,
            }
        } else {
            let body: OpenAiBody = serde_json::from_slice(body).map_err(broken)?;
            if body.n.unwrap_or(1) != 1 {
                return Err("only n = 1 is supported".to_owned());
            }
            let prompt = match (api, body.messages, body.prompt) {
                (Api::Chat, Some(messages), _) => render_messages(messages),
                (Api::Chat, None, _) => return Err("messages is required".to_owned()),
                (_, _, Some(prompt)) => prompt_text(prompt)?,
                (_, _, None) => return Err("prompt is required".to_owned()),
            };
            let options = body.stream_options.as_ref();
            Self {
                api,
                model: body.model,
                stream: body.stream.unwrap_or(false),
                include_usage: options.and_then(|options| options.include_usage).unwrap_or(false),
                continuous_usage: options
                    .and_then(|options| options.continuous_usage_stats)
                    .unwrap_or(false),
                max_tokens: body.max_completion_tokens.or(body.max_tokens),
                min_tokens: body.min_tokens.unwrap_or(0),
                ignore_eos: body.ignore_eos.unwrap_or(false),
                stop: body.stop.map(OneOrMany::into_vec).unwrap_or_default(),
                seed: body.seed.unwrap_or(0) as u64,
                token_ids: body.return_token_ids.unwrap_or(false),
                prompt_kind: kind_from_metadata(body.metadata.as_ref()),
                prompt,
            }
        };
        if ask.max_tokens == Some(0) {
            return Err("max_tokens must be at least 1".to_owned());
        }
        ask.prompt_kind = head
            .prompt_kind
            .as_deref()
            .and_then(kind_from_word)
            .or(ask.prompt_kind)
            .or_else(|| kind_from_marker(&ask.prompt));
        Ok(ask)
    }
}

/// The kind that `metadata.prompt_kind` names.
fn kind_from_metadata(metadata: Option<&Value>) -> Option<PromptKind> {
    kind_from_word(metadata?.get("prompt_kind")?.as_str()?)
}

/// The kind that a mark like `[kind:code]` anywhere in the prompt names.
fn kind_from_marker(prompt: &str) -> Option<PromptKind> {
    let (_, rest) = prompt.split_once("[kind:")?;
    kind_from_word(rest.split_once(']')?.0)
}

fn kind_from_word(word: &str) -> Option<PromptKind> {
    [
        PromptKind::Chat,
        PromptKind::Code,
        PromptKind::Reasoning,
        PromptKind::Extraction,
        PromptKind::Synthetic,
        PromptKind::Custom,
    ]
    .into_iter()
    .find(|kind| kind.as_str() == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chat(body: &str) -> Result<Ask, String> {
        Ask::read(Api::Chat, &Head::default(), body.as_bytes())
    }

    #[test]
    fn reads_both_limits_and_the_newer_wins() {
        let ask =
            chat(r#"{"messages":[{"role":"user","content":"hi"}],"max_tokens":5,"max_completion_tokens":7}"#);
        assert_eq!(ask.unwrap().max_tokens, Some(7));
    }

    #[test]
    fn parts_and_nulls_are_understood() {
        let ask = chat(
            r#"{"messages":[{"role":"user","content":[{"type":"text","text":"[kind:code] a b"}]},
               {"role":"assistant","content":null}],"stop":null,"stream_options":null,"seed":-3}"#,
        )
        .unwrap();
        assert_eq!(tokenizer::count(&ask.prompt), 3 + 3 + 3 + 2);
        assert_eq!(ask.prompt_kind, Some(PromptKind::Code));
    }

    #[test]
    fn refuses_what_it_cannot_do() {
        for body in [
            "{}",
            "[]",
            "nonsense",
            r#"{"messages":"hi"}"#,
            r#"{"messages":[],"n":2}"#,
            r#"{"messages":[],"max_tokens":0}"#,
            r#"{"messages":[],"max_tokens":-4}"#,
        ] {
            assert!(chat(body).is_err(), "{body}");
        }
        let two = Ask::read(Api::Completions, &Head::default(), br#"{"prompt":["a","b"]}"#);
        assert!(two.is_err());
    }

    #[test]
    fn prompts_as_ids_keep_their_count() {
        for body in [r#"{"prompt":[5,6,7]}"#, r#"{"prompt":[[5,6,7]]}"#] {
            let ask = Ask::read(Api::Completions, &Head::default(), body.as_bytes()).unwrap();
            assert_eq!(tokenizer::count(&ask.prompt), 3);
        }
    }

    proptest! {
        #[test]
        fn no_body_makes_it_panic(body in ".{0,200}") {
            for api in [Api::Chat, Api::Completions, Api::Generate] {
                let _ = Ask::read(api, &Head::default(), body.as_bytes());
            }
        }
    }
}
