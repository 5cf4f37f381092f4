//! A gate's limit on a regression, judged by our rule and by another one.

use shakedown_stats::{ASSUMED_RESTART_SD, Estimate, launches, mean, normal_quantile, sd, trials};

use super::noise::Draws;

/// A gate of known truth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GateCell {
    /// Runs a side; trials of one launch a side where restarts vary or the limit is small.
    pub(crate) runs: usize,
    /// True drop of throughput, as a share.
    pub(crate) drop: f64,
    /// Limit on it.
    pub(crate) limit: f64,
    /// Standard deviation of a run, of ln.
    pub(crate) run_sd: f64,
    /// Standard deviation of the launch effect, of ln.
    pub(crate) launch_sd: f64,
}

/// Shares of the verdicts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GateTally {
    pub(crate) ours_pass: f64,
    pub(crate) ours_fail: f64,
    pub(crate) its_pass: f64,
    pub(crate) its_fail: f64,
}

/// Runs a cell `reps` times. With a limit above 5% the runs are independent, each of its own launch; with a smaller
/// one they are trials of one launch a side.
pub(crate) fn run_gate(cell: &GateCell, reps: u32, seed: u64, place: u64) -> GateTally {
    let mut draws = Draws::new(seed, place);
    let independent = cell.limit > 0.05;
    let mut tally = GateTally::default();
    let one = 1.0 / f64::from(reps);
    for _ in 0..reps {
        let mut side = |centre: f64| -> Vec<f64> {
            let effect = centre + cell.launch_sd * draws.normal();
            (0..cell.runs)
                .map(|_| effect + cell.run_sd * draws.normal())
                .collect()
        };
        let (a, b) = (side(0.0), side((1.0 - cell.drop).ln()));
        let (ours, restart_sd) = if independent {
            (launches(&a, &b).unwrap(), 0.0)
        } else {
            (trials(&a, &b).unwrap(), ASSUMED_RESTART_SD)
        };
        let restarts = normal_quantile(0.95) * std::f64::consts::SQRT_2 * restart_sd;
        let (passed, failed) = decide(&ours, ours.half_width(0.9).hypot(restarts), cell.limit);
        tally.ours_pass += one * f64::from(u8::from(passed));
        tally.ours_fail += one * f64::from(u8::from(failed));
        let plain = |side: &[f64]| side.iter().map(|value| value.exp()).collect::<Vec<_>>();
        let its = welch_of_means(&plain(&a), &plain(&b));
        let (passed, failed) = decide(&its, its.half_width(0.9), cell.limit);
        tally.its_pass += one * f64::from(u8::from(passed));
        tally.its_fail += one * f64::from(u8::from(failed));
    }
    tally
}

fn decide(estimate: &Estimate, half: f64, limit: f64) -> (bool, bool) {
    let drop = |difference: f64| -difference.exp_m1();
    (
        drop(estimate.difference - half) <= limit,
        drop(estimate.difference + half) > limit,
    )
}

/// The log of the ratio of means with Welch's degrees of freedom, its error by the delta method: the estimate of
/// inference-doctor 0.4.1.
pub(crate) fn welch_of_means(a: &[f64], b: &[f64]) -> Estimate {
    let part = |side: &[f64]| {
        let share = sd(side).unwrap() / mean(side);
        share * share / side.len() as f64
    };
    let (part_a, part_b) = (part(a), part(b));
    let sum = part_a + part_b;
    Estimate {
        difference: (mean(b) / mean(a)).ln(),
        se: sum.sqrt(),
        df: sum * sum / (part_a * part_a / (a.len() - 1) as f64 + part_b * part_b / (b.len() - 1) as f64),
    }
}
