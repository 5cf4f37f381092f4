//! The files of installed packages against their RECORDs: modified, added, missing, owned twice.

mod cache;
mod record;
mod textdiff;
mod verify;
mod wheel;

pub use cache::HashCache;
pub(crate) use record::hex;
pub use record::{Record, RecordEntry};
pub use textdiff::{TextDiff, unified};
pub(crate) use verify::stamp;
pub use verify::{Overlap, Verification, Verifier};
pub use wheel::{Wheel, WheelError};

/// Bytes of a RECORD that anything real has fewer of.
pub const MAX_RECORD: u64 = 64 << 20;
