//! The clock of every stamp, and the timer that fires at a point of it.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// Nanoseconds on `CLOCK_MONOTONIC`.
pub(crate) fn now() -> u64 {
    // The clock always exists on Linux; a failure would read as time zero and show as an impossible stamp.
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map_or(0, |spec| {
        spec.tv_sec() as u64 * 1_000_000_000 + spec.tv_nsec() as u64
    })
}

/// A duration in whole nanoseconds, saturating.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The machine's boot id, by which stamps of two processes are known to be comparable.
pub(crate) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// This process's time namespace, where the kernel has them.
pub(crate) fn time_namespace() -> Option<String> {
    std::fs::read_link("/proc/self/ns/time")
        .ok()
        .and_then(|link| link.to_str().map(str::to_owned))
}

/// One absolute timer, watched edge-triggered: arming it again is enough, its count is never read.
#[derive(Debug)]
pub(crate) struct Timer {
    fd: TimerFd,
    armed: u64,
}

impl Timer {
    /// A timer that is not armed.
    pub(crate) fn new() -> nix::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        Ok(Self {
            fd: TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?,
            armed: 0,
        })
    }

    /// The descriptor to watch.
    pub(crate) fn raw(&self) -> RawFd {
        self.fd.as_fd().as_raw_fd()
    }

    /// Fires at `due` (at once, if that is past). Costs a system call only when `due` changed or has passed.
    pub(crate) fn arm(&mut self, due: u64) -> nix::Result<()> {
        if self.armed == due && due > now() {
            return Ok(());
        }
        // All zeros would disarm it.
        let at = due.max(1);
        let spec = TimeSpec::new((at / 1_000_000_000) as i64, (at % 1_000_000_000) as i64);
        self.fd
            .set(Expiration::OneShot(spec), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        self.armed = due;
        Ok(())
    }
}
