//! What reading one event costs, without a socket: `cargo run --release -p shakedown-wire --example read_cost`.
//! Prints nanoseconds of CPU time an event, the best of five rounds, for HTTP, events and JSON together.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an example that measures"
)]

use std::ops::ControlFlow;
use std::time::Duration;

use shakedown_model::Api;
use shakedown_wire::clock;
use shakedown_wire::openai::parse_event;
use shakedown_wire::response::{Limits, Piece, ResponseReader};
use shakedown_wire::sse::{DEFAULT_CAP, SseEvent, SseReader};

const EVENTS: usize = 400_000;

fn main() {
    let shapes = [
        (
            "vLLM",
            r#"{"id":"chatcmpl-8a4f892d932c6d32","object":"chat.completion.chunk","created":1796081790,"model":"SmolLM2","choices":[{"index":0,"delta":{"content":" the"},"logprobs":null,"finish_reason":null,"token_ids":null}]}"#,
        ),
        (
            "SGLang",
            r#"{"id":"8a4f892d932c6d328a4f892d932c6d32","object":"chat.completion.chunk","created":1796081790,"model":"SmolLM2","choices":[{"index":0,"delta":{"role":null,"content":" the","reasoning_content":null,"tool_calls":null},"logprobs":null,"finish_reason":null,"matched_stop":null}],"usage":null}"#,
        ),
        (
            "escapes",
            r#"{"id":"x","choices":[{"index":0,"delta":{"content":"\n\"the\" "},"finish_reason":null}]}"#,
        ),
    ];
    for (name, json) in shapes {
        let parse = best(|| {
            for _ in 0..EVENTS {
                std::hint::black_box(parse_event(Api::Chat, std::hint::black_box(json.as_bytes())).unwrap());
            }
        });
        let path: Vec<String> = [1, 8]
            .iter()
            .map(|per_read| {
                let body = format!("data: {json}\n\n").repeat(*per_read);
                let read = format!("{:x}\r\n{body}\r\n", body.len());
                format!(
                    "{per_read} a read {:.0}",
                    best(|| whole_path(read.as_bytes(), EVENTS / per_read))
                )
            })
            .collect();
        println!(
            "{name}: JSON alone {parse:.0}; with HTTP and events: {}",
            path.join(", ")
        );
    }
}

fn whole_path(read: &[u8], reads: usize) {
    let mut http = ResponseReader::new(Limits::default());
    http.read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        .unwrap();
    let mut sse = SseReader::new(DEFAULT_CAP);
    for _ in 0..reads {
        let mut rest = std::hint::black_box(read);
        loop {
            let (consumed, piece) = http.read(rest).unwrap();
            rest = &rest[consumed..];
            let Piece::Body(body) = piece else { break };
            sse.push(body, |event| {
                if let SseEvent::Data { data, .. } = event {
                    std::hint::black_box(parse_event(Api::Chat, data).unwrap());
                }
                ControlFlow::Continue(())
            })
            .unwrap();
        }
    }
}

/// Nanoseconds of CPU time an event.
fn best(mut run: impl FnMut()) -> f64 {
    let rounds = (0..5).map(|_| {
        let before = clock::thread_cpu().unwrap_or_default();
        run();
        clock::thread_cpu().unwrap_or_default().saturating_sub(before)
    });
    rounds.min().unwrap_or(Duration::ZERO).as_nanos() as f64 / EVENTS as f64
}
