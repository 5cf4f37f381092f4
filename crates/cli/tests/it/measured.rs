//! Invariants of a measurement, whatever the machine is doing.

use std::time::Duration;

use shakedown_model::{Phase, RunEnd};
use shakedown_verbs::practice::{Acceptance, Options};

use crate::support::{bench, practice};

fn quick() -> Options {
    Options {
        ttft: Duration::from_millis(20),
        itl: Duration::from_millis(2),
        ..Options::default()
    }
}

#[test]
fn client_stamps_are_never_before_the_servers() {
    for options in [
        quick(),
        Options {
            phase: shakedown_verbs::practice::Phase::Aligned,
            threads: 2,
            ..quick()
        },
        Options {
            tokens_per_chunk: 3,
            jitter: Duration::from_millis(1),
            ..quick()
        },
    ] {
        let server = practice(options);
        let measured = bench(
            &server.url(),
            &["-c", "16", "--requests", "48", "--max-tokens", "64"],
        );
        let truth = measured
            .document
            .truth
            .expect("the practice server tells its truth");
        assert_eq!(truth.early, 0);
        assert!(truth.p50_ms >= 0.0);
        assert_eq!(measured.document.end, RunEnd::Complete);
    }
}

#[test]
fn all_tokens_are_counted_once() {
    let server = practice(Options {
        tokens_per_chunk: 3,
        ..quick()
    });
    let measured = bench(
        &server.url(),
        &[
            "-c",
            "4",
            "--requests",
            "12",
            "--max-tokens",
            "64",
            "--ignore-eos",
        ],
    );
    for record in measured
        .records
        .iter()
        .filter(|record| record.phase != Phase::Filler)
    {
        assert_eq!(record.tokens.output, Some(64));
        let runs = record
            .chunk_tokens
            .as_ref()
            .expect("running usage tells the tokens of each chunk");
        assert_eq!(
            runs.iter().map(|[tokens, chunks]| tokens * chunks).sum::<u32>(),
            64
        );
        assert_eq!(
            runs.iter().map(|[_, chunks]| *chunks as usize).sum::<usize>(),
            record.gaps_us.len()
        );
    }
    // Chunks that came in one read are one chunk as far as gaps go; on a busy machine there are some.
    let of_sample = measured
        .records
        .iter()
        .filter(|record| record.phase == Phase::Measured);
    let gaps: usize = of_sample
        .map(|record| record.gaps_us.iter().filter(|gap| **gap > 0).count())
        .sum();
    let metrics = measured.document.pooled.unwrap();
    let (icl, itl) = (metrics.icl_ms.as_ref().unwrap(), metrics.itl_ms.as_ref().unwrap());
    assert_eq!(icl.count, gaps as u64);
    // A gap before three tokens is three gaps between tokens; those of the first chunk have none.
    assert!(
        itl.count > 2 * icl.count && itl.count <= 12 * 61,
        "{} of {}",
        itl.count,
        icl.count
    );
    assert_eq!(metrics.successes(), 12);
}

#[test]
fn speculative_decoding_is_seen_in_the_chunks() {
    let server = practice(Options {
        acceptance: Some(Acceptance {
            weights: vec![0.0, 1.0, 0.0],
            ..Acceptance::default()
        }),
        ..quick()
    });
    let measured = bench(&server.url(), &["--requests", "4", "--max-tokens", "41"]);
    let acceptance = &measured.document.pooled.unwrap().acceptance;
    assert!(!acceptance.is_empty(), "{}", measured.stderr);
    // One token from the prompt, then twenty steps of exactly two.
    for figure in acceptance {
        assert!((figure.length.unwrap() - 2.0).abs() < 1e-9, "{figure:?}");
    }
}

#[test]
fn the_same_seed_sends_the_same_workload() {
    let server = practice(quick());
    let go = |extra: &[&str]| {
        bench(
            &server.url(),
            &[&["--requests", "3", "--warmup", "0", "--max-tokens", "4"], extra].concat(),
        )
        .document
        .workload
    };
    assert_eq!(go(&[]).sha256, go(&[]).sha256);
    assert_ne!(go(&[]).sha256, go(&["--temperature", "0.5"]).sha256);
    assert_ne!(go(&[]).sha256, go(&["--order-seed", "2"]).sha256);
}

#[test]
fn trials_and_fillers_are_kept_apart() {
    let server = practice(quick());
    let measured = bench(
        &server.url(),
        &["-c", "4", "--requests", "6", "--runs", "3", "--max-tokens", "32"],
    );
    assert_eq!(measured.document.trials.len(), 3);
    for trial in &measured.document.trials {
        assert_eq!(trial.metrics.successes(), 6);
        let of_trial = |phase| {
            let all = measured
                .records
                .iter()
                .filter(|record| record.trial == trial.number);
            all.filter(|record| record.phase == phase).count()
        };
        assert_eq!(of_trial(Phase::Measured), 6);
        // Six requests over four streams leave streams free while the last ones run.
        assert!(of_trial(Phase::Filler) >= 1);
        assert!(trial.metrics.output_tok_s.unwrap().value > 0.0);
    }
    let warmups = measured
        .records
        .iter()
        .filter(|record| record.phase == Phase::Warmup)
        .count();
    assert_eq!(warmups, 2);
}

#[test]
fn a_timed_trial_measures_what_started_in_its_time() {
    let server = practice(quick());
    let measured = bench(
        &server.url(),
        &["-c", "3", "--duration", "500ms", "--max-tokens", "16"],
    );
    let trial = &measured.document.trials[0];
    for record in &measured.records {
        let in_time = record.stamps.dequeued < trial.start_us + 500_000;
        match record.phase {
            Phase::Measured => assert!(in_time),
            Phase::Filler => assert!(!in_time),
            Phase::Warmup => {}
        }
    }
}

#[test]
fn whole_answers_have_no_first_token() {
    let server = practice(quick());
    let measured = bench(
        &server.url(),
        &["--requests", "2", "--no-stream", "--max-tokens", "8"],
    );
    let metrics = measured.document.pooled.unwrap();
    assert_eq!(metrics.successes(), 2);
    assert!(metrics.ttft_ms.is_none() && metrics.itl_ms.is_none());
    assert_eq!(metrics.output_tokens.unwrap().mean, 8.0);
    assert!(metrics.request_tok_s.is_some());
}

#[test]
fn the_other_dialects_are_read_too() {
    let server = practice(Options {
        engine: shakedown_verbs::practice::Manners::Sglang,
        ..quick()
    });
    for api in ["completions", "generate"] {
        let measured = bench(
            &server.url(),
            &["--requests", "2", "--api", api, "--max-tokens", "8"],
        );
        let metrics = measured.document.pooled.unwrap();
        assert_eq!(metrics.successes(), 2, "{api}: {:?}", metrics.outcomes);
        assert_eq!(metrics.output_tokens.unwrap().mean, 8.0, "{api}");
    }
}
