//! The serving software and one running instance of it.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Serving software.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum EngineKind {
    /// SGLang.
    #[serde(rename = "sglang")]
    Sglang,
    /// vLLM.
    #[serde(rename = "vllm")]
    Vllm,
    /// llama.cpp's llama-server.
    #[serde(rename = "llama.cpp")]
    LlamaCpp,
    /// SGLang's router (model gateway).
    #[serde(rename = "sglang-router")]
    SglangRouter,
    /// NVIDIA TensorRT-LLM's trtllm-serve.
    #[serde(rename = "tensorrt-llm")]
    TensorRtLlm,
    /// Hugging Face text-generation-inference.
    #[serde(rename = "tgi")]
    Tgi,
    /// Ollama.
    #[serde(rename = "ollama")]
    Ollama,
    /// LMDeploy.
    #[serde(rename = "lmdeploy")]
    LmDeploy,
    /// mistral.rs.
    #[serde(rename = "mistral.rs")]
    MistralRs,
    /// `transformers serve`.
    #[serde(rename = "transformers")]
    Transformers,
    /// NVIDIA Dynamo's frontend.
    #[serde(rename = "dynamo")]
    Dynamo,
    /// NVIDIA NIM.
    #[serde(rename = "nim")]
    Nim,
    /// Our own practice server.
    #[serde(rename = "practice")]
    Practice,
}

impl EngineKind {
    /// The word used in documents, on the command line and as the name of its catalogue file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sglang => "sglang",
            Self::Vllm => "vllm",
            Self::LlamaCpp => "llama.cpp",
            Self::SglangRouter => "sglang-router",
            Self::TensorRtLlm => "tensorrt-llm",
            Self::Tgi => "tgi",
            Self::Ollama => "ollama",
            Self::LmDeploy => "lmdeploy",
            Self::MistralRs => "mistral.rs",
            Self::Transformers => "transformers",
            Self::Dynamo => "dynamo",
            Self::Nim => "nim",
            Self::Practice => "practice",
        }
    }

    /// The name as its makers write it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Sglang => "SGLang",
            Self::Vllm => "vLLM",
            Self::LlamaCpp => "llama.cpp",
            Self::SglangRouter => "SGLang router",
            Self::TensorRtLlm => "TensorRT-LLM",
            Self::Tgi => "TGI",
            Self::Ollama => "Ollama",
            Self::LmDeploy => "LMDeploy",
            Self::MistralRs => "mistral.rs",
            Self::Transformers => "transformers serve",
            Self::Dynamo => "Dynamo",
            Self::Nim => "NIM",
            Self::Practice => "practice server",
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}

/// The engine behind an address, as far as it tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Engine {
    /// Which software.
    pub kind: EngineKind,
    /// Its version, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it was recognised by, in one sentence.
    pub recognised_by: String,
    /// Whether it is the practice server wearing this engine's manners.
    #[serde(default)]
    pub practice: bool,
}

/// A setting asked for or in force, with where it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// Our name for it, the same for every engine, for example `attention_backend`.
    pub name: String,
    /// Its value as the engine writes it.
    pub value: String,
    /// Where it was read: an endpoint and member, an argument, a log line.
    pub source: String,
}

/// Settings in force, by our names for them, and where they differ from what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct InForce {
    /// In force, by the engine's own report.
    pub settings: Vec<Setting>,
    /// Asked for, by the engine's report of its arguments or by its command line.
    pub asked: Vec<Setting>,
}

impl InForce {
    /// The value in force of the setting `name`.
    pub fn get(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.name == name)
    }
}

/// One sample of the engine's own metrics, under our names: a line of `server.jsonl`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct EngineMetrics {
    /// Microseconds since the run's origin.
    pub at_us: u64,
    /// Values by our names, for example `requests_running`, `generation_tokens_total`, `spec_drafts_total`.
    pub values: BTreeMap<String, f64>,
}

/// One running server as a run records it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Server {
    /// Base URL as asked, credentials masked.
    pub url: String,
    /// The address that was really connected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The engine, where it was recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
    /// The model's name that requests carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Process id of the server's main process, where this machine can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Start time of that process in seconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_s: Option<f64>,
    /// Its arguments, secrets masked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The part of its environment that matters, secrets masked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Settings in force, where the engine tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_force: Option<InForce>,
    /// The engine's own reports, by endpoint, secrets masked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reports: BTreeMap<String, Value>,
}
