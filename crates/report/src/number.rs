//! How numbers are written: one rule for every figure.
//!
//! Three significant digits, four where the first is a 1: the rounding is then never above 0.25% of the figure,
//! well below what the verdicts turn on. Digits left of the point are never rounded away. Never more than three
//! decimals: stamps are microseconds, and figures are milliseconds.

/// A figure by the rule of this module; `unknown` where it is no number.
pub fn figure(value: f64) -> String {
    with_decimals(value, decimals(value))
}

/// Decimals that the rule gives `value`.
fn decimals(value: f64) -> usize {
    let size = value.abs();
    if !size.is_finite() || size == 0.0 {
        return 0;
    }
    let exponent = size.log10().floor() as i32;
    let leads_with_one = size / 10_f64.powi(exponent) < 2.0;
    usize::try_from((2 + i32::from(leads_with_one) - exponent).clamp(0, 3)).unwrap_or(0)
}

/// `value` with at least so many decimals as asked for.
fn with_decimals(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        "unknown".to_owned()
    } else if value == 0.0 || (value < 0.0 && value > -0.0005) {
        "0".to_owned()
    } else if value > 0.0 && value < 0.0005 {
        "<0.001".to_owned()
    } else {
        format!("{value:.decimals$}")
    }
}

/// Figures that stand beside `first`: they have as many decimals as it has, or more if they need them.
pub(crate) fn row(first: f64, values: &[f64]) -> Vec<String> {
    let least = decimals(first);
    values
        .iter()
        .map(|&value| with_decimals(value, least.max(decimals(value))))
        .collect()
}

/// A range of figures, with the decimals of `of`, which lies within.
pub(crate) fn range(of: f64, low: f64, high: f64) -> String {
    let decimals = decimals(of);
    format!(
        "{}–{}",
        with_decimals(low, decimals),
        with_decimals(high, decimals)
    )
}

/// A figure and its spread, with the figure's decimals.
pub(crate) fn plus_minus(value: f64, spread: f64) -> String {
    let decimals = decimals(value);
    let least = 0.5 / 10_f64.powi(i32::try_from(decimals).unwrap_or(0));
    let spread = if spread > 0.0 && spread < least {
        format!("<{:.decimals$}", 2.0 * least)
    } else {
        with_decimals(spread, decimals)
    };
    format!("{} ± {spread}", figure(value))
}

/// A quantity of whole things, which a median may put between two of them.
pub(crate) fn quantity(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        figure(value)
    }
}

/// A share between 0 and 1 as a percentage with one decimal, never rounded to 0% or 100% unless it is just that.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "unknown".to_owned();
    }
    let value = share * 100.0;
    if value == 0.0 {
        "0%".to_owned()
    } else if (value - 100.0).abs() < 1e-9 {
        "100%".to_owned()
    } else if value > 0.0 && value < 0.05 {
        "<0.1%".to_owned()
    } else if value > 99.95 && value < 100.0 {
        ">99.9%".to_owned()
    } else {
        format!("{value:.1}%")
    }
}

/// A length of time in seconds.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "unknown".to_owned();
    }
    let whole = seconds.round() as u64;
    if seconds < 119.5 {
        format!("{} s", figure(seconds))
    } else if whole < 7200 {
        parts(whole / 60, "min", whole % 60, "s")
    } else {
        parts(whole / 3600, "h", whole % 3600 / 60, "min")
    }
}

fn parts(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large} {large_unit}")
    } else {
        format!("{large} {large_unit} {small} {small_unit}")
    }
}

/// `1 request`, `2 requests`, `no request`.
pub(crate) fn counted(count: u64, one: &str) -> String {
    match count {
        0 => format!("no {one}"),
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_by_the_rule() {
        for (value, text) in [
            (0.0, "0"),
            (0.0004, "<0.001"),
            (-0.0004, "0"),
            (0.0005, "0.001"),
            (0.0512, "0.051"),
            (0.3, "0.300"),
            (1.0, "1.000"),
            (1.337, "1.337"),
            (2.345, "2.35"),
            (9.996, "10.00"),
            (10.0, "10.00"),
            (31.818_18, "31.8"),
            (83.94, "83.9"),
            (99.96, "100.0"),
            (101.24, "101.2"),
            (200.4, "200"),
            (1337.4, "1337"),
            (25_600.0, "25600"),
            (-31.84, "-31.8"),
            (f64::NAN, "unknown"),
            (f64::INFINITY, "unknown"),
        ] {
            assert_eq!(figure(value), text, "{value}");
        }
    }

    #[test]
    fn neighbours_have_the_same_decimals() {
        assert_eq!(
            row(9.98, &[9.98, 10.0, 12.345, 0.5]),
            ["9.98", "10.00", "12.35", "0.500"]
        );
        assert_eq!(range(200.0, 198.04, 203.6), "198–204");
        assert_eq!(range(0.052, 0.0001, 0.06), "<0.001–0.060");
        assert_eq!(plus_minus(89.5, 0.354), "89.5 ± 0.4");
        assert_eq!(plus_minus(89.5, 0.02), "89.5 ± <0.1");
        assert_eq!(plus_minus(1234.0, 0.3), "1234 ± <1");
        assert_eq!(plus_minus(1234.0, 0.0), "1234 ± 0");
        assert_eq!(quantity(128.0), "128");
        assert_eq!(quantity(128.5), "128.5");
    }

    #[test]
    fn rounding_stays_below_a_quarter_percent() {
        let mut value = 0.25;
        while value < 1e6 {
            let shown: f64 = figure(value).parse().unwrap();
            assert!((shown - value).abs() <= 0.0025 * value, "{value} as {shown}");
            value *= 1.000_7;
        }
    }

    #[test]
    fn shares_and_durations() {
        for (share, text) in [
            (0.0, "0%"),
            (0.0001, "<0.1%"),
            (0.015, "1.5%"),
            (0.9996, ">99.9%"),
            (1.0, "100%"),
            (2.5, "250.0%"),
        ] {
            assert_eq!(percent(share), text);
        }
        for (seconds, text) in [
            (0.25, "0.250 s"),
            (12.5, "12.50 s"),
            (119.4, "119.4 s"),
            (200.0, "3 min 20 s"),
            (600.0, "10 min"),
            (7199.6, "2 h"),
            (9000.0, "2 h 30 min"),
            (-1.0, "unknown"),
        ] {
            assert_eq!(duration(seconds), text);
        }
        assert_eq!(counted(0, "request"), "no request");
        assert_eq!(counted(2, "request"), "2 requests");
    }
}
