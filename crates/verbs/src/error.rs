//! Why a verb could not do its work, how the process should end, and what to do about it.

use shakedown_model::Exit;

use crate::server::ServerError;

/// Why a verb could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum VerbError {
    /// The request itself makes no sense.
    #[error("{what}")]
    Usage {
        /// What is wrong with it.
        what: String,
        /// What to do instead.
        hint: String,
    },
    /// The server could not be used.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The prompts could not be used.
    #[error(transparent)]
    Workload(#[from] shakedown_bench::workload::WorkloadError),
    /// The practice server could not be started.
    #[error("start the practice server")]
    Practice(#[from] shakedown_practice::PracticeError),
    /// The store could not be used.
    #[error(transparent)]
    Store(#[from] shakedown_records::StoreError),
    /// A bundle could not be written.
    #[error(transparent)]
    Write(#[from] shakedown_records::WriteError),
    /// The measurement itself failed.
    #[error(transparent)]
    Run(#[from] shakedown_bench::RunError),
}

impl VerbError {
    /// How the process should end.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Server(error) => error.exit(),
            Self::Usage { .. } | Self::Workload(_) | Self::Store(_) | Self::Practice(_) | Self::Write(_) => {
                Exit::Usage
            }
            Self::Run(_) => Exit::Bug,
        }
    }

    /// What to do about it, a line each.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Usage { hint, .. } => vec![hint.clone()],
            Self::Server(error) => error.hints(),
            Self::Write(_) | Self::Store(_) => vec!["choose another place with --store DIR".to_owned()],
            _ => Vec::new(),
        }
    }
}
