//! Ordinary streams: what leaves, in which order, when by the server's own stamps.

use std::time::Duration;

use serde_json::{Value, json};
use shakedown_practice::{Options, Phase, Practice, RequestEnd, WriteKind};

use crate::client::{Client, get, now, post};

fn fast() -> Options {
    Options {
        port: Some(0),
        ttft: Duration::from_millis(20),
        itl: Duration::from_millis(2),
        ..Options::default()
    }
}

fn chat(tokens: u32) -> Value {
    json!({
        "model": "practice", "messages": [{"role": "user", "content": "say something please"}],
        "max_tokens": tokens, "stream": true, "stream_options": {"include_usage": true},
    })
}

#[test]
fn a_chat_streams_role_tokens_finish_usage_done() {
    let server = Practice::start(fast()).unwrap();
    let before = now();
    let mut client = Client::new(&server);
    let answer = client.post_with("/v1/chat/completions", "X-Request-Id: r-1\r\n", &chat(16));
    let after = now();
    assert_eq!(answer.status, 200);
    assert!(answer.whole);
    assert_eq!(
        answer.header("content-type").as_deref(),
        Some("text/event-stream")
    );
    assert_eq!(answer.data().last().unwrap(), "[DONE]");
    let events = answer.events();
    assert_eq!(events.len(), 1 + 16 + 1 + 1);
    assert_eq!(
        events[0]["choices"][0]["delta"],
        json!({"role": "assistant", "content": ""})
    );
    let text: String = events[1..17]
        .iter()
        .map(|event| event["choices"][0]["delta"]["content"].as_str().unwrap())
        .collect();
    assert_eq!(text.split_whitespace().count(), 16);
    assert_eq!(events[17]["choices"][0]["finish_reason"], "length");
    assert_eq!(events[18]["choices"], json!([]));
    assert_eq!(events[18]["usage"]["completion_tokens"], 16);
    let prompt = events[18]["usage"]["prompt_tokens"].as_u64().unwrap();
    assert_eq!(prompt, 3 + 3 + 2);

    let count = post(
        &server,
        "/tokenize",
        &json!({"messages": [{"role": "user", "content": "say something please"}]}),
    );
    assert_eq!(count.json()["count"], prompt);
    let count = post(&server, "/tokenize", &json!({"prompt": text}));
    assert_eq!(count.json()["count"], 16);

    let truth = server.truth();
    let request = &truth.requests[0];
    assert_eq!(request.id.as_deref(), Some("r-1"));
    assert_eq!(request.end, RequestEnd::Complete);
    assert_eq!(request.tokens, 16);
    let writes = &request.writes;
    let kinds = [
        vec![WriteKind::Head, WriteKind::Role],
        vec![WriteKind::Content; 16],
        vec![WriteKind::Finish, WriteKind::Usage, WriteKind::Done],
    ]
    .concat();
    assert_eq!(writes.kind, kinds);
    assert_eq!(writes.due_ns[0], request.read_ns);
    assert_eq!(writes.due_ns[1], request.read_ns + 20_000_000);
    for (index, due) in writes.due_ns[2..18].iter().enumerate() {
        assert_eq!(*due, request.read_ns + 20_000_000 + index as u64 * 2_000_000);
    }
    assert!(before <= request.accepted_ns && before <= request.read_ns);
    assert!(request.end_ns <= after);
    assert_eq!(request.slot_ns, Some(request.read_ns));
    assert_invariants(&truth);
    let over_http: shakedown_practice::Truth = serde_json::from_value(get(&server, "/truth").json()).unwrap();
    assert_eq!(over_http, truth);
}

/// What holds in any run, however busy the machine.
pub(crate) fn assert_invariants(truth: &shakedown_practice::Truth) {
    assert_eq!(truth.schema, "shakedown.truth/1");
    assert_eq!(truth.clock, "CLOCK_MONOTONIC");
    assert_eq!(truth.boot_id.len(), 36);
    assert!(truth.late_p50_ns <= truth.late_p99_ns && truth.late_p99_ns <= truth.late_max_ns);
    for request in &truth.requests {
        let writes = &request.writes;
        let length = writes.due_ns.len();
        assert!(writes.before_ns.len() == length && writes.after_ns.len() == length);
        assert!(writes.tokens.len() == length && writes.kind.len() == length);
        assert!(writes.due_ns.is_sorted() && writes.before_ns.is_sorted() && writes.after_ns.is_sorted());
        assert!(request.accepted_ns <= request.end_ns && request.read_ns <= request.end_ns);
        for index in 0..length {
            assert!(
                writes.before_ns[index] >= writes.due_ns[index],
                "written before it was due"
            );
            assert!(writes.after_ns[index] >= writes.before_ns[index]);
            assert!(writes.after_ns[index] <= request.end_ns);
        }
        let tokens: u64 = writes.tokens.iter().map(|tokens| u64::from(*tokens)).sum();
        assert_eq!(tokens, request.tokens);
    }
}

#[test]
fn the_client_never_reads_before_the_server_writes() {
    use std::io::{Read, Write};
    let server = Practice::start(fast()).unwrap();
    let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
    let body = chat(64).to_string();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let sent = now();
    stream.write_all(request.as_bytes()).unwrap();
    let mut reads = Vec::new();
    let mut bytes = 0_usize;
    let mut scratch = [0; 4096];
    let mut tail = Vec::new();
    while !tail.ends_with(b"0\r\n\r\n") {
        let length = stream.read(&mut scratch).unwrap();
        reads.push((now(), bytes, bytes + length));
        bytes += length;
        tail.extend_from_slice(&scratch[..length]);
    }
    let truth = server.truth();
    let request = &truth.requests[0];
    assert!(sent <= request.read_ns);
    // Every event's first byte was read at or after the stamp before the write that holds it.
    let text = String::from_utf8(tail).unwrap();
    let mut from = text.find("\r\n\r\n").unwrap() + 4;
    for index in 1..request.writes.kind.len() {
        let (stamp, ..) = reads
            .iter()
            .find(|(_, begin, end)| (*begin..*end).contains(&from))
            .unwrap();
        assert!(*stamp >= request.writes.before_ns[index]);
        let line = text[from..].find("\r\n").unwrap();
        let size = usize::from_str_radix(&text[from..from + line], 16).unwrap();
        from += line + 2 + size + 2;
    }
    assert_eq!(&text[from..], "0\r\n\r\n", "one chunk a write");
    assert_invariants(&truth);
}

#[test]
fn many_streams_at_once_keep_order_and_counts() {
    for (threads, phase) in [(1, Phase::Spread), (3, Phase::Spread), (2, Phase::Aligned)] {
        let server = Practice::start(Options {
            threads,
            phase,
            tokens_per_chunk: 3,
            ..fast()
        })
        .unwrap();
        let clients: Vec<_> = (0..48)
            .map(|_| {
                let mut client = Client::new(&server);
                std::thread::spawn(move || {
                    let mut tokens = 0;
                    for _ in 0..2 {
                        let answer = client.post("/v1/chat/completions", &chat(40));
                        tokens += answer.events().last().unwrap()["usage"]["completion_tokens"]
                            .as_u64()
                            .unwrap();
                    }
                    tokens
                })
            })
            .collect();
        let tokens: u64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
        assert_eq!(tokens, 48 * 2 * 40);
        let truth = server.truth();
        assert_eq!(truth.requests.len(), 96);
        assert_invariants(&truth);
        for request in &truth.requests {
            assert_eq!(request.tokens, 40);
            let chunks: Vec<u32> = request
                .writes
                .tokens
                .iter()
                .copied()
                .filter(|tokens| *tokens > 0)
                .collect();
            assert_eq!(chunks, [vec![3; 13], vec![1]].concat());
        }
        if phase == Phase::Aligned {
            let dues: Vec<u64> = truth
                .requests
                .iter()
                .flat_map(|request| {
                    let writes = &request.writes;
                    (0..writes.due_ns.len())
                        .filter(|index| writes.tokens[*index] > 0)
                        .map(|index| writes.due_ns[index])
                })
                .collect();
            assert!(dues.iter().all(|due| (due - dues[0].min(*due)) % 2_000_000 == 0));
        }
    }
}

#[test]
fn an_answer_that_is_not_streamed_comes_whole_when_its_last_token_is_due() {
    let server = Practice::start(fast()).unwrap();
    let answer = post(
        &server,
        "/v1/chat/completions",
        &json!({"messages": [{"role": "user", "content": "x"}], "max_tokens": 10}),
    );
    let value = answer.json();
    let text = value["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!(text.split_whitespace().count(), 10);
    assert_eq!(value["usage"]["completion_tokens"], 10);
    let truth = server.truth();
    let request = &truth.requests[0];
    assert_eq!(request.writes.kind, [WriteKind::Body]);
    assert_eq!(
        request.writes.due_ns[0],
        request.read_ns + 20_000_000 + 9 * 2_000_000
    );
    assert_eq!(request.tokens, 10);
}

#[test]
fn a_client_that_goes_away_ends_its_generation() {
    let server = Practice::start(Options {
        slots: Some(1),
        itl: Duration::from_millis(50),
        ..fast()
    })
    .unwrap();
    let mut first = Client::new(&server);
    first.send("POST", "/v1/chat/completions", "", &chat(10_000).to_string());
    let mut second = Client::new(&server);
    std::thread::sleep(Duration::from_millis(60));
    second.send("POST", "/v1/chat/completions", "", &chat(2).to_string());
    std::thread::sleep(Duration::from_millis(60));
    drop(first);
    assert_eq!(second.receive().unwrap().events().len(), 5);
    let truth = server.truth();
    assert_eq!(truth.requests.len(), 2);
    assert_eq!(truth.requests[0].end, RequestEnd::ClientGone);
    assert_eq!(truth.requests[1].end, RequestEnd::Complete);
    assert!(truth.requests[1].slot_ns.unwrap() >= truth.requests[0].end_ns);
    assert!(truth.requests[1].slot_ns.unwrap() > truth.requests[1].read_ns);
    assert_invariants(&truth);
}
