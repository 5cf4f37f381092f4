//! Points in time on the monotonic clock.

use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds on `CLOCK_MONOTONIC` of one boot of one machine.
///
/// Two stamps compare only when both were taken in the same boot and time namespace. The clock itself is read
/// by the crates that do I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stamp(u64);

impl Stamp {
    /// The start of the clock.
    pub const ZERO: Self = Self(0);

    /// A stamp from nanoseconds since the clock's start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's start.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// The time since `earlier`; zero when `earlier` is in fact later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment `duration` earlier; the clock's start when that lies before it.
    #[must_use]
    pub const fn before(self, duration: Duration) -> Self {
        // A duration of more than 584 years saturates like one of more than this clock's age.
        Self(self.0.saturating_sub(duration.as_nanos() as u64))
    }

    /// Whole microseconds since `origin`, rounded to nearest; zero when `origin` is later.
    pub const fn micros_since(self, origin: Self) -> u64 {
        (self.0.saturating_sub(origin.0) + 500) / 1000
    }
}

impl Add<Duration> for Stamp {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl Sub<Duration> for Stamp {
    type Output = Self;

    fn sub(self, by: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn micros_round_to_nearest() {
        let origin = Stamp::from_nanos(1_000);
        assert_eq!(Stamp::from_nanos(2_499).micros_since(origin), 1);
        assert_eq!(Stamp::from_nanos(2_500).micros_since(origin), 2);
        assert_eq!(Stamp::ZERO.micros_since(origin), 0);
    }
}
