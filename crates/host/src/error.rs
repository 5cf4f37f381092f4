//! Why something of the machine cannot be read.

use std::io;

/// The kind of reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It is not there: a process that ended, a kernel without it.
    Missing,
    /// It belongs to somebody else, and privileges are wanted.
    Denied,
    /// It is there and not as expected.
    Malformed(&'static str),
    /// What the system said.
    Other(String),
}

/// Why something of the machine cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read {path}: {}", match reason {
    Reason::Missing => "it is not there",
    Reason::Denied => "permission denied",
    Reason::Malformed(what) => what,
    Reason::Other(error) => error.as_str(),
})]
pub struct HostError {
    /// What was to be read, as the machine itself names it.
    pub path: String,
    /// Why it was not.
    pub reason: Reason,
}

impl HostError {
    pub(crate) fn new(path: &str, error: &io::Error) -> Self {
        // ESRCH: the process ended between the opening and the reading of its file.
        let ended = error.raw_os_error() == Some(3);
        let reason = match error.kind() {
            _ if ended => Reason::Missing,
            io::ErrorKind::NotFound => Reason::Missing,
            io::ErrorKind::PermissionDenied => Reason::Denied,
            _ => Reason::Other(error.to_string()),
        };
        Self {
            path: path.to_owned(),
            reason,
        }
    }

    pub(crate) fn malformed(path: &str, what: &'static str) -> Self {
        Self {
            path: path.to_owned(),
            reason: Reason::Malformed(what),
        }
    }

    /// Whether more privileges would help.
    pub fn is_denied(&self) -> bool {
        self.reason == Reason::Denied
    }
}
