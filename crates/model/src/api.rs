//! The request and stream dialects that we speak.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A generation endpoint and its shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// `POST /v1/chat/completions`.
    #[default]
    Chat,
    /// `POST /v1/completions`.
    Completions,
    /// SGLang's native `POST /generate`: cumulative text and `meta_info` in every event.
    Generate,
}

impl Api {
    /// The endpoint's path on a server without a prefix.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
            Self::Generate => "/generate",
        }
    }
}
