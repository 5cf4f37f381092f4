//! The read path of a measuring client: targets, connections, HTTP/1.1, server-sent events, OpenAI shapes and
//! Prometheus text.
//!
//! Everything that reads foreign bytes is sans I/O, bounded and free of panics. Stamps are taken on the line
//! after the system call, before anything looks at the bytes.

pub mod client;
pub mod clock;
pub mod openai;
pub mod prometheus;
pub mod request;
pub mod response;
pub mod socket;
pub mod sse;
pub mod target;
