//! Distribution functions and their inverses, to ten digits.
//!
//! The distribution functions are those of statrs. Its inverse of Student's t is not used: it is wrong from 10,000 degrees of
//! freedom on and does not return at a thousand million.

use statrs::distribution::{ChiSquared, Continuous, ContinuousCDF, Normal, StudentsT};

/// P(Z ≤ z) of the standard normal distribution.
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * statrs::function::erf::erfc(-z / std::f64::consts::SQRT_2)
}

/// The z with P(Z ≤ z) = `p`; infinite at 0 and 1, NaN outside.
pub fn normal_quantile(p: f64) -> f64 {
    if !(p > 0.0 && p < 1.0) {
        return ends(p, f64::NEG_INFINITY);
    }
    let Ok(normal) = Normal::new(0.0, 1.0) else {
        return f64::NAN;
    };
    invert(p, normal.inverse_cdf(p), f64::NEG_INFINITY, normal_cdf, |z| {
        normal.pdf(z)
    })
}

/// P(T ≤ t) of Student's t with `df` degrees of freedom (any positive number); NaN where `df` is not positive.
pub fn t_cdf(t: f64, df: f64) -> f64 {
    if df >= MANY_DF {
        return normal_cdf(normal_equivalent(t, df));
    }
    StudentsT::new(0.0, 1.0, df).map_or(f64::NAN, |dist| dist.cdf(t))
}

/// The t with P(T ≤ t) = `p` of Student's t with `df` degrees of freedom (any positive number).
pub fn t_quantile(p: f64, df: f64) -> f64 {
    if !(p > 0.0 && p < 1.0) {
        return ends(p, f64::NEG_INFINITY);
    }
    // The lower tail has the digits.
    if p > 0.5 {
        return -t_quantile(1.0 - p, df);
    }
    let start = expanded_t(normal_quantile(p), df);
    if df >= MANY_DF {
        return start;
    }
    let Ok(dist) = StudentsT::new(0.0, 1.0, df) else {
        return f64::NAN;
    };
    invert(p, start, f64::NEG_INFINITY, |t| dist.cdf(t), |t| dist.pdf(t))
}

/// The x with P(X ≤ x) = `p` of the χ² distribution with `df` degrees of freedom.
pub fn chi_squared_quantile(p: f64, df: f64) -> f64 {
    if !(p > 0.0 && p < 1.0) {
        return ends(p, 0.0);
    }
    let Ok(dist) = ChiSquared::new(df) else {
        return f64::NAN;
    };
    // Wilson and Hilferty (1931), good to a few per cent, starts the search.
    let spread = 2.0 / (9.0 * df);
    let guess = df
        * (1.0 - spread + normal_quantile(p) * spread.sqrt())
            .max(0.01)
            .powi(3);
    invert(p, guess, 0.0, |x| dist.cdf(x), |x| dist.pdf(x))
}

/// From here on the expansions in 1/df are exact to a double, and the incomplete beta function is not.
const MANY_DF: f64 = 1e4;

/// The t quantile from the normal one by its expansion in 1/df: Abramowitz and Stegun (1964), 26.7.5.
fn expanded_t(z: f64, df: f64) -> f64 {
    let z2 = z * z;
    let first = z * (z2 + 1.0) / 4.0;
    let second = z * ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
    let third = z * (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
    z + (first + (second + third / df) / df) / df
}

/// The z with P(Z ≤ z) = P(T ≤ t): Hill (1970), Algorithm 395.
fn normal_equivalent(t: f64, df: f64) -> f64 {
    if df == f64::INFINITY || t == 0.0 {
        return t;
    }
    let a = df - 0.5;
    let b = 48.0 * a * a;
    let z2 = a * (t * t / df).ln_1p();
    let z = z2.sqrt();
    let correction =
        (((4.0 * z2 + 33.0) * z2 + 240.0) * z2 + 855.0) * z / (10.0 * b * (b + 0.8 * z2 * z2 + 100.0));
    (z + (z2 + 3.0) * z / b - correction).copysign(t)
}

/// The quantile at 0 and 1, and NaN for what is no probability.
fn ends(p: f64, lowest: f64) -> f64 {
    if p == 0.0 {
        lowest
    } else if p - 1.0 == 0.0 {
        f64::INFINITY
    } else {
        f64::NAN
    }
}

/// The root of `cdf(x) = p` by Newton's steps from `guess`, each kept inside a bracket that only shrinks.
fn invert(p: f64, guess: f64, lowest: f64, cdf: impl Fn(f64) -> f64, pdf: impl Fn(f64) -> f64) -> f64 {
    let mut x = if guess.is_finite() {
        guess
    } else {
        lowest.max(-1.0) + 1.0
    };
    let (mut low, mut high) = (lowest, f64::INFINITY);
    let mut step = x.abs().max(1.0);
    for _ in 0..200 {
        let off = cdf(x) - p;
        if off == 0.0 {
            return x;
        }
        if off > 0.0 {
            high = x;
        } else {
            low = x;
        }
        let newton = x - off / pdf(x);
        let next = if newton.is_finite() && newton > low && newton < high {
            newton
        } else if low.is_finite() && high.is_finite() {
            low.midpoint(high)
        } else {
            step *= 2.0;
            if off > 0.0 { x - step } else { x + step }
        };
        if (next - x).abs() <= 4.0 * f64::EPSILON * x.abs() {
            return next;
        }
        x = next;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_student() {
        for (p, df, t) in [
            (0.975, 1.0, 12.706_204_736),
            (0.975, 4.0, 2.776_445_105),
            (0.8, 2.0, 1.060_660_172),
            (0.95, 10.0, 1.812_461_123),
            (0.975, 1e12, 1.959_963_985),
        ] {
            assert!(
                (t_quantile(p, df) - t).abs() < 1e-8,
                "{p} {df} {}",
                t_quantile(p, df)
            );
        }
    }

    #[test]
    fn the_ends() {
        assert_eq!(t_quantile(0.0, 3.0), f64::NEG_INFINITY);
        assert_eq!(t_quantile(1.0, 3.0), f64::INFINITY);
        assert_eq!(chi_squared_quantile(0.0, 3.0), 0.0);
        assert!(t_quantile(1.5, 3.0).is_nan() && t_quantile(0.5, -1.0).is_nan());
        assert!(normal_quantile(0.5).abs() < 1e-15);
    }
}
