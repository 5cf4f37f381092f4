//! What a run is asked to do, and how it is stopped.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shakedown_model::{Load, Stop};
use shakedown_wire::request::Headers;
use shakedown_wire::target::Target;

use crate::workload::{BodyOptions, Prompts};

/// How long a request may take, part by part, and how much it may bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// To connect.
    pub connect: Duration,
    /// From sent to the first token.
    pub first_token: Duration,
    /// Between two reads once bytes have come.
    pub idle: Duration,
    /// From sent to the end.
    pub total: Duration,
    /// Longest line of a stream in bytes.
    pub line: usize,
    /// Most bytes of one answer.
    pub answer: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_token: Duration::from_mins(5),
            idle: Duration::from_mins(2),
            total: Duration::from_hours(1),
            line: 8 << 20,
            answer: 1 << 30,
        }
    }
}

/// A run: the server, the requests, how they are sent and how often.
#[derive(Debug)]
pub struct Plan {
    /// The server, for the request line and the `Host` header.
    pub target: Target,
    /// Its address, resolved once.
    pub address: SocketAddr,
    /// Further headers, the API key's among them.
    pub headers: Headers,
    /// The model's name that requests carry.
    pub model: String,
    /// The prompts.
    pub prompts: Prompts,
    /// What bodies ask for besides the workload.
    pub body: BodyOptions,
    /// How requests are sent.
    pub load: Load,
    /// When a trial has enough.
    pub stop: Stop,
    /// Warm-up requests before the first trial.
    pub warmup: u32,
    /// Trials.
    pub trials: u32,
    /// Limits of each request.
    pub limits: Limits,
    /// Open a connection for each request.
    pub cold: bool,
    /// Keep prompts and answers in the record.
    pub keep_text: bool,
    /// Runtime threads; chosen from the load when absent.
    pub threads: Option<u32>,
    /// Prefix of the request ids: the run's id.
    pub run_id: String,
}

impl Plan {
    /// Streams of the closed loop.
    pub fn streams(&self) -> u32 {
        self.load.concurrency().unwrap_or(1).max(1)
    }

    /// Runtime threads: one holds 256 streams with room to spare; more than the CPUs would only take turns.
    pub fn thread_count(&self) -> u32 {
        let cpus =
            std::thread::available_parallelism().map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(1));
        self.threads
            .unwrap_or_else(|| self.streams().div_ceil(256).min(cpus))
            .clamp(1, self.streams())
    }
}

/// Stops a run from outside: what was measured is kept.
#[derive(Debug, Clone, Default)]
pub struct Control {
    stop: Arc<AtomicBool>,
}

impl Control {
    /// A control that `stop` sets, a signal handler's flag for example.
    pub fn new(stop: Arc<AtomicBool>) -> Self {
        Self { stop }
    }

    /// Asks the run to end now.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the run was asked to end.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
