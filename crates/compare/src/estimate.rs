//! One metric of both sides: its figures, its estimate, and how far restarts may move it.

use shakedown_model::{Basis, ComparisonUnit, Metric, MoreNeeded, RestartSpread, Trial};
use shakedown_stats::{
    Arrangement, Estimate, Rules, SerialPrior, UnitRange, block_log_ratio, guidance, independent, launches,
    mean, series, trials,
};

use crate::units::Units;

/// The logs of a metric of both sides and what they say.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) metric: Metric,
    /// Logs of the trials by launch of A, launches without any left out.
    pub(crate) a: Vec<Vec<f64>>,
    /// The same of B.
    pub(crate) b: Vec<Vec<f64>>,
    /// ln(B / A); absent where there are too few units for an interval.
    pub(crate) estimate: Option<Estimate>,
    /// ln(B / A) as the units pair them.
    pub(crate) difference: f64,
    /// Blocks or pairs of launches behind the estimate, where sides are interleaved.
    pub(crate) blocks: usize,
}

impl Measured {
    /// Measures `metric`; absent where a side has not one trial with a positive value of it.
    pub(crate) fn of(metric: Metric, units: &Units<'_>) -> Option<Self> {
        let side = |of: &[Vec<&Trial>]| -> Vec<Vec<f64>> {
            of.iter()
                .map(|launch| logs(metric, launch))
                .filter(|logs| !logs.is_empty())
                .collect()
        };
        let (a, b) = (side(&units.a), side(&units.b));
        if a.is_empty() || b.is_empty() {
            return None;
        }
        let plain = side_mean(&b) - side_mean(&a);
        let (estimate, blocks) = match units.basis {
            Basis::Launches => (launches(&means(&a), &means(&b)), 0),
            Basis::TwoLaunches | Basis::SameLaunch => (trials(&a[0], &b[0]), 0),
            Basis::Blocks | Basis::SameLaunchBlocks => {
                let ratios: Vec<f64> = units
                    .blocks
                    .iter()
                    .filter_map(|block| ratio(metric, &block.a, &block.b))
                    .collect();
                (series(&ratios, SerialPrior::BLOCKS), ratios.len())
            }
            Basis::FreshBlocks => {
                let ratios: Vec<f64> = units
                    .pairs()
                    .values()
                    .filter_map(|blocks| {
                        let of: Vec<f64> = blocks
                            .iter()
                            .filter_map(|block| ratio(metric, &block.a, &block.b))
                            .collect();
                        (!of.is_empty()).then(|| mean(&of))
                    })
                    .collect();
                (independent(&ratios), ratios.len())
            }
        };
        Some(Self {
            metric,
            difference: estimate.map_or(plain, |estimate| estimate.difference),
            a,
            b,
            estimate,
            blocks,
        })
    }

    /// Figure of A.
    pub(crate) fn figure_a(&self) -> f64 {
        side_mean(&self.a).exp()
    }

    /// Figure of B.
    pub(crate) fn figure_b(&self) -> f64 {
        side_mean(&self.b).exp()
    }

    /// How many more units would tell.
    pub(crate) fn more_needed(
        &self,
        basis: Basis,
        restarts: Option<RestartSpread>,
        rules: &Rules,
    ) -> Option<MoreNeeded> {
        let estimate = self.estimate?;
        let (difference, se, df) = (estimate.difference, estimate.se, estimate.df);
        let restart_sd = restarts.map_or(0.0, |spread| spread.sd);
        let (n_a, n_b) = match basis {
            Basis::SameLaunch => (self.a[0].len() as f64, self.b[0].len() as f64),
            _ => (self.a.len() as f64, self.b.len() as f64),
        };
        let unit_sd = se / (1.0 / n_a + 1.0 / n_b).sqrt();
        let blocks = self.blocks as f64;
        let root2 = std::f64::consts::SQRT_2;
        let two = |sd, fixed| guidance(Arrangement::TwoSides, difference, sd, df, fixed, rules);
        let paired = |sd, fixed| guidance(Arrangement::Blocks, difference, sd, df, fixed, rules);
        let (unit, range, have) = match basis {
            Basis::Launches => (ComparisonUnit::Launches, two(unit_sd, 0.0), n_a.min(n_b)),
            Basis::TwoLaunches => (ComparisonUnit::Launches, two(se / root2, restart_sd), 1.0),
            Basis::SameLaunch => (ComparisonUnit::Trials, two(unit_sd, 0.0), n_a.min(n_b)),
            Basis::Blocks => (ComparisonUnit::Launches, paired(se, root2 * restart_sd), 1.0),
            Basis::FreshBlocks => (ComparisonUnit::Launches, paired(se * blocks.sqrt(), 0.0), blocks),
            Basis::SameLaunchBlocks => (ComparisonUnit::Blocks, paired(se * blocks.sqrt(), 0.0), blocks),
        };
        let more = |units: Option<u32>| units.map(|units| units.saturating_sub(have as u32).max(1));
        let UnitRange { low, high } = range;
        Some(MoreNeeded {
            unit,
            low: more(low),
            high: more(high),
        })
    }
}

/// The logs of a metric in order of trials; trials without a positive value are left out.
pub(crate) fn logs(metric: Metric, of: &[&Trial]) -> Vec<f64> {
    of.iter()
        .filter_map(|trial| metric.value(&trial.metrics))
        .filter(|value| value.is_finite() && *value > 0.0)
        .map(f64::ln)
        .collect()
}

fn ratio(metric: Metric, a: &[&Trial], b: &[&Trial]) -> Option<f64> {
    block_log_ratio(&logs(metric, a), &logs(metric, b))
}

/// The mean log of each launch.
pub(crate) fn means(launches: &[Vec<f64>]) -> Vec<f64> {
    launches.iter().map(|launch| mean(launch)).collect()
}

/// The mean log of a side.
pub(crate) fn side_mean(launches: &[Vec<f64>]) -> f64 {
    mean(&means(launches))
}
