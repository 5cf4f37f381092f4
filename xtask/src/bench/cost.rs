//! What measuring costs: CPU time and disk for each token.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::figures::{Check, median, spread};
use super::interleave::{Side, interleave};
use super::practice::Practice;
use super::{Context, process};
use crate::engines::peers;

/// Streams of the CPU benchmark.
const STREAMS: u32 = 64;
/// Tokens of each of them; the run that is taken off has one.
const TOKENS: u32 = 256;
/// Bytes of requests.jsonl that a token may take.
const BYTES_LIMIT: f64 = 8.0;

/// CPU time per token: a run with many tokens less a run with one token a request, over the tokens between them.
pub(super) fn cpu_per_token(context: &Context) -> Result<Vec<Check>> {
    let practice = Practice::start(context, &["--ttft", "20ms", "--itl", "10ms"])?;
    let url = practice.url.as_str();
    let mut sides = vec![Side {
        name: "shakedown",
        take: Box::new(move || {
            // Fillers, which hold the load until the last measured request has ended, bring tokens too.
            let run = |tokens: u32| -> Result<(f64, f64)> {
                let (streams, tokens) = (STREAMS.to_string(), tokens.to_string());
                let load = ["-c", &streams, "--requests", &streams];
                let run = context.bench(
                    url,
                    &[&load[..], &["--max-tokens", &tokens, "--ignore-eos"]].concat(),
                )?;
                Ok((chunks_of(&run.requests()?)?, run.finished.cpu.as_secs_f64()))
            };
            let (empty, full) = (run(1)?, run(TOKENS)?);
            Ok(vec![1e6 * (full.1 - empty.1) / (full.0 - empty.0)])
        }),
    }];
    let nominal = |empty: f64, full: f64| vec![1e6 * (full - empty) / f64::from(STREAMS * (TOKENS - 1))];
    match peers::oha(&context.engines) {
        Some(oha) => sides.push(Side {
            name: "oha",
            take: Box::new(move || {
                let run = |tokens| cpu(oha_stream(&oha, url, STREAMS, tokens));
                Ok(nominal(run(1)?, run(TOKENS)?))
            }),
        }),
        None => println!("  no oha: `cargo xtask engines --peers` installs it"),
    }
    match peers::vllm(&context.engines) {
        Some(client) => {
            let tokenizer = smallest_tokenizer(&context.scratch)?;
            sides.push(Side {
                name: "vLLM Rust",
                take: Box::new(move || {
                    let run = |tokens| cpu(vllm(&client, url, &tokenizer, STREAMS, tokens));
                    Ok(nominal(run(1)?, run(TOKENS)?))
                }),
            });
        }
        None => println!("  no vLLM client: `cargo xtask engines --peers` installs it"),
    }
    interleave(context.rounds, &["CPU, microseconds a token"], sides)?.print();
    Ok(Vec::new())
}

/// Bytes per token of a steady stream.
pub(super) fn bytes_per_token(context: &Context) -> Result<Vec<Check>> {
    let practice = Practice::start(context, &["--ttft", "20ms", "--itl", "10ms"])?;
    let mut values = Vec::new();
    for _ in 0..context.rounds {
        let args = [
            "-c",
            "4",
            "--requests",
            "8",
            "--max-tokens",
            "256",
            "--ignore-eos",
        ];
        let requests = context.bench(&practice.url, &args)?.requests()?;
        values.push(requests.len() as f64 / chunks_of(&requests)?);
    }
    println!("  bytes of requests.jsonl a token");
    println!("    shakedown    {}", spread(&values));
    Ok(vec![Check::at_most(
        "bytes a token",
        median(&values),
        BYTES_LIMIT,
        "bytes",
    )])
}

/// Token-bearing chunks of all requests of a requests.jsonl, whatever became of them. The server here sends one token a
/// chunk.
fn chunks_of(requests: &str) -> Result<f64> {
    let mut sum = 0;
    for line in requests.lines() {
        let record: Value = serde_json::from_str(line).context("failed to read a line of requests.jsonl")?;
        // A request to which no token came has no gaps.
        if let Some(gaps) = record.get("gaps") {
            let offsets = gaps["offsets_us"].as_array();
            sum += offsets.context("failed to find the gaps of a request")?.len();
        }
    }
    Ok(sum as f64)
}

/// CPU seconds of a client that must succeed.
fn cpu(command: Command) -> Result<f64> {
    let program = command.get_program().to_owned();
    let finished = process::run(command)?;
    if !finished.status.success() {
        bail!(
            "failed to run {}: it ended with {}: {}",
            program.display(),
            finished.status,
            finished.talk()
        );
    }
    Ok(finished.cpu.as_secs_f64())
}

/// oha with one streamed chat request a connection.
fn oha_stream(oha: &Path, url: &str, streams: u32, tokens: u32) -> Command {
    let body = json!({
        "model": "practice",
        "messages": [{"role": "user", "content": "Say something."}],
        "max_tokens": tokens,
        "stream": true,
        "ignore_eos": true,
    });
    let count = streams.to_string();
    let mut command = Command::new(oha);
    command
        .args(["-n", &count, "-c", &count, "--no-tui", "-m", "POST"])
        .args(["-T", "application/json", "-d", &body.to_string()])
        .arg(format!("{url}/v1/chat/completions"));
    command
}

/// vLLM's Rust client with prompts of a few words.
pub(super) fn vllm(client: &Path, url: &str, tokenizer: &Path, streams: u32, tokens: u32) -> Command {
    let (count, tokens) = (streams.to_string(), tokens.to_string());
    let mut command = Command::new(client);
    command
        .args([
            "bench",
            "serve",
            "--backend",
            "openai-chat",
            "--model",
            "practice",
        ])
        .args(["--base-url", url, "--tokenizer"])
        .arg(tokenizer)
        .args(["--num-prompts", &count, "--max-concurrency", &count])
        .args(["--random-input-len", "8", "--random-output-len", &tokens])
        .args(["--ignore-eos", "--disable-tqdm"]);
    command
}

/// The smallest tokenizer that vLLM's client accepts: without one it looks for one on the network.
pub(super) fn smallest_tokenizer(scratch: &Path) -> Result<PathBuf> {
    let mut vocabulary = serde_json::Map::new();
    vocabulary.insert("[UNK]".to_owned(), json!(0));
    vocabulary.extend((1..64).map(|id| (format!("w{id}"), json!(id))));
    let document = json!({
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    });
    let dir = scratch.join("tokenizer");
    fs::create_dir_all(&dir).with_context(|| format!("failed to create {}", dir.display()))?;
    let file = dir.join("tokenizer.json");
    fs::write(&file, document.to_string()).with_context(|| format!("failed to write {}", file.display()))?;
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_counts_and_a_torn_line_is_an_error() {
        let text =
            "{\"gaps\":{\"base_us\":10,\"offsets_us\":[-10,0,3]}}\n{}\n{\"gaps\":{\"offsets_us\":[0]}}\n";
        assert!((chunks_of(text).unwrap() - 4.0).abs() < 1e-12);
        assert!(chunks_of("{\"gaps\":[1]}\n").is_err());
        assert!(chunks_of("{\"gaps\"").is_err());
    }
}
