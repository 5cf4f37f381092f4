//! The practice server: an OpenAI-compatible server with scripted streams and exactly known timing.
//!
//! It is the oracle that the rest of the tool is tested against, so it shares no code with what it tests. Its
//! event loop wakes at absolute deadlines, stamps every write before and after, and says when it was late.

mod arrival;
mod ask;
mod cache;
mod clock;
mod connection;
mod counters;
mod http;
mod identity;
mod metrics;
mod options;
mod random;
mod reply;
mod routes;
mod schedule;
mod script;
mod server;
mod shape;
mod shared;
mod sse;
mod stream;
mod tokenizer;
mod truth;
mod worker;

pub use options::{Acceptance, Manners, Options, Phase, Startup};
pub use script::{Expect, Needs, Script, ScriptError, scripts};
pub use server::{Practice, PracticeError};
pub use shakedown_model::{RequestEnd, RequestTruth, ServerTruth as Truth, WriteKind, WritesTruth};
