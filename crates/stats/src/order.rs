//! Which order statistics bound a percentile, by the exact binomial distribution.

/// Ranks, from 1, of the order statistics that bound a percentile; absent where no value of a sample of that
/// size can bound it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderRanks {
    /// Rank of the lower bound.
    pub low: Option<u64>,
    /// Rank of the upper bound.
    pub high: Option<u64>,
}

/// The ranks of the order statistics that bound the percentile `p` (0 to 100) of the distribution from which
/// `n` independent values were drawn, each side missing it with probability at most `(1 − level) / 2`.
///
/// The number of values below the percentile is Binomial(n, p/100), so the k-th smallest value lies above it with
/// probability P(B < k): David and Nagaraja, Order Statistics (3rd ed.), section 7.1; Hahn and Meeker,
/// Statistical Intervals (1991), section 5.2. No distribution is assumed, and the interval is conservative. Values that depend
/// on each other (gaps of one stream) make it too narrow.
///
/// Takes about 20·√(n·p·(1 − p)) steps; no approximation for large `n`.
pub fn percentile_ranks(n: u64, p: f64, level: f64) -> OrderRanks {
    let q = p / 100.0;
    if n == 0 || !(q > 0.0 && q < 1.0) || !(level > 0.0 && level < 1.0) {
        return OrderRanks {
            low: None,
            high: None,
        };
    }
    let miss = (1.0 - level) / 2.0;
    OrderRanks {
        low: last_rank_below(n, q, miss),
        // The upper bound is the lower bound of the mirrored sample.
        high: last_rank_below(n, 1.0 - q, miss).map(|rank| n + 1 - rank),
    }
}

/// The largest k with P(B ≤ k − 1) ≤ `miss` for B ~ Binomial(n, q); absent where not even k = 1 has it.
fn last_rank_below(n: u64, q: f64, miss: f64) -> Option<u64> {
    let mass = Mass::around_mode(n, q);
    let mut below = 0.0;
    let mut rank = mass.first;
    for share in &mass.shares {
        below += share;
        if below > miss {
            break;
        }
        rank += 1;
    }
    (rank > 0).then_some(rank)
}

/// The binomial distribution where it has any mass that a double can see.
struct Mass {
    /// The smallest number of successes with visible mass.
    first: u64,
    /// Probabilities of `first`, `first + 1`, …
    shares: Vec<f64>,
}

impl Mass {
    /// Walks from the mode both ways by the ratio of neighbours, then normalises: no factorial, no loss.
    fn around_mode(n: u64, q: f64) -> Self {
        const INVISIBLE: f64 = 1e-25;
        let odds = q / (1.0 - q);
        let mode = (((n + 1) as f64 * q) as u64).min(n);
        let mut down = Vec::new();
        let mut weight = 1.0;
        for k in (1..=mode).rev() {
            weight *= k as f64 / ((n - k + 1) as f64 * odds);
            if weight < INVISIBLE {
                break;
            }
            down.push(weight);
        }
        let first = mode - down.len() as u64;
        let mut shares: Vec<f64> = down.into_iter().rev().collect();
        shares.push(1.0);
        weight = 1.0;
        for k in mode..n {
            weight *= (n - k) as f64 * odds / (k + 1) as f64;
            if weight < INVISIBLE {
                break;
            }
            shares.push(weight);
        }
        let total: f64 = shares.iter().sum();
        for share in &mut shares {
            *share /= total;
        }
        Self { first, shares }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(n: u64, p: f64) -> (Option<u64>, Option<u64>) {
        let ranks = percentile_ranks(n, p, 0.95);
        (ranks.low, ranks.high)
    }

    #[test]
    fn the_table_of_the_median() {
        // Ranks that tables of the sign test give for a 95% interval of the median.
        assert_eq!(ranks(5, 50.0), (None, None));
        assert_eq!(ranks(6, 50.0), (Some(1), Some(6)));
        assert_eq!(ranks(10, 50.0), (Some(2), Some(9)));
        assert_eq!(ranks(25, 50.0), (Some(8), Some(18)));
        assert_eq!(ranks(100, 50.0), (Some(40), Some(61)));
    }

    #[test]
    fn a_p99_needs_368_values_for_its_upper_bound() {
        // 0.99^n <= 0.025 first at n = 368.
        assert_eq!(ranks(367, 99.0).1, None);
        assert_eq!(ranks(368, 99.0).1, Some(368));
        // 1 - 0.99^n >= 0.975 is the same n for the mirrored percentile.
        assert_eq!(ranks(367, 1.0).0, None);
        assert_eq!(ranks(368, 1.0).0, Some(1));
    }

    #[test]
    fn nonsense_bounds_nothing() {
        for (n, p, level) in [
            (0, 50.0, 0.95),
            (9, 0.0, 0.95),
            (9, 100.0, 0.95),
            (9, f64::NAN, 0.95),
            (9, 50.0, 1.0),
        ] {
            let ranks = percentile_ranks(n, p, level);
            assert_eq!((ranks.low, ranks.high), (None, None));
        }
    }
}
