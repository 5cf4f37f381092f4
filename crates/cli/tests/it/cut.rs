//! A run that is killed or interrupted keeps what was measured.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use shakedown_model::{RunDocument, RunEnd};
use shakedown_verbs::practice::Options;
use shakedown_verbs::runs::{Bundle, BundleState};

use crate::support::{practice, shakedown};

fn start(url: &str, store: &std::path::Path, requests: &str) -> Child {
    shakedown(store)
        .args([
            "bench",
            url,
            "-c",
            "8",
            "--requests",
            requests,
            "--warmup",
            "0",
            "--max-tokens",
            "8",
        ])
        .args(["--store", ".", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_kill_loses_only_what_was_in_flight() {
    let server = practice(Options {
        ttft: Duration::from_millis(5),
        itl: Duration::from_millis(1),
        ..Options::default()
    });
    for round in 0..20_u64 {
        let store = tempfile::tempdir().unwrap();
        let mut child = start(&server.url(), store.path(), "1000000");
        // Moments spread over the run without a clock that a busy machine could upset: whatever has ended by then
        // is what must be there.
        std::thread::sleep(Duration::from_millis(150 + round * 37 % 400));
        let bundles = || {
            std::fs::read_dir(store.path().join("runs"))
                .ok()
                .and_then(|mut runs| runs.next())
        };
        let waited = Instant::now();
        let path = loop {
            if let Some(Ok(run)) = bundles()
                && run
                    .path()
                    .join("requests.jsonl")
                    .metadata()
                    .is_ok_and(|file| file.len() > 0)
            {
                break run.path();
            }
            assert!(
                waited.elapsed() < Duration::from_secs(30),
                "no request was recorded"
            );
            std::thread::sleep(Duration::from_millis(5));
        };
        let killed_ns = monotonic_ns();
        child.kill().unwrap();
        child.wait().unwrap();
        let bundle = Bundle::open(&path).unwrap();
        assert_eq!(bundle.state(), BundleState::Cut);
        let records = bundle.read_requests().unwrap().records;
        // By the server's stamps: every request that it had answered whole 100 ms before the kill.
        let ids: std::collections::HashSet<&str> = records.iter().map(|record| record.id.as_str()).collect();
        let run_id = path.file_name().unwrap().to_str().unwrap();
        for served in server.truth().requests {
            let Some(id) = served.id.filter(|id| id.starts_with(run_id)) else {
                continue;
            };
            let whole = served.end == shakedown_model::RequestEnd::Complete;
            if whole && served.end_ns + 100_000_000 < killed_ns {
                assert!(
                    ids.contains(id.as_str()),
                    "round {round}: {id} had ended and is not in the bundle"
                );
            }
        }
    }
}

#[test]
fn an_interrupt_ends_cleanly_and_keeps_what_was_measured() {
    let server = practice(Options {
        ttft: Duration::from_millis(5),
        itl: Duration::from_millis(1),
        ..Options::default()
    });
    let store = tempfile::tempdir().unwrap();
    let child = start(&server.url(), store.path(), "1000000");
    std::thread::sleep(Duration::from_millis(600));
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let document: RunDocument = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document.end, RunEnd::Interrupted);
    assert!(document.pooled.unwrap().successes() > 0);
}

fn monotonic_ns() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    u64::try_from(now.tv_sec()).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec()).unwrap()
}
