//! How requests are sent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The arrival process of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// Exponential gaps.
    #[default]
    Poisson,
    /// Equal gaps.
    Constant,
}

/// How requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "loop")]
pub enum Load {
    /// Each stream sends its next request when its last one has ended.
    Closed {
        /// Requests in flight.
        concurrency: u32,
    },
    /// Requests arrive on a schedule, whatever the server does.
    Open {
        /// Requests a second.
        rate: f64,
        /// The arrival process.
        arrival: Arrival,
        /// Requests in flight at most; the others wait, and their waiting counts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_concurrency: Option<u32>,
    },
}

impl Load {
    /// Requests in flight at most, where the load bounds them.
    pub const fn concurrency(&self) -> Option<u32> {
        match self {
            Self::Closed { concurrency } => Some(*concurrency),
            Self::Open { max_concurrency, .. } => *max_concurrency,
        }
    }
}

/// When a trial has enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// After so many measured requests.
    Requests(u32),
    /// After so many seconds in which measured requests start.
    Seconds(f64),
}
