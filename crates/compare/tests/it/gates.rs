//! Limits.

use shakedown_compare::{CompareError, Options, gate};
use shakedown_model::{
    Exit, Finding, GateLimit, GateResult, GateVerdict, Load, OnUnknown, RunDocument, Verdict,
};

use crate::sample::{run, side, side_of};

fn gated(a: &[RunDocument], b: &[RunDocument], limits: &[&str]) -> GateResult {
    let limits: Vec<GateLimit> = limits
        .iter()
        .map(|text| {
            if text.ends_with('%') && !text.starts_with("failed") {
                GateLimit::max_regress(text).unwrap()
            } else {
                GateLimit::max(text).unwrap()
            }
        })
        .collect();
    gate(
        Some(&side("base", a)),
        &side("new", b),
        &[],
        &limits,
        OnUnknown::Report,
        &Options::default(),
    )
    .unwrap()
}

fn launches(name: &str, centre: f64) -> Vec<RunDocument> {
    side_of(name, centre, 4, 0.005, 0.005)
}

#[test]
fn pass_fail_and_unknown() {
    let base = launches("a", 89.5);
    let passed = gated(
        &base,
        &launches("b", 89.4),
        &["output_tok_s=3%", "ttft_p95=250ms", "failed=1%"],
    );
    assert_eq!((passed.verdict, passed.exit()), (GateVerdict::Pass, Exit::Yes));
    let failed = gated(
        &base,
        &launches("b", 83.9),
        &["output_tok_s=3%", "ttft_p95=250ms"],
    );
    assert_eq!((failed.verdict, failed.exit()), (GateVerdict::Fail, Exit::No));
    let check = &failed.checks[0];
    assert!((check.value.unwrap() - (1.0 - 83.9 / 89.5)).abs() < 1e-6);
    assert!(check.low.unwrap() > 0.03 && check.low < check.value && check.value < check.high);
    assert_eq!(failed.checks[1].verdict, GateVerdict::Pass);
    // 3% worse with a limit of 3%: nobody can say.
    let unknown = gated(&base, &launches("b", 89.5 * 0.97), &["output_tok_s=3%"]);
    assert_eq!(
        (unknown.verdict, unknown.exit()),
        (GateVerdict::Unknown, Exit::NotEnoughEvidence)
    );
    assert!(unknown.comparison.is_some());
}

#[test]
fn more_is_worse_where_less_is_better() {
    let failed = gated(&launches("a", 89.5), &launches("b", 83.9), &["tpot_p50=3%"]);
    assert_eq!(failed.verdict, GateVerdict::Fail);
    assert!((failed.checks[0].value.unwrap() - (89.5 / 83.9 - 1.0)).abs() < 1e-6);
    let passed = gated(&launches("a", 83.9), &launches("b", 89.5), &["tpot_p50=3%"]);
    assert_eq!(passed.verdict, GateVerdict::Pass);
    assert!(passed.checks[0].value.unwrap() < 0.0);
}

#[test]
fn one_launch_allows_for_restarts() {
    let one = |name: &str, centre| side_of(name, centre, 1, 0.0, 0.002);
    // Within 1% by the trials; restarts of 1.5% make that unknown.
    let unknown = gated(&one("a", 89.5), &one("b", 89.4), &["output_tok_s=3%"]);
    assert_eq!(unknown.verdict, GateVerdict::Unknown);
    assert!(unknown.checks[0].why.contains("restarts"));
    let failed = gated(&one("a", 89.5), &one("b", 80.0), &["output_tok_s=3%"]);
    assert_eq!(failed.verdict, GateVerdict::Fail);
}

#[test]
fn a_limit_on_the_candidate_alone_needs_no_baseline() {
    let new = launches("b", 89.5);
    let judged = |runs: &[RunDocument], limit: &str| {
        let limits = [GateLimit::max(limit).unwrap()];
        gate(
            None,
            &side("new", runs),
            &[],
            &limits,
            OnUnknown::Report,
            &Options::default(),
        )
        .unwrap()
        .checks
        .remove(0)
    };
    assert_eq!(judged(&new, "ttft_p95=250ms").verdict, GateVerdict::Pass);
    assert_eq!(judged(&new, "ttft_p95=100ms").verdict, GateVerdict::Fail);
    assert_eq!(judged(&new, "e2e_p95=10s").verdict, GateVerdict::Unknown);
    // One trial: by the interval that its percentile carries (120 ms ± 2%), restarts allowed for.
    let single = [run("s", "ls", &[89.5])];
    assert_eq!(judged(&single, "ttft_p95=130ms").verdict, GateVerdict::Pass);
    assert_eq!(judged(&single, "ttft_p95=121ms").verdict, GateVerdict::Unknown);
    assert_eq!(judged(&single, "ttft_p95=110ms").verdict, GateVerdict::Fail);
    // A regression without a baseline is unknown, and so is a gate without a limit.
    let limits = [GateLimit::max_regress("output_tok_s=3%").unwrap()];
    for limits in [&limits[..], &[]] {
        let result = gate(
            None,
            &side("new", &new),
            &[],
            limits,
            OnUnknown::Report,
            &Options::default(),
        )
        .unwrap();
        assert_eq!(result.verdict, GateVerdict::Unknown);
    }
}

#[test]
fn failed_requests_are_counted() {
    let mut new = launches("b", 89.5);
    new[0].trials[0]
        .metrics
        .outcomes
        .push(shakedown_model::OutcomeCount {
            outcome: shakedown_model::RequestOutcome::Truncated,
            count: 40,
        });
    let result = gated(&launches("a", 89.5), &new, &["failed=1%"]);
    assert_eq!(result.verdict, GateVerdict::Fail);
    assert_eq!(result.checks[0].why, "40 of 2040 requests failed");
}

#[test]
fn wrong_answers_pass_no_gate() {
    let with = |mut runs: Vec<RunDocument>, answer: &str| {
        for trial in runs.iter_mut().flat_map(|run| &mut run.trials) {
            trial.canaries = (0..4).map(|prompt| format!("{answer}{prompt}")).collect();
        }
        runs
    };
    let result = gated(
        &with(launches("a", 89.5), "h"),
        &with(launches("b", 120.0), "x"),
        &["output_tok_s=3%", "ttft_p95=250ms"],
    );
    assert_eq!(result.verdict, GateVerdict::Fail);
    assert_eq!(
        (result.checks[0].verdict, result.checks[1].verdict),
        (GateVerdict::Fail, GateVerdict::Pass)
    );
}

#[test]
fn what_cannot_be_compared_cannot_be_gated() {
    let mut new = launches("b", 89.5);
    new[0].load = Load::Closed { concurrency: 1 };
    let base = launches("a", 89.5);
    let limits = [GateLimit::max("ttft_p95=250ms").unwrap()];
    let options = Options::default();
    let error = gate(
        Some(&side("base", &base)),
        &side("new", &new),
        &[],
        &limits,
        OnUnknown::Pass,
        &options,
    );
    assert!(matches!(error, Err(CompareError::Refused { .. })));
    let mut late = launches("b", 89.5);
    late[0].findings.push(Finding::new(
        "client-limited",
        Verdict::Fail,
        "this client",
        "it was late",
    ));
    let error = gate(None, &side("new", &late), &[], &limits, OnUnknown::Pass, &options);
    assert_eq!(error.unwrap_err().to_string(), "judge new: run b0: it was late");
}

#[test]
fn a_document_goes_there_and_back() {
    let result = gated(
        &launches("a", 89.5),
        &launches("b", 83.9),
        &["output_tok_s=3%", "ttft_p95=250ms"],
    );
    let text = serde_json::to_string(&result).unwrap();
    assert!(text.contains("\"schema\":\"shakedown.gate/1\"") && text.contains("\"metric\":\"ttft_p95\""));
    assert_eq!(serde_json::from_str::<GateResult>(&text).unwrap(), result);
}
