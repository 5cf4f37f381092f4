//! What crosses between a verb and its callers (the command line, another machine): Request → Events → Outcome.

use serde::{Deserialize, Serialize};

use crate::Finding;

/// What a verb tells while it works. Events may be dropped by a slow listener; nothing rests on them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// One line of talk.
    Note {
        /// The line.
        text: String,
    },
    /// A finding, as soon as it is known.
    Finding {
        /// The finding.
        finding: Box<Finding>,
    },
    /// A step of the work began.
    Stage {
        /// What is being done now.
        name: String,
    },
    /// How far a measurement is.
    Progress(Progress),
}

/// How far a measurement is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Trial, from 1; 0 is warm-up.
    pub trial: u32,
    /// Trials in all.
    pub trials: u32,
    /// Measured requests that ended.
    pub done: u64,
    /// Measured requests to do, where the trial counts requests.
    pub total: Option<u64>,
    /// Seconds since the trial's start.
    pub elapsed_s: f64,
    /// Seconds that the trial lasts, where it counts time.
    pub total_s: Option<f64>,
    /// Requests in flight.
    pub in_flight: u64,
    /// Token-bearing events a second over the last interval.
    pub chunks_s: f64,
    /// Output tokens a second over the last interval, where their counts are known.
    pub tokens_s: Option<f64>,
    /// Median TTFT so far in milliseconds.
    pub ttft_ms: Option<f64>,
    /// Failed requests so far.
    pub failed: u64,
}

/// Listens to a verb's events.
pub trait Sink: Sync {
    /// Takes one event; must not block.
    fn event(&self, event: Event);
}

/// A listener that hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Sink for Silent {
    fn event(&self, _event: Event) {}
}
