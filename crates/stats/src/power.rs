//! How many units it takes: the chance that a comparison tells, before it is made.

use statrs::distribution::{ChiSquared, Continuous};

use crate::{Rules, chi_squared_quantile, normal_cdf, t_quantile};

/// How the units of a comparison are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrangement {
    /// `n` units on each side, pooled t.
    TwoSides,
    /// `n` blocks, each holding both sides, one-sample t.
    Blocks,
}

impl Arrangement {
    /// Variance of the difference in units of a unit's variance.
    fn variance_factor(self, n: f64) -> f64 {
        match self {
            Self::TwoSides => 2.0 / n,
            Self::Blocks => 1.0 / n,
        }
    }

    fn df(self, n: f64) -> f64 {
        match self {
            Self::TwoSides => 2.0 * n - 2.0,
            Self::Blocks => n - 1.0,
        }
    }
}

/// A comparison to be made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// How units are arranged.
    pub arrangement: Arrangement,
    /// Units a side, or blocks; at least 2.
    pub units: u32,
    /// The true difference of logarithms.
    pub difference: f64,
    /// Standard deviation of a unit (of a block's log ratio).
    pub sd: f64,
}

impl Plan {
    /// The chance that the interval at `rules.level` excludes 0. It is the power of the t test by the noncentral t
    /// distribution (Cohen 1988, chapter 2), here integrated over the spread that the sample will show.
    pub fn power(&self, rules: &Rules) -> f64 {
        let t = t_quantile(f64::midpoint(1.0, rules.level), self.df());
        self.expected(|se_seen, within| 1.0 - within(t * se_seen))
    }

    /// The chance that the verdict is *same*: the power of two one-sided tests (Phillips 1990).
    pub fn power_same(&self, rules: &Rules) -> f64 {
        let (t, margin) = (t_quantile(0.95, self.df()), rules.margin.ln_1p());
        self.expected(|se_seen, within| within(margin - t * se_seen))
    }

    /// The chance of any verdict other than "cannot tell".
    pub fn tells(&self, rules: &Rules) -> f64 {
        let margin = rules.margin.ln_1p();
        let t_same = t_quantile(0.95, self.df());
        let t = t_quantile(f64::midpoint(1.0, rules.level), self.df());
        self.expected(|se_seen, within| {
            let (same, silent) = (margin - t_same * se_seen, t * se_seen);
            1.0 - (within(silent) - within(same)).max(0.0)
        })
    }

    fn df(&self) -> f64 {
        self.arrangement.df(f64::from(self.units))
    }

    /// The mean of `f(standard error seen, x ↦ P(|difference seen| ≤ x))` over the standard errors that samples show: Simpson's
    /// rule over the χ distribution.
    fn expected(&self, f: impl Fn(f64, &dyn Fn(f64) -> f64) -> f64) -> f64 {
        const STEPS: u32 = 400;
        let df = self.df();
        let se = self.sd * self.arrangement.variance_factor(f64::from(self.units)).sqrt();
        let Ok(chi) = ChiSquared::new(df) else {
            return f64::NAN;
        };
        let within = |x: f64| {
            if x <= 0.0 {
                0.0
            } else {
                normal_cdf((x - self.difference) / se) - normal_cdf((-x - self.difference) / se)
            }
        };
        let spread = 9.0 / (2.0 * df).sqrt();
        let (low, high) = ((1.0 - spread).max(0.0), 1.0 + spread);
        let step = (high - low) / f64::from(STEPS);
        let (mut sum, mut mass) = (0.0, 0.0);
        for i in 0..=STEPS {
            let u = low + step * f64::from(i);
            let weight = if i == 0 || i == STEPS {
                1.0
            } else if i % 2 == 1 {
                4.0
            } else {
                2.0
            };
            // Density of √(χ²/df) at u; at 0 it is 0, or finite for one degree of freedom.
            let x = (df * u * u).max(1e-300);
            let density = weight * 2.0 * df * u.max(1e-150) * chi.pdf(x);
            mass += density;
            sum += density * f(se * u, &within);
        }
        sum / mass
    }
}

/// Units from which on it is said that a number of units would not tell.
pub const MAX_UNITS: u32 = 2_000;

/// Chance with which the units that [`units_that_tell`] names must tell.
const WANTED: f64 = 0.8;

/// The fewest units a side (or blocks) with which the verdict is other than "cannot tell" with a chance of 80%, if the
/// true difference is `difference` and a unit's standard deviation is `sd`. Absent beyond [`MAX_UNITS`].
pub fn units_that_tell(arrangement: Arrangement, difference: f64, sd: f64, rules: &Rules) -> Option<u32> {
    let enough = |units: u32| {
        Plan {
            arrangement,
            units,
            difference,
            sd,
        }
        .tells(rules)
            >= WANTED
    };
    fewest(enough)
}

/// The fewest units with which *same* is said with a chance of 80% when there is no difference.
pub fn units_for_same(arrangement: Arrangement, sd: f64, rules: &Rules) -> Option<u32> {
    fewest(|units| {
        Plan {
            arrangement,
            units,
            difference: 0.0,
            sd,
        }
        .power_same(rules)
            >= WANTED
    })
}

/// The first number from 2 on that is enough, given that more stays enough. Few are tried one by one, for near the start
/// the chance does not always rise.
fn fewest(enough: impl Fn(u32) -> bool) -> Option<u32> {
    const ONE_BY_ONE: u32 = 12;
    if let Some(units) = (2..=ONE_BY_ONE).find(|&units| enough(units)) {
        return Some(units);
    }
    let (mut low, mut high) = (ONE_BY_ONE, ONE_BY_ONE * 2);
    while !enough(high) {
        if high >= MAX_UNITS {
            return None;
        }
        low = high;
        high = (high * 2).min(MAX_UNITS);
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// The interval at `level` of a standard deviation seen with `df` degrees of freedom, from the χ² distribution of
/// df·s²/σ² (Hahn and Meeker 1991, section 4.3).
pub fn sd_interval(sd: f64, df: f64, level: f64) -> (f64, f64) {
    let tail = (1.0 - level) / 2.0;
    let bound = |p: f64| sd * (df / chi_squared_quantile(p, df)).sqrt();
    (bound(1.0 - tail), bound(tail))
}

/// A number of units, as sure as the standard deviation behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitRange {
    /// Units a side (or blocks) if the standard deviation is at the lower end of its interval; absent beyond
    /// [`MAX_UNITS`].
    pub low: Option<u32>,
    /// The same at the upper end.
    pub high: Option<u32>,
}

/// The range of units in all that would tell, for the 80% interval of a standard deviation `sd` seen with `df` degrees of freedom.
/// `fixed_sd` is a part of each unit's standard deviation that is assumed and not seen (0: none).
pub fn guidance(
    arrangement: Arrangement,
    difference: f64,
    sd: f64,
    df: f64,
    fixed_sd: f64,
    rules: &Rules,
) -> UnitRange {
    let (low, high) = sd_interval(sd, df, 0.8);
    let units = |sd: f64| units_that_tell(arrangement, difference, sd.hypot(fixed_sd), rules);
    UnitRange {
        low: units(low),
        high: units(high),
    }
}
