//! Which request gets which answer.

mod generation;

use serde::Deserialize;
use serde_json::json;
use shakedown_model::Api;

use crate::ask;
use crate::connection::Job;
use crate::http::{self, Head};
use crate::identity;
use crate::metrics;
use crate::options::{Manners, Options};
use crate::reply;
use crate::shared::Shared;
use crate::tokenizer;
use generation::{generate, refuse_with};

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Route {
    /// An answer that is ready and not recorded.
    Reply(Vec<u8>),
    /// An answer that is written in steps and recorded.
    Job(Box<Job>),
    /// The document of `/truth`, which takes a while.
    Truth { clear: bool },
}

/// What is known of a request besides its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) accepted: u64,
    pub(crate) read: u64,
}

/// Answers a request.
pub(crate) fn route(shared: &Shared, head: &Head, body: &[u8], seen: Seen) -> Route {
    let mut route = answer(shared, head, body, seen);
    if head.method == "HEAD"
        && let Route::Reply(bytes) = &mut route
        && let Some(end) = http::head_end(bytes, 0)
    {
        bytes.truncate(end);
    }
    route
}

fn answer(shared: &Shared, head: &Head, body: &[u8], seen: Seen) -> Route {
    let options = &shared.options;
    let engine = options.engine;
    let keep = head.keep_alive;
    let path = head.path.as_str();
    let json = |status, body: &str| Route::Reply(reply::json(options, status, body, keep));
    let error = |status, why: &str| Route::Reply(reply::error(options, status, why, keep));
    let get = matches!(head.method.as_str(), "GET" | "HEAD");
    let post = head.method == "POST";
    // The practice server's own endpoints are there whatever manners it wears.
    match path {
        "/truth" if get => {
            return Route::Truth {
                clear: head.query.split('&').any(|pair| pair == "clear=1"),
            };
        }
        "/requests" if get => {
            let log = serde_json::to_string(&shared.logged()).unwrap_or_default();
            return json(200, &log);
        }
        _ => {}
    }
    let healthy = shared.reached(options.startup.healthy, seen.read);
    let api = generation(engine, path).filter(|_| post);
    if !healthy && (engine == Manners::LlamaCpp || (api.is_some() && engine != Manners::Sglang)) {
        let body = loading(engine);
        return match api {
            Some(_) => Route::Job(Box::new(refuse_with(options, head, seen, 503, &body))),
            None => json(503, &body),
        };
    }
    if let Some(key) = &options.api_key
        && guarded(engine, path)
        && head.authorization.as_deref() != Some(format!("Bearer {}", key.expose()).as_str())
    {
        let body = unauthorized(engine);
        return match api {
            Some(_) => Route::Job(Box::new(refuse_with(options, head, seen, 401, &body))),
            None => json(401, &body),
        };
    }
    if let Some(api) = api {
        return Route::Job(Box::new(generate(shared, head, body, seen, api)));
    }
    if post {
        let result = match (path, engine) {
            ("/tokenize", _) => tokenize(options, body),
            ("/apply-template", Manners::LlamaCpp | Manners::Plain) => apply_template(body),
            _ if dangerous(engine, path) => return json(200, "{}"),
            _ => return not_found(options, path, keep),
        };
        return match result {
            Ok(body) => json(200, &body),
            Err(why) => error(400, &why),
        };
    }
    if !get {
        return not_found(options, path, keep);
    }
    match (path, engine) {
        ("/health", Manners::Sglang | Manners::Vllm) | ("/health_generate", Manners::Sglang) => {
            let status = if healthy { 200 } else { 503 };
            Route::Reply(reply::whole(options, status, "", "", b"", keep))
        }
        ("/ping", Manners::Sglang | Manners::Vllm) => {
            Route::Reply(reply::whole(options, 200, "", "", b"", keep))
        }
        ("/health", Manners::Plain) if !healthy => json(503, &loading(engine)),
        ("/health", _) | ("/v1/health", Manners::LlamaCpp) => json(200, r#"{"status":"ok"}"#),
        ("/v1/models", _) | ("/models", Manners::LlamaCpp) => {
            let listed = shared.reached(options.startup.listed, seen.read);
            json(200, &identity::models(shared, listed).to_string())
        }
        ("/metrics", _) if options.metrics => {
            let kind = match engine {
                Manners::LlamaCpp => "text/plain; version=0.0.4",
                _ => "text/plain; version=0.0.4; charset=utf-8",
            };
            Route::Reply(reply::whole(
                options,
                200,
                kind,
                "",
                metrics::page(shared).as_bytes(),
                keep,
            ))
        }
        ("/metrics", Manners::LlamaCpp) => error(501, "This server does not support metrics endpoint."),
        _ => {
            let identity = match engine {
                Manners::Plain => None,
                Manners::Sglang => identity::sglang(shared, path),
                Manners::Vllm => identity::vllm(shared, path),
                Manners::LlamaCpp => identity::llama_cpp(shared, path),
            };
            match identity {
                Some(value) => json(200, &value.to_string()),
                // It does nothing here, and the log of requests tells that somebody called it.
                None if dangerous(engine, path) => {
                    Route::Reply(reply::whole(options, 200, "text/plain", "", b"done\n", keep))
                }
                None => not_found(options, path, keep),
            }
        }
    }
}

/// Paths that change or end a real server of this kind although a plain GET is enough.
fn dangerous(engine: Manners, path: &str) -> bool {
    engine == Manners::Sglang
        && matches!(
            path,
            "/flush_cache"
                | "/start_profile"
                | "/stop_profile"
                | "/slow_down"
                | "/release_memory_occupation"
                | "/resume_memory_occupation"
                | "/clear_hicache_storage_backend"
                | "/terminate"
        )
}

/// Whether the engine asks for the key on this path.
fn guarded(engine: Manners, path: &str) -> bool {
    match engine {
        Manners::Sglang => !path.starts_with("/health") && !path.starts_with("/metrics"),
        Manners::Vllm => path.starts_with("/v1"),
        Manners::LlamaCpp => !matches!(path, "/health" | "/v1/health" | "/models" | "/v1/models" | "/"),
        Manners::Plain => path != "/health",
    }
}

fn unauthorized(engine: Manners) -> String {
    match engine {
        Manners::Sglang | Manners::Vllm => r#"{"error":"Unauthorized"}"#.to_owned(),
        Manners::LlamaCpp => {
            r#"{"error":{"code":401,"message":"Invalid API Key","type":"authentication_error"}}"#.to_owned()
        }
        Manners::Plain => reply::error_body(engine, 401, "wrong or missing API key", None),
    }
}

fn loading(engine: Manners) -> String {
    match engine {
        Manners::LlamaCpp => {
            r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#.to_owned()
        }
        _ => reply::error_body(engine, 503, "the model is still loading", None),
    }
}

fn not_found(options: &Options, path: &str, keep: bool) -> Route {
    let engine = options.engine;
    // A path that exists for another method is a 405 in FastAPI.
    let known = generation(engine, path).is_some() || matches!(path, "/tokenize" | "/health" | "/v1/models");
    let (status, body) = match engine {
        Manners::Sglang | Manners::Vllm if known => (405, r#"{"detail":"Method Not Allowed"}"#.to_owned()),
        Manners::Sglang | Manners::Vllm => (404, r#"{"detail":"Not Found"}"#.to_owned()),
        Manners::LlamaCpp => (404, reply::error_body(engine, 404, "File Not Found", None)),
        Manners::Plain => (404, reply::error_body(engine, 404, "no such endpoint", None)),
    };
    Route::Reply(reply::json(options, status, &body, keep))
}

/// The answer of `/truth`.
pub(crate) fn truth(shared: &Shared, clear: bool, keep: bool) -> Vec<u8> {
    match serde_json::to_vec(&shared.truth(clear)) {
        Ok(body) => reply::whole(&shared.options, 200, "application/json", "", &body, keep),
        Err(error) => reply::error(&shared.options, 500, &error.to_string(), keep),
    }
}

/// The generation endpoint at a path, where the engine has it.
fn generation(engine: Manners, path: &str) -> Option<Api> {
    match path {
        "/v1/chat/completions" => Some(Api::Chat),
        "/v1/completions" => Some(Api::Completions),
        "/generate" if matches!(engine, Manners::Plain | Manners::Sglang) => Some(Api::Generate),
        "/chat/completions" if engine == Manners::LlamaCpp => Some(Api::Chat),
        _ => None,
    }
}

#[derive(Deserialize)]
struct TokenizeBody {
    prompt: Option<String>,
    content: Option<String>,
    messages: Option<Vec<ask::Message>>,
}

/// `/tokenize` as the engine has it; without manners, as any of them.
fn tokenize(options: &Options, body: &[u8]) -> Result<String, String> {
    let body: TokenizeBody =
        serde_json::from_slice(body).map_err(|error| format!("invalid request body: {error}"))?;
    let llama_cpp = options.engine == Manners::LlamaCpp;
    let content = body
        .content
        .filter(|_| llama_cpp || options.engine == Manners::Plain);
    if let Some(content) = content {
        return Ok(json!({"tokens": tokenizer::ids(&content)}).to_string());
    }
    let text = match (body.prompt, body.messages) {
        _ if llama_cpp => return Ok(r#"{"tokens":[]}"#.to_owned()),
        (Some(prompt), _) => prompt,
        (None, Some(messages)) if options.engine != Manners::Sglang => ask::render_messages(messages),
        _ => return Err("a text to tokenize is required".to_owned()),
    };
    let ids = tokenizer::ids(&text);
    let (count, context) = (ids.len(), options.context);
    Ok(match options.engine {
        Manners::Sglang => json!({"tokens": ids, "count": count, "max_model_len": context}),
        _ => json!({"count": count, "max_model_len": context, "tokens": ids, "token_strs": null}),
    }
    .to_string())
}

/// llama-server's `/apply-template`: the prompt that messages make.
fn apply_template(body: &[u8]) -> Result<String, String> {
    let body: TokenizeBody =
        serde_json::from_slice(body).map_err(|error| format!("invalid request body: {error}"))?;
    let messages = body.messages.ok_or("messages is required")?;
    Ok(json!({"prompt": ask::render_messages(messages)}).to_string())
}
