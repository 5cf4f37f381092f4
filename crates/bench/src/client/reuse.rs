//! Whether the server keeps its connections open after an answer: learnt once, then known to all threads.
//!
//! Some servers promise keep-alive and close after each stream all the same (llama.cpp b11434 does). A request on
//! such a connection is lost, and it must not be repeated in silence; so nothing is sent on a used connection until
//! one has been seen to stay open.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// How long the first used connection is watched: a close comes within a round trip of the last byte.
pub(crate) const WATCH: Duration = Duration::from_millis(20);

const UNKNOWN: u8 = 0;
const KEEPS: u8 = 1;
const CLOSES: u8 = 2;

/// What is known of the server's connections.
#[derive(Debug, Default)]
pub(crate) struct Reuse(AtomicU8);

impl Reuse {
    /// Whether the server keeps connections open; `None` while that is not known.
    pub(crate) fn known(&self) -> Option<bool> {
        match self.0.load(Ordering::Relaxed) {
            UNKNOWN => None,
            state => Some(state == KEEPS),
        }
    }

    /// A used connection has stayed open.
    pub(crate) fn keeps(&self) {
        // Never over CLOSES: one close outweighs any number of others.
        let _ = self
            .0
            .compare_exchange(UNKNOWN, KEEPS, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// A used connection was closed.
    pub(crate) fn closes(&self) {
        self.0.store(CLOSES, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_close_outweighs_what_stayed_open() {
        let reuse = Reuse::default();
        assert_eq!(reuse.known(), None);
        reuse.keeps();
        assert_eq!(reuse.known(), Some(true));
        reuse.closes();
        reuse.keeps();
        assert_eq!(reuse.known(), Some(false));
    }
}
