//! Each engine's manners: port, identity, headers, shapes, metric names, errors.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use shakedown_model::{PromptKind, Secret};
use shakedown_practice::{Acceptance, Manners, Options, Practice, Startup};

use crate::client::{Client, get, post};

fn options(engine: Manners) -> Options {
    Options {
        port: Some(0),
        engine,
        ttft: Duration::from_millis(5),
        itl: Duration::from_millis(1),
        ..Options::default()
    }
}

fn start(engine: Manners) -> Practice {
    Practice::start(options(engine)).unwrap()
}

fn chat(stream: bool) -> Value {
    json!({
        "messages": [{"role": "user", "content": "hello"}], "max_tokens": 5, "stream": stream,
        "stream_options": {"include_usage": true},
    })
}

#[test]
fn the_default_ports_are_the_engines() {
    let ports = [Manners::Sglang, Manners::Vllm, Manners::LlamaCpp].map(Manners::default_port);
    assert_eq!(ports, [30000, 8000, 8080]);
    // No engine listens where the plain server does.
    let taken = [
        30000, 8000, 8080, 9931, 3000, 80, 11434, 23333, 1234, 8081, 9000, 9256,
    ];
    assert!(!taken.contains(&Manners::Plain.default_port()));
}

#[test]
fn vllm_streams_as_vllm_does() {
    let server = start(Manners::Vllm);
    let mut client = Client::new(&server);
    let answer = client.post("/v1/chat/completions", &chat(true));
    assert_eq!(answer.header("server").as_deref(), Some("uvicorn"));
    assert!(answer.header("date").unwrap().ends_with(" GMT"));
    assert_eq!(
        answer.header("content-type").as_deref(),
        Some("text/event-stream; charset=utf-8")
    );
    let events = answer.events();
    // Role, five tokens of which the last has the finish reason, usage.
    assert_eq!(events.len(), 7);
    assert_eq!(events[0]["prompt_token_ids"], Value::Null);
    assert_eq!(
        events[0]["choices"][0]["delta"],
        json!({"role": "assistant", "content": ""})
    );
    assert_eq!(events[4]["choices"][0]["finish_reason"], Value::Null);
    assert_eq!(events[5]["choices"][0]["finish_reason"], "length");
    assert!(
        events[5]["choices"][0]["delta"]["content"]
            .as_str()
            .unwrap()
            .starts_with(' ')
    );
    assert_eq!(events[6]["choices"], json!([]));
    assert_eq!(
        events[6]["usage"],
        json!({"prompt_tokens": 6, "total_tokens": 11, "completion_tokens": 5})
    );
    let mut with_ids = chat(true);
    with_ids["return_token_ids"] = json!(true);
    with_ids["stream_options"]["continuous_usage_stats"] = json!(true);
    let events = client.post("/v1/chat/completions", &with_ids).events();
    assert_eq!(events[0]["prompt_token_ids"].as_array().unwrap().len(), 6);
    assert_eq!(events[0]["usage"]["completion_tokens"], 0);
    let text: String = events[1..6]
        .iter()
        .map(|event| event["choices"][0]["delta"]["content"].as_str().unwrap())
        .collect();
    let ids: Vec<Value> = events[1..6]
        .iter()
        .flat_map(|event| event["choices"][0]["token_ids"].as_array().unwrap().clone())
        .collect();
    let tokenized = client.post("/tokenize", &json!({"prompt": text})).json();
    assert_eq!(tokenized["tokens"], Value::Array(ids));
    assert_eq!(tokenized["count"], 5);
    for (index, event) in events[1..6].iter().enumerate() {
        assert_eq!(event["usage"]["completion_tokens"], index + 1);
    }
    let whole = client.post("/v1/chat/completions", &chat(false)).json();
    assert_eq!(whole["choices"][0]["stop_reason"], Value::Null);
    assert_eq!(whole["usage"]["completion_tokens"], 5);
}

#[test]
fn vllm_says_who_it_is_and_what_it_lacks() {
    let server = start(Manners::Vllm);
    assert_eq!(get(&server, "/version").json(), json!({"version": "0.33.0"}));
    assert_eq!(get(&server, "/load").json(), json!({"server_load": 0}));
    let health = get(&server, "/health");
    assert_eq!((health.status, health.body.len()), (200, 0));
    let model = &get(&server, "/v1/models").json()["data"][0];
    assert_eq!(model["owned_by"], "vllm");
    for path in ["/props", "/slots", "/server_info", "/model_info", "/info", "/"] {
        let answer = get(&server, path);
        assert_eq!(
            (answer.status, answer.json()),
            (404, json!({"detail": "Not Found"})),
            "{path}"
        );
    }
    assert_eq!(get(&server, "/v1/completions").status, 405);
    let mut request = chat(true);
    request["model"] = json!("other");
    let answer = post(&server, "/v1/chat/completions", &request);
    assert_eq!(answer.status, 404);
    assert_eq!(answer.json()["error"]["type"], "NotFoundError");
}

#[test]
fn llama_server_streams_as_it_does() {
    let server = start(Manners::LlamaCpp);
    let mut client = Client::new(&server);
    let answer = client.post("/v1/chat/completions", &chat(true));
    assert_eq!(answer.header("server").as_deref(), Some("llama.cpp"));
    assert_eq!(answer.header("x-accel-buffering").as_deref(), Some("no"));
    let data = answer.data();
    assert!(data[0].starts_with(r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"created":"#));
    let events = answer.events();
    assert_eq!(events.len(), 1 + 5 + 1 + 1);
    assert_eq!(events[6]["choices"][0]["delta"], json!({}));
    let timings = &events[7]["timings"];
    assert_eq!(timings["predicted_n"], 5);
    assert!(events[7]["usage"]["prompt_tokens_details"]["cached_tokens"].is_u64());
    // The rate of this build counts one token less than it produced.
    let rate = 4.0 * 1e3 / timings["predicted_ms"].as_f64().unwrap();
    assert!((timings["predicted_per_second"].as_f64().unwrap() - rate).abs() < 1e-6 * rate);
    assert!(timings.get("draft_n").is_none());
    // Without usage the timings come with the finish reason.
    let mut request = chat(true);
    request["stream_options"] = Value::Null;
    let events = client.post("/v1/chat/completions", &request).events();
    assert_eq!(events.last().unwrap()["timings"]["predicted_n"], 5);
    // Its head waits for the first token.
    let truth = server.truth();
    assert_eq!(
        truth.requests[0].writes.kind[0],
        shakedown_practice::WriteKind::Role
    );
}

#[test]
fn llama_server_tokenizes_and_tells_its_template() {
    let server = start(Manners::LlamaCpp);
    let prompt = post(
        &server,
        "/apply-template",
        &json!({"messages": [{"role": "user", "content": "hello"}]}),
    )
    .json();
    let tokens = post(&server, "/tokenize", &json!({"content": prompt["prompt"]})).json();
    assert_eq!(tokens["tokens"].as_array().unwrap().len(), 6);
    let whole = post(&server, "/v1/chat/completions", &chat(false)).json();
    assert_eq!(whole["usage"]["prompt_tokens"], 6);
    let props = get(&server, "/props").json();
    assert_eq!(props["total_slots"], 4);
    assert_eq!(get(&server, "/slots").json().as_array().unwrap().len(), 4);
    let models = get(&server, "/v1/models").json();
    assert_eq!(models["data"][0]["owned_by"], "llamacpp");
    assert_eq!(get(&server, "/version").status, 404);
}

#[test]
fn sglang_streams_as_sglang_does() {
    let server = start(Manners::Sglang);
    let mut client = Client::new(&server);
    let events = client.post("/v1/chat/completions", &chat(true)).events();
    assert_eq!(events.len(), 1 + 5 + 1 + 1);
    assert_eq!(
        events[0]["choices"][0]["delta"],
        json!({"role": "assistant", "content": "", "reasoning_content": null, "tool_calls": null})
    );
    assert_eq!(events[1]["choices"][0]["delta"]["tool_calls"], Value::Null);
    assert_eq!(events[6]["choices"][0]["finish_reason"], "length");
    assert!(events[6]["choices"][0].get("matched_stop").is_some());
    assert_eq!(events[7]["usage"]["completion_tokens"], 5);
    let answer = client.post(
        "/generate",
        &json!({"text": "hello you", "sampling_params": {"max_new_tokens": 4}, "stream": true}),
    );
    assert_eq!(answer.data().last().unwrap(), "[DONE]");
    let events = answer.events();
    assert_eq!(events.len(), 4);
    for (index, event) in events.iter().enumerate() {
        let text = event["text"].as_str().unwrap();
        assert_eq!(
            text.split_whitespace().count(),
            index + 1,
            "the text is cumulative"
        );
        assert_eq!(event["meta_info"]["completion_tokens"], index + 1);
        assert_eq!(event["meta_info"]["prompt_tokens"], 2);
    }
    assert_eq!(
        events[3]["meta_info"]["finish_reason"],
        json!({"type": "length", "length": 4})
    );
    let whole = client
        .post(
            "/generate",
            &json!({"text": "hello you", "sampling_params": {"max_new_tokens": 4}}),
        )
        .json();
    assert_eq!(whole["text"], events[3]["text"]);
    let counted = client.post("/tokenize", &json!({"prompt": whole["text"]})).json();
    assert_eq!(counted["count"], 4);
}

#[test]
fn sglang_reports_what_is_asked_and_what_is_in_force() {
    let server = Practice::start(Options {
        api_key: Some(Secret::new("key-1")),
        settings_asked: BTreeMap::from([("enable_flashinfer_allreduce_fusion".to_owned(), json!(true))]),
        settings_in_force: BTreeMap::from([
            ("enable_flashinfer_allreduce_fusion".to_owned(), json!(false)),
            ("attention_backend".to_owned(), json!("triton")),
        ]),
        acceptance: Some(Acceptance {
            weights: vec![0.0, 1.0, 0.0, 0.0],
            by_kind: BTreeMap::new(),
        }),
        ..options(Manners::Sglang)
    })
    .unwrap();
    let mut client = Client::new(&server);
    let authorised = |client: &mut Client, path: &str| {
        client.send("GET", path, "Authorization: Bearer key-1\r\n", "");
        client.receive().unwrap().json()
    };
    let info = authorised(&mut client, "/get_server_info");
    assert_eq!(info["enable_flashinfer_allreduce_fusion"], true);
    assert_eq!(
        info["internal_states"][0]["enable_flashinfer_allreduce_fusion"],
        false
    );
    assert_eq!(info["attention_backend"], Value::Null);
    assert_eq!(info["internal_states"][0]["attention_backend"], "triton");
    assert_eq!(info["speculative_num_draft_tokens"], 4);
    assert_eq!(info["port"], server.address().port());
    assert_eq!(
        info["api_key"], "key-1",
        "as the real one does: whoever stores it has to mask it"
    );
    assert!(info["internal_states"][0].get("avg_spec_accept_length").is_none());
    assert_eq!(authorised(&mut client, "/model_info")["is_generation"], true);
    let mut request = chat(true);
    request["max_tokens"] = json!(201);
    let answer = client.post_with(
        "/v1/chat/completions",
        "Authorization: Bearer key-1\r\n",
        &request,
    );
    assert_eq!(answer.events().last().unwrap()["usage"]["completion_tokens"], 201);
    let info = authorised(&mut client, "/server_info");
    assert_eq!(info["internal_states"][0]["avg_spec_accept_length"], 2.0);
}

#[test]
fn keys_are_asked_for_where_the_engine_asks() {
    for (engine, open, closed, error) in [
        (Manners::Plain, "/health", "/v1/models", json!(401)),
        (Manners::Sglang, "/health", "/v1/models", Value::Null),
        (Manners::Vllm, "/metrics", "/v1/models", Value::Null),
        (Manners::LlamaCpp, "/v1/models", "/props", json!(401)),
    ] {
        let server = Practice::start(Options {
            api_key: Some(Secret::new("k")),
            ..options(engine)
        })
        .unwrap();
        assert_eq!(get(&server, open).status, 200, "{engine:?}");
        let refused = get(&server, closed);
        assert_eq!(refused.status, 401, "{engine:?}");
        assert_eq!(
            refused.json()["error"].get("code").cloned().unwrap_or_default(),
            error
        );
        let mut client = Client::new(&server);
        assert_eq!(client.post("/v1/chat/completions", &chat(true)).status, 401);
        let headers = "Authorization: Bearer k\r\n";
        assert_eq!(
            client
                .post_with("/v1/chat/completions", headers, &chat(true))
                .status,
            200
        );
        let statuses: Vec<_> = server
            .truth()
            .requests
            .iter()
            .map(|request| request.status)
            .collect();
        assert_eq!(statuses, [Some(401), Some(200)]);
    }
}

#[test]
fn what_is_called_is_logged_and_dangerous_paths_exist() {
    let server = start(Manners::Sglang);
    let mut client = Client::new(&server);
    for path in ["/health", "/flush_cache", "/model_info?x=1", "/nonsense"] {
        client.get(path);
    }
    let log = [
        "GET /health",
        "GET /flush_cache",
        "GET /model_info",
        "GET /nonsense",
    ];
    assert_eq!(server.requests_log(), log);
    assert_eq!(
        client.get("/requests").json().as_array().unwrap()[..4],
        log.map(Value::from)
    );
    assert_eq!(client.get("/flush_cache").status, 200);
    assert_eq!(get(&start(Manners::Vllm), "/flush_cache").status, 404);
}

/// The value of one sample, labels given in part.
fn sample(page: &str, name: &str, label: &str) -> f64 {
    page.lines()
        .find(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with([' ', '{']))
                && line.contains(label)
        })
        .unwrap_or_else(|| panic!("no {name} {label} in {page}"))
        .rsplit(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn metrics_count_what_was_generated_under_the_engines_names() {
    for engine in [Manners::Plain, Manners::Sglang, Manners::Vllm, Manners::LlamaCpp] {
        let server = Practice::start(Options {
            acceptance: Some(Acceptance {
                weights: vec![0.2, 0.3, 0.5],
                by_kind: BTreeMap::from([(PromptKind::Code, vec![1.0, 0.0, 0.0])]),
            }),
            ..options(engine)
        })
        .unwrap();
        let mut client = Client::new(&server);
        let mut request = chat(true);
        request["max_tokens"] = json!(60);
        let chunks = client.post("/v1/chat/completions", &request);
        let truth = server.truth();
        let sizes: Vec<u32> = truth.requests[0]
            .writes
            .tokens
            .iter()
            .copied()
            .filter(|tokens| *tokens > 0)
            .collect();
        assert_eq!(sizes.iter().sum::<u32>(), 60, "{}", chunks.status);
        // The first token is the prefill's: every other chunk is a verify step.
        let drafts = sizes.len() as f64 - 1.0;
        let accepted = 59.0 - drafts;
        let page = client.get("/metrics").text();
        match engine {
            Manners::Plain => assert_eq!(sample(&page, "practice:generation_tokens_total", ""), 60.0),
            Manners::Sglang => {
                assert_eq!(
                    sample(&page, "sglang:generation_tokens_total", "model_name=\"practice\""),
                    60.0
                );
                let length = sample(&page, "sglang:spec_accept_length", "");
                assert!((length - 59.0 / drafts).abs() < 1e-9);
                let rate = sample(&page, "sglang:spec_accept_rate", "");
                assert!((rate - 59.0 / (3.0 * drafts)).abs() < 1e-9);
            }
            Manners::Vllm => {
                assert_eq!(sample(&page, "vllm:generation_tokens_total", ""), 60.0);
                assert_eq!(sample(&page, "vllm:spec_decode_num_drafts_total", ""), drafts);
                assert_eq!(
                    sample(&page, "vllm:spec_decode_num_draft_tokens_total", ""),
                    2.0 * drafts
                );
                assert_eq!(
                    sample(&page, "vllm:spec_decode_num_accepted_tokens_total", ""),
                    accepted
                );
                let name = "vllm:spec_decode_num_accepted_tokens_per_pos_total";
                let by_position =
                    sample(&page, name, "position=\"0\"") + sample(&page, name, "position=\"1\"");
                assert_eq!(by_position, accepted);
                assert_eq!(sample(&page, "vllm:request_success_total", "length"), 1.0);
                assert_eq!(sample(&page, "vllm:time_to_first_token_seconds_count", ""), 1.0);
                assert_eq!(sample(&page, "vllm:num_requests_running", ""), 0.0);
            }
            Manners::LlamaCpp => {
                assert_eq!(sample(&page, "llamacpp:tokens_predicted_total", ""), 60.0);
                assert_eq!(
                    sample(&page, "llamacpp:spec_decode_num_accepted_tokens_total", ""),
                    accepted
                );
                let last = chunks.events().last().unwrap().clone();
                assert_eq!(last["timings"]["draft_n"], 2.0 * drafts);
                assert_eq!(last["timings"]["draft_n_accepted"], accepted);
            }
        }
        // Prompts of another kind have other weights.
        let code = client.post_with("/v1/chat/completions", "X-Prompt-Kind: code\r\n", &request);
        assert!(code.status == 200);
        let truth = server.truth();
        assert!(truth.requests[1].writes.tokens.iter().all(|tokens| *tokens <= 1));
    }
}

#[test]
fn metrics_can_be_off() {
    let off = |engine| {
        let server = Practice::start(Options {
            metrics: false,
            ..options(engine)
        });
        get(&server.unwrap(), "/metrics").status
    };
    assert_eq!(off(Manners::Sglang), 404);
    assert_eq!(off(Manners::LlamaCpp), 501);
    assert_eq!(off(Manners::Plain), 404);
}

#[test]
fn prompts_that_were_seen_are_told_as_cached_where_the_engine_tells() {
    for (engine, report, expected) in [
        (Manners::Plain, None, Some(5)),
        (Manners::LlamaCpp, None, Some(5)),
        (Manners::Vllm, None, None),
        (Manners::Vllm, Some(true), Some(5)),
        (Manners::Plain, Some(false), None),
    ] {
        let server = Practice::start(Options {
            report_cached: report,
            ..options(engine)
        })
        .unwrap();
        let mut client = Client::new(&server);
        client.post("/v1/chat/completions", &chat(false));
        let usage = client.post("/v1/chat/completions", &chat(false)).json()["usage"].clone();
        let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64();
        assert_eq!(cached, expected, "{engine:?} {report:?}");
    }
}

#[test]
fn prompts_that_do_not_fit_are_refused_in_the_engines_words() {
    for (engine, kind) in [
        (Manners::Plain, "invalid_request_error"),
        (Manners::Sglang, "BadRequestError"),
        (Manners::Vllm, "BadRequestError"),
        (Manners::LlamaCpp, "exceed_context_size_error"),
    ] {
        let server = Practice::start(Options {
            context: 6,
            ..options(engine)
        })
        .unwrap();
        let answer = post(&server, "/v1/chat/completions", &chat(true));
        assert_eq!(answer.status, 400);
        let value = answer.json();
        assert_eq!(value.get("error").unwrap_or(&value)["type"], kind);
    }
}

#[test]
fn coming_up_has_steps() {
    let startup = |engine| {
        Practice::start(Options {
            startup: Startup {
                healthy: Duration::from_hours(1),
                listed: Duration::from_hours(1),
                ..Startup::default()
            },
            ..options(engine)
        })
        .unwrap()
    };
    let server = startup(Manners::LlamaCpp);
    for path in ["/health", "/v1/models", "/props"] {
        let answer = get(&server, path);
        assert_eq!(
            (answer.status, &answer.json()["error"]["message"]),
            (503, &json!("Loading model"))
        );
    }
    let server = startup(Manners::Sglang);
    assert_eq!(get(&server, "/health").status, 503);
    assert_eq!(get(&server, "/model_info").status, 200);
    assert_eq!(get(&server, "/v1/models").json()["data"], json!([]));
    let server = startup(Manners::Plain);
    assert_eq!(post(&server, "/v1/chat/completions", &chat(true)).status, 503);
}

#[test]
fn nothing_listens_before_its_time_and_no_token_comes_before_the_first() {
    let server = Practice::start(Options {
        startup: Startup {
            listening: Duration::from_millis(300),
            first_token: Duration::from_millis(600),
            ..Startup::default()
        },
        ..options(Manners::Vllm)
    })
    .unwrap();
    let refused = std::net::TcpStream::connect(server.address());
    // On a machine so busy that 300 ms have passed there is nothing to see.
    if let Err(error) = refused {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    }
    while std::net::TcpStream::connect(server.address()).is_err() {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(post(&server, "/v1/chat/completions", &chat(true)).status, 200);
    let truth = server.truth();
    let request = &truth.requests[0];
    let first = request
        .writes
        .kind
        .iter()
        .position(|kind| *kind == shakedown_practice::WriteKind::Content);
    let due = request.writes.due_ns[first.unwrap()];
    assert!(due >= request.accepted_ns + 5_000_000);
}

#[test]
fn an_address_may_be_taken_only_later() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let server = Practice::start(Options {
        port: Some(port),
        startup: Startup {
            bound: Duration::from_millis(200),
            listening: Duration::from_millis(300),
            ..Startup::default()
        },
        ..options(Manners::Sglang)
    })
    .unwrap();
    assert_eq!(server.address().port(), port);
    while std::net::TcpStream::connect(server.address()).is_err() {
        assert!(server.take_fault().is_none());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(get(&server, "/health").status, 200);
}

#[test]
fn a_taken_address_and_a_wrong_option_are_errors() {
    let server = start(Manners::Plain);
    let again = Practice::start(Options {
        port: Some(server.address().port()),
        ..options(Manners::Plain)
    });
    assert!(again.unwrap_err().to_string().starts_with("listen on 127.0.0.1:"));
    let wrong = Practice::start(Options {
        tokens_per_chunk: 0,
        ..options(Manners::Plain)
    });
    assert_eq!(
        wrong.unwrap_err().to_string(),
        "option tokens_per_chunk: must be 1 to 1024"
    );
}
