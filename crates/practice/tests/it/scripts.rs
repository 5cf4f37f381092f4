//! Every built-in script: its bytes come out as its expectation says, by a judge that shares nothing with it.

use serde_json::{Value, json};
use shakedown_practice::{Manners, Options, Practice, RequestEnd, Script, WriteKind, scripts};

use crate::client::{Client, post};
use crate::judge::{Seen, exchange, judge};
use crate::streaming::assert_invariants;

fn server(engine: Manners) -> Practice {
    Practice::start(Options {
        port: Some(0),
        engine,
        ..Options::default()
    })
    .unwrap()
}

fn body(script: &Script) -> Value {
    let needs = script.expect().unwrap().needs.clone();
    let mut body = json!({
        "messages": [{"role": "user", "content": "go"}], "stream": true,
        "stream_options": {"include_usage": true}, "max_tokens": needs.max_tokens.unwrap_or(64),
    });
    if needs.ignore_eos {
        body["ignore_eos"] = json!(true);
    }
    body
}

fn run(server: &Practice, name: &str) -> Seen {
    let script = Script::named(name).unwrap();
    let headers = format!("X-Practice-Script: {name}\r\nX-Request-Id: {name}\r\n");
    exchange(server, &headers, &body(&script), &script.expect().unwrap().needs)
}

fn judge_all(engine: Manners) {
    let server = server(engine);
    std::thread::scope(|scope| {
        for script in scripts() {
            let server = &server;
            scope.spawn(move || {
                let expect = script.expect().unwrap();
                let seen = run(server, script.name());
                let max_tokens = expect.needs.max_tokens;
                let (outcome, tokens, source) = judge(&seen, expect.needs.ignore_eos, max_tokens);
                let name = script.name();
                assert_eq!(
                    (outcome, tokens),
                    (expect.outcome, expect.tokens),
                    "{name} with {engine:?}"
                );
                if expect.tokens.is_some() {
                    assert_eq!(source, expect.source, "{name}");
                }
            });
        }
    });
    // What the server says it sent is what the script says, save where the client stopped listening.
    let truth = server.truth();
    assert_invariants(&truth);
    for request in &truth.requests {
        let name = request.script.as_deref().unwrap();
        assert_eq!(request.id.as_deref(), Some(name));
        let expect = Script::named(name).unwrap().expect().unwrap().clone();
        if request.end != RequestEnd::ClientGone {
            assert_eq!(request.tokens, expect.generated, "{name}");
        }
    }
}

#[test]
fn all_scripts_come_out_as_expected_in_plain_manners() {
    judge_all(Manners::Plain);
}

#[test]
fn all_scripts_come_out_as_expected_in_every_engines_manners() {
    for engine in [Manners::Sglang, Manners::Vllm, Manners::LlamaCpp] {
        judge_all(engine);
    }
}

#[test]
fn writes_are_due_when_the_script_says() {
    use WriteKind::{Content, Done, Finish, Reasoning, Role, Usage};
    let server = server(Manners::Plain);
    run(&server, "mock-a");
    let truth = server.truth();
    let request = &truth.requests[0];
    let due: Vec<u64> = request
        .writes
        .due_ns
        .iter()
        .map(|due| (due - request.read_ns) / 1_000_000)
        .collect();
    assert_eq!(due, [100, 200, 300, 350, 400, 450, 500, 550, 550, 850, 850]);
    assert_eq!(
        request.writes.kind,
        [
            Role, Reasoning, Reasoning, Content, Content, Content, Content, Content, Finish, Usage, Done
        ]
    );
    assert_eq!(request.writes.tokens, [0, 1, 1, 2, 2, 2, 2, 2, 0, 0, 0]);
}

#[test]
fn scripts_say_their_very_bytes() {
    let server = server(Manners::Plain);
    for (name, bytes) in [
        ("role-null", r#""delta":{"role":"assistant","content":null}"#),
        ("role-empty", r#""delta":{"role":"assistant","content":""}"#),
        ("role-absent", r#""delta":{"role":"assistant"}"#),
        ("reasoning", r#""delta":{"reasoning":""#),
        ("reasoning-content", r#""delta":{"reasoning_content":""#),
        ("event-lines", "event: message\ndata: {"),
        ("crlf", "}\r\n\r\n"),
        ("data-no-space", "data:{"),
        ("comments", ": ping\n\n"),
        ("rate-limited", "Retry-After: 2\r\n"),
        ("redirect", "Location: http://127.0.0.1:9/"),
        ("close-delimited", "Connection: close\r\n\r\n"),
        ("tool-calls", r#""arguments":"{\"city\":""#),
        (
            "finish-with-text",
            r#""},"logprobs":null,"finish_reason":"length""#,
        ),
        ("not-http", "SSH-2.0"),
    ] {
        let seen = run(&server, name);
        let text = String::from_utf8_lossy(&seen.bytes);
        assert!(text.contains(bytes), "{name}: {text}");
    }
    let text = String::from_utf8_lossy(&run(&server, "no-role").bytes).into_owned();
    assert!(!text.contains("role"));
    let seen = run(&server, "invalid-utf8");
    assert!(seen.bytes.windows(2).any(|pair| pair == [0xff, 0xfe]));
}

#[test]
fn torn_and_joined_events_are_the_writes_that_they_should_be() {
    let server = server(Manners::Plain);
    let seen = run(&server, "split-utf8");
    // Each character is torn: its first bytes end one HTTP chunk, the others begin the next.
    for character in ["é", "€", "🦀"] {
        let whole = character.as_bytes();
        assert!(
            !seen.bytes.windows(whole.len()).any(|window| window == whole),
            "{character}"
        );
    }
    run(&server, "many-events-one-write");
    run(&server, "one-event-many-writes");
    let truth = server.truth();
    assert_eq!(truth.requests[1].writes.tokens, [0, 4, 4, 0]);
    let torn = &truth.requests[2].writes;
    assert_eq!(
        torn.kind.iter().filter(|kind| **kind == WriteKind::Raw).count(),
        7 * 4 + 6
    );
    assert_eq!(torn.tokens.iter().filter(|tokens| **tokens == 1).count(), 8);
}

#[test]
fn a_script_is_named_by_model_too_and_an_unknown_one_is_an_error() {
    let server = server(Manners::Vllm);
    let mut request = json!({
        "model": "script:mock-b-stop", "messages": [{"role": "user", "content": "x"}], "stream": true,
    });
    let answer = post(&server, "/v1/chat/completions", &request);
    assert_eq!(answer.data().last().unwrap(), "[DONE]");
    assert!(
        !answer.text().contains("completion_tokens"),
        "no usage unless it is asked for"
    );
    request["model"] = json!("script:nonsense");
    assert_eq!(post(&server, "/v1/chat/completions", &request).status, 404);
}

#[test]
fn completions_and_generate_follow_scripts_in_their_own_shapes() {
    let server = server(Manners::Sglang);
    let mut client = Client::new(&server);
    let answer = client.post_with(
        "/v1/completions",
        "X-Practice-Script: ordinary\r\n",
        &json!({"prompt": "x", "stream": true, "stream_options": {"include_usage": true}}),
    );
    let events = answer.events();
    assert_eq!(events.len(), 10);
    assert!(events[0]["choices"][0]["text"].is_string());
    assert_eq!(events[9]["usage"]["completion_tokens"], 8);
    let answer = client.post_with(
        "/generate",
        "X-Practice-Script: tokens-per-chunk-3\r\n",
        &json!({"text": "x", "stream": true}),
    );
    let events = answer.events();
    let counts: Vec<u64> = events
        .iter()
        .map(|event| event["meta_info"]["completion_tokens"].as_u64().unwrap())
        .collect();
    assert_eq!(counts, [3, 6, 9, 12, 13, 13]);
    assert_eq!(events[4]["text"].as_str().unwrap().split_whitespace().count(), 13);
    assert_eq!(events[5]["meta_info"]["finish_reason"]["type"], "stop");
}

#[test]
fn a_users_own_script_serves_every_request() {
    let script = Script::from_toml(
        r#"
        name = "mine"
        [[step]]
        at_ms = 5
        do = "content"
        text = "only this"
        [[step]]
        do = "finish"
        [[step]]
        do = "done"
        "#,
    )
    .unwrap();
    let server = Practice::start(Options {
        port: Some(0),
        script: Some(script),
        ..Options::default()
    })
    .unwrap();
    let request = json!({"messages": [{"role": "user", "content": "x"}], "stream": true});
    let mut client = Client::new(&server);
    for _ in 0..3 {
        let events = client.post("/v1/chat/completions", &request).events();
        assert_eq!(events[0]["choices"][0]["delta"]["content"], "only this");
    }
    assert!(
        server
            .truth()
            .requests
            .iter()
            .all(|request| request.script.as_deref() == Some("mine"))
    );
}
