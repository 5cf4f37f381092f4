//! Run bundles on disk: where they lie, how they are written and how they are read back.
//!
//! A kill of the process at any moment loses at most the requests in flight; the death of the machine may
//! lose what its kernel had not yet written out. What is read may have been written by anybody.

mod bundle;
mod error;
mod id;
mod line;
mod lines;
mod log;
mod schema;
mod store;
mod writer;

pub use bundle::{Bundle, BundleState, RequestSet};
pub use error::{LineFault, ReadError, StoreError, WriteError};
pub use id::{is_run_id, new_run_id};
pub use lines::{LINE_CAP, Lines, Requests, read_requests};
pub use schema::{REQUEST_SCHEMA, Schema, schemas};
pub use store::{Entry, Places, Store};
pub use writer::{BundleWriter, RequestAppender};
