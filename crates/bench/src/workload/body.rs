//! The JSON bodies of requests.

use serde_json::{Map, Value, json};
use shakedown_model::Api;

use super::{Content, Prompt, WorkloadRequest};

/// What a body asks for besides the workload: it does not change what is generated, only what is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BodyOptions {
    /// Ask for usage with every chunk (`continuous_usage_stats`), on servers known to have it.
    pub continuous_usage: bool,
}

/// The body of a request for `prompt`. Members of `--extra-body` win over ours.
pub(super) fn encode(
    request: &WorkloadRequest,
    prompt: &Prompt,
    model: &str,
    options: BodyOptions,
) -> Vec<u8> {
    let mut body = match request.api {
        Api::Chat | Api::Completions => openai(request, prompt, model, options),
        Api::Generate => generate(request, prompt),
    };
    for (name, value) in &request.sampling.extra_body {
        body.insert(name.clone(), value.clone());
    }
    Value::Object(body).to_string().into_bytes()
}

fn openai(
    request: &WorkloadRequest,
    prompt: &Prompt,
    model: &str,
    options: BodyOptions,
) -> Map<String, Value> {
    let sampling = &request.sampling;
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    match (&prompt.content, request.api) {
        (Content::Messages(messages), _) => body.insert("messages".to_owned(), json!(messages)),
        (Content::Text(text), Api::Chat) => {
            body.insert("messages".to_owned(), json!([{"role": "user", "content": text}]))
        }
        (Content::Text(text), _) => body.insert("prompt".to_owned(), json!(text)),
    };
    body.insert(
        "max_tokens".to_owned(),
        json!(prompt.max_tokens.unwrap_or(request.max_tokens)),
    );
    body.insert("stream".to_owned(), json!(request.stream));
    if request.stream {
        let mut stream_options = json!({"include_usage": true});
        if options.continuous_usage {
            stream_options["continuous_usage_stats"] = json!(true);
        }
        body.insert("stream_options".to_owned(), stream_options);
    }
    if let Some(temperature) = sampling.temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(top_p) = sampling.top_p {
        body.insert("top_p".to_owned(), json!(top_p));
    }
    if let Some(seed) = sampling.seed {
        body.insert("seed".to_owned(), json!(seed));
    }
    if sampling.ignore_eos {
        body.insert("ignore_eos".to_owned(), json!(true));
    }
    if let Some(min_tokens) = sampling.min_tokens {
        body.insert("min_tokens".to_owned(), json!(min_tokens));
    }
    if !sampling.stop.is_empty() {
        body.insert("stop".to_owned(), json!(sampling.stop));
    }
    body
}

fn generate(request: &WorkloadRequest, prompt: &Prompt) -> Map<String, Value> {
    let sampling = &request.sampling;
    let mut params = Map::new();
    params.insert(
        "max_new_tokens".to_owned(),
        json!(prompt.max_tokens.unwrap_or(request.max_tokens)),
    );
    if let Some(temperature) = sampling.temperature {
        params.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(top_p) = sampling.top_p {
        params.insert("top_p".to_owned(), json!(top_p));
    }
    if let Some(seed) = sampling.seed {
        params.insert("sampling_seed".to_owned(), json!(seed));
    }
    if sampling.ignore_eos {
        params.insert("ignore_eos".to_owned(), json!(true));
    }
    if let Some(min_tokens) = sampling.min_tokens {
        params.insert("min_new_tokens".to_owned(), json!(min_tokens));
    }
    if !sampling.stop.is_empty() {
        params.insert("stop".to_owned(), json!(sampling.stop));
    }
    let text = match &prompt.content {
        Content::Text(text) => text.as_str(),
        // Refused when the workload was prepared.
        Content::Messages(_) => "",
    };
    let mut body = Map::new();
    body.insert("text".to_owned(), json!(text));
    body.insert("sampling_params".to_owned(), Value::Object(params));
    body.insert("stream".to_owned(), json!(request.stream));
    body
}

#[cfg(test)]
mod tests {
    use shakedown_model::{PromptKind, PromptSource, Sampling};

    use super::*;

    fn request(api: Api) -> WorkloadRequest {
        WorkloadRequest {
            api,
            source: PromptSource::default(),
            max_tokens: 64,
            sampling: Sampling {
                temperature: Some(0.0),
                seed: Some(7),
                ignore_eos: true,
                stop: vec!["\n".to_owned()],
                extra_body: [("top_k".to_owned(), json!(1))].into_iter().collect(),
                ..Sampling::default()
            },
            stream: true,
            seed: 1,
            salt: None,
        }
    }

    fn prompt() -> Prompt {
        Prompt {
            kind: PromptKind::Chat,
            content: Content::Text("hi \"there\"".to_owned()),
            max_tokens: Some(3),
        }
    }

    #[test]
    fn chat() {
        let options = BodyOptions {
            continuous_usage: true,
        };
        let body: Value =
            serde_json::from_slice(&encode(&request(Api::Chat), &prompt(), "m", options)).unwrap();
        assert_eq!(
            body,
            json!({
                "model": "m", "messages": [{"role": "user", "content": "hi \"there\""}], "max_tokens": 3,
                "stream": true, "stream_options": {"include_usage": true, "continuous_usage_stats": true},
                "temperature": 0.0, "seed": 7, "ignore_eos": true, "stop": ["\n"], "top_k": 1,
            })
        );
    }

    #[test]
    fn generate_has_its_own_names() {
        let body: Value = serde_json::from_slice(&encode(
            &request(Api::Generate),
            &prompt(),
            "m",
            BodyOptions::default(),
        ))
        .unwrap();
        assert_eq!(body["sampling_params"]["max_new_tokens"], 3);
        assert_eq!(body["sampling_params"]["sampling_seed"], 7);
        assert_eq!(body["text"], "hi \"there\"");
        assert_eq!(body["top_k"], 1);
        assert!(body.get("model").is_none());
    }
}
