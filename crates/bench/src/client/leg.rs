//! What the threads of one leg (the warm-up, or one trial) share: who sends what, and when it is over.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use shakedown_model::{Phase, Stamp, Stop};

/// The shared state of a leg. Touched once a request, never per token.
pub(crate) struct Leg {
    /// Trial, from 1; 0 is the warm-up.
    pub(crate) trial: u32,
    stop: Stop,
    fillers: bool,
    next: AtomicU32,
    started: AtomicU32,
    ended: AtomicU32,
    start_ns: AtomicU64,
    last_end_ns: AtomicU64,
    over: AtomicBool,
    threads: u32,
    /// Threads that are ready to start.
    ready: Mutex<u32>,
    go: Condvar,
}

/// One request to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) index: u32,
    pub(crate) phase: Phase,
}

impl Leg {
    pub(crate) fn warmup(requests: u32, threads: u32) -> Self {
        Self::new(0, Stop::Requests(requests), false, threads)
    }

    /// A trial. With more than one stream, fillers hold the load until the last measured request has ended.
    pub(crate) fn trial(number: u32, stop: Stop, streams: u32, threads: u32) -> Self {
        Self::new(number, stop, streams > 1, threads)
    }

    fn new(trial: u32, stop: Stop, fillers: bool, threads: u32) -> Self {
        Self {
            trial,
            stop,
            fillers,
            next: AtomicU32::new(0),
            started: AtomicU32::new(0),
            ended: AtomicU32::new(0),
            start_ns: AtomicU64::new(0),
            last_end_ns: AtomicU64::new(0),
            over: AtomicBool::new(false),
            threads,
            ready: Mutex::new(0),
            go: Condvar::new(),
        }
    }

    /// Waits until every thread has come here, its connections open, and returns the start of the window. `clock`
    /// is read once, by the last to come.
    pub(crate) fn wait_for_start(&self, clock: fn() -> Stamp) -> Stamp {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        *ready += 1;
        if *ready == self.threads {
            self.start_ns.store(clock().nanos(), Ordering::Relaxed);
            self.go.notify_all();
        }
        while self.start() == Stamp::ZERO && !self.over.load(Ordering::Acquire) {
            ready = self.go.wait(ready).unwrap_or_else(PoisonError::into_inner);
        }
        self.start()
    }

    /// The start of the window; [`Stamp::ZERO`] before it is set.
    pub(crate) fn start(&self) -> Stamp {
        Stamp::from_nanos(self.start_ns.load(Ordering::Relaxed))
    }

    /// End of the last measured request so far.
    pub(crate) fn last_end(&self) -> Stamp {
        Stamp::from_nanos(self.last_end_ns.load(Ordering::Relaxed))
    }

    /// Takes the next request for a stream that is free at `now`. `healthy` is false when the stream's last
    /// request failed: it then sends no filler, since it would only hammer a server that is failing.
    pub(crate) fn take(&self, now: Stamp, healthy: bool) -> Option<Ticket> {
        if self.over.load(Ordering::Acquire) {
            return None;
        }
        // Counted before the deadline is looked at, so that `is_over` never misses a request about to start.
        self.started.fetch_add(1, Ordering::AcqRel);
        let index = self.next.fetch_add(1, Ordering::AcqRel);
        let measured = match self.stop {
            Stop::Requests(count) => index < count,
            // The first requests are taken before the start is set.
            Stop::Seconds(seconds) => {
                self.start() == Stamp::ZERO || now < self.start() + Duration::from_secs_f64(seconds)
            }
        };
        if measured {
            let phase = if self.trial == 0 {
                Phase::Warmup
            } else {
                Phase::Measured
            };
            return Some(Ticket { index, phase });
        }
        self.started.fetch_sub(1, Ordering::AcqRel);
        (self.fillers && healthy).then_some(Ticket {
            index,
            phase: Phase::Filler,
        })
    }

    /// A request that was not a filler has ended.
    pub(crate) fn ended(&self, at: Stamp) {
        self.last_end_ns.fetch_max(at.nanos(), Ordering::AcqRel);
        self.ended.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether all measured requests have ended, so that fillers have nothing left to hold.
    pub(crate) fn is_over(&self, now: Stamp) -> bool {
        if self.over.load(Ordering::Acquire) {
            return true;
        }
        let ended = self.ended.load(Ordering::Acquire);
        let over = match self.stop {
            Stop::Requests(count) => ended >= count,
            Stop::Seconds(seconds) => {
                now >= self.start() + Duration::from_secs_f64(seconds)
                    && ended == self.started.load(Ordering::Acquire)
            }
        };
        if over {
            self.over.store(true, Ordering::Release);
        }
        over
    }

    /// Ends the leg before it has begun: threads that wait for the start go home.
    pub(crate) fn abort(&self) {
        let _ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        self.over.store(true, Ordering::Release);
        self.go.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_measured_then_fills() {
        let leg = Leg::trial(1, Stop::Requests(2), 4, 1);
        let now = Stamp::from_nanos(5);
        assert_eq!(
            leg.take(now, true),
            Some(Ticket {
                index: 0,
                phase: Phase::Measured
            })
        );
        assert_eq!(
            leg.take(now, true),
            Some(Ticket {
                index: 1,
                phase: Phase::Measured
            })
        );
        assert_eq!(
            leg.take(now, true),
            Some(Ticket {
                index: 2,
                phase: Phase::Filler
            })
        );
        assert_eq!(leg.take(now, false), None);
        leg.ended(now);
        assert!(!leg.is_over(now));
        leg.ended(now);
        assert!(leg.is_over(now));
        assert_eq!(leg.take(now, true), None);
    }

    #[test]
    fn time_ends_only_when_the_started_have_ended() {
        let leg = Leg::trial(1, Stop::Seconds(1.0), 1, 1);
        assert_eq!(leg.wait_for_start(|| Stamp::from_nanos(1)), Stamp::from_nanos(1));
        let late = Stamp::from_nanos(2_000_000_000);
        assert!(leg.take(Stamp::from_nanos(1), true).is_some());
        assert_eq!(leg.take(late, true), None);
        assert!(!leg.is_over(late));
        leg.ended(late);
        assert!(leg.is_over(late));
    }

    #[test]
    fn warmup_has_no_fillers() {
        let leg = Leg::warmup(1, 1);
        assert_eq!(
            leg.take(Stamp::ZERO, true),
            Some(Ticket {
                index: 0,
                phase: Phase::Warmup
            })
        );
        assert_eq!(leg.take(Stamp::ZERO, true), None);
    }
}
