//! What is sent: prompts, lengths, sampling, order.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a prompt is like; acceptance and cache behaviour depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptKind {
    /// Open questions in plain language.
    Chat,
    /// Programming tasks.
    Code,
    /// Questions that need several steps.
    Reasoning,
    /// Text in, facts of that text out.
    Extraction,
    /// Random words of a stated length: speed only.
    Synthetic,
    /// The user's own.
    Custom,
}

impl PromptKind {
    /// The word used in documents and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Code => "code",
            Self::Reasoning => "reasoning",
            Self::Extraction => "extraction",
            Self::Synthetic => "synthetic",
            Self::Custom => "custom",
        }
    }
}

/// Where prompts come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum PromptSource {
    /// The built-in set, in these kinds (all, when empty).
    BuiltIn {
        /// The kinds to draw from.
        kinds: Vec<PromptKind>,
    },
    /// A JSON-lines file with `prompt` or `messages` in each line.
    File {
        /// The file.
        path: PathBuf,
    },
    /// Random words.
    Synthetic {
        /// Tokens that each prompt should have by the server's count.
        tokens: u32,
    },
}

impl Default for PromptSource {
    fn default() -> Self {
        Self::BuiltIn { kinds: Vec::new() }
    }
}

/// How the model is asked to sample; part of the workload's hash.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Sampling {
    /// `temperature`, where it is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// `top_p`, where it is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// `seed`, where it is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Go on past the end token up to `max_tokens`.
    #[serde(default)]
    pub ignore_eos: bool,
    /// `min_tokens`, where it is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_tokens: Option<u32>,
    /// Stop strings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Further members of the request's body, as they are.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
}

/// The requests to send, as recorded: two runs with the same hash sent the same bodies in the same order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Endpoint and dialect.
    pub api: crate::Api,
    /// Where the prompts come from.
    pub prompts: PromptSource,
    /// What they are like, in the order of first use.
    pub kinds: Vec<PromptKind>,
    /// Output tokens asked for in each request that does not say otherwise.
    pub max_tokens: u32,
    /// How the model is asked to sample.
    pub sampling: Sampling,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Seed of the order and of synthetic prompts.
    pub order_seed: u64,
    /// SHA-256 over everything above and every prompt in order, model name excepted.
    pub sha256: String,
}
