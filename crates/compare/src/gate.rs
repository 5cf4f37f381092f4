//! Limits, and whether a side keeps them.

use shakedown_model::{
    AnswersVerdict, Basis, GATE_SCHEMA, GateCheck, GateLimit, GateResult, GateVerdict, Metric, MetricFamily,
    OnUnknown, RunDocument, Trial,
};
use shakedown_stats::{Estimate, SerialPrior, independent, normal_quantile, series};

use crate::compare::{Arranged, CompareError, check_alone, compare, restarts};
use crate::estimate::{Measured, logs, means};
use crate::history::spread_for;
use crate::launches::{Launch, group};
use crate::{Options, Side};

/// An interval that is wrong at each end with a chance of 5%: a limit is kept or broken at 95% confidence.
const LEVEL: f64 = 0.9;

/// Holds `candidate` to `limits`. A limit on a regression needs `baseline` and is refused where the two cannot be compared; the
/// others look at `candidate` alone.
///
/// A limit is kept where the whole interval keeps it, broken where the whole interval breaks it, and unknown otherwise: an
/// estimate on the right side of a limit with an interval across it is luck. Answers that are wrong break every limit on a
/// regression.
pub fn gate(
    baseline: Option<&Side<'_>>,
    candidate: &Side<'_>,
    history: &[&RunDocument],
    limits: &[GateLimit],
    on_unknown: OnUnknown,
    options: &Options,
) -> Result<GateResult, CompareError> {
    let comparison = baseline
        .map(|baseline| compare(baseline, candidate, history, options))
        .transpose()?;
    if baseline.is_none() {
        check_alone(candidate, options)?;
    }
    let wrong = comparison
        .as_ref()
        .is_some_and(|comparison| comparison.answers.verdict == AnswersVerdict::Wrong);
    let arranged = baseline.map(|baseline| (baseline, Arranged::new(baseline, candidate)));
    let launches = group(&candidate.runs);
    let checks: Vec<GateCheck> = limits
        .iter()
        .map(|&limit| match limit {
            GateLimit::MaxRegress { metric, share } => match &arranged {
                None => unknown(limit, "there is no baseline"),
                Some(_) if wrong => GateCheck {
                    verdict: GateVerdict::Fail,
                    ..unknown(
                        limit,
                        "the answers are not the baseline's: how fast they come is no merit",
                    )
                },
                Some((baseline, arranged)) => {
                    let spread = restarts(
                        arranged.units.basis,
                        metric,
                        [*baseline, candidate],
                        history,
                        options,
                    );
                    regression(
                        limit,
                        metric,
                        share,
                        arranged,
                        spread.map_or(0.0, |spread| spread.sd),
                    )
                }
            },
            GateLimit::Max { metric, most } => {
                if metric.family() == MetricFamily::Failed {
                    failed(limit, most, &launches)
                } else {
                    let spread = spread_for(options.restart_sd, history, &candidate.runs, metric).sd;
                    at_most(limit, metric, most, &launches, spread)
                }
            }
        })
        .collect();
    let any = |verdict| checks.iter().any(|check| check.verdict == verdict);
    let verdict = if any(GateVerdict::Fail) {
        GateVerdict::Fail
    } else if any(GateVerdict::Unknown) || checks.is_empty() {
        GateVerdict::Unknown
    } else {
        GateVerdict::Pass
    };
    Ok(GateResult {
        schema: GATE_SCHEMA.to_owned(),
        tool_version: options.tool_version.clone(),
        verdict,
        on_unknown,
        checks,
        comparison: comparison.map(Box::new),
    })
}

fn unknown(limit: GateLimit, why: impl Into<String>) -> GateCheck {
    GateCheck {
        limit,
        value: None,
        low: None,
        high: None,
        verdict: GateVerdict::Unknown,
        why: why.into(),
    }
}

/// How much worse the candidate is than the baseline, as a share of the baseline; negative where it is better.
fn regression(
    limit: GateLimit,
    metric: Metric,
    most: f64,
    arranged: &Arranged<'_>,
    restart_sd: f64,
) -> GateCheck {
    let Some(measured) = Measured::of(metric, &arranged.units) else {
        return unknown(limit, format!("not both sides have {metric}"));
    };
    let worse = |difference: f64| {
        if metric.higher_is_better() {
            -difference.exp_m1()
        } else {
            difference.exp_m1()
        }
    };
    let Some(estimate) = measured.estimate else {
        return GateCheck {
            value: Some(worse(measured.difference)),
            ..unknown(limit, "one trial a side gives no interval")
        };
    };
    let (low, high) = interval(&estimate, std::f64::consts::SQRT_2 * restart_sd);
    let ends = [worse(low), worse(high)];
    let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
    let rests = match arranged.units.basis {
        Basis::TwoLaunches | Basis::Blocks => ", with the spread of restarts allowed for",
        _ => "",
    };
    decided(limit, worse(estimate.difference), low, high, most, rests)
}

/// Interval of an estimate with an error of known standard deviation beside its own.
fn interval(estimate: &Estimate, other_sd: f64) -> (f64, f64) {
    let half = estimate
        .half_width(LEVEL)
        .hypot(normal_quantile(f64::midpoint(1.0, LEVEL)) * other_sd);
    (estimate.difference - half, estimate.difference + half)
}

/// The candidate's own figure: over its launches; of one launch over its trials; of one trial by the trial's own bounds.
fn at_most(
    limit: GateLimit,
    metric: Metric,
    most: f64,
    launches: &[Launch<'_>],
    restart_sd: f64,
) -> GateCheck {
    let trials: Vec<Vec<&Trial>> = launches
        .iter()
        .map(|launch| launch.trials.iter().map(|timed| timed.trial).collect())
        .collect();
    let by_launch: Vec<Vec<f64>> = trials
        .iter()
        .map(|trials| logs(metric, trials))
        .filter(|logs| !logs.is_empty())
        .collect();
    let Some(first) = by_launch.first() else {
        return unknown(limit, format!("no trial has {metric}"));
    };
    let alone = ", with the spread of restarts allowed for";
    let (estimate, other_sd, rests) = if by_launch.len() > 1 {
        (independent(&means(&by_launch)), 0.0, "")
    } else {
        (series(first, SerialPrior::TRIALS), restart_sd, alone)
    };
    if let Some(estimate) = estimate {
        let (low, high) = interval(&estimate, other_sd);
        return decided(
            limit,
            estimate.difference.exp(),
            low.exp(),
            high.exp(),
            most,
            rests,
        );
    }
    let value = first[0].exp();
    let bounds = trials
        .iter()
        .flatten()
        .find_map(|trial| metric.bounds(&trial.metrics));
    match bounds.filter(|(low, _)| *low > 0.0) {
        Some((low, high)) => {
            let restarts = normal_quantile(f64::midpoint(1.0, LEVEL)) * restart_sd;
            let (below, above) = (
                (value / low).ln().hypot(restarts),
                (high / value).ln().hypot(restarts),
            );
            decided(
                limit,
                value,
                value * (-below).exp(),
                value * above.exp(),
                most,
                alone,
            )
        }
        None => GateCheck {
            value: Some(value),
            ..unknown(limit, "one trial gives no interval")
        },
    }
}

/// The share of requests that failed: what happened is counted, nothing is estimated.
fn failed(limit: GateLimit, most: f64, launches: &[Launch<'_>]) -> GateCheck {
    let (mut failed, mut all) = (0, 0);
    for timed in launches.iter().flat_map(|launch| &launch.trials) {
        failed += timed.trial.metrics.failures();
        all += timed.trial.metrics.failures() + timed.trial.metrics.successes();
    }
    if all == 0 {
        return unknown(limit, "no request ended");
    }
    let share = failed as f64 / all as f64;
    let verdict = if share <= most {
        GateVerdict::Pass
    } else {
        GateVerdict::Fail
    };
    GateCheck {
        value: Some(share),
        verdict,
        ..unknown(limit, format!("{failed} of {all} requests failed"))
    }
}

fn decided(limit: GateLimit, value: f64, low: f64, high: f64, most: f64, rests: &str) -> GateCheck {
    let (verdict, why) = if high <= most {
        (GateVerdict::Pass, "the whole interval is within the limit")
    } else if low > most {
        (GateVerdict::Fail, "the whole interval is beyond the limit")
    } else {
        (GateVerdict::Unknown, "the limit lies within the interval")
    };
    GateCheck {
        limit,
        value: Some(value),
        low: Some(low),
        high: Some(high),
        verdict,
        why: format!("{why}{rests}"),
    }
}
