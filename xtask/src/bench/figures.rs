//! Medians, and figures with a limit.

use std::fmt;

/// The median; 0 for no values.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        length if length % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Median, smallest and largest as text.
pub(super) fn spread(values: &[f64]) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{:.3} ({low:.3} to {high:.3})", median(values))
}

/// A figure with a limit.
pub(super) struct Check {
    what: String,
    value: f64,
    limit: f64,
    unit: &'static str,
}

impl Check {
    /// A figure that may be at most `limit`.
    pub(super) fn at_most(what: impl Into<String>, value: f64, limit: f64, unit: &'static str) -> Self {
        Self {
            what: what.into(),
            value,
            limit,
            unit,
        }
    }

    /// Whether the limit held.
    pub(super) fn held(&self) -> bool {
        self.value <= self.limit
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            value,
            limit,
            unit,
        } = self;
        let word = if self.held() { "held  " } else { "BROKEN" };
        write!(f, "{word} {what}: {value:.3} {unit}, at most {limit} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        let cases: [(&[f64], f64); 4] = [
            (&[], 0.0),
            (&[7.0], 7.0),
            (&[9.0, 1.0, 5.0], 5.0),
            (&[4.0, 1.0, 3.0, 2.0], 2.5),
        ];
        for (values, expected) in cases {
            assert!((median(values) - expected).abs() < 1e-12, "{values:?}");
        }
    }

    #[test]
    fn a_figure_that_is_no_number_breaks_its_limit() {
        assert!(Check::at_most("a", 1.0, 1.0, "ms").held());
        assert!(!Check::at_most("a", 1.001, 1.0, "ms").held());
        assert!(!Check::at_most("a", f64::NAN, 1.0, "ms").held());
    }
}
