//! A difference of logarithms with its standard error, and what follows from the two.

use crate::{t_cdf, t_quantile};

/// An estimated difference (or mean) of logarithms. `difference` is ln(B / A): 0.01 is about one per cent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The difference.
    pub difference: f64,
    /// Its standard error.
    pub se: f64,
    /// Degrees of freedom of the standard error; not always whole.
    pub df: f64,
}

impl Estimate {
    /// Half the width of the two-sided interval at confidence `level` (0.95): t · se.
    pub fn half_width(&self, level: f64) -> f64 {
        t_quantile(f64::midpoint(1.0, level), self.df) * self.se
    }

    /// The two-sided interval at confidence `level`, in logarithms.
    pub fn interval(&self, level: f64) -> (f64, f64) {
        let half = self.half_width(level);
        (self.difference - half, self.difference + half)
    }

    /// Two-sided p-value of "the difference is 0". Without any spread it is 0, or 1 for no difference at all.
    pub fn p_value(&self) -> f64 {
        if self.se > 0.0 {
            (2.0 * t_cdf(-(self.difference / self.se).abs(), self.df)).min(1.0)
        } else if self.difference == 0.0 {
            1.0
        } else {
            0.0
        }
    }
}

/// Arithmetic mean; NaN of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sum of squared deviations from the mean.
pub(crate) fn squares(values: &[f64]) -> f64 {
    let centre = mean(values);
    values
        .iter()
        .map(|value| (value - centre) * (value - centre))
        .sum()
}

/// Sample standard deviation (divisor n − 1); absent for fewer than two values.
pub fn sd(values: &[f64]) -> Option<f64> {
    (values.len() > 1).then(|| (squares(values) / (values.len() - 1) as f64).sqrt())
}
