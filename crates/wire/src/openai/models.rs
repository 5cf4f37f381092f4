//! The list of models, `/v1/models`.

use serde::Deserialize;

use super::lenient::{Count, Object, Objects, Text};
use super::{ParseError, check_object};

/// One model that a server offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Model {
    /// The name that requests carry.
    pub id: String,
    /// `owned_by`: most engines name themselves here.
    pub owned_by: Option<String>,
    /// The model that this one is an adapter or another name of.
    pub root: Option<String>,
    /// Context length in tokens: vLLM's and SGLang's `max_model_len`, or llama.cpp's `meta.n_ctx`.
    pub context: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct List<'a> {
    #[serde(borrow)]
    data: Option<Objects<Card<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Card<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow)]
    owned_by: Text<'a>,
    #[serde(borrow)]
    root: Text<'a>,
    max_model_len: Count,
    meta: Object<Meta>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Meta {
    n_ctx: Count,
}

/// Reads the body of `/v1/models`. Entries without an id are left out.
///
/// # Errors
/// [`ParseError`] when the body is not JSON or has no list `data`.
pub fn parse_models(body: &[u8]) -> Result<Vec<Model>, ParseError> {
    check_object(body)?;
    let list: List<'_> = serde_json::from_slice(body)?;
    let cards = list.data.ok_or(ParseError::Shape { line: 1, column: 0 })?;
    Ok(cards
        .0
        .into_iter()
        .filter_map(|card| {
            Some(Model {
                id: card.id.filled()?.into_owned(),
                owned_by: card.owned_by.filled().map(Into::into),
                root: card.root.filled().map(Into::into),
                context: card.max_model_len.0.or(card.meta.0.and_then(|meta| meta.n_ctx.0)),
            })
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_vllm_and_llama_cpp() {
        let vllm = br#"{"object":"list","data":[{"id":"m","owned_by":"vllm","root":"/models/m","parent":null,"max_model_len":2048}]}"#;
        assert_eq!(
            parse_models(vllm).unwrap(),
            [Model {
                id: "m".to_owned(),
                owned_by: Some("vllm".to_owned()),
                root: Some("/models/m".to_owned()),
                context: Some(2048),
            }]
        );
        let llama = br#"{"models":[{"name":"x"}],"data":[{"id":"a","owned_by":"llamacpp","meta":{"n_ctx":4096}},{"no":1},7]}"#;
        let models = parse_models(llama).unwrap();
        assert_eq!(models.len(), 1);
        assert_eq!((models[0].id.as_str(), models[0].context), ("a", Some(4096)));
    }

    #[test]
    fn refuses_what_is_no_list() {
        assert_eq!(parse_models(b"{\"data\":[]}").unwrap(), []);
        assert!(matches!(parse_models(b"{}"), Err(ParseError::Shape { .. })));
        assert_eq!(parse_models(b"[]"), Err(ParseError::NotAnObject));
        assert_eq!(parse_models(b"{\"data\":[{"), Err(ParseError::Incomplete));
        assert!(matches!(parse_models(b"<html>"), Err(ParseError::NotAnObject)));
    }
}
