//! The figures of the story: 89.5 tok/s before the upgrade, 83.9 after it, 92.6 with another backend.

use shakedown_compare::{Options, compare, restart_spread};
use shakedown_model::{
    Basis, Comparison, ComparisonUnit, Conclusion, Metric, RestartSource, RunDocument, SpeedVerdict,
};

use crate::sample::{codes, compared, rates, run, side, side_of};

fn story(after: f64, launches: usize, sd: f64) -> Comparison {
    // Launches half a per cent apart, beside what the trials' own noise makes of their means.
    let launch_sd = (0.005f64.powi(2) + sd * sd / 5.0).sqrt();
    compared(
        &side_of("a", 89.5, launches, launch_sd, sd),
        &side_of("b", after, launches, launch_sd, sd),
    )
}

#[test]
fn four_launches_tell_at_half_a_per_cent_and_at_three() {
    for sd in [0.005, 0.03] {
        let slower = story(83.9, 4, sd);
        assert_eq!(slower.conclusion, Conclusion::Slower, "{sd}");
        assert_eq!(
            (slower.basis, slower.units_a, slower.units_b),
            (Basis::Launches, 4, 4)
        );
        assert!(!codes(&slower).contains(&"restart-spread-assumed"));
        let faster = story(92.6, 4, sd);
        assert_eq!(faster.conclusion, Conclusion::Faster, "{sd}");
        let primary = faster.primary().unwrap();
        assert!((primary.ratio - 92.6 / 89.5).abs() < 1e-6);
        assert!((primary.a - 89.5).abs() < 1e-3 && (primary.b - 92.6).abs() < 1e-3);
        assert!(primary.low.unwrap() > 1.0 && primary.high.unwrap() < 1.08);
    }
}

#[test]
fn one_launch_tells_what_restarts_cannot_do() {
    let slower = story(83.9, 1, 0.005);
    assert_eq!(
        (slower.conclusion, slower.basis),
        (Conclusion::Slower, Basis::TwoLaunches)
    );
    let notes = codes(&slower);
    assert!(
        notes.contains(&"restart-spread-assumed") && notes.contains(&"few-trials"),
        "{notes:?}"
    );
    let note = slower
        .notes
        .iter()
        .find(|note| note.code == "restart-spread-assumed")
        .unwrap();
    assert_eq!(note.what, "restart spread assumed, not measured: 1.5%");

    // 3.4% is within what a restart does, however quiet the trials.
    let faster = story(92.6, 1, 0.005);
    let primary = faster.primary().unwrap();
    assert_eq!(
        (faster.conclusion, primary.capped),
        (Conclusion::CannotTell, true)
    );
    let more = primary.more_needed.unwrap();
    assert_eq!(more.unit, ComparisonUnit::Launches);
    assert!(
        more.low.unwrap() >= 1 && more.low <= more.high && more.high.unwrap() <= 10,
        "{more:?}"
    );
}

#[test]
fn one_launch_at_three_per_cent_cannot_tell() {
    for after in [83.9, 92.6] {
        let comparison = story(after, 1, 0.03);
        assert_eq!(comparison.conclusion, Conclusion::CannotTell, "{after}");
        let more = comparison.primary().unwrap().more_needed.unwrap();
        assert!(
            more.low.unwrap() >= 1 && more.high.unwrap() > more.low.unwrap(),
            "{more:?}"
        );
    }
}

#[test]
fn speculative_decoding_made_cheap_is_faster_whatever_the_noise() {
    for (launches, sd) in [(1, 0.005), (1, 0.03), (4, 0.03)] {
        let launch_sd = 0.01;
        let comparison = compared(
            &side_of("a", 54.1, launches, launch_sd, sd),
            &side_of("b", 96.1, launches, launch_sd, sd),
        );
        assert_eq!(comparison.conclusion, Conclusion::Faster, "{launches} {sd}");
    }
}

#[test]
fn the_same_is_the_same() {
    let comparison = compared(
        &side_of("a", 89.5, 4, 0.004, 0.005),
        &side_of("b", 89.9, 4, 0.004, 0.005),
    );
    assert_eq!(comparison.conclusion, Conclusion::Same);
    // Time per token is the reciprocal: its verdict is the same word the other way round.
    let tpot = comparison
        .metrics
        .iter()
        .find(|entry| entry.metric.to_string() == "tpot_p50")
        .unwrap();
    assert_eq!(tpot.verdict, SpeedVerdict::Same);
    assert!(!tpot.higher_is_better && tpot.ratio < 1.0 && tpot.p_adjusted.unwrap() >= tpot.p.unwrap());
}

#[test]
fn two_launches_a_side_are_compared_by_launch() {
    let comparison = compared(
        &side_of("a", 89.5, 2, 0.01, 0.005),
        &side_of("b", 83.9, 2, 0.01, 0.005),
    );
    assert_eq!(
        (comparison.basis, comparison.a.launches, comparison.a.trials),
        (Basis::Launches, 2, 10)
    );
    // Runs of one launch are one unit.
    let two_runs = vec![
        run("a0", "launch-a", &rates(89.5, 0.0, 0.005)),
        run("a1", "launch-a", &rates(89.5, 0.0, 0.005)),
    ];
    let comparison = compared(&two_runs, &side_of("b", 83.9, 1, 0.0, 0.005));
    assert_eq!(
        (comparison.basis, comparison.a.launches, comparison.a.trials),
        (Basis::TwoLaunches, 1, 10)
    );
}

#[test]
fn launches_are_known_by_process_and_never_guessed() {
    let without_id = |id: &str, pid: Option<u32>, started_s: Option<f64>| {
        let mut run = run(id, "", &rates(89.5, 0.0, 0.005));
        run.launch.id = None;
        (run.server.pid, run.server.started_s) = (pid, started_s);
        run
    };
    let a = vec![
        without_id("a0", Some(7), Some(1000.0)),
        without_id("a1", Some(7), Some(5000.0)),
    ];
    // One second of difference is the kernel's, not a restart.
    let b = vec![
        without_id("b0", Some(9), Some(1000.0)),
        without_id("b1", Some(9), Some(1001.0)),
    ];
    let comparison = compared(&a, &b);
    assert_eq!((comparison.a.launches, comparison.b.launches), (2, 1));

    let a = vec![without_id("a0", None, None), without_id("a1", None, None)];
    let comparison = compared(&a, &b);
    assert_eq!((comparison.a.launches, comparison.basis), (1, Basis::TwoLaunches));
    assert!(codes(&comparison).contains(&"launch-unknown"));
}

#[test]
fn one_launch_on_both_sides_has_no_restart() {
    let a = vec![run("a", "launch", &rates(89.5, 0.0, 0.002))];
    let b = vec![run("b", "launch", &rates(89.6, 0.0, 0.002))];
    let comparison = compared(&a, &b);
    assert_eq!(
        (comparison.conclusion, comparison.basis),
        (Conclusion::Same, Basis::SameLaunch)
    );
    assert_eq!(comparison.primary().unwrap().restart_spread, None);
    assert_eq!((comparison.units_a, comparison.units_b), (5, 5));
}

#[test]
fn history_teaches_the_restart_spread() {
    let history = |launch_sd: f64| -> Vec<RunDocument> {
        (0..2)
            .flat_map(|again| side_of(&format!("h{again}"), 89.5, 4, launch_sd, 0.002))
            .collect()
    };
    let quiet = history(0.003);
    let runs: Vec<&RunDocument> = quiet.iter().collect();
    let (a, b) = (
        side_of("a", 89.5, 1, 0.0, 0.002),
        side_of("b", 92.6, 1, 0.0, 0.002),
    );
    let spread = restart_spread(&runs, &[&a[0]], Metric::PRIMARY).unwrap();
    assert!(
        (spread.sd - 0.003 * (6.0f64 / 7.0).sqrt()).abs() < 2e-4,
        "{spread:?}"
    );
    assert_eq!(spread.source, RestartSource::History { launches: 8 });
    let comparison = compare(&side("A", &a), &side("B", &b), &runs, &Options::default()).unwrap();
    // Capped at the assumed 1.5%; not at this server's 0.3%.
    assert_eq!(comparison.conclusion, Conclusion::Faster);
    assert!(codes(&comparison).contains(&"restart-spread-history"));
    // The user's word goes before history's.
    let options = Options {
        restart_sd: Some(0.02),
        ..Options::default()
    };
    let comparison = compare(&side("A", &a), &side("B", &b), &runs, &options).unwrap();
    assert_eq!(comparison.conclusion, Conclusion::CannotTell);
    assert!(codes(&comparison).contains(&"restart-spread-given"));
    // Four launches are no history, and neither are those of another load.
    assert_eq!(restart_spread(&runs[..4], &[&a[0]], Metric::PRIMARY), None);
    let mut other = a[0].clone();
    other.load = shakedown_model::Load::Closed { concurrency: 1 };
    assert_eq!(restart_spread(&runs, &[&other], Metric::PRIMARY), None);
}

#[test]
fn one_trial_a_side_has_a_ratio_and_no_interval() {
    let comparison = compared(&[run("a", "la", &[89.5])], &[run("b", "lb", &[83.9])]);
    let primary = comparison.primary().unwrap();
    assert_eq!(
        (comparison.conclusion, primary.low, primary.p),
        (Conclusion::CannotTell, None, None)
    );
    assert!((primary.ratio - 83.9 / 89.5).abs() < 1e-9);
}

#[test]
fn drift_and_outliers_are_said_and_stay_in() {
    let drifting: Vec<f64> = (0..8)
        .map(|place| 89.5 * (1.0 - 0.006 * f64::from(place)))
        .collect();
    let mut with_outlier = rates(89.5, 0.0, 0.002);
    with_outlier.extend([70.0, 89.4]);
    let comparison = compared(&[run("a", "la", &drifting)], &[run("b", "lb", &with_outlier)]);
    let notes = codes(&comparison);
    assert!(
        notes.contains(&"drift") && notes.contains(&"outlier"),
        "{notes:?}"
    );
    let outlier = comparison
        .notes
        .iter()
        .find(|note| note.code == "outlier")
        .unwrap();
    assert!(
        outlier.what.contains("trial 6") && outlier.subject == "B",
        "{outlier:?}"
    );
    // The geometric mean of all seven.
    let mean = (with_outlier.iter().map(|rate| rate.ln()).sum::<f64>() / 7.0).exp();
    assert!((comparison.primary().unwrap().b - mean).abs() < 1e-9);
}

#[test]
fn one_stream_without_a_window_is_compared_by_its_request_rate() {
    let runs = |name: &str, centre: f64| {
        let mut runs = side_of(name, centre, 4, 0.002, 0.002);
        for trial in runs.iter_mut().flat_map(|run| &mut run.trials) {
            let rate = trial.metrics.output_tok_s.take().unwrap().value;
            trial.metrics.request_tok_s = Some(crate::sample::distribution(rate));
        }
        runs
    };
    let comparison = compared(&runs("a", 89.5), &runs("b", 83.9));
    assert_eq!(comparison.conclusion, Conclusion::Slower);
    assert_eq!(
        comparison.primary().unwrap().metric.to_string(),
        "request_tok_s_mean"
    );
}

#[test]
fn a_document_goes_there_and_back() {
    let comparison = story(92.6, 1, 0.005);
    let text = serde_json::to_string(&comparison).unwrap();
    assert!(text.contains("\"schema\":\"shakedown.compare/1\""));
    assert_eq!(serde_json::from_str::<Comparison>(&text).unwrap(), comparison);
}
