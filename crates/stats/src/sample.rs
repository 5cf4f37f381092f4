//! A sorted sample, its quantiles and its moments; values may carry counts.

use crate::percentile_ranks;

/// Why values do not make a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// There is no value (or every count is 0).
    #[error("no values")]
    Empty,
    /// A value is not a number.
    #[error("value {index} is not a number")]
    NotANumber {
        /// Its place in the input, from 0.
        index: usize,
    },
}

/// A sample in ascending order. It holds at least one value; infinities are values (a failed request is
/// infinitely late), NaN is not.
#[derive(Debug, Clone, PartialEq)]
pub struct Sorted {
    values: Vec<f64>,
    /// Values up to and with each entry of `values`, where values carry counts; else empty, each counting once.
    cumulative: Vec<u64>,
}

impl Sorted {
    /// Sorts `values`; drops none.
    pub fn new(mut values: Vec<f64>) -> Result<Self, SampleError> {
        if let Some(index) = values.iter().position(|value| value.is_nan()) {
            return Err(SampleError::NotANumber { index });
        }
        if values.is_empty() {
            return Err(SampleError::Empty);
        }
        values.sort_unstable_by(f64::total_cmp);
        Ok(Self {
            values,
            cumulative: Vec::new(),
        })
    }

    /// The sample in which each value occurs as often as its count says, without writing it out: every answer
    /// is that of the sample written out.
    pub fn weighted(mut pairs: Vec<(f64, u64)>) -> Result<Self, SampleError> {
        if let Some(index) = pairs.iter().position(|(value, _)| value.is_nan()) {
            return Err(SampleError::NotANumber { index });
        }
        pairs.retain(|(_, count)| *count > 0);
        if pairs.is_empty() {
            return Err(SampleError::Empty);
        }
        pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut total = 0u64;
        let cumulative = pairs
            .iter()
            .map(|(_, count)| {
                total = total.saturating_add(*count);
                total
            })
            .collect();
        Ok(Self {
            values: pairs.into_iter().map(|(value, _)| value).collect(),
            cumulative,
        })
    }

    /// Values in the sample, counts included.
    pub fn count(&self) -> u64 {
        self.cumulative
            .last()
            .copied()
            .unwrap_or(self.values.len() as u64)
    }

    /// The smallest value.
    pub fn min(&self) -> f64 {
        self.at(0)
    }

    /// The largest value.
    pub fn max(&self) -> f64 {
        self.at(self.count() - 1)
    }

    /// Arithmetic mean.
    pub fn mean(&self) -> f64 {
        if self.min().is_infinite() || self.max().is_infinite() {
            return self.min() + self.max();
        }
        self.weighted_sum(|value| value) / self.count() as f64
    }

    /// Sample standard deviation (divisor n − 1); absent for one value and where a value is infinite.
    pub fn sd(&self) -> Option<f64> {
        let n = self.count();
        let mean = self.mean();
        if n < 2 || !mean.is_finite() {
            return None;
        }
        // Two passes: the textbook's one-pass formula loses every digit where sd is small beside the mean.
        let squares = self.weighted_sum(|value| (value - mean) * (value - mean));
        Some((squares / (n - 1) as f64).sqrt())
    }

    /// The quantile `q` (0 to 1, clamped), interpolated linearly between the two nearest order statistics: type 7
    /// of Hyndman and Fan (1996), the method `linear` of numpy, whose rounding it follows.
    pub fn quantile(&self, q: f64) -> f64 {
        let place = (self.count() - 1) as f64 * q.clamp(0.0, 1.0);
        let below = place.floor();
        let t = place - below;
        let (low, high) = (
            self.at(below as u64),
            self.at((below as u64 + 1).min(self.count() - 1)),
        );
        if t == 0.0 || low >= high {
            low
        } else if low.is_infinite() || high.is_infinite() {
            if high.is_infinite() { high } else { low }
        } else if t < 0.5 {
            low + (high - low) * t
        } else {
            high - (high - low) * (1.0 - t)
        }
    }

    /// The percentile `p` (0 to 100): [`Sorted::quantile`] of `p / 100`.
    pub fn percentile(&self, p: f64) -> f64 {
        self.quantile(p / 100.0)
    }

    /// Lower and upper bound of the percentile `p` (0 to 100) at confidence `level` (0.95), each an order
    /// statistic of the sample; absent where the sample is too small to bound that side. See [`percentile_ranks`].
    pub fn percentile_interval(&self, p: f64, level: f64) -> (Option<f64>, Option<f64>) {
        let ranks = percentile_ranks(self.count(), p, level);
        (
            ranks.low.map(|rank| self.at(rank - 1)),
            ranks.high.map(|rank| self.at(rank - 1)),
        )
    }

    /// Whether the sample is large enough to say anything of the percentile `p` (0 to 100): at least one of its
    /// values is expected beyond it, n ≥ 1 / (1 − p/100) (1 / (p/100) for percentiles below the median). With fewer
    /// the linear quantile is the largest value by another name: a p99 of 20 requests is their maximum. Every
    /// sample has a median.
    ///
    /// The k-th smallest of n values has k/(n + 1) of the distribution below it on average, so the largest of fewer than
    /// q/(1 − q) values lies below the quantile q (Hyndman and Fan 1996; David and Nagaraja, Order Statistics).
    pub fn can_report(&self, p: f64) -> bool {
        let beyond = p.min(100.0 - p);
        // Whole values beyond: rounding of 100 − 99.9 must not ask for one value more.
        p - 50.0 == 0.0 || (beyond > 0.0 && self.count() as f64 * beyond >= 100.0 - 1e-9)
    }

    /// The value of rank `rank` from 0.
    fn at(&self, rank: u64) -> f64 {
        let place = if self.cumulative.is_empty() {
            rank as usize
        } else {
            self.cumulative.partition_point(|&up_to| up_to <= rank)
        };
        self.values[place.min(self.values.len() - 1)]
    }

    /// Σ count·f(value), compensated (Neumaier 1974): a million gaps must not cost the mean its digits.
    fn weighted_sum(&self, f: impl Fn(f64) -> f64) -> f64 {
        let (mut sum, mut lost) = (0.0f64, 0.0f64);
        let mut before = 0;
        for (place, &value) in self.values.iter().enumerate() {
            let count = match self.cumulative.get(place) {
                Some(&up_to) => {
                    let count = up_to - before;
                    before = up_to;
                    count
                }
                None => 1,
            };
            let term = f(value) * count as f64;
            let next = sum + term;
            lost += if sum.abs() >= term.abs() {
                (sum - next) + term
            } else {
                (term - next) + sum
            };
            sum = next;
        }
        sum + lost
    }
}

/// One percentile of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PercentileSummary {
    /// Which, 0 to 100.
    pub p: f64,
    /// Its value.
    pub value: f64,
    /// Lower end of its 95% interval; absent where the sample is too small to bound it.
    pub low: Option<f64>,
    /// Upper end of its 95% interval; absent where the sample is too small to bound it.
    pub high: Option<f64>,
}

/// A sample in a few numbers, in its own unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Values, counts included.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation; absent for one value.
    pub sd: Option<f64>,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Those of the percentiles asked for that the sample is large enough for, in the order asked.
    pub percentiles: Vec<PercentileSummary>,
}

impl Summary {
    /// Summarises `sample` with those of `percentiles` (0 to 100) that it [can report](Sorted::can_report), each
    /// with its 95% interval.
    pub fn of(sample: &Sorted, percentiles: &[f64]) -> Self {
        Self {
            count: sample.count(),
            mean: sample.mean(),
            sd: sample.sd(),
            min: sample.min(),
            max: sample.max(),
            percentiles: percentiles
                .iter()
                .filter(|&&p| sample.can_report(p))
                .map(|&p| {
                    let (low, high) = sample.percentile_interval(p, 0.95);
                    PercentileSummary {
                        p,
                        value: sample.percentile(p),
                        low,
                        high,
                    }
                })
                .collect(),
        }
    }
}

/// Summarises `values`; absent where there are none or one is not a number.
pub fn summarise(values: &[f64], percentiles: &[f64]) -> Option<Summary> {
    let sample = Sorted::new(values.to_vec()).ok()?;
    Some(Summary::of(&sample, percentiles))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(values: &[f64]) -> Sorted {
        Sorted::new(values.to_vec()).unwrap()
    }

    #[test]
    fn rejects_what_is_no_sample() {
        assert_eq!(Sorted::new(vec![]), Err(SampleError::Empty));
        assert_eq!(
            Sorted::new(vec![1.0, f64::NAN]),
            Err(SampleError::NotANumber { index: 1 })
        );
        assert_eq!(Sorted::weighted(vec![(1.0, 0)]), Err(SampleError::Empty));
        assert_eq!(
            Sorted::weighted(vec![(f64::NAN, 0)]),
            Err(SampleError::NotANumber { index: 0 })
        );
        assert_eq!(summarise(&[f64::NAN], &[50.0]), None);
    }

    #[test]
    fn no_p99_from_20_requests() {
        let twenty = summarise(
            &(0..20).map(f64::from).collect::<Vec<_>>(),
            &[50.0, 90.0, 95.0, 99.0],
        )
        .unwrap();
        let given: Vec<f64> = twenty.percentiles.iter().map(|entry| entry.p).collect();
        assert_eq!(given, [50.0, 90.0, 95.0]);
        let thousand = sorted(&vec![1.0; 1000]);
        assert!(thousand.can_report(99.9) && !thousand.can_report(99.99));
        assert!(!sorted(&vec![1.0; 99]).can_report(99.0) && sorted(&vec![1.0; 100]).can_report(99.0));
        assert!(sorted(&[1.0]).can_report(50.0) && !sorted(&[1.0]).can_report(100.0));
        assert!(!sorted(&[1.0]).can_report(f64::NAN));
    }

    #[test]
    fn a_failed_request_is_infinitely_late() {
        let sample = sorted(&[1.0, 2.0, 3.0, f64::INFINITY]);
        assert_eq!(sample.percentile(50.0), 2.5);
        assert_eq!(sample.percentile(90.0), f64::INFINITY);
        assert_eq!(sample.mean(), f64::INFINITY);
        assert_eq!(sample.sd(), None);
    }

    #[test]
    fn one_value() {
        let sample = sorted(&[7.0]);
        assert_eq!(
            (sample.percentile(1.0), sample.percentile(99.0), sample.sd()),
            (7.0, 7.0, None)
        );
        assert_eq!(sample.percentile_interval(50.0, 0.95), (None, None));
    }
}
