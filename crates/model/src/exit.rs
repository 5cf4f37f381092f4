//! The public exit codes.

/// How the process ends: public API, one table in `docs/exit-codes.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Exit {
    /// Yes, done: ready, measured and valid, faster or same.
    Yes = 0,
    /// The answer is no: not ready, more failed requests than allowed, slower, gate failed.
    No = 1,
    /// Usage or configuration.
    Usage = 2,
    /// The target cannot be reached.
    Unreachable = 3,
    /// Nothing was found or selected.
    Nothing = 4,
    /// Not enough evidence: cannot tell, or measured but not valid.
    NotEnoughEvidence = 5,
    /// The way to the other machine failed.
    Remote = 6,
    /// A bug of ours.
    Bug = 70,
    /// Interrupted.
    Interrupted = 130,
}

impl Exit {
    /// The process's exit status.
    pub const fn code(self) -> u8 {
        self as u8
    }
}
