//! The clocks of this machine: monotonic stamps, the thread's CPU time, and the time of day.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use shakedown_model::Stamp;

/// Now on `CLOCK_MONOTONIC`. A virtual system call: about 20 ns, no switch into the kernel.
#[inline]
pub fn now() -> Stamp {
    // Every kernel that we run on has this clock, so that the error arm is never taken.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Stamp::ZERO, |time| {
        Stamp::from_nanos(nanos(time.tv_sec(), time.tv_nsec()))
    })
}

/// Identity of this boot: stamps of different boots do not compare. `None` where the system does not tell.
pub fn boot_id() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let id = text.trim();
    (!id.is_empty()).then(|| id.to_owned())
}

/// CPU time that the calling thread has used so far, user and system. `None` where the system does not tell.
pub fn thread_cpu() -> Option<Duration> {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .ok()
        .map(|time| Duration::from_nanos(nanos(time.tv_sec(), time.tv_nsec())))
}

/// The time of day in microseconds since the epoch: for records, never for differences.
pub fn unix_micros() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// `CLOCK_REALTIME` in nanoseconds since the epoch, the clock of the kernel's receive stamps.
#[cfg(target_os = "linux")]
pub(crate) fn real_nanos() -> u64 {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |time| nanos(time.tv_sec(), time.tv_nsec()))
}

#[inline]
fn nanos(seconds: i64, nanos: i64) -> u64 {
    (seconds as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add(nanos as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_never_go_back() {
        let mut last = now();
        for _ in 0..10_000 {
            let next = now();
            assert!(next >= last);
            last = next;
        }
        assert!(last > Stamp::ZERO);
    }

    #[test]
    fn thread_cpu_counts_work_and_not_sleep() {
        let before = thread_cpu().unwrap();
        let mut sum = 0_u64;
        while thread_cpu().unwrap().saturating_sub(before) < Duration::from_millis(1) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let before = thread_cpu().unwrap();
        std::thread::sleep(Duration::from_millis(40));
        assert!(thread_cpu().unwrap().saturating_sub(before) < Duration::from_millis(40));
    }

    #[test]
    fn boot_id_is_a_uuid() {
        assert_eq!(boot_id().unwrap().len(), 36);
    }

    #[test]
    fn unix_micros_agrees_with_the_system() {
        let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        let between = u128::from(unix_micros());
        let after = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        assert!((before..=after).contains(&between));
    }
}
