//! One runtime thread: an event loop over the streams that it owns.
//!
//! A wake-up has two halves. First every ready connection is read and stamped, into one arena; only then is
//! anything parsed: bytes that arrive apart are so read apart, even in a burst of a whole batch.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use mio::{Events, Poll, Token};
use shakedown_model::{Phase, RequestOutcome, RequestRecord, Stamp};
use shakedown_wire::clock;
use shakedown_wire::request::{self, Method};

use super::exchange::{Asked, Exchange, Times};
use super::leg::{Leg, Ticket};
use super::outcome::Ending;
use super::reuse::{Reuse, WATCH};
use super::slot::{Rest, Slot, Step};
use crate::plan::{Control, Plan};
use crate::workload::Prompt;

/// Bytes that one wake-up may read before it parses.
const ARENA: usize = 1 << 20;
/// Most bytes of one read.
const READ: usize = 64 << 10;
/// The lag of one read in so many is kept,
const LAG_SAMPLING: u32 = 16;
/// after the first ones, which are all kept: a short run needs its samples too.
const LAG_ALWAYS: u32 = 512;
/// How often limits and flags are looked at, at least.
const TICK: Duration = Duration::from_millis(50);
/// The same while a stream rests.
const RESTING_TICK: Duration = Duration::from_millis(5);
/// How long a stream waits after a failure before it sends again.
const AFTER_FAILURE: Duration = Duration::from_millis(100);
/// Lag samples kept at most, per thread.
const LAG_CAP: usize = 1 << 20;

/// Running counts of one thread, written once a wake-up and read by the progress display.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) chunks: AtomicU64,
    /// Tokens whose count the server told as it went; `u64::MAX` once some were not told.
    pub(crate) tokens: AtomicU64,
    pub(crate) in_flight: AtomicU64,
}

/// What a thread can say of itself afterwards.
#[derive(Debug, Default)]
pub(crate) struct CoreReport {
    /// Sampled lags of reads behind the kernel's receive stamps.
    pub(crate) lags: Vec<Duration>,
    /// CPU time of the thread.
    pub(crate) cpu: Option<Duration>,
    /// Busiest second, as a share of one CPU.
    pub(crate) busiest: Option<f64>,
}

/// What the threads of a leg share.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) leg: &'a Leg,
    pub(crate) control: &'a Control,
    pub(crate) reuse: &'a Reuse,
    pub(crate) origin: Stamp,
}

/// One thread of the client, over one leg.
pub(crate) struct Core<'a> {
    plan: &'a Plan,
    leg: &'a Leg,
    control: &'a Control,
    counters: &'a Counters,
    reuse: &'a Reuse,
    origin: Stamp,
    ended: Sender<RequestRecord>,
    poll: Poll,
    slots: Vec<Slot>,
    /// The number of the first stream of this thread.
    first_stream: u32,
    reads: u32,
    chunks: u64,
    tokens: Option<u64>,
    report: CoreReport,
    cpu_mark: Option<(Stamp, Duration)>,
}

/// A read that waits to be parsed.
struct Pending {
    slot: usize,
    begin: usize,
    end: usize,
    at: Stamp,
}

/// What a read found besides bytes.
enum Close {
    Eof(Stamp),
    Error(io::Error, Stamp),
}

impl<'a> Core<'a> {
    /// A thread that owns the streams `streams` of the plan.
    pub(crate) fn new(
        shared: Shared<'a>,
        counters: &'a Counters,
        streams: std::ops::Range<u32>,
        ended: Sender<RequestRecord>,
    ) -> io::Result<Self> {
        let Shared {
            plan,
            leg,
            control,
            reuse,
            origin,
        } = shared;
        Ok(Self {
            plan,
            leg,
            control,
            counters,
            reuse,
            origin,
            ended,
            poll: Poll::new()?,
            slots: (0..streams.len()).map(|index| Slot::new(Token(index))).collect(),
            first_stream: streams.start,
            reads: 0,
            chunks: 0,
            tokens: Some(0),
            report: CoreReport::default(),
            cpu_mark: None,
        })
    }

    /// Runs the leg to its end.
    pub(crate) fn run(mut self) -> io::Result<CoreReport> {
        let mut events = Events::with_capacity(self.slots.len().clamp(64, 4096));
        let opened = if self.plan.cold {
            Ok(())
        } else {
            self.open_all(&mut events)
        };
        // The first requests are made before the start, so that they leave in one burst.
        let unset = Stamp::ZERO;
        let loaded: Vec<bool> = (0..self.slots.len())
            .map(|index| self.load_next(index, unset))
            .collect();
        // The start is waited for whatever happened, or the other threads would wait for ever.
        let start = self.leg.wait_for_start(clock::now);
        opened?;
        self.cpu_mark = clock::thread_cpu().map(|cpu| (clock::now(), cpu));
        for (index, _) in loaded.into_iter().enumerate().filter(|(_, loaded)| *loaded) {
            if let Some(exchange) = &mut self.slots[index].exchange {
                exchange.times.scheduled = start;
                exchange.times.dequeued = clock::now();
            }
            self.begin(index);
        }
        let mut arena = vec![0; ARENA];
        while self.turn(&mut events, &mut arena)? {}
        self.mark_cpu(true);
        self.report.cpu = clock::thread_cpu();
        Ok(self.report)
    }

    /// Opens every connection and waits until each is open or has failed. A failure is kept for the request that
    /// will try again: opening early is preparation, not measurement.
    fn open_all(&mut self, events: &mut Events) -> io::Result<()> {
        for slot in &mut self.slots {
            // An error here comes again, as that request's outcome, when the request connects.
            let _ = slot.connect(self.poll.registry(), self.plan.address);
        }
        let deadline = clock::now() + self.plan.limits.connect;
        while self.slots.iter().any(Slot::is_connecting) && clock::now() < deadline && !self.control.stopped()
        {
            self.wait(events)?;
            for event in events.iter() {
                self.slots[event.token().0].on_writable();
            }
        }
        Ok(())
    }

    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        let resting = self.slots.iter().any(|slot| slot.rest.is_some());
        match self
            .poll
            .poll(events, Some(if resting { RESTING_TICK } else { TICK }))
        {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                events.clear();
                Ok(())
            }
            other => other,
        }
    }

    /// One wake-up. Returns whether there is more to do.
    fn turn(&mut self, events: &mut Events, arena: &mut [u8]) -> io::Result<bool> {
        self.wait(events)?;
        for event in events.iter() {
            if event.is_writable() {
                let index = event.token().0;
                let step = self.slots[index].on_writable();
                self.step(index, step);
            }
        }
        let mut ready: Vec<(usize, bool)> = events
            .iter()
            .filter(|event| event.is_readable() || event.is_read_closed() || event.is_error())
            .map(|event| (event.token().0, event.is_read_closed() || event.is_error()))
            .collect();
        while !ready.is_empty() {
            ready = self.read_and_parse(&ready, arena);
        }
        self.look_around();
        self.counters.chunks.store(self.chunks, Ordering::Relaxed);
        self.counters
            .tokens
            .store(self.tokens.unwrap_or(u64::MAX), Ordering::Relaxed);
        let in_flight = self.slots.iter().filter(|slot| slot.exchange.is_some()).count() as u64;
        self.counters.in_flight.store(in_flight, Ordering::Relaxed);
        let resting = self.slots.iter().any(|slot| slot.rest.is_some());
        Ok(in_flight > 0 || (resting && !self.leg.is_over(clock::now())))
    }

    /// Reads each ready connection once, then parses what came. Returns those that may have more.
    fn read_and_parse(&mut self, ready: &[(usize, bool)], arena: &mut [u8]) -> Vec<(usize, bool)> {
        let mut pending = Vec::with_capacity(ready.len());
        let mut closed = Vec::new();
        let mut again = Vec::new();
        let mut used = 0;
        for (place, &(index, read_closed)) in ready.iter().enumerate() {
            if arena.len() - used < READ {
                again.extend_from_slice(&ready[place..]);
                break;
            }
            self.reads = self.reads.wrapping_add(1);
            let sampled = self.reads <= LAG_ALWAYS || self.reads.is_multiple_of(LAG_SAMPLING);
            match self.slots[index].read(&mut arena[used..used + READ]) {
                None => {}
                Some(Ok(read)) if read.n == 0 => closed.push((index, Close::Eof(read.at))),
                Some(Ok(read)) => {
                    if let Some(lag) = read.lag
                        && sampled
                        && self.report.lags.len() < LAG_CAP
                    {
                        self.report.lags.push(lag);
                    }
                    pending.push(Pending {
                        slot: index,
                        begin: used,
                        end: used + read.n,
                        at: read.at,
                    });
                    used += read.n;
                    // A short read has emptied the socket, unless the peer has closed: then the end comes next.
                    if read.n == READ || read_closed {
                        again.push((index, read_closed));
                    }
                }
                Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
                Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {
                    again.push((index, read_closed));
                }
                Some(Err(error)) => closed.push((index, Close::Error(error, clock::now()))),
            }
        }
        for Pending { slot, begin, end, at } in pending {
            self.on_bytes(slot, &arena[begin..end], at);
        }
        for (index, close) in closed {
            self.on_close(index, close);
        }
        again
    }

    fn on_bytes(&mut self, index: usize, bytes: &[u8], at: Stamp) {
        let Some(exchange) = &mut self.slots[index].exchange else {
            // Bytes that nobody asked for: the connection is of no further use.
            self.slots[index].close();
            return;
        };
        let (chunks, tokens) = (exchange.chunk_count(), exchange.token_count());
        let ending = exchange.on_bytes(bytes, at);
        self.chunks += exchange.chunk_count() - chunks;
        if exchange.any_token() {
            let grown = exchange.token_count().map(|now| now - tokens.unwrap_or(0));
            self.tokens = self.tokens.zip(grown).map(|(sum, grown)| sum + grown);
        }
        if let Some(ending) = ending {
            self.end(index, &ending, at);
        }
    }

    fn on_close(&mut self, index: usize, close: Close) {
        let slot = &mut self.slots[index];
        let Some(exchange) = &mut slot.exchange else {
            if slot.has_used_connection() && slot.rest.is_some_and(|rest| rest.watching) {
                self.reuse.closes();
            }
            slot.close();
            return;
        };
        let (ending, at) = match close {
            Close::Eof(at) => (exchange.on_eof(at), at),
            Close::Error(error, at) => (Ending::Reset(error.to_string()), at),
        };
        self.end(index, &ending, at);
    }

    fn step(&mut self, index: usize, step: Step) {
        if let Step::Ended(ending) = step {
            self.end(index, &ending, clock::now());
        }
    }

    /// The request of a slot has ended: hand over its record and send the next.
    fn end(&mut self, index: usize, ending: &Ending, at: Stamp) {
        let may_keep = !self.plan.cold && self.reuse.known() != Some(false);
        let Some(exchange) = self.slots[index].finish(ending, may_keep, at) else {
            return;
        };
        let record = exchange.into_record(ending, at);
        if record.phase != Phase::Filler {
            self.leg.ended(at);
        }
        let failed = record.outcome.is_failure();
        if record.outcome == RequestOutcome::StaleConnection {
            self.reuse.closes();
        }
        // The receiver outlives the threads.
        let _ = self.ended.send(record);
        let slot = &mut self.slots[index];
        slot.unhealthy = failed;
        if failed {
            let until = at + AFTER_FAILURE;
            slot.rest = Some(Rest {
                until,
                free: until,
                watching: false,
            });
        } else if slot.has_used_connection() && self.reuse.known().is_none() {
            slot.rest = Some(Rest {
                until: at + WATCH,
                free: at,
                watching: true,
            });
        } else if self.load_next(index, at) {
            self.begin(index);
        }
    }

    /// Prepares the next request of a slot, whose stream has been free since `free`. Returns whether there is one.
    fn load_next(&mut self, index: usize, free: Stamp) -> bool {
        if self.control.stopped() {
            return false;
        }
        let now = clock::now();
        let Some(ticket) = self.leg.take(now, !self.slots[index].unhealthy) else {
            return false;
        };
        let prompt = match ticket.phase {
            Phase::Warmup => self.plan.prompts.warmup(ticket.index),
            Phase::Measured | Phase::Filler => self.plan.prompts.measured(self.leg.trial, ticket.index),
        };
        let asked = self.asked(index, ticket, &prompt);
        let body = self.plan.prompts.body(&prompt, &self.plan.model, self.plan.body);
        let mut headers = self.plan.headers.clone();
        // Ids are made of digits, letters and hyphens.
        let _ = headers.set("x-request-id", &asked.id);
        let path = self.plan.target.path(asked.api.path());
        let out = request::encode(Method::Post, &self.plan.target, &path, &headers, &body);
        let times = Times {
            scheduled: free,
            dequeued: now,
            ..Times::default()
        };
        let exchange = Exchange::new(asked, times, self.origin, &self.plan.limits);
        self.slots[index].load(Box::new(exchange), out);
        true
    }

    fn begin(&mut self, index: usize) {
        let step = self.slots[index].start(self.poll.registry(), self.plan.address);
        self.step(index, step);
    }

    fn asked(&mut self, index: usize, ticket: Ticket, prompt: &Prompt) -> Asked {
        let workload = self.plan.prompts.request();
        let max_tokens = self.plan.prompts.max_tokens(prompt);
        let least = if workload.sampling.ignore_eos {
            Some(max_tokens)
        } else {
            workload.sampling.min_tokens
        };
        let letter = match ticket.phase {
            Phase::Warmup => 'w',
            Phase::Measured => 'm',
            Phase::Filler => 'f',
        };
        Asked {
            id: format!("{}-{}{letter}{}", self.plan.run_id, self.leg.trial, ticket.index),
            trial: self.leg.trial,
            phase: ticket.phase,
            stream: self.first_stream + index as u32,
            prompt_index: ticket.index,
            prompt_kind: prompt.kind,
            max_tokens,
            least: least.map(u64::from),
            api: workload.api,
            streamed: workload.stream,
            keep_text: self.plan.keep_text,
            reused: self.slots[index].reusable_now(),
        }
    }

    /// Looks at limits, at streams that rest after a failure, and at the end of the leg.
    fn look_around(&mut self) {
        let now = clock::now();
        let stopped = self.control.stopped();
        let over = self.leg.is_over(now);
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if slot.exchange.is_some() {
                let ending = if stopped {
                    Some(Ending::Cancelled)
                } else if over
                    && slot
                        .exchange
                        .as_ref()
                        .is_some_and(|exchange| exchange.tokens_placed())
                {
                    // What is left are fillers, which have nothing more to hold. One whose tokens are not yet
                    // counted is let end, for its count is needed in the window.
                    Some(Ending::Cancelled)
                } else {
                    slot.overdue(now, &self.plan.limits)
                };
                if let Some(ending) = ending {
                    self.end(index, &ending, now);
                }
            } else if slot.is_connecting() && slot.overdue(now, &self.plan.limits).is_some() {
                slot.close();
            } else if let Some(rest) = slot.rest {
                self.rest(index, rest, now);
            }
        }
        self.mark_cpu(false);
    }

    /// Looks at a stream that rests, and lets it go on when its time is over or its question answered.
    fn rest(&mut self, index: usize, rest: Rest, now: Stamp) {
        let known = self.reuse.known();
        if now < rest.until && (!rest.watching || known.is_none()) {
            return;
        }
        let slot = &mut self.slots[index];
        if rest.watching && known.is_none() {
            self.reuse.keeps();
        }
        if known == Some(false) {
            slot.close();
        }
        slot.rest = None;
        if self.load_next(index, rest.free) {
            self.begin(index);
        }
    }

    /// Notes the CPU share of the last second, or of what there is of it at the end.
    fn mark_cpu(&mut self, last: bool) {
        let Some((since, before)) = self.cpu_mark else {
            return;
        };
        let now = clock::now();
        let wall = now.since(since);
        if wall < Duration::from_secs(1) && !(last && self.report.busiest.is_none() && wall > Duration::ZERO)
        {
            return;
        }
        let Some(cpu) = clock::thread_cpu() else { return };
        let share = cpu.saturating_sub(before).as_secs_f64() / wall.as_secs_f64();
        self.report.busiest = Some(self.report.busiest.map_or(share, |busiest| busiest.max(share)));
        self.cpu_mark = Some((now, cpu));
    }
}
