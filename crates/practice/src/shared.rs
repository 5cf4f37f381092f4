//! What the threads of one server share.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mio::Waker;
use mio::net::TcpStream;
use shakedown_model::{ServerTruth, TRUTH_CLOCK, TRUTH_SCHEMA};

use crate::cache::PrefixCache;
use crate::clock;
use crate::counters::Counters;
use crate::options::Options;
use crate::server::PracticeError;
use crate::truth::{Ring, Snapshot};

/// Requests kept in the log.
const LOG_CAP: usize = 65_536;

/// A connection of one thread: its place and the generation of that place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// What one thread sends to another.
#[derive(Debug)]
pub(crate) enum Mail {
    /// A connection to serve, accepted at this time.
    Accepted(TcpStream, u64),
    /// The request on this connection may run from this time on.
    Granted(Key, u64),
    /// The answer of this connection is ready.
    Reply(Key, Vec<u8>),
}

/// A thread's letter box.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(crate) mail: Mutex<Vec<Mail>>,
    pub(crate) waker: Waker,
}

/// Requests that run, and those that wait in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// When one was last given back that nobody waited for.
    freed: u64,
    running: u32,
    waiting: VecDeque<(usize, Key)>,
}

/// What the threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    /// Start of the server.
    pub(crate) origin: u64,
    pub(crate) started_unix: u64,
    /// Where it listens, or will.
    pub(crate) address: SocketAddr,
    pub(crate) inboxes: Vec<Inbox>,
    pub(crate) rings: Vec<Mutex<Ring>>,
    pub(crate) counters: Counters,
    pub(crate) cache: Mutex<PrefixCache>,
    pub(crate) stop: AtomicBool,
    /// Generation requests so far.
    pub(crate) ordinal: AtomicU64,
    slots: Mutex<Slots>,
    log: Mutex<VecDeque<String>>,
    fault: Mutex<Option<PracticeError>>,
    boot_id: String,
    time_namespace: Option<String>,
}

/// Locks a mutex; a thread that panicked while it held it leaves the data usable.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The state of a server that starts now.
    pub(crate) fn new(options: Options, address: SocketAddr, inboxes: Vec<Inbox>) -> Self {
        let threads = inboxes.len();
        let writes = options.truth_writes / threads.max(1);
        let requests = options.truth_requests.div_ceil(threads.max(1));
        Self {
            origin: clock::now(),
            started_unix: std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
            address,
            inboxes,
            rings: (0..threads)
                .map(|_| Mutex::new(Ring::new(requests, writes)))
                .collect(),
            counters: Counters::default(),
            cache: Mutex::new(PrefixCache::default()),
            stop: AtomicBool::new(false),
            ordinal: AtomicU64::new(0),
            slots: Mutex::new(Slots::default()),
            log: Mutex::new(VecDeque::new()),
            fault: Mutex::new(None),
            boot_id: clock::boot_id(),
            time_namespace: clock::time_namespace(),
            options,
        }
    }

    /// The time of a step of coming up.
    pub(crate) fn startup(&self, step: Duration) -> u64 {
        self.origin.saturating_add(clock::nanos(step))
    }

    /// Whether a step of coming up has been reached at `now`.
    pub(crate) fn reached(&self, step: Duration, now: u64) -> bool {
        step.is_zero() || now >= self.startup(step)
    }

    /// Puts mail into a thread's box and wakes it.
    pub(crate) fn post(&self, thread: usize, mail: Mail) {
        let Some(inbox) = self.inboxes.get(thread) else {
            return;
        };
        lock(&inbox.mail).push(mail);
        // Fails only when the thread is gone, and its connections with it.
        let _ = inbox.waker.wake();
    }

    /// Asks for a slot for a request that arrived at `arrived`. Gives the moment from which it runs, if it may run
    /// now; if not, [`Mail::Granted`] will come. A request that lay in its socket when the last slot became free has
    /// not run before that.
    pub(crate) fn acquire(&self, thread: usize, key: Key, arrived: u64) -> Option<u64> {
        let Some(limit) = self.options.slots else {
            self.counters.run();
            return Some(arrived);
        };
        let mut slots = lock(&self.slots);
        if slots.running < limit {
            slots.running += 1;
            self.counters.run();
            Some(arrived.max(slots.freed))
        } else {
            slots.waiting.push_back((thread, key));
            self.counters.wait();
            None
        }
    }

    /// Gives a slot back. The request that waited longest gets it, and its place is given.
    pub(crate) fn release(&self) -> Option<(usize, Key)> {
        if self.options.slots.is_none() {
            self.counters.unrun();
            return None;
        }
        let mut slots = lock(&self.slots);
        let next = slots.waiting.pop_front();
        if next.is_some() {
            // The slot changes hands: as many run as before.
            self.counters.unwait();
        } else {
            slots.running -= 1;
            slots.freed = clock::now();
            self.counters.unrun();
        }
        next
    }

    /// A waiting request is given up. False when it has been granted a slot in the meantime.
    pub(crate) fn give_up(&self, thread: usize, key: Key) -> bool {
        let mut slots = lock(&self.slots);
        let before = slots.waiting.len();
        slots.waiting.retain(|waiting| *waiting != (thread, key));
        let found = slots.waiting.len() < before;
        if found {
            self.counters.unwait();
        }
        found
    }

    /// Notes a request.
    pub(crate) fn log(&self, method: &str, path: &str) {
        if !self.options.log_requests {
            return;
        }
        let mut log = lock(&self.log);
        if log.len() >= LOG_CAP {
            log.pop_front();
        }
        log.push_back(format!("{method} {path}"));
    }

    /// The newest requests.
    pub(crate) fn logged(&self) -> Vec<String> {
        lock(&self.log).iter().cloned().collect()
    }

    /// Keeps the first fault that ended a thread.
    pub(crate) fn fail(&self, error: PracticeError) {
        lock(&self.fault).get_or_insert(error);
    }

    /// The fault, taken out.
    pub(crate) fn take_fault(&self) -> Option<PracticeError> {
        lock(&self.fault).take()
    }

    /// The document of `/truth`.
    pub(crate) fn truth(&self, clear: bool) -> ServerTruth {
        let mut snapshot = Snapshot::default();
        for ring in &self.rings {
            lock(ring).snapshot(&mut snapshot, clear);
        }
        snapshot.requests.sort_by_key(|request| request.end_ns);
        ServerTruth {
            schema: TRUTH_SCHEMA.to_owned(),
            boot_id: self.boot_id.clone(),
            time_namespace: self.time_namespace.clone(),
            clock: TRUTH_CLOCK.to_owned(),
            late_p50_ns: snapshot.late.quantile(0.5),
            late_p99_ns: snapshot.late.quantile(0.99),
            late_max_ns: snapshot.late.max(),
            requests: snapshot
                .requests
                .into_iter()
                .map(std::sync::Arc::unwrap_or_clone)
                .collect(),
            requests_dropped: snapshot.dropped,
        }
    }
}
