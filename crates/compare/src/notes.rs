//! What is to be known beside a verdict.

use shakedown_model::{
    AnswerComparison, AnswersVerdict, Applicability, Basis, Finding, Metric, MetricFamily, RestartSource,
    RestartSpread, RunEnd, Verdict,
};
use shakedown_stats::{drift, outliers};

use crate::Side;
use crate::estimate::Measured;
use crate::launches::Launch;

/// A drift or an outlier below this (of ln) is not worth a word.
const WORTH_SAYING: f64 = 0.01;
/// A drift is said where chance would show as much in one of a hundred series.
const DRIFT_P: f64 = 0.01;
/// One launch a side with fewer trials than this should be interleaved.
const FEW_TRIALS: usize = 10;
/// Answers whose mean length differs by more than this share are not the same work.
const LENGTHS: f64 = 0.1;
/// Shares of failed requests that differ by more than this make latencies incomparable.
const FAILURES: f64 = 0.01;

/// What the notes are drawn from.
pub(crate) struct Ground<'a, 'b> {
    pub(crate) a: &'b Side<'a>,
    pub(crate) b: &'b Side<'a>,
    pub(crate) launches_a: &'b [Launch<'a>],
    pub(crate) launches_b: &'b [Launch<'a>],
    pub(crate) basis: Basis,
    pub(crate) primary: &'b Measured,
    pub(crate) restarts: Option<RestartSpread>,
    pub(crate) answers: &'b AnswerComparison,
}

/// The notes, weightiest first.
pub(crate) fn notes(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let mut notes = Vec::new();
    notes.extend(answers_note(ground.answers));
    notes.extend(lengths(ground));
    notes.extend(failures(ground));
    notes.extend(restarts(ground.restarts));
    notes.extend(unknown_launches(ground));
    notes.extend(few_trials(ground));
    for (name, side) in [("A", &ground.primary.a), ("B", &ground.primary.b)] {
        for (number, launch) in (1..).zip(side) {
            let subject = if side.len() > 1 {
                format!("launch {number} of {name}")
            } else {
                name.to_owned()
            };
            notes.extend(drift_note(ground, &subject, launch));
            notes.extend(outlier_notes(ground, &subject, launch));
        }
    }
    notes.extend(missing(ground));
    notes.extend(in_force_unknown(ground));
    notes.extend(interrupted(ground));
    notes
}

fn answers_note(answers: &AnswerComparison) -> Option<Finding> {
    let rate = answers.agreement.unwrap_or(0.0) * 100.0;
    let subject = "the answers";
    match answers.verdict {
        AnswersVerdict::Agree => None,
        AnswersVerdict::Differ => Some(
            Finding::new(
                "answers-differ",
                Verdict::Warn,
                subject,
                format!(
                    "{rate:.0}% of answers to {} greedy prompts are the same on both sides",
                    answers.prompts
                ),
            )
            .why("Other kernels and batch sizes move greedy answers a little; so do faults"),
        ),
        AnswersVerdict::Wrong => Some(
            Finding::new(
                "answers-wrong",
                Verdict::Fail,
                subject,
                format!(
                    "only {rate:.0}% of answers to {} greedy prompts are the same on both sides",
                    answers.prompts
                ),
            )
            .why("A server that answers something else is not faster at the same work"),
        ),
        AnswersVerdict::Unknown if answers.prompts == 0 => Some(
            Finding::new(
                "answers-not-compared",
                Verdict::Info,
                subject,
                "the runs hold no answers to greedy prompts: whether both sides answer alike is not known",
            )
            .why("A fault can make a server fast"),
        ),
        AnswersVerdict::Unknown => Some(Finding::new(
            "answers-unsteady",
            Verdict::Info,
            subject,
            "A gives another answer to the same greedy prompt each time, so B cannot be held to it",
        )),
    }
}

/// The mean of a metric over the trials of a side, in its own unit.
fn plain_mean(metric: Metric, side: &Side<'_>) -> Option<f64> {
    let values: Vec<f64> = side
        .runs
        .iter()
        .flat_map(|run| &run.trials)
        .filter_map(|trial| metric.value(&trial.metrics))
        .collect();
    (!values.is_empty()).then(|| shakedown_stats::mean(&values))
}

fn lengths(ground: &Ground<'_, '_>) -> Option<Finding> {
    let mean = |side: &Side<'_>| {
        let values: Vec<f64> = side
            .runs
            .iter()
            .flat_map(|run| &run.trials)
            .filter_map(|trial| trial.metrics.output_tokens.as_ref().map(|tokens| tokens.mean))
            .collect();
        (!values.is_empty()).then(|| shakedown_stats::mean(&values))
    };
    let (a, b) = (mean(ground.a)?, mean(ground.b)?);
    ((a - b).abs() > LENGTHS * a.max(b)).then(|| {
        Finding::new(
            "answer-lengths-differ",
            Verdict::Warn,
            "the answers",
            format!("answers had {a:.0} tokens on average in A and {b:.0} in B"),
        )
        .why("Longer answers spread the first token's cost over more tokens: the sides did not do the same work")
        .fix(
            "fix the length of answers",
            Some("shakedown bench URL --ignore-eos".to_owned()),
            Applicability::Safe,
        )
    })
}

fn failures(ground: &Ground<'_, '_>) -> Option<Finding> {
    let failed = Metric::of(MetricFamily::Failed);
    let (a, b) = (plain_mean(failed, ground.a)?, plain_mean(failed, ground.b)?);
    ((a - b).abs() > FAILURES).then(|| {
        Finding::new(
            "failures-differ",
            Verdict::Warn,
            "the requests",
            format!(
                "{:.1}% of requests failed in A and {:.1}% in B",
                a * 100.0,
                b * 100.0
            ),
        )
        .why("Failed requests are in no latency figure, which flatters the side that has more of them")
    })
}

fn restarts(spread: Option<RestartSpread>) -> Option<Finding> {
    let spread = spread?;
    let percent = spread.sd * 100.0;
    let (code, what) = match spread.source {
        RestartSource::Assumed => (
            "restart-spread-assumed",
            format!("restart spread assumed, not measured: {percent:.1}%"),
        ),
        RestartSource::Given => (
            "restart-spread-given",
            format!("restart spread given by the user: {percent:.1}%"),
        ),
        RestartSource::History { launches } => (
            "restart-spread-history",
            format!("restart spread {percent:.1}% by {launches} earlier launches of this server"),
        ),
    };
    Some(
        Finding::new(code, Verdict::Info, "the restarts", what)
            .why("With one launch a side nothing shows how far two launches of one server lie apart")
            .fix(
                "measure several launches of each side",
                None,
                Applicability::Review,
            ),
    )
}

fn unknown_launches(ground: &Ground<'_, '_>) -> Option<Finding> {
    let unknown = ground
        .launches_a
        .iter()
        .chain(ground.launches_b)
        .any(|launch| launch.key.is_unknown());
    let several = ground.a.runs.len() > 1 || ground.b.runs.len() > 1;
    (unknown && several).then(|| {
        Finding::new(
            "launch-unknown",
            Verdict::Info,
            "the launches",
            "nothing says whether the server was restarted between runs: runs against one address count as one launch",
        )
        .why("Taking them for several launches would claim more than was seen")
    })
}

fn few_trials(ground: &Ground<'_, '_>) -> Option<Finding> {
    let fewest = ground
        .primary
        .a
        .iter()
        .chain(&ground.primary.b)
        .map(Vec::len)
        .min()?;
    let plain = matches!(ground.basis, Basis::TwoLaunches | Basis::SameLaunch);
    (plain && fewest < FEW_TRIALS).then(|| {
        Finding::new(
            "few-trials",
            Verdict::Info,
            "the trials",
            format!("{fewest} trials a side cannot show how trials depend on their neighbours: a correlation is assumed"),
        )
        .why("Trials of one launch run hot and cold together, and drift between A and B counts as a difference")
        .fix(
            "interleave the trials of both servers",
            Some("shakedown bench --ab URL_A URL_B".to_owned()),
            Applicability::Safe,
        )
    })
}

fn drift_note(ground: &Ground<'_, '_>, subject: &str, launch: &[f64]) -> Option<Finding> {
    let drift = drift(launch).filter(|drift| drift.p < DRIFT_P && drift.total.abs() >= WORTH_SAYING)?;
    let metric = ground.primary.metric;
    let way = if drift.total > 0.0 { "rose" } else { "fell" };
    let what = format!(
        "{metric} {way} by {:.1}% over its {} trials",
        drift.total.exp_m1().abs() * 100.0,
        launch.len()
    );
    let why = if matches!(
        ground.basis,
        Basis::Blocks | Basis::SameLaunchBlocks | Basis::FreshBlocks
    ) {
        "The interleaved blocks cancel what is linear in it"
    } else {
        "A mean over a drift depends on when it was taken; nothing was removed"
    };
    Some(Finding::new("drift", Verdict::Warn, subject, what).why(why))
}

fn outlier_notes(ground: &Ground<'_, '_>, subject: &str, launch: &[f64]) -> Vec<Finding> {
    let metric = ground.primary.metric;
    outliers(launch, WORTH_SAYING)
        .into_iter()
        .map(|place| {
            Finding::new(
                "outlier",
                Verdict::Warn,
                subject,
                format!(
                    "trial {} lies far from the others: {metric} {:.1}",
                    place + 1,
                    launch[place].exp()
                ),
            )
            .why("It was not removed; it makes the interval wide")
        })
        .collect()
}

fn missing(ground: &Ground<'_, '_>) -> Option<Finding> {
    let trials = |launches: &[Launch<'_>]| launches.iter().map(|launch| launch.trials.len()).sum::<usize>();
    let with = |logs: &[Vec<f64>]| logs.iter().map(Vec::len).sum::<usize>();
    let all = trials(ground.launches_a) + trials(ground.launches_b);
    let without = all - with(&ground.primary.a) - with(&ground.primary.b);
    (without > 0).then(|| {
        Finding::new(
            "trials-without-figure",
            Verdict::Warn,
            "the trials",
            format!(
                "{without} of {all} trials have no {} and are left out",
                ground.primary.metric
            ),
        )
    })
}

fn in_force_unknown(ground: &Ground<'_, '_>) -> Option<Finding> {
    let untold = |side: &Side<'_>| side.runs.iter().any(|run| run.server.in_force.is_none());
    let which = match (untold(ground.a), untold(ground.b)) {
        (false, false) => return None,
        (true, false) => "A does",
        (false, true) => "B does",
        (true, true) => "neither side does",
    };
    let not = if which.starts_with("neither") { "" } else { " not" };
    Some(
        Finding::new(
            "in-force-unknown",
            Verdict::Info,
            "the settings",
            format!("{which}{not} tell its settings in force: only what was asked for is compared"),
        )
        .why(
            "Engines choose for themselves, and two launches with the same arguments can run different code",
        ),
    )
}

fn interrupted(ground: &Ground<'_, '_>) -> Option<Finding> {
    let names: Vec<&str> = ground
        .a
        .runs
        .iter()
        .chain(&ground.b.runs)
        .filter(|run| run.end == RunEnd::Interrupted)
        .map(|run| run.id.as_str())
        .collect();
    (!names.is_empty()).then(|| {
        Finding::new(
            "interrupted",
            Verdict::Info,
            "the runs",
            format!(
                "interrupted, with the trials that were done: {}",
                names.join(", ")
            ),
        )
    })
}
