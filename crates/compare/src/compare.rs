//! The comparison as a whole.

use shakedown_model::{
    AnswersVerdict, Basis, COMPARISON_SCHEMA, ComparedSide, Comparison, Conclusion, Metric, MetricComparison,
    MetricFamily, Refusal, RestartSpread, RunDocument, SpeedVerdict,
};
use shakedown_stats::{Answer, Judgement, Rules, holm, judge_with_restarts};

use crate::answers::answers;
use crate::estimate::Measured;
use crate::history::spread_for;
use crate::launches::{Launch, group};
use crate::notes::{Ground, notes};
use crate::refuse::alone;
use crate::units::{Units, arrange};
use crate::{Options, Side, differences, refusals};

/// Why there is no comparison.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The sides measured different things.
    #[error("compare {a} with {b}: {}", sentences(refusals))]
    Refused {
        /// Label of A.
        a: String,
        /// Label of B.
        b: String,
        /// Everything that differs.
        refusals: Vec<Refusal>,
    },
    /// The figures of a side that is held to limits of its own say nothing.
    #[error("judge {side}: {}", sentences(refusals))]
    RefusedAlone {
        /// Label of the side.
        side: String,
        /// Everything that is wrong with it.
        refusals: Vec<Refusal>,
    },
    /// A side has no trial with a positive figure of the primary metric.
    #[error("compare {a} with {b}: no trial of {without} has the metric {metric}")]
    NoFigure {
        /// Label of A.
        a: String,
        /// Label of B.
        b: String,
        /// Label of the side without.
        without: String,
        /// The metric.
        metric: Metric,
    },
}

fn sentences(refusals: &[Refusal]) -> String {
    refusals
        .iter()
        .map(|refusal| refusal.what.as_str())
        .collect::<Vec<_>>()
        .join("; ")
}

/// What can be forced: with no run, or one run on both sides, there is nothing to compare at all.
pub(crate) fn check(a: &Side<'_>, b: &Side<'_>, options: &Options) -> Result<Vec<Refusal>, CompareError> {
    let refusals = refusals(a, b, options.variant);
    let hopeless = [a, b]
        .iter()
        .any(|side| side.runs.iter().all(|run| run.trials.is_empty()));
    if refusals.is_empty() || (options.force && !hopeless) {
        Ok(refusals)
    } else {
        Err(CompareError::Refused {
            a: a.label.clone(),
            b: b.label.clone(),
            refusals,
        })
    }
}

/// The same for one side that is held to limits of its own.
pub(crate) fn check_alone(side: &Side<'_>, options: &Options) -> Result<(), CompareError> {
    let refusals = alone(side, options.variant);
    let hopeless = side.runs.iter().all(|run| run.trials.is_empty());
    if refusals.is_empty() || (options.force && !hopeless) {
        Ok(())
    } else {
        Err(CompareError::RefusedAlone {
            side: side.label.clone(),
            refusals,
        })
    }
}

/// Both sides, arranged.
pub(crate) struct Arranged<'a> {
    pub(crate) launches_a: Vec<Launch<'a>>,
    pub(crate) launches_b: Vec<Launch<'a>>,
    pub(crate) units: Units<'a>,
}

impl<'a> Arranged<'a> {
    pub(crate) fn new(a: &Side<'a>, b: &Side<'a>) -> Self {
        let (launches_a, launches_b) = (group(&a.runs), group(&b.runs));
        let units = arrange(&launches_a, &launches_b);
        Self {
            launches_a,
            launches_b,
            units,
        }
    }
}

/// The restart spread to allow for, where the arrangement does not show it.
pub(crate) fn restarts(
    basis: Basis,
    metric: Metric,
    sides: [&Side<'_>; 2],
    history: &[&RunDocument],
    options: &Options,
) -> Option<RestartSpread> {
    basis.assumes_restart_spread().then(|| {
        let like: Vec<&RunDocument> = sides.iter().flat_map(|side| side.runs.iter().copied()).collect();
        spread_for(options.restart_sd, history, &like, metric)
    })
}

/// Compares B with A. `history` holds earlier runs, from which the restart spread is learnt where one launch a side
/// does not show it; runs of the sides themselves may be among them.
pub fn compare(
    a: &Side<'_>,
    b: &Side<'_>,
    history: &[&RunDocument],
    options: &Options,
) -> Result<Comparison, CompareError> {
    let forced = check(a, b, options)?;
    let arranged = Arranged::new(a, b);
    let units = &arranged.units;
    let (metric, primary) = primary(a, b, units, options)?;
    let spread = |metric| restarts(units.basis, metric, [a, b], history, options);
    let others: Vec<(Measured, Option<RestartSpread>)> = options
        .others
        .iter()
        .filter(|&&other| other != metric)
        .filter_map(|&other| Some((Measured::of(other, units)?, spread(other))))
        .collect();
    let adjusted = adjusted(&others);
    let primary_spread = spread(metric);
    let mut metrics = vec![judged(
        &primary,
        units.basis,
        primary_spread,
        None,
        &options.rules,
    )];
    for ((measured, spread), p) in others.iter().zip(adjusted) {
        metrics.push(judged(measured, units.basis, *spread, p, &options.rules));
    }
    let answers = answers(a, b);
    let conclusion = if answers.verdict == AnswersVerdict::Wrong {
        Conclusion::WrongAnswers
    } else {
        metrics[0].verdict.into()
    };
    let notes = notes(&Ground {
        a,
        b,
        launches_a: &arranged.launches_a,
        launches_b: &arranged.launches_b,
        basis: units.basis,
        primary: &primary,
        restarts: primary_spread,
        answers: &answers,
    });
    let (units_a, units_b) = units.counts();
    Ok(Comparison {
        schema: COMPARISON_SCHEMA.to_owned(),
        tool_version: options.tool_version.clone(),
        a: side(a, &arranged.launches_a),
        b: side(b, &arranged.launches_b),
        conclusion,
        basis: units.basis,
        units_a,
        units_b,
        level: options.rules.level,
        margin: options.rules.margin,
        metrics,
        answers,
        differences: differences(a, b, &options.movers),
        notes,
        forced,
    })
}

/// The metric that decides. Where no side has a rate over a window, one stream's rate per request stands for it.
fn primary(
    a: &Side<'_>,
    b: &Side<'_>,
    units: &Units<'_>,
    options: &Options,
) -> Result<(Metric, Measured), CompareError> {
    let mut candidates = vec![options.primary];
    if options.primary == Metric::PRIMARY {
        candidates.push(Metric::mean(MetricFamily::RequestTokS));
    }
    for metric in candidates {
        if let Some(measured) = Measured::of(metric, units) {
            return Ok((metric, measured));
        }
    }
    let metric = options.primary;
    let has = |side: &Side<'_>| {
        side.runs
            .iter()
            .flat_map(|run| &run.trials)
            .any(|trial| metric.value(&trial.metrics).is_some_and(|value| value > 0.0))
    };
    let without = if has(a) { b } else { a };
    Err(CompareError::NoFigure {
        a: a.label.clone(),
        b: b.label.clone(),
        without: without.label.clone(),
        metric,
    })
}

/// Holm's p-values of the metrics that have one.
fn adjusted(others: &[(Measured, Option<RestartSpread>)]) -> Vec<Option<f64>> {
    let raw: Vec<Option<f64>> = others
        .iter()
        .map(|(measured, _)| measured.estimate.map(|estimate| estimate.p_value()))
        .collect();
    let mut adjusted = holm(&raw.iter().copied().flatten().collect::<Vec<_>>()).into_iter();
    raw.into_iter().map(|p| p.and_then(|_| adjusted.next())).collect()
}

fn judged(
    measured: &Measured,
    basis: Basis,
    spread: Option<RestartSpread>,
    p_adjusted: Option<f64>,
    rules: &Rules,
) -> MetricComparison {
    let metric = measured.metric;
    let higher_is_better = metric.higher_is_better();
    let judgement: Option<Judgement> = measured.estimate.map(|estimate| {
        judge_with_restarts(
            &estimate,
            rules,
            p_adjusted,
            spread.map_or(0.0, |spread| spread.sd),
        )
    });
    let verdict = match judgement.map_or(Answer::CannotTell, |judgement| judgement.answer) {
        Answer::Higher if higher_is_better => SpeedVerdict::Faster,
        Answer::Lower if !higher_is_better => SpeedVerdict::Faster,
        Answer::Higher | Answer::Lower => SpeedVerdict::Slower,
        Answer::Same => SpeedVerdict::Same,
        Answer::CannotTell => SpeedVerdict::CannotTell,
    };
    let more_needed = if verdict == SpeedVerdict::CannotTell {
        measured.more_needed(basis, spread, rules)
    } else {
        None
    };
    MetricComparison {
        metric,
        unit: metric.unit(),
        higher_is_better,
        a: measured.figure_a(),
        b: measured.figure_b(),
        ratio: measured.difference.exp(),
        low: judgement.map(|judgement| judgement.interval.0.exp()),
        high: judgement.map(|judgement| judgement.interval.1.exp()),
        verdict,
        p: judgement.map(|judgement| judgement.p),
        p_adjusted,
        capped: judgement.is_some_and(|judgement| judgement.capped),
        restart_spread: spread,
        more_needed,
    }
}

fn side(side: &Side<'_>, launches: &[Launch<'_>]) -> ComparedSide {
    let first = side.runs.first();
    ComparedSide {
        label: side.label.clone(),
        runs: side.runs.iter().map(|run| run.id.clone()).collect(),
        launches: launches.len() as u32,
        trials: launches.iter().map(|launch| launch.trials.len()).sum::<usize>() as u32,
        url: first.map(|run| run.server.url.clone()).unwrap_or_default(),
        engine: first
            .and_then(|run| run.server.engine.as_ref())
            .map(|engine| match &engine.version {
                Some(version) => format!("{} {version}", engine.kind),
                None => engine.kind.to_string(),
            }),
        model: first.and_then(|run| run.server.model.clone()),
    }
}
