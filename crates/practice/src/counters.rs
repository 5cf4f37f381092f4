//! What the engine's own metrics count.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::schedule::Chunk;
use crate::truth::Record;

/// Bucket bounds in seconds of every latency histogram.
pub(crate) const BOUNDS: [f64; 18] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

/// A cumulative histogram as Prometheus has it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram {
    pub(crate) counts: [u64; BOUNDS.len()],
    pub(crate) sum: f64,
    pub(crate) count: u64,
}

impl Histogram {
    fn add(&mut self, seconds: f64, times: u64) {
        for (count, bound) in self.counts.iter_mut().zip(BOUNDS) {
            if seconds <= bound {
                *count += times;
            }
        }
        self.sum += seconds * times as f64;
        self.count += times;
    }
}

/// Latencies of ended requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Latencies {
    pub(crate) ttft: Histogram,
    pub(crate) itl: Histogram,
    pub(crate) tpot: Histogram,
    pub(crate) e2e: Histogram,
    pub(crate) queue: Histogram,
    pub(crate) prompt_s: f64,
    pub(crate) predicted_s: f64,
    /// Ended by a stop, by the length, by the client.
    pub(crate) ended: [u64; 3],
}

/// All counters of a server.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    running: AtomicU32,
    waiting: AtomicU32,
    pub(crate) prompt_tokens: AtomicU64,
    pub(crate) cached_tokens: AtomicU64,
    pub(crate) generated_tokens: AtomicU64,
    /// Decode steps, summed over requests.
    pub(crate) steps: AtomicU64,
    pub(crate) drafts: AtomicU64,
    pub(crate) draft_tokens: AtomicU64,
    pub(crate) accepted_tokens: AtomicU64,
    /// Drafts accepted by their position in the step.
    pub(crate) accepted_at: [AtomicU64; 16],
    latencies: Mutex<Latencies>,
}

impl Counters {
    /// Requests that run now.
    pub(crate) fn running(&self) -> u32 {
        self.running.load(Relaxed)
    }

    /// Requests that wait for a slot now.
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting.load(Relaxed)
    }

    /// A request waits.
    pub(crate) fn wait(&self) {
        self.waiting.fetch_add(1, Relaxed);
    }

    /// A request waits no longer.
    pub(crate) fn unwait(&self) {
        self.waiting.fetch_sub(1, Relaxed);
    }

    /// A request runs.
    pub(crate) fn run(&self) {
        self.running.fetch_add(1, Relaxed);
    }

    /// A request runs no longer.
    pub(crate) fn unrun(&self) {
        self.running.fetch_sub(1, Relaxed);
    }

    /// A prompt was taken in.
    pub(crate) fn prompt(&self, tokens: u32, cached: u32) {
        self.prompt_tokens.fetch_add(u64::from(tokens), Relaxed);
        self.cached_tokens.fetch_add(u64::from(cached), Relaxed);
    }

    /// A chunk was generated.
    pub(crate) fn generated(&self, chunk: Chunk) {
        self.generated_tokens.fetch_add(u64::from(chunk.tokens), Relaxed);
        self.steps.fetch_add(1, Relaxed);
        let Some((drafted, accepted)) = chunk.verified else {
            return;
        };
        self.drafts.fetch_add(1, Relaxed);
        self.draft_tokens.fetch_add(u64::from(drafted), Relaxed);
        self.accepted_tokens.fetch_add(u64::from(accepted), Relaxed);
        for count in self.accepted_at.iter().take(accepted as usize) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// A generation ended in one of three ways: 0 stop, 1 length, 2 given up.
    pub(crate) fn ended(&self, record: &Record, end: u64, way: usize) {
        let slot = record.slot_ns();
        let Ok(mut latencies) = self.latencies.lock() else {
            return;
        };
        let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
        latencies.ended[way] += 1;
        let read = record.read_ns();
        latencies.queue.add(seconds(read, slot.unwrap_or(end)), 1);
        let mut first = None;
        let mut last = 0;
        let mut tokens = 0;
        for (stamp, count) in record.token_stamps() {
            match first {
                None => {
                    first = Some(stamp);
                    latencies.ttft.add(seconds(read, stamp), 1);
                }
                Some(_) => latencies.itl.add(seconds(last, stamp), 1),
            }
            last = stamp;
            tokens += count;
        }
        let Some(first) = first else { return };
        latencies.prompt_s += seconds(slot.unwrap_or(read), first);
        latencies.predicted_s += seconds(first, last);
        if tokens > 1 {
            latencies
                .tpot
                .add(seconds(first, last) / f64::from(tokens - 1), 1);
        }
        latencies.e2e.add(seconds(read, end), 1);
    }

    /// A copy of the latencies.
    pub(crate) fn latencies(&self) -> Latencies {
        self.latencies
            .lock()
            .map(|latencies| latencies.clone())
            .unwrap_or_default()
    }
}
