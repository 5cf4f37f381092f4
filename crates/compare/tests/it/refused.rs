//! What measured different things is not compared.

use shakedown_compare::{CompareError, Options, compare, refusals};
use shakedown_model::{
    Conclusion, Finding, Load, PromptKind, RefusalReason, RunDocument, RunEnd, TokenSource, Verdict,
};

use crate::sample::{codes, rates, run, side, side_of};

/// The reasons for which B, changed, is refused beside A.
fn reasons(change: impl Fn(&mut RunDocument)) -> Vec<RefusalReason> {
    let a = side_of("a", 89.5, 2, 0.01, 0.005);
    let mut b = side_of("b", 83.9, 2, 0.01, 0.005);
    b.iter_mut().for_each(change);
    refusals(&side("A", &a), &side("B", &b), false)
        .into_iter()
        .map(|refusal| refusal.reason)
        .collect()
}

#[test]
fn each_reason() {
    assert_eq!(reasons(|_| ()), []);
    assert_eq!(
        reasons(|run| run.workload.sha256 = "bb".repeat(32)),
        [RefusalReason::Workload]
    );
    assert_eq!(
        reasons(|run| run.workload.max_tokens = 512),
        [RefusalReason::Workload]
    );
    assert_eq!(
        reasons(|run| {
            run.workload.kinds = vec![PromptKind::Synthetic];
            run.workload.sha256 = "bb".repeat(32);
        }),
        [RefusalReason::PromptKinds]
    );
    assert_eq!(
        reasons(|run| {
            run.workload.sampling.temperature = Some(0.7);
            run.workload.sha256 = "bb".repeat(32);
        }),
        [RefusalReason::Sampling]
    );
    assert_eq!(
        reasons(|run| run.workload.stream = false),
        [RefusalReason::Endpoint]
    );
    assert_eq!(
        reasons(|run| run.load = Load::Closed { concurrency: 8 }),
        [RefusalReason::Load]
    );
    assert_eq!(reasons(|run| run.cold = true), [RefusalReason::Load]);
    assert_eq!(
        reasons(|run| run.server.model = Some("glm-fp8".into())),
        [RefusalReason::Model]
    );
    assert_eq!(
        reasons(|run| run.schema = "shakedown.run/2".into()),
        [RefusalReason::Definitions]
    );
    assert_eq!(
        reasons(|run| run.end = RunEnd::Failed),
        [RefusalReason::Incomplete]
    );
    assert_eq!(reasons(|run| run.trials.clear()), [RefusalReason::Incomplete]);
    assert_eq!(
        reasons(|run| {
            for trial in &mut run.trials {
                trial.metrics.token_sources =
                    vec![(TokenSource::ServerUsage, 3), (TokenSource::ServerTokenize, 97)];
            }
        }),
        [RefusalReason::TokenSource]
    );
    let finding = |code: &str| Finding::new(code, Verdict::Fail, "the client", "it was late");
    assert_eq!(
        reasons(|run| run.findings.push(finding("client-limited"))),
        [RefusalReason::ClientLimited]
    );
    assert_eq!(
        reasons(|run| run.findings.push(finding("contaminated"))),
        [RefusalReason::Contaminated]
    );
    assert_eq!(reasons(|run| run.findings.push(finding("something-else"))), []);
}

#[test]
fn a_refusal_names_what_differs() {
    let a = side_of("a", 89.5, 1, 0.0, 0.005);
    let mut b = side_of("b", 83.9, 1, 0.0, 0.005);
    b[0].workload.sampling.temperature = Some(0.7);
    b[0].load = Load::Closed { concurrency: 8 };
    let error = compare(&side("before", &a), &side("after", &b), &[], &Options::default()).unwrap_err();
    let text = error.to_string();
    for part in [
        "before",
        "after",
        "temperature 0 in run a0, temperature 0.7 in run b0",
        "16 streams",
        "8 streams",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn force_compares_and_says_so() {
    let a = side_of("a", 89.5, 1, 0.0, 0.005);
    let mut b = side_of("b", 83.9, 1, 0.0, 0.005);
    b[0].load = Load::Closed { concurrency: 8 };
    let options = Options {
        force: true,
        ..Options::default()
    };
    let comparison = compare(&side("A", &a), &side("B", &b), &[], &options).unwrap();
    assert_eq!(comparison.conclusion, Conclusion::Slower);
    assert_eq!(comparison.forced[0].reason, RefusalReason::Load);
    // Nothing to compare cannot be forced.
    let nothing = Vec::new();
    assert!(matches!(
        compare(&side("A", &a), &side("B", &nothing), &[], &options),
        Err(CompareError::Refused { .. })
    ));
}

#[test]
fn a_declared_variant_may_have_another_name() {
    let a = side_of("a", 89.5, 1, 0.0, 0.005);
    let mut b = side_of("b", 120.0, 1, 0.0, 0.005);
    b[0].server.model = Some("glm-fp8".into());
    let options = Options {
        variant: true,
        ..Options::default()
    };
    let comparison = compare(&side("A", &a), &side("B", &b), &[], &options).unwrap();
    assert_eq!(
        (comparison.conclusion, comparison.forced.len()),
        (Conclusion::Faster, 0)
    );
}

#[test]
fn a_run_beside_itself_and_a_mixed_side() {
    let a = side_of("a", 89.5, 2, 0.01, 0.005);
    let found = refusals(&side("A", &a), &side("B", &a[..1]), false);
    assert_eq!(found[0].what, "run a0 is on both sides");
    let twice = [a[0].clone(), a[0].clone()];
    let found = refusals(&side("A", &a[1..]), &side("B", &twice), false);
    assert_eq!(
        (found[0].reason, found[0].what.as_str()),
        (RefusalReason::Sides, "run a0 is twice in B")
    );
    let mut mixed = side_of("m", 89.5, 2, 0.01, 0.005);
    mixed[1].load = Load::Closed { concurrency: 1 };
    let b = side_of("b", 89.5, 1, 0.0, 0.005);
    let found = refusals(&side("A", &mixed), &side("B", &b), false);
    assert_eq!(found[0].reason, RefusalReason::Load);
    assert!(
        found[0].what.contains("run m0") && found[0].what.contains("run m1"),
        "{}",
        found[0].what
    );
}

#[test]
fn an_interrupted_run_counts_with_what_it_has() {
    let a = side_of("a", 89.5, 1, 0.0, 0.005);
    let mut b = side_of("b", 83.9, 1, 0.0, 0.005);
    b[0].end = RunEnd::Interrupted;
    b[0].trials.truncate(4);
    let comparison = compare(&side("A", &a), &side("B", &b), &[], &Options::default()).unwrap();
    assert!(codes(&comparison).contains(&"interrupted"));
}

#[test]
fn a_side_without_the_figure_is_named() {
    let a = side_of("a", 89.5, 1, 0.0, 0.005);
    let mut b = vec![run("b", "lb", &rates(89.5, 0.0, 0.005))];
    for trial in &mut b[0].trials {
        trial.metrics.output_tok_s = None;
    }
    let error = compare(&side("A", &a), &side("B", &b), &[], &Options::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "compare A with B: no trial of B has the metric output_tok_s"
    );
}
