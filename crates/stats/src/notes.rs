//! What is said of a series of trials beside its mean: outliers and drift. Neither is ever removed.

use crate::estimate::{mean, squares};
use crate::{Sorted, t_cdf};

/// Median absolute deviation times 1.4826, which is the standard deviation of normal values (Hampel 1974). Absent for no
/// values and where one is not a number.
pub fn mad(values: &[f64]) -> Option<f64> {
    let centre = Sorted::new(values.to_vec()).ok()?.quantile(0.5);
    let off = values.iter().map(|value| (value - centre).abs()).collect();
    Some(1.4826 * Sorted::new(off).ok()?.quantile(0.5))
}

/// Places (from 0) of values that lie far from the others: more than 3.5 scaled median absolute deviations from the
/// median (Iglewicz and Hoaglin 1993) and more than `least` in their own unit (of logarithms: 0.01 is one per cent), so that a very
/// quiet series does not cry wolf. Fewer than five values have none.
pub fn outliers(values: &[f64], least: f64) -> Vec<usize> {
    const FAR: f64 = 3.5;
    if values.len() < 5 {
        return Vec::new();
    }
    let (Some(spread), Ok(sample)) = (mad(values), Sorted::new(values.to_vec())) else {
        return Vec::new();
    };
    let centre = sample.quantile(0.5);
    values
        .iter()
        .enumerate()
        .filter(|(_, value)| {
            let off = (*value - centre).abs();
            off > FAR * spread && off > least
        })
        .map(|(place, _)| place)
        .collect()
}

/// A straight line through a series in order of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Change from the first value to the last on that line, in the values' unit.
    pub total: f64,
    /// Two-sided p-value of "no slope".
    pub p: f64,
}

/// The least-squares line over equally spaced values and the t test of its slope (Draper and Smith 1998, section 1.4). Absent
/// for fewer than four values.
pub fn drift(values: &[f64]) -> Option<Drift> {
    if values.len() < 4 {
        return None;
    }
    let n = values.len() as f64;
    let (middle, centre) = ((n - 1.0) / 2.0, mean(values));
    let (mut sxx, mut sxy) = (0.0, 0.0);
    for (place, value) in values.iter().enumerate() {
        let x = place as f64 - middle;
        sxx += x * x;
        sxy += x * (value - centre);
    }
    let slope = sxy / sxx;
    let rest = (squares(values) - slope * sxy).max(0.0);
    let se = (rest / (n - 2.0) / sxx).sqrt();
    let p = if se > 0.0 {
        2.0 * t_cdf(-(slope / se).abs(), n - 2.0)
    } else if slope == 0.0 {
        1.0
    } else {
        0.0
    };
    Some(Drift {
        total: slope * (n - 1.0),
        p,
    })
}
