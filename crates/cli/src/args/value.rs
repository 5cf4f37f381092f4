//! Values that people write: durations, shares, headers.

use std::time::Duration;

/// Reads `90`, `1.5s`, `250ms`, `2m`, `1h`. A bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let split = text
        .find(|char: char| !(char.is_ascii_digit() || char == '.'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number
        .parse()
        .map_err(|_| "expected a number with a unit, for example 30s".to_owned())?;
    let scale = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        other => return Err(format!("unknown unit {other:?}; use us, ms, s, m or h")),
    };
    Duration::try_from_secs_f64(number * scale).map_err(|_| "out of range".to_owned())
}

/// Reads `1%` or `0.01` as a share from 0 to 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text
        .strip_suffix('%')
        .map_or((text, 1.0), |number| (number, 0.01));
    let share = number
        .parse::<f64>()
        .map_err(|_| "expected a share, for example 1%".to_owned())?
        * scale;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err("must lie between 0 and 100%".to_owned())
    }
}

/// Reads `Name: value`.
pub(crate) fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("expected 'Name: value'")?;
    if name.trim().is_empty() {
        return Err("expected 'Name: value'".to_owned());
    }
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Ok(Duration::from_mins(2)));
        assert!(duration("ten").is_err());
        assert!(duration("5 days").is_err());
        assert!(duration("1e400s").is_err());
    }

    #[test]
    fn shares() {
        assert_eq!(share("1%"), Ok(0.01));
        assert_eq!(share("0.5"), Ok(0.5));
        assert!(share("101%").is_err());
        assert!(share("NaN").is_err());
    }

    #[test]
    fn headers() {
        assert_eq!(header("X-A: b:c"), Ok(("X-A".to_owned(), "b:c".to_owned())));
        assert!(header("nothing").is_err());
    }
}
