//! Ctrl-C and TERM: the first asks for a clean end, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use shakedown_model::Exit;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::CliError;

/// A flag that the first interrupt sets.
pub(crate) fn flag() -> Result<Arc<AtomicBool>, CliError> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Registered first, so that it sees the flag as the interrupt before this one left it.
        flag::register_conditional_shutdown(
            signal,
            i32::from(Exit::Interrupted.code()),
            Arc::clone(&interrupted),
        )
        .map_err(CliError::Signal)?;
        flag::register(signal, Arc::clone(&interrupted)).map_err(CliError::Signal)?;
    }
    Ok(interrupted)
}
