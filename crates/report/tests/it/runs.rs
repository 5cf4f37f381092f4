//! A run on the screen, in Markdown and as CSV.

use insta::assert_snapshot;
use shakedown_model::{Arrival, Load, OutcomeCount, Rate, RequestOutcome, RunEnd, Stop};
use shakedown_report::{Style, run_csv, run_markdown, run_summary};

use crate::sample;

const UNICODE: Style = Style {
    colour: false,
    unicode: true,
    width: 100,
};
const BUNDLE: Option<&str> = Some("/home/me/.local/share/shakedown/runs/20261201-143012-k7q2");

#[test]
fn all_well() {
    assert_snapshot!(run_summary(&sample::well(), BUNDLE, &UNICODE));
}

#[test]
fn failures() {
    assert_snapshot!(run_summary(&sample::failures(), BUNDLE, &UNICODE));
}

#[test]
fn unknown_tokens() {
    assert_snapshot!(run_summary(&sample::unknown_tokens(), BUNDLE, &UNICODE));
}

#[test]
fn speculative() {
    assert_snapshot!(run_summary(&sample::speculative(), BUNDLE, &UNICODE));
}

#[test]
fn several_trials() {
    assert_snapshot!(run_summary(&sample::several_trials(), BUNDLE, &UNICODE));
}

#[test]
fn client_limited() {
    assert_snapshot!(run_summary(&sample::client_limited(), None, &UNICODE));
}

#[test]
fn narrow_and_ascii() {
    let text = run_summary(&sample::speculative(), BUNDLE, &Style::PLAIN);
    assert!(text.is_ascii());
    assert_snapshot!(text);
}

#[test]
fn an_open_loop() {
    let mut document = sample::well();
    document.load = Load::Open {
        rate: 2.5,
        arrival: Arrival::Poisson,
        max_concurrency: Some(64),
    };
    document.stop = Stop::Seconds(600.0);
    document.cold = true;
    let metrics = document.pooled.as_mut().unwrap();
    metrics.service_ttft_ms = Some(sample::around(150.0, 200));
    metrics.service_e2e_ms = Some(sample::around(1400.0, 200));
    metrics.connect_ms = Some(sample::around(0.31, 9));
    metrics.output_tok_s = Some(Rate {
        value: 1220.0,
        low: Some(1220.0),
        high: None,
    });
    assert_snapshot!(run_summary(&document, BUNDLE, &UNICODE));
}

#[test]
fn a_run_that_was_cut_or_failed() {
    let mut document = sample::well();
    document.end = RunEnd::Running;
    document.pooled = None;
    document.trials = Vec::new();
    document.client_health = None;
    assert_snapshot!("cut", run_summary(&document, BUNDLE, &UNICODE));
    document.end = RunEnd::Failed;
    assert!(run_summary(&document, BUNDLE, &UNICODE).contains("failed: the target could not be measured\n"));
    document.end = RunEnd::Interrupted;
    document.pooled = Some(sample::metrics(3));
    assert!(
        run_summary(&document, BUNDLE, &UNICODE)
            .contains("interrupted: the figures cover what was measured before\n")
    );
}

#[test]
fn nothing_was_answered() {
    let mut document = sample::well();
    document.pooled = Some(shakedown_model::Metrics {
        outcomes: vec![OutcomeCount {
            outcome: RequestOutcome::Refused,
            count: 200,
        }],
        window_s: Some(20.0),
        ..Default::default()
    });
    assert_snapshot!(run_summary(&document, BUNDLE, &UNICODE));
}

/// What a server says of itself reaches neither the terminal as commands nor Markdown as markup.
#[test]
fn hostile_words() {
    let mut document = sample::well();
    document.server.model = Some("\u{1b}]0;owned\u{7}<script>|x|".to_owned());
    document.id = "id\u{1b}[2J".to_owned();
    let in_force = document.server.in_force.as_mut().unwrap();
    in_force.settings[0].value = "a\u{9b}31m\nb".to_owned();
    document.findings[0].verdict = shakedown_model::Verdict::Warn;
    document.findings[0].what = "the server said \u{1b}[31m".to_owned();
    document.findings[0].code = "co\u{8}de".to_owned();
    let style = Style {
        colour: false,
        ..UNICODE
    };
    for text in [
        run_summary(&document, Some("/tmp/\u{7}"), &style),
        run_markdown(&document, Some("/tmp/\u{7}")),
    ] {
        assert!(
            !text.chars().any(|sign| sign.is_control() && sign != '\n'),
            "{text:?}"
        );
    }
    let markdown = run_markdown(&document, None);
    assert!(markdown.contains("\\<script\\>\\|x\\|"), "{markdown}");
}

/// Without its escape codes coloured text is the plain text.
#[test]
fn colour_says_nothing_new() {
    for document in [
        sample::well(),
        sample::failures(),
        sample::unknown_tokens(),
        sample::client_limited(),
    ] {
        let plain = run_summary(&document, BUNDLE, &UNICODE);
        let coloured = run_summary(
            &document,
            BUNDLE,
            &Style {
                colour: true,
                ..UNICODE
            },
        );
        assert!(!plain.contains('\u{1b}'));
        assert!(coloured.contains('\u{1b}'));
        assert_eq!(without_codes(&coloured), plain);
    }
}

fn without_codes(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, code)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        rest = code.split_once('m').unwrap().1;
    }
    out + rest
}

/// Nothing but what cannot be broken passes the width: names, addresses, paths, commands.
#[test]
fn lines_fit() {
    for document in [
        sample::well(),
        sample::failures(),
        sample::unknown_tokens(),
        sample::speculative(),
    ] {
        for width in [72, 80, 100, 160] {
            for line in run_summary(&document, Some("/short/path"), &Style { width, ..UNICODE }).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn in_markdown() {
    assert_snapshot!("markdown_trials", run_markdown(&sample::several_trials(), BUNDLE));
    assert_snapshot!("markdown_findings", run_markdown(&sample::client_limited(), None));
}

#[test]
fn as_csv() {
    let csv = run_csv(&sample::several_trials());
    let rows: Vec<Vec<&str>> = csv
        .strip_suffix("\r\n")
        .unwrap()
        .split("\r\n")
        .map(|row| row.split(',').collect())
        .collect();
    assert_eq!(rows.len(), 1 + 5 + 1);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    let value =
        |row: usize, name: &str| rows[row][rows[0].iter().position(|header| *header == name).unwrap()];
    assert_eq!(value(1, "trial"), "1");
    assert_eq!(value(3, "request_tok_s_p50"), "90");
    assert_eq!(value(6, "trial"), "pooled");
    assert_eq!(value(6, "request_tok_s_p50"), "89.5");
    assert_eq!(value(6, "ttft_ms_n"), "5");
    assert_eq!(value(6, "ttft_ms_p50"), "200");
    assert_eq!(value(6, "ttft_ms_p99"), "", "too few for it");
    assert_eq!(value(6, "output_tok_s"), "", "one stream has none");
    assert_eq!(value(6, "engine"), "sglang");
    assert_eq!(value(6, "concurrency"), "1");
    assert_eq!(value(6, "rate"), "");
    assert_eq!(value(6, "answered"), "5");
    assert_eq!(value(6, "cached_tokens"), "0");

    let csv = run_csv(&sample::speculative());
    let last = csv.lines().last().unwrap();
    assert!(last.contains(",1235,1220,1250,9.64,"), "{last}");
    assert!(last.ends_with(",2.5,0.5,640,6000"), "{last}");
}
