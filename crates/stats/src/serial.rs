//! Values in order of time that depend on their neighbours: what that does to the error of their mean.
//!
//! Trials of one launch run hot and cold together, so their scatter shows less than the error of their mean. Three or
//! five trials cannot show by how much: an assumed dependence stands in, and the data take over as they grow.

use crate::Estimate;
use crate::estimate::{mean, squares};

/// An assumed lag-1 correlation and how many values it is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SerialPrior {
    /// The correlation.
    pub rho: f64,
    /// Values beyond the fifth of each series that weigh as much as the assumption.
    pub weight: f64,
}

impl SerialPrior {
    /// For trials of one launch. Found by simulation (`examples/calibration.rs`): it keeps the 95% interval at 95% or
    /// above at a true 0.3 from three trials a side on, and costs an independent series a width of about 1.5 at five
    /// trials and 1.2 at ten.
    pub const TRIALS: Self = Self {
        rho: 0.35,
        weight: 16.0,
    };
    /// For ABBA blocks: most of the dependence cancels inside a block, and what is left is half of it.
    pub const BLOCKS: Self = Self {
        rho: 0.25,
        weight: 16.0,
    };
}

/// Values of a series that tell nothing of its correlation: the bias of the estimator is as large as itself.
const SILENT_VALUES: usize = 5;
/// A correlation above this is a drift, and no inflation mends that.
const MAX_RHO: f64 = 0.8;

/// ln(B / A) from the trials' logs of one launch a side, in order of time: B − A. A statement on these two
/// launches, not on what another launch would do. Absent with fewer than two trials on a side.
///
/// Both sides share a variance and a lag-1 correlation ρ; the variance of a mean of n is inflated by
/// c = 1 + 2 Σ (1 − k/n) ρᵏ, the sample variance, which the same correlation shrinks, divided by (n − c) / (n − 1)
/// (Bartlett 1946; Zięba and Ramza 2011), and the degrees of freedom reduced by (1 − ρ²) / (1 + ρ²)
/// (Bayley and Hammersley 1946).
pub fn trials(a: &[f64], b: &[f64]) -> Option<Estimate> {
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let rho = shrunk_rho(&[a, b], SerialPrior::TRIALS);
    let (inflation_a, inflation_b) = (inflation(a.len(), rho), inflation(b.len(), rho));
    let (size_a, size_b) = (a.len() as f64, b.len() as f64);
    let variance = (squares(a) + squares(b)) / (size_a - inflation_a + size_b - inflation_b);
    Some(Estimate {
        difference: mean(b) - mean(a),
        se: (variance * (inflation_a / size_a + inflation_b / size_b)).sqrt(),
        df: reduced_df(size_a + size_b - 2.0, rho),
    })
}

/// The mean of one series of values in order of time, with the same allowance for their dependence. Absent with
/// fewer than two values.
///
/// For ABBA blocks (`prior` [`SerialPrior::BLOCKS`]) the values are the blocks' log ratios, and this is the one-sample t over
/// blocks.
pub fn series(values: &[f64], prior: SerialPrior) -> Option<Estimate> {
    if values.len() < 2 {
        return None;
    }
    let rho = shrunk_rho(&[values], prior);
    let size = values.len() as f64;
    let inflation = inflation(values.len(), rho);
    let variance = squares(values) / (size - inflation);
    Some(Estimate {
        difference: mean(values),
        se: (variance * inflation / size).sqrt(),
        df: reduced_df(size - 1.0, rho),
    })
}

/// The log ratio of one interleaved block, B − A, from the logs of its trials by side: the mean of each side. In A B B A
/// (or B A A B) both means lie at the same point of time, so a linear drift cancels. Absent when a side is empty.
pub fn block_log_ratio(a: &[f64], b: &[f64]) -> Option<f64> {
    (!a.is_empty() && !b.is_empty()).then(|| mean(b) - mean(a))
}

/// The mean of independent values: the one-sample t of Student (1908). Absent with fewer than two.
pub fn independent(values: &[f64]) -> Option<Estimate> {
    series(
        values,
        SerialPrior {
            rho: 0.0,
            weight: f64::INFINITY,
        },
    )
}

/// Lag-1 correlation within the series, 0 or above: the pooled estimate, freed of its bias −(1 + 4ρ)/n (Marriott
/// and Pope 1954), drawn towards the assumption.
fn shrunk_rho(series: &[&[f64]], prior: SerialPrior) -> f64 {
    let telling: usize = series
        .iter()
        .map(|values| values.len().saturating_sub(SILENT_VALUES))
        .sum();
    if telling == 0 || prior.weight.is_infinite() {
        return prior.rho;
    }
    let (mut products, mut all) = (0.0, 0.0);
    for values in series {
        let centre = mean(values);
        products += values
            .windows(2)
            .map(|pair| (pair[0] - centre) * (pair[1] - centre))
            .sum::<f64>();
        all += squares(values);
    }
    if all <= 0.0 {
        return prior.rho;
    }
    let length = series.iter().map(|values| values.len()).sum::<usize>() as f64 / series.len() as f64;
    let seen = if length > SILENT_VALUES as f64 {
        ((products / all + 1.0 / length) / (1.0 - 4.0 / length)).clamp(-0.9, 0.9)
    } else {
        prior.rho
    };
    let telling = telling as f64;
    ((telling * seen + prior.weight * prior.rho) / (telling + prior.weight)).clamp(0.0, MAX_RHO)
}

/// By how much the correlation ρ inflates the variance of the mean of `n` values: 1 for ρ = 0, below `n` always.
fn inflation(n: usize, rho: f64) -> f64 {
    let (mut sum, mut power) = (1.0, 1.0);
    for lag in 1..n {
        power *= rho;
        if power < 1e-12 {
            break;
        }
        sum += 2.0 * (1.0 - lag as f64 / n as f64) * power;
    }
    sum
}

fn reduced_df(df: f64, rho: f64) -> f64 {
    (df * (1.0 - rho * rho) / (1.0 + rho * rho)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inflation_by_hand() {
        assert_eq!(inflation(7, 0.0), 1.0);
        // 1 + 2 (2/3 · 0.3 + 1/3 · 0.09)
        assert!((inflation(3, 0.3) - 1.46).abs() < 1e-12);
        // (1 + ρ) / (1 − ρ) in the limit.
        assert!((inflation(1_000_000, 0.5) - 3.0).abs() < 1e-4);
    }

    #[test]
    fn a_linear_drift_cancels_inside_a_block() {
        let at = |place: f64| 4.0 + 0.01 * place;
        let ratio = block_log_ratio(&[at(0.0), at(3.0)], &[at(1.0), at(2.0)]).unwrap();
        assert!(ratio.abs() < 1e-12);
    }

    #[test]
    fn independent_is_the_plain_one_sample_t() {
        let estimate = independent(&[1.0, 2.0, 4.0]).unwrap();
        assert!((estimate.difference - 7.0 / 3.0).abs() < 1e-12);
        assert!((estimate.se - (7.0f64 / 3.0 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(estimate.df, 2.0);
    }

    #[test]
    fn without_a_spread_the_assumption_stands() {
        let flat = [2.0; 12];
        let estimate = series(&flat, SerialPrior::TRIALS).unwrap();
        assert_eq!((estimate.difference, estimate.se), (2.0, 0.0));
    }
}
