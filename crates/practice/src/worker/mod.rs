//! One thread of the server: an event loop that writes at absolute deadlines.
//!
//! A write costs one system call and two clock readings. Due writes go first and in the order in which they are
//! due; the timer is armed once a batch; connections are watched once, edge-triggered, for both directions.

mod door;
mod reading;
mod writing;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use nix::sys::socket::{setsockopt, sockopt};
use shakedown_model::RequestEnd;

use crate::arrival::Arrivals;
use crate::clock::{self, Timer};
use crate::connection::{Connection, Slab, Slot};
use crate::reply;
use crate::server::PracticeError;
use crate::shared::{Key, Mail, Shared, lock};

pub(crate) use door::Door;
use writing::{send, start_job, write_some};

const TIMER: Token = Token(usize::MAX);
/// Token of every thread's waker.
pub(crate) const WAKE: Token = Token(usize::MAX - 1);
const DOOR: Token = Token(usize::MAX - 2);

/// Schedule entries that belong to no connection.
const SWEEP: u32 = u32::MAX;
const KNOCK: u32 = u32::MAX - 1;

/// Between two looks for connections that wait too long.
const SWEEP_EVERY: u64 = 250_000_000;

/// What becomes of a connection after work on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Keep,
    Close,
    Reset,
}

/// A moment in the schedule of a connection, ordered by time, then by entry.
type Due = Reverse<(u64, u64, u32, u32)>;

/// One thread.
pub(crate) struct Worker {
    index: usize,
    shared: Arc<Shared>,
    poll: Poll,
    timer: Timer,
    door: Option<Door>,
    slab: Slab,
    schedule: BinaryHeap<Due>,
    batch: Vec<Due>,
    entries: u64,
    sweeping: bool,
    /// Requests of this thread that got a slot from another request of this thread.
    granted: Vec<(Key, u64)>,
    next_thread: usize,
    scratch: Box<[u8]>,
    arrivals: Arrivals,
    frame: Vec<u8>,
    event: Vec<u8>,
}

impl Worker {
    /// A thread's state, before it runs. The first thread has the door.
    pub(crate) fn new(
        index: usize,
        shared: Arc<Shared>,
        poll: Poll,
        timer: Timer,
        door: Option<Door>,
    ) -> std::io::Result<Self> {
        poll.registry()
            .register(&mut SourceFd(&timer.raw()), TIMER, Interest::READABLE)?;
        let mut worker = Self {
            index,
            shared,
            poll,
            timer,
            door: None,
            slab: Slab::default(),
            schedule: BinaryHeap::new(),
            batch: Vec::new(),
            entries: 0,
            sweeping: false,
            granted: Vec::new(),
            next_thread: 0,
            scratch: vec![0; 128 * 1024].into_boxed_slice(),
            arrivals: Arrivals::new(),
            frame: Vec::with_capacity(4096),
            event: Vec::with_capacity(4096),
        };
        match door {
            Some(Door::Open(listener)) => worker.watch_door(listener)?,
            Some(door) => {
                let startup = &worker.shared.options.startup;
                let step = if matches!(door, Door::Closed(_)) {
                    startup.bound
                } else {
                    startup.listening
                };
                let at = worker.shared.startup(step);
                worker.door = Some(door);
                worker.push(at, KNOCK, 0);
            }
            None => {}
        }
        Ok(worker)
    }

    /// Runs until the server stops.
    pub(crate) fn run(mut self) {
        // One nanosecond: a thread's sleeps are otherwise stretched by up to 50 µs.
        let _ = nix::sys::prctl::set_timerslack(1);
        let shared = Arc::clone(&self.shared);
        let mut events = Events::with_capacity(1024);
        while !shared.stop.load(Relaxed) {
            if let Err(error) = self.wait(&mut events) {
                shared.fail(PracticeError::Loop(error));
                break;
            }
            self.run_due(&shared);
            for event in &events {
                self.handle(&shared, event);
                self.run_due(&shared);
            }
        }
        for (key, connection) in self.slab.drain() {
            self.end(&shared, key, connection, Fate::Close);
        }
    }

    /// Waits for an event or the next deadline.
    fn wait(&mut self, events: &mut Events) -> std::io::Result<()> {
        let mut timeout = None;
        if let Some(Reverse((due, ..))) = self.schedule.peek() {
            if *due <= clock::now() {
                timeout = Some(Duration::ZERO);
            } else {
                self.timer.arm(*due)?;
            }
        }
        match self.poll.poll(events, timeout) {
            Err(error) if error.kind() != ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    /// Does everything that is due now, in the order of its deadlines. What that makes due at once comes in the
    /// next batch, so that no stream keeps others or the network waiting.
    fn run_due(&mut self, shared: &Shared) {
        let Some(Reverse((first, ..))) = self.schedule.peek() else {
            return;
        };
        let now = clock::now();
        if *first > now {
            return;
        }
        let mut batch = std::mem::take(&mut self.batch);
        while self.schedule.peek().is_some_and(|Reverse((due, ..))| *due <= now) {
            batch.extend(self.schedule.pop());
        }
        for Reverse((_, _, index, generation)) in batch.drain(..) {
            match index {
                SWEEP => self.sweep(shared),
                KNOCK => self.knock(shared),
                _ => self.advance_key(shared, Key { index, generation }, now),
            }
        }
        self.batch = batch;
        self.run_granted(shared);
    }

    fn push(&mut self, due: u64, index: u32, generation: u32) {
        self.entries += 1;
        self.schedule
            .push(Reverse((due, self.entries, index, generation)));
    }

    fn handle(&mut self, shared: &Shared, event: &Event) {
        match event.token() {
            TIMER => {}
            WAKE => self.open_mail(shared),
            DOOR => self.accept(shared),
            Token(token) => {
                let key = Key {
                    index: token as u32,
                    generation: (token >> 32) as u32,
                };
                let Some(mut connection) = self.slab.take(key) else {
                    return;
                };
                let fate = self.on_event(shared, key, &mut connection, event);
                self.settle(shared, key, connection, fate);
                self.run_granted(shared);
            }
        }
    }

    // Mail.

    fn open_mail(&mut self, shared: &Shared) {
        let mail = std::mem::take(&mut *lock(&shared.inboxes[self.index].mail));
        for letter in mail {
            match letter {
                Mail::Accepted(stream, accepted) => self.adopt(shared, stream, accepted),
                Mail::Granted(key, at) => self.granted.push((key, at)),
                Mail::Reply(key, bytes) => {
                    let Some(mut connection) = self.slab.take(key) else {
                        continue;
                    };
                    let mut fate = send(shared, &mut connection, bytes);
                    if fate == Fate::Keep && !connection.busy() {
                        fate = self.drive(shared, key, &mut connection);
                    }
                    self.settle(shared, key, connection, fate);
                }
            }
        }
        self.run_granted(shared);
    }

    /// Starts the requests that got a slot.
    fn run_granted(&mut self, shared: &Shared) {
        while let Some((key, at)) = self.granted.pop() {
            let Some(mut connection) = self.slab.take(key) else {
                // It went away between the grant and now.
                self.release(shared);
                continue;
            };
            let Some(job) = connection.job.as_mut().filter(|job| job.slot == Slot::Waiting) else {
                self.slab.put(key, connection);
                self.release(shared);
                continue;
            };
            start_job(shared, job, at);
            let mut fate = self.advance(shared, key, &mut connection, at);
            if fate == Fate::Keep && !connection.busy() {
                fate = self.drive(shared, key, &mut connection);
            }
            self.settle(shared, key, connection, fate);
        }
    }

    /// Gives a slot back; who gets it next may be on any thread.
    fn release(&mut self, shared: &Shared) {
        if let Some((thread, key)) = shared.release() {
            let at = clock::now();
            if thread == self.index {
                self.granted.insert(0, (key, at));
            } else {
                shared.post(thread, Mail::Granted(key, at));
            }
        }
    }

    // The end.

    fn settle(&mut self, shared: &Shared, key: Key, connection: Box<Connection>, fate: Fate) {
        if fate == Fate::Keep {
            self.slab.put(key, connection);
        } else {
            self.end(shared, key, connection, fate);
        }
    }

    fn end(&mut self, shared: &Shared, key: Key, mut connection: Box<Connection>, fate: Fate) {
        if let Some(job) = connection.job.take() {
            let mut ring = lock(&shared.rings[self.index]);
            self.end_job(shared, key, job, RequestEnd::ClientGone, clock::now(), &mut ring);
        }
        if fate == Fate::Reset {
            let linger = nix::libc::linger {
                l_onoff: 1,
                l_linger: 0,
            };
            let _ = setsockopt(&connection.stream, sockopt::Linger, &linger);
        }
        // Closing the descriptor takes it out of the poller.
        drop(connection);
        self.slab.free(key);
    }

    /// Closes connections that waited too long.
    fn sweep(&mut self, shared: &Shared) {
        let now = clock::now();
        for key in self.slab.overdue(now) {
            let Some(mut connection) = self.slab.take(key) else {
                continue;
            };
            let began = !connection.input.is_empty() || connection.reading.is_some();
            if began && !connection.blocked() {
                let bytes = reply::error(&shared.options, 408, "the request took too long to arrive", false);
                let _ = write_some(&mut connection.stream, &bytes);
            }
            self.settle(shared, key, connection, Fate::Close);
        }
        self.sweeping = self.slab.open > 0;
        if self.sweeping {
            self.push(now + SWEEP_EVERY, SWEEP, 0);
        }
    }
}
