//! Stamps of log lines: enough of a clock to order events and to see gaps, in whatever form an engine prints.

use std::sync::LazyLock;

use regex::Regex;

/// When a line was written, as far as its stamp tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Time {
    /// A wall clock without zone: the year where it was printed, and seconds since the year began.
    Wall {
        /// Year, where the stamp has one.
        year: Option<u16>,
        /// Seconds since the first of January (of a leap year, so that every date has its place).
        seconds: f64,
    },
    /// Seconds since the process started.
    SinceStart(f64),
}

impl Time {
    /// Seconds from `earlier` to `self`, where the two can be compared.
    pub(crate) fn seconds_since(self, earlier: Self) -> Option<f64> {
        match (self, earlier) {
            (
                Self::Wall { year, seconds },
                Self::Wall {
                    year: other,
                    seconds: before,
                },
            ) => {
                let years = match (year, other) {
                    (Some(year), Some(other)) => f64::from(year) - f64::from(other),
                    _ => 0.0,
                };
                Some(years * 366.0 * 86400.0 + seconds - before)
            }
            (Self::SinceStart(now), Self::SinceStart(before)) => Some(now - before),
            _ => None,
        }
    }
}

static DATE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:(\d{4})-)?(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?").ok()
});
static SLASHED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(\d\d)/(\d\d)/(\d{4})-(\d\d):(\d\d):(\d\d)").ok());
static NAMED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d)").ok());
static GLOG: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[A-Z](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?").ok());
static SINCE_START: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(\d+)\.(\d\d)\.(\d{3})\.(\d{3})$").ok());

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
/// Days before each month of a leap year.
const DAYS_BEFORE: [u16; 12] = [0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335];

fn wall(year: Option<u16>, month: u16, day: u16, clock: [u16; 3], fraction: f64) -> Option<Time> {
    let before = *DAYS_BEFORE.get(usize::from(month.checked_sub(1)?))?;
    if !(1..=31).contains(&day) {
        return None;
    }
    let days = f64::from(before) + f64::from(day - 1);
    let seconds = f64::from(clock[0]) * 3600.0 + f64::from(clock[1]) * 60.0 + f64::from(clock[2]);
    Some(Time::Wall {
        year,
        seconds: days * 86400.0 + seconds + fraction,
    })
}

/// Reads a stamp in any of the forms that the engines print.
pub(crate) fn parse(stamp: &str) -> Option<Time> {
    let number = |captures: &regex::Captures<'_>, group: usize| -> Option<u16> {
        captures.get(group)?.as_str().trim().parse().ok()
    };
    if let Some(found) = DATE.as_ref().and_then(|regex| regex.captures(stamp)) {
        let fraction = found
            .get(7)
            .and_then(|m| format!("0.{}", m.as_str()).parse().ok())
            .unwrap_or(0.0);
        let clock = [number(&found, 4)?, number(&found, 5)?, number(&found, 6)?];
        return wall(
            number(&found, 1),
            number(&found, 2)?,
            number(&found, 3)?,
            clock,
            fraction,
        );
    }
    if let Some(found) = SINCE_START.as_ref().and_then(|regex| regex.captures(stamp)) {
        // Minutes, seconds, milliseconds, microseconds.
        let parts: Vec<f64> = (1..=4)
            .filter_map(|group| found.get(group)?.as_str().parse().ok())
            .collect();
        if let [minutes, seconds, millis, micros] = parts[..] {
            return Some(Time::SinceStart(
                minutes * 60.0 + seconds + millis / 1e3 + micros / 1e6,
            ));
        }
    }
    if let Some(found) = SLASHED.as_ref().and_then(|regex| regex.captures(stamp)) {
        let clock = [number(&found, 4)?, number(&found, 5)?, number(&found, 6)?];
        return wall(
            number(&found, 3),
            number(&found, 1)?,
            number(&found, 2)?,
            clock,
            0.0,
        );
    }
    if let Some(found) = NAMED.as_ref().and_then(|regex| regex.captures(stamp)) {
        let month = MONTHS
            .iter()
            .position(|name| Some(*name) == found.get(1).map(|m| m.as_str()))?;
        let clock = [number(&found, 3)?, number(&found, 4)?, number(&found, 5)?];
        return wall(
            None,
            u16::try_from(month).ok()? + 1,
            number(&found, 2)?,
            clock,
            0.0,
        );
    }
    let found = GLOG.as_ref()?.captures(stamp)?;
    let clock = [number(&found, 3)?, number(&found, 4)?, number(&found, 5)?];
    wall(None, number(&found, 1)?, number(&found, 2)?, clock, 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let gap = |later: &str, earlier: &str| {
            parse(later)
                .zip(parse(earlier))
                .and_then(|(later, earlier)| later.seconds_since(earlier))
        };
        assert_eq!(gap("2026-11-30 23:41:50", "2026-11-30 23:41:41"), Some(9.0));
        assert_eq!(gap("11-30 23:31:55", "11-30 23:30:07"), Some(108.0));
        assert_eq!(gap("12-01 00:00:01", "11-30 23:59:59"), Some(2.0));
        assert_eq!(gap("0.01.038.939", "0.00.001.430"), Some(1.037_509));
        assert_eq!(gap("Nov 30 23:41:41", "11-30 23:41:40"), Some(1.0));
        assert_eq!(gap("01/15/2025-10:00:05", "01/15/2025-10:00:00"), Some(5.0));
        assert_eq!(gap("W1130 23:36:16.456183159", "11-30 23:36:16"), Some(0.0));
        assert_eq!(gap("2026-01-01 00:00:00.5", "2026-01-01T00:00:00"), Some(0.5));
        assert_eq!(gap("0.01.038.939", "11-30 23:41:40"), None);
        assert_eq!(parse("13-45 99:99:99"), None);
        assert_eq!(parse(""), None);
    }
}
