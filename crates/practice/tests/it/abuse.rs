//! Peers that do not behave: the server answers or closes, stays up and keeps its memory.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;
use shakedown_practice::{Options, Practice, RequestEnd};

use crate::client::{Client, get};
use crate::streaming::assert_invariants;

fn options() -> Options {
    Options {
        port: Some(0),
        ttft: Duration::from_millis(5),
        itl: Duration::from_millis(1),
        request_timeout: Duration::from_millis(400),
        ..Options::default()
    }
}

/// Sends bytes and gives the status of the answer, or none where the connection just ended.
fn status_of(server: &Practice, bytes: &[u8]) -> Option<u16> {
    let mut client = Client::new(server);
    // The server may have answered and closed before everything was sent.
    let _ = client.stream.write_all(bytes);
    client.receive().map(|answer| answer.status)
}

#[test]
fn what_is_no_request_is_refused() {
    let server = Practice::start(options()).unwrap();
    for (bytes, status) in [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n".to_vec(), 400),
        (b"GET\r\n\r\n".to_vec(), 400),
        (b"GET / HTTP/9.9\r\n\r\n".to_vec(), 400),
        (
            b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: x\r\n\r\n".to_vec(),
            400,
        ),
        (
            b"POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_vec(),
            400,
        ),
        (
            b"POST /tokenize HTTP/1.1\r\nContent-Length: 999999999999\r\n\r\n".to_vec(),
            413,
        ),
        (
            format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(500)).into_bytes(),
            431,
        ),
        (
            format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(100_000)).into_bytes(),
            431,
        ),
        (vec![b'a'; 3_000_000], 431),
        (
            b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 3\r\n\r\n{}}".to_vec(),
            400,
        ),
        (
            b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n\xff\xfe".to_vec(),
            400,
        ),
    ] {
        let got = status_of(&server, &bytes);
        assert_eq!(
            got,
            Some(status),
            "{:?}",
            String::from_utf8_lossy(&bytes[..bytes.len().min(60)])
        );
    }
    assert_eq!(get(&server, "/health").status, 200);
    assert!(server.take_fault().is_none());
}

#[test]
fn a_request_that_trickles_in_is_given_up() {
    let server = Practice::start(options()).unwrap();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
    let begun = Instant::now();
    let mut answer = Vec::new();
    let mut scratch = [0; 1024];
    // One byte at a time would go on for minutes.
    let closed = loop {
        assert!(begun.elapsed() < Duration::from_secs(20), "never given up");
        if stream.write_all(b"x").is_err() {
            break true;
        }
        match stream.read(&mut scratch) {
            Ok(0) => break true,
            Ok(length) => answer.extend_from_slice(&scratch[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break true,
            Err(_) => {}
        }
    };
    assert!(closed);
    assert_eq!(get(&server, "/health").status, 200);
}

#[test]
fn an_idle_peer_that_never_asks_is_closed() {
    let server = Practice::start(options()).unwrap();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(stream.read(&mut [0; 16]).unwrap(), 0);
}

#[test]
fn a_client_that_does_not_read_holds_up_only_itself() {
    let server = Practice::start(Options {
        itl: Duration::ZERO,
        ..options()
    })
    .unwrap();
    let body = json!({
        "messages": [{"role": "user", "content": "x"}], "max_tokens": 60_000, "stream": true,
        "stream_options": {"include_usage": true},
    });
    let mut slow = Client::new(&server);
    slow.send(
        "POST",
        "/v1/chat/completions",
        "X-Request-Id: slow\r\n",
        &body.to_string(),
    );
    // Others are served meanwhile.
    let mut quick = Client::new(&server);
    let mut small = body.clone();
    small["max_tokens"] = json!(50);
    for _ in 0..20 {
        assert_eq!(quick.post("/v1/chat/completions", &small).status, 200);
    }
    assert_eq!(
        server.truth().requests.len(),
        20,
        "the slow one cannot have ended"
    );
    // It gets everything once it reads.
    let events = slow.receive().unwrap().events();
    assert_eq!(events.last().unwrap()["usage"]["completion_tokens"], 60_000);
    let truth = server.truth();
    assert_invariants(&truth);
    let request = truth.requests.last().unwrap();
    assert_eq!((request.id.as_deref(), request.tokens), (Some("slow"), 60_000));
    // A held-up write is stamped when its last byte was taken.
    let longest = (0..request.writes.due_ns.len())
        .map(|index| request.writes.after_ns[index] - request.writes.before_ns[index])
        .max()
        .unwrap();
    assert!(longest > 1_000_000, "{longest} ns");
}

#[test]
fn peers_that_vanish_at_any_point_leave_nothing_behind() {
    let server = Practice::start(Options {
        slots: Some(4),
        ..options()
    })
    .unwrap();
    let body = json!({"messages": [{"role": "user", "content": "x"}], "max_tokens": 200, "stream": true})
        .to_string();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    for index in 0..60_usize {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let upto = if index % 3 == 0 {
            request.len() * index / 60
        } else {
            request.len()
        };
        stream.write_all(&request.as_bytes()[..upto]).unwrap();
        if index % 4 == 1 {
            let _ = stream.read(&mut [0; 300]).unwrap();
        }
    }
    // All slots come back: four more requests run to their end at the same time.
    let mut clients: Vec<Client> = (0..4).map(|_| Client::new(&server)).collect();
    for client in &mut clients {
        client.stream.write_all(request.as_bytes()).unwrap();
    }
    for client in &mut clients {
        assert_eq!(client.receive().unwrap().data().last().unwrap(), "[DONE]");
    }
    let truth = server.truth();
    assert_invariants(&truth);
    let complete = truth
        .requests
        .iter()
        .filter(|request| request.end == RequestEnd::Complete)
        .count();
    assert!(complete >= 4);
    let page = get(&server, "/metrics").text();
    assert!(page.contains("practice:requests_running 0.0"), "{page}");
    assert!(page.contains("practice:requests_waiting 0.0"), "{page}");
}

#[test]
fn thousands_of_pipelined_requests_do_not_end_it() {
    let server = Practice::start(options()).unwrap();
    let mut client = Client::new(&server);
    let many = "GET /health HTTP/1.1\r\n\r\n".repeat(5_000);
    let mut writer = client.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || writer.write_all(many.as_bytes()));
    for _ in 0..5_000 {
        assert_eq!(client.receive().unwrap().status, 200);
    }
    sender.join().unwrap().unwrap();
}
