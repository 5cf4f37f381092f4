//! The two published mock streams on which other clients disagree.

use shakedown_model::{RequestOutcome, TokenSource, WriteKind};
use shakedown_verbs::practice::Options;

use crate::support::{bench, practice};

/// Role at 100 ms, reasoning at 200 and 300, five chunks of two tokens from 350 to 550, usage and the end at 850.
#[test]
fn mock_a_is_read_right() {
    let server = practice(Options::default());
    let measured = bench(
        &server.url(),
        &[
            "-c",
            "1",
            "--requests",
            "4",
            "--warmup",
            "0",
            "--header",
            "x-practice-script: mock-a",
        ],
    );
    assert!([0, 5].contains(&measured.exit), "{}", measured.stderr);
    let truth = server.truth();
    for record in &measured.records {
        assert_eq!(record.outcome, RequestOutcome::Ok);
        assert_eq!(
            (record.tokens.output, record.tokens.source),
            (Some(12), TokenSource::ServerUsage)
        );
        let served = truth
            .requests
            .iter()
            .find(|served| served.id.as_deref() == Some(&*record.id))
            .unwrap();
        // The server's schedule is the published one, to the nanosecond.
        let due_ms: Vec<u64> = served
            .writes
            .due_ns
            .iter()
            .map(|due| (due - served.read_ns) / 1_000_000)
            .collect();
        let due_of = |kind| {
            let all = served.writes.kind.iter().zip(&due_ms);
            all.filter(|(found, _)| **found == kind)
                .map(|(_, due)| *due)
                .collect::<Vec<_>>()
        };
        assert_eq!(due_of(WriteKind::Role), [100]);
        assert_eq!(due_of(WriteKind::Reasoning), [200, 300]);
        assert_eq!(due_of(WriteKind::Content), [350, 400, 450, 500, 550]);
        assert_eq!(due_of(WriteKind::Usage), [850]);
        // What was stamped is those writes and no others: each stamp is at or after its write. How much after is
        // the machine's business here, and the benchmark's elsewhere.
        let origin = measured.document.origin_monotonic_ns;
        let at_ns = |us: Option<u64>| origin + us.unwrap() * 1000;
        let before = |kind, place: usize| {
            let all = served.writes.kind.iter().zip(&served.writes.before_ns);
            *all.filter(|(found, _)| **found == kind).nth(place).unwrap().1
        };
        let stamps = &record.stamps;
        for (stamp, wrote, next) in [
            (
                stamps.first_event,
                before(WriteKind::Role, 0),
                before(WriteKind::Reasoning, 0),
            ),
            (
                stamps.first_token,
                before(WriteKind::Reasoning, 0),
                before(WriteKind::Reasoning, 1),
            ),
            (
                stamps.first_output,
                before(WriteKind::Content, 0),
                before(WriteKind::Content, 1),
            ),
            (
                stamps.last_token,
                before(WriteKind::Content, 4),
                before(WriteKind::Usage, 0),
            ),
        ] {
            assert!(at_ns(stamp) >= wrote, "stamped before it was written");
            assert!(at_ns(stamp) < next, "stamped as the event after it");
        }
        assert!(origin + stamps.end * 1000 >= before(WriteKind::Usage, 0));
        assert_eq!(record.gaps_us.len(), 7);
    }
    // TPOT by its formula from the stamps that were kept: 350 ms over 11 gaps is 31.8 ms when nobody is late.
    let record = &measured.records[0];
    let span_ms = (record.stamps.last_token.unwrap() - record.stamps.first_token.unwrap()) as f64 / 1000.0;
    let metrics = measured.document.pooled.unwrap();
    let tpot = metrics.tpot_ms.unwrap();
    assert!(
        (tpot.min..=tpot.max).contains(&(span_ms / 11.0)),
        "{tpot:?} {span_ms}"
    );
    assert_eq!(metrics.output_tokens.unwrap().mean, 12.0);
    assert!(
        metrics.ttfo_ms.is_some(),
        "TTFO differs from TTFT and must be shown"
    );
}

#[test]
fn mock_b_counts_no_token_that_did_not_come() {
    let server = practice(Options::default());
    for (script, outcome, tokens, total, exit) in [
        ("mock-b-error", RequestOutcome::ErrorInStream, None, None, 1),
        ("mock-b-cut", RequestOutcome::Truncated, None, None, 1),
        ("mock-b-stop", RequestOutcome::Ok, Some(3), Some(12), 0),
        (
            "mock-b-error-usage",
            RequestOutcome::ErrorInStream,
            Some(3),
            Some(12),
            1,
        ),
        (
            "mock-b-cut-usage",
            RequestOutcome::Truncated,
            Some(3),
            Some(12),
            1,
        ),
    ] {
        let header = format!("x-practice-script: {script}");
        let measured = bench(
            &server.url(),
            &[
                "-c",
                "2",
                "--requests",
                "4",
                "--warmup",
                "0",
                "--max-tokens",
                "64",
                "--chunk-usage",
                "off",
                "--header",
                &header,
            ],
        );
        let records: Vec<_> = measured
            .records
            .iter()
            .filter(|record| record.phase == shakedown_model::Phase::Measured)
            .collect();
        assert_eq!(records.len(), 4, "{script}");
        for record in &records {
            assert_eq!(
                (record.outcome, record.tokens.output),
                (outcome, tokens),
                "{script}"
            );
        }
        let sum = records
            .iter()
            .map(|record| record.tokens.output)
            .sum::<Option<u64>>();
        assert_eq!(sum, total, "{script}");
        // On a busy machine a run may rightly call itself client-limited, which is 5.
        assert!(
            measured.exit == exit || (exit == 0 && measured.exit == 5),
            "{script}: {}",
            measured.stderr
        );
    }
}

#[test]
fn an_early_stop_gives_the_tokens_that_came() {
    let server = practice(Options {
        eos_after: Some(50),
        ..Options::default()
    });
    let measured = bench(
        &server.url(),
        &["--requests", "2", "--warmup", "0", "--max-tokens", "128"],
    );
    for record in &measured.records {
        assert_eq!(
            (record.tokens.output, record.tokens.source),
            (Some(50), TokenSource::ServerUsage)
        );
    }
    assert_eq!(measured.document.pooled.unwrap().output_tokens.unwrap().max, 50.0);
}
