//! A real engine: llama-server with a real small model, as `cargo xtask engines` installs them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shakedown_model::{EngineKind, TokenSource};

use crate::support::bench;

/// A running llama-server, ended with the test.
struct Llama {
    child: Child,
    port: u16,
}

impl Drop for Llama {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Llama {
    /// Starts it; `None`, said aloud, where it is not installed and need not be.
    fn start() -> Option<Self> {
        let Some((server, model)) = installed() else {
            assert!(
                std::env::var_os("SHAKEDOWN_REQUIRE_ENGINES").is_none(),
                "no llama-server: run `cargo xtask engines`"
            );
            eprintln!("SKIPPED: no llama-server; `cargo xtask engines` installs it");
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let child = Command::new(server)
            .args(["--host", "127.0.0.1", "--port", &port.to_string(), "--model"])
            .arg(model)
            .args([
                "--ctx-size",
                "4096",
                "--parallel",
                "2",
                "--threads",
                "2",
                "--metrics",
                "--no-webui",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut llama = Self { child, port };
        let begun = Instant::now();
        while llama
            .request("GET", "/health", "")
            .is_none_or(|(status, _)| status != 200)
        {
            assert!(
                llama.child.try_wait().unwrap().is_none(),
                "llama-server ended while loading"
            );
            assert!(
                begun.elapsed() < Duration::from_mins(2),
                "llama-server is not ready"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(llama)
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// One request by hand: the oracle shares no code with the client under test.
    fn request(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
        .ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }

    /// Tokens of `text` by the server's own tokenizer.
    fn tokenize(&self, text: &str) -> usize {
        let (status, body) = self
            .request("POST", "/tokenize", &json!({ "content": text }).to_string())
            .unwrap();
        assert_eq!(status, 200, "{body}");
        serde_json::from_str::<Value>(&body).unwrap()["tokens"]
            .as_array()
            .unwrap()
            .len()
    }
}

/// llama-server and the model, from the cache of `cargo xtask engines`.
fn installed() -> Option<(PathBuf, PathBuf)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    let cache =
        std::env::var_os("SHAKEDOWN_ENGINES").map_or_else(|| target.join("engines"), |dir| root.join(dir));
    let document: Value = serde_json::from_slice(&std::fs::read(cache.join("installed.json")).ok()?).ok()?;
    let path = |name: &str| Some(cache.join(document[name]["path"].as_str()?));
    Some((path("llama_server")?, path("model")?)).filter(|(server, model)| server.exists() && model.exists())
}

#[test]
fn tokens_are_those_that_the_engine_counts() {
    let Some(llama) = Llama::start() else { return };
    let measured = bench(
        &llama.url(),
        &[
            "-c",
            "2",
            "--requests",
            "4",
            "--warmup",
            "1",
            "--max-tokens",
            "32",
            "--keep-text",
            "--prompt-salt",
            "none",
        ],
    );
    let engine = measured
        .document
        .server
        .engine
        .as_ref()
        .expect("llama-server is recognised");
    assert_eq!((engine.kind, engine.practice), (EngineKind::LlamaCpp, false));
    let records: Vec<_> = measured
        .records
        .iter()
        .filter(|record| record.outcome.is_success())
        .collect();
    assert!(
        records.len() >= 5,
        "{:?}",
        measured.document.pooled.map(|metrics| metrics.outcomes)
    );
    for record in records {
        assert_eq!(record.tokens.source, TokenSource::ServerUsage);
        assert_eq!(
            record.tokens.output, record.tokens.timed,
            "usage and timings.predicted_n"
        );
        let text = record.text.as_ref().unwrap().text.as_ref().unwrap();
        // An answer that ended by itself has its end token in the count and not in the text.
        let hidden = u64::from(record.finish_reason == Some(shakedown_model::FinishReason::Stop));
        assert_eq!(
            record.tokens.output,
            Some(llama.tokenize(text) as u64 + hidden),
            "{text:?}"
        );
        // Its rate and ours are of the same tokens: (n − 1) over the time from the first to the last.
        assert!(record.server_decode_tok_s.unwrap() > 0.0);
    }
}
