//! `practice`: the built-in server to try everything on.

use shakedown_practice::PracticeError;

pub use shakedown_practice::{Acceptance, Manners, Options, Phase, Practice, Script, Startup, scripts};

/// Starts the practice server; it serves until what is returned is dropped.
pub fn start(options: Options) -> Result<Practice, PracticeError> {
    Practice::start(options)
}
