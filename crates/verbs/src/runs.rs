//! What runs left behind, read back.

pub use shakedown_records::{Bundle, BundleState, ReadError};
