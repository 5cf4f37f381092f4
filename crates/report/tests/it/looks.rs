//! Findings and errors.

use insta::assert_snapshot;
use shakedown_model::{Confidence, Evidence, Verdict};
use shakedown_report::{Style, error_text, finding_text};

use crate::sample;

#[test]
fn a_finding_in_full() {
    let document = sample::client_limited();
    assert_snapshot!(finding_text(
        &document.findings[0],
        &Style {
            width: 90,
            ..Style::PLAIN
        }
    ));
}

#[test]
fn a_finding_that_is_not_certain() {
    let mut finding = sample::client_limited()
        .findings
        .remove(1)
        .confidence(Confidence::Likely);
    finding.verdict = Verdict::Unknown;
    for line in 1..=7 {
        finding = finding.evidence(Evidence::at_line("server.log", line, "x"));
    }
    let text = finding_text(&finding, &Style::PLAIN);
    assert!(
        text.starts_with("unknown[coalesced-reads]: likely: 12.0% of chunks"),
        "{text}"
    );
    assert!(
        text.contains("  seen in: server.log:5: x\n  and 2 more\n"),
        "{text}"
    );
}

#[test]
fn an_error_with_causes_and_hints() {
    let causes = [
        "write /data/runs/x/run.json: no space left".to_owned(),
        "no space left".to_owned(),
    ];
    let hints = [
        "keep runs elsewhere: --store DIR".to_owned(),
        "keep runs elsewhere: --store DIR".to_owned(),
    ];
    let text = error_text("failed to keep the run", &causes, &hints, &Style::PLAIN);
    assert_eq!(
        text,
        "error: failed to keep the run\n  caused by: write /data/runs/x/run.json: no space left\n\
         hint: keep runs elsewhere: --store DIR\n"
    );
    let coloured = error_text(
        "failed",
        &[],
        &[],
        &Style {
            colour: true,
            ..Style::PLAIN
        },
    );
    assert_eq!(coloured, "\u{1b}[1m\u{1b}[31merror\u{1b}[0m: failed\n");
}
