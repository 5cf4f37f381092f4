//! What a request asks for is what is generated: limits, stops, seeds, slots, connections.

use std::time::Duration;

use serde_json::{Value, json};
use shakedown_practice::{Options, Practice};

use crate::client::{Client, post};
use crate::streaming::assert_invariants;

fn options() -> Options {
    Options {
        port: Some(0),
        ttft: Duration::from_millis(5),
        itl: Duration::from_millis(1),
        default_tokens: 20,
        ..Options::default()
    }
}

fn ask(server: &Practice, extra: &Value) -> (String, u64, String) {
    let mut body = json!({"messages": [{"role": "user", "content": "x"}]});
    for (name, value) in extra.as_object().unwrap() {
        body[name] = value.clone();
    }
    let answer = post(server, "/v1/chat/completions", &body).json();
    let choice = &answer["choices"][0];
    (
        choice["message"]["content"].as_str().unwrap().to_owned(),
        answer["usage"]["completion_tokens"].as_u64().unwrap(),
        choice["finish_reason"].as_str().unwrap().to_owned(),
    )
}

#[test]
fn limits_decide_the_length() {
    let server = Practice::start(Options {
        eos_after: Some(12),
        ..options()
    })
    .unwrap();
    for (extra, tokens, finish) in [
        (json!({}), 12, "stop"),
        (json!({"max_tokens": 7}), 7, "length"),
        (json!({"max_tokens": 12}), 12, "stop"),
        (json!({"max_tokens": 30}), 12, "stop"),
        (json!({"max_tokens": 30, "ignore_eos": true}), 30, "length"),
        (json!({"max_tokens": 30, "min_tokens": 25}), 25, "stop"),
        (json!({"max_completion_tokens": 9, "max_tokens": 3}), 9, "length"),
    ] {
        let (text, count, reason) = ask(&server, &extra);
        assert_eq!((count, reason.as_str()), (tokens, finish), "{extra}");
        assert_eq!(text.split_whitespace().count() as u64, tokens);
    }
    let server = Practice::start(options()).unwrap();
    assert_eq!(ask(&server, &json!({})).1, 20);
    assert_eq!(ask(&server, &json!({})).2, "stop");
    assert_eq!(ask(&server, &json!({"max_tokens": 40})).1, 40);
}

#[test]
fn stop_strings_cut_the_text_and_count_their_tokens() {
    let server = Practice::start(options()).unwrap();
    let (text, ..) = ask(&server, &json!({"max_tokens": 20}));
    let words: Vec<&str> = text.split(' ').collect();
    // A whole word, and one that begins and ends inside of words.
    let whole = format!(" {}", words[5]);
    let first = text.find(&whole).unwrap();
    let (cut, tokens, reason) = ask(&server, &json!({"max_tokens": 20, "stop": whole}));
    assert_eq!(cut, text[..first]);
    assert_eq!(tokens as usize, cut.split_whitespace().count() + 1);
    assert_eq!(reason, "stop");
    let inside = &text[3..14];
    let (cut, tokens, _) = ask(
        &server,
        &json!({"max_tokens": 20, "stop": [inside, "never there"]}),
    );
    let at = text.find(inside).unwrap();
    assert_eq!(cut, text[..at]);
    assert_eq!(
        tokens as usize,
        text[..at + inside.len()].split_whitespace().count()
    );
    // The stream says the same, and the truth counts what was generated.
    let mut client = Client::new(&server);
    let events = client
        .post(
            "/v1/chat/completions",
            &json!({
                "messages": [{"role": "user", "content": "x"}], "max_tokens": 20, "stop": inside, "stream": true,
                "stream_options": {"include_usage": true},
            }),
        )
        .events();
    let streamed: String = events
        .iter()
        .filter_map(|event| event["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(streamed, cut);
    assert_eq!(events.last().unwrap()["usage"]["completion_tokens"], tokens);
    assert_eq!(server.truth().requests.last().unwrap().tokens, tokens);
}

#[test]
fn the_same_prompt_and_seed_give_the_same_answer() {
    let server = Practice::start(options()).unwrap();
    let first = ask(&server, &json!({"seed": 1}));
    assert_eq!(first, ask(&server, &json!({"seed": 1})));
    assert_ne!(first, ask(&server, &json!({"seed": 2})));
    let other = Practice::start(Options { seed: 9, ..options() }).unwrap();
    assert_ne!(first, ask(&other, &json!({"seed": 1})));
    let again = Practice::start(options()).unwrap();
    assert_eq!(first, ask(&again, &json!({"seed": 1})));
}

#[test]
fn completions_stream_too() {
    let server = Practice::start(options()).unwrap();
    let answer = post(
        &server,
        "/v1/completions",
        &json!({"prompt": "a b c", "max_tokens": 6, "stream": true, "stream_options": {"include_usage": true}}),
    );
    let events = answer.events();
    assert_eq!(events.len(), 6 + 1 + 1);
    assert!(events.iter().all(|event| event["object"] == "text_completion"));
    assert_eq!(events[6]["choices"][0]["finish_reason"], "length");
    assert_eq!(events[7]["usage"]["prompt_tokens"], 3);
}

#[test]
fn slots_bound_what_runs_and_the_queue_is_in_order() {
    let server = Practice::start(Options {
        slots: Some(2),
        threads: 2,
        ..options()
    })
    .unwrap();
    let mut clients: Vec<Client> = (0..8).map(|_| Client::new(&server)).collect();
    let body = json!({"messages": [{"role": "user", "content": "x"}], "max_tokens": 30, "stream": true});
    for client in &mut clients {
        client.send("POST", "/v1/chat/completions", "", &body.to_string());
    }
    for client in &mut clients {
        assert_eq!(client.receive().unwrap().data().last().unwrap(), "[DONE]");
    }
    let truth = server.truth();
    assert_invariants(&truth);
    let mut spans: Vec<(u64, u64, u64)> = truth
        .requests
        .iter()
        .map(|request| (request.read_ns, request.slot_ns.unwrap(), request.end_ns))
        .collect();
    assert_eq!(spans.len(), 8);
    for (_, slot, _) in &spans {
        // A slot that changes hands is stamped after the one before it ended.
        let running = spans
            .iter()
            .filter(|(_, from, to)| from <= slot && slot < to)
            .count();
        assert!(running <= 2, "{running} at once");
    }
    for request in &truth.requests {
        let first = request.writes.due_ns[1];
        assert_eq!(first, request.slot_ns.unwrap() + 5_000_000);
    }
    spans.sort_unstable();
    let waited: Vec<u64> = spans
        .iter()
        .filter(|(read, slot, _)| slot > read)
        .map(|span| span.1)
        .collect();
    assert!(waited.len() >= 6);
}

#[test]
fn one_connection_carries_many_requests_pipelined_ones_too() {
    use std::io::Write;
    let server = Practice::start(options()).unwrap();
    let mut client = Client::new(&server);
    let body =
        json!({"messages": [{"role": "user", "content": "x"}], "max_tokens": 3, "stream": true}).to_string();
    let one = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}GET /health HTTP/1.1\r\n\r\n",
        body.len()
    );
    client.stream.write_all(one.repeat(20).as_bytes()).unwrap();
    for _ in 0..20 {
        assert_eq!(client.receive().unwrap().events().len(), 5);
        assert_eq!(client.receive().unwrap().json()["status"], "ok");
    }
    let truth = server.truth();
    assert_eq!(truth.requests.len(), 20);
    let accepted = truth.requests[0].accepted_ns;
    assert!(
        truth
            .requests
            .iter()
            .all(|request| request.accepted_ns == accepted)
    );
    // An answer was whole before the next request was begun.
    for pair in truth.requests.windows(2) {
        assert!(pair[0].end_ns <= pair[1].writes.before_ns[0]);
    }
}

#[test]
fn the_client_may_wait_for_100_continue_send_chunks_or_ask_to_close() {
    use std::io::{Read, Write};
    let server = Practice::start(options()).unwrap();
    let mut client = Client::new(&server);
    client
        .stream
        .write_all(b"POST /tokenize HTTP/1.1\r\nContent-Length: 16\r\nExpect: 100-continue\r\n\r\n")
        .unwrap();
    let mut interim = [0; 25];
    client.stream.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.stream.write_all(br#"{"prompt":"a b"}"#).unwrap();
    assert_eq!(client.receive().unwrap().json()["count"], 2);
    client
        .stream
        .write_all(b"POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"pro\r\nb\r\nmpt\":\"a b\"}\r\n0\r\n\r\n")
        .unwrap();
    assert_eq!(client.receive().unwrap().json()["count"], 2);
    client.send("GET", "/health", "Connection: close\r\n", "");
    let last = client.receive().unwrap();
    assert_eq!(last.header("connection").as_deref(), Some("close"));
    assert!(client.receive().is_none());
    let mut old = Client::new(&server);
    old.stream.write_all(b"GET /health HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!(old.receive().unwrap().status, 200);
    assert!(old.receive().is_none());
    let mut head = Client::new(&server);
    head.stream
        .write_all(b"HEAD /health HTTP/1.1\r\n\r\nGET /health HTTP/1.1\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    head.stream
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let _ = head.stream.read_to_string(&mut text);
    assert_eq!(text.matches("HTTP/1.1 200").count(), 2);
    assert_eq!(text.matches(r#"{"status":"ok"}"#).count(), 1);
}

#[test]
fn an_idle_connection_is_closed_after_its_time() {
    let server = Practice::start(Options {
        keep_alive: Some(Duration::from_millis(200)),
        ..options()
    })
    .unwrap();
    let mut client = Client::new(&server);
    assert_eq!(client.get("/health").status, 200);
    assert!(
        client.receive().is_none(),
        "the server closes, and the client sees a clean end"
    );
}

#[test]
fn truth_can_be_cleared_and_is_bounded() {
    let server = Practice::start(Options {
        truth_requests: 3,
        ..options()
    })
    .unwrap();
    let mut client = Client::new(&server);
    let body = json!({"messages": [{"role": "user", "content": "x"}], "max_tokens": 2, "stream": true});
    for index in 0..5 {
        client.post_with(
            "/v1/chat/completions",
            &format!("X-Request-Id: r{index}\r\n"),
            &body,
        );
    }
    let truth = client.get("/truth?clear=1").json();
    let ids: Vec<&str> = truth["requests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|request| request["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["r2", "r3", "r4"]);
    assert_eq!(truth["requests_dropped"], 2);
    assert!(
        client.get("/truth").json()["requests"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    client.post("/v1/chat/completions", &body);
    assert_eq!(server.take_truth().requests.len(), 1);
    assert!(server.truth().requests.is_empty());
}

#[test]
fn stopping_ends_connections_and_frees_the_port() {
    let server = Practice::start(options()).unwrap();
    let address = server.address();
    let mut client = Client::new(&server);
    assert_eq!(client.get("/health").status, 200);
    server.stop();
    assert!(client.receive().is_none());
    assert!(std::net::TcpStream::connect(address).is_err());
    let again = Practice::start(Options {
        port: Some(address.port()),
        ..options()
    })
    .unwrap();
    assert_eq!(again.address(), address);
    assert_eq!(again.url(), format!("http://{address}"));
}

#[test]
fn options_survive_serde_in_milliseconds() {
    let options = Options {
        itl: Duration::from_micros(1_500),
        keep_alive: Some(Duration::from_secs(2)),
        ..options()
    };
    let value = serde_json::to_value(&options).unwrap();
    assert_eq!(value["itl_ms"], 1.5);
    assert_eq!(value["keep_alive_ms"], 2000.0);
    let back: Options = serde_json::from_value(value).unwrap();
    assert_eq!(back.itl, options.itl);
    assert_eq!(back.keep_alive, options.keep_alive);
    let some: Options = serde_json::from_value(json!({"engine": "llama.cpp", "phase": "aligned"})).unwrap();
    assert_eq!(some.ttft, Options::default().ttft);
    assert!(serde_json::from_value::<Options>(json!({"itl_ms": -1})).is_err());
    assert!(serde_json::from_value::<Options>(json!({"unknown": 1})).is_err());
}
