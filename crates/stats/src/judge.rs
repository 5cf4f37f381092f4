//! From an estimate to one of four answers.

use crate::{Estimate, normal_quantile};

/// What an estimate says of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// B is higher than A.
    Higher,
    /// B is lower than A.
    Lower,
    /// They are the same within the margin.
    Same,
    /// Neither can be said.
    CannotTell,
}

/// What counts as the same and how sure an answer must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// The same is a ratio between 1 / (1 + margin) and 1 + margin.
    pub margin: f64,
    /// Confidence of the interval that must exclude 0.
    pub level: f64,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            margin: 0.02,
            level: 0.95,
        }
    }
}

/// Restart spread assumed where none was measured: standard deviation of ln(launch mean), 1.5%.
pub const ASSUMED_RESTART_SD: f64 = 0.015;

/// Differences up to so many standard errors of a difference of two launches are not told from restart luck.
const RESTART_SIGMAS: f64 = 2.0;

/// What was decided, and what decided it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// The answer.
    pub answer: Answer,
    /// The interval at the rules' level, in logarithms.
    pub interval: (f64, f64),
    /// Two-sided p-value of "no difference".
    pub p: f64,
    /// Whether the interval alone would have said more, and the restart spread forbade it.
    pub capped: bool,
}

/// Judges an estimate whose spread holds all that varies: launches, or trials of one launch on both sides.
///
/// Sameness is asked first: where the 90% interval lies within the margin the sides are the same, even when it excludes 0:
/// two one-sided tests at 5% each (Schuirmann 1987). Then the interval at `rules.level`. `p` is the p-value to use in place of the
/// estimate's own, adjusted for several metrics ([`holm`](crate::holm)).
pub fn judge(estimate: &Estimate, rules: &Rules, p: Option<f64>) -> Judgement {
    judge_with_restarts(estimate, rules, p, 0.0)
}

/// Judges an estimate from one launch a side: its spread lacks the restarts', whose standard deviation is
/// `restart_sd` (of ln; from history, or [`ASSUMED_RESTART_SD`]).
///
/// A difference of two launches has restart luck of standard deviation √2·`restart_sd`. A difference counts only beyond two of
/// these and the interval's half width, added in quadrature: the two errors are independent, and either alone
/// lets too many false wins through when the other is as large. Sameness needs the 90% interval, widened the same way by
/// the restarts' 90%, within the margin: with the assumed 1.5% and a margin of 2% two launches never are the same.
pub fn judge_with_restarts(estimate: &Estimate, rules: &Rules, p: Option<f64>, restart_sd: f64) -> Judgement {
    let own_p = estimate.p_value();
    let interval = estimate.interval(rules.level);
    let restarts = std::f64::consts::SQRT_2 * restart_sd;
    let size = estimate.difference.abs();
    let answer = |restarts: f64| {
        let equal_reach = estimate
            .half_width(SAME_LEVEL)
            .hypot(normal_quantile(f64::midpoint(1.0, SAME_LEVEL)) * restarts);
        if size + equal_reach < rules.margin.ln_1p() {
            return Answer::Same;
        }
        let reach = estimate.half_width(rules.level).hypot(RESTART_SIGMAS * restarts);
        if size > reach && p.unwrap_or(own_p) <= 1.0 - rules.level {
            if estimate.difference > 0.0 {
                Answer::Higher
            } else {
                Answer::Lower
            }
        } else {
            Answer::CannotTell
        }
    };
    let decided = answer(restarts);
    Judgement {
        answer: decided,
        interval,
        p: own_p,
        capped: decided == Answer::CannotTell && restarts > 0.0 && answer(0.0) != Answer::CannotTell,
    }
}

/// Two one-sided tests at 5% are a two-sided interval at 90%.
const SAME_LEVEL: f64 = 0.9;

/// Holm's adjusted p-values (Holm 1979), in the order given: a metric differs at level α where its value is at most α,
/// and the chance that any of the metrics differs falsely is at most α.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    let mut adjusted = vec![1.0; p.len()];
    let mut floor = 0.0f64;
    for (rank, &place) in order.iter().enumerate() {
        floor = floor.max(((p.len() - rank) as f64 * p[place]).min(1.0));
        adjusted[place] = floor;
    }
    adjusted
}
