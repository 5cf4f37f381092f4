//! What went wrong, with its exit code and hints.

use std::io;

use shakedown_model::Exit;
use shakedown_verbs::VerbError;

/// Anything that keeps the command from doing its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Verb(#[from] VerbError),
    #[error("{what}")]
    Usage { what: String, hint: Option<String> },
    #[error("write to standard output")]
    Output(#[source] io::Error),
    #[error("catch interrupts")]
    Signal(#[source] io::Error),
    #[error("write the document as JSON")]
    Json(#[from] serde_json::Error),
}

impl CliError {
    pub(crate) fn usage(what: impl Into<String>, hint: Option<&str>) -> Self {
        Self::Usage {
            what: what.into(),
            hint: hint.map(str::to_owned),
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Verb(error) => error.exit(),
            Self::Usage { .. } => Exit::Usage,
            // The reader of a pipe has gone: it has what it wanted.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Yes,
            Self::Output(_) | Self::Signal(_) | Self::Json(_) => Exit::Bug,
        }
    }

    pub(crate) fn hints(&self) -> Vec<String> {
        match self {
            Self::Verb(error) => error.hints(),
            Self::Usage { hint, .. } => hint.iter().cloned().collect(),
            _ => Vec::new(),
        }
    }
}
