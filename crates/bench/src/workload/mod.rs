//! What is sent: prompts in a seeded order, the bodies made of them, and the hash that identifies them.

mod body;
mod builtin;
mod file;
mod synthetic;

use std::path::PathBuf;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use shakedown_model::{Api, PromptKind, PromptRef, PromptSource, Sampling, Workload};

pub use body::BodyOptions;

/// What was asked for; [`Prompts::prepare`] makes it sendable.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadRequest {
    /// Endpoint and dialect.
    pub api: Api,
    /// Where the prompts come from.
    pub source: PromptSource,
    /// Output tokens asked for where a prompt does not say otherwise.
    pub max_tokens: u32,
    /// How the model is asked to sample.
    pub sampling: Sampling,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Seed of the order and of synthetic prompts.
    pub seed: u64,
    /// Put in front of built-in prompts and mixed into synthetic ones, so that no prompt meets the prefix cache
    /// of an earlier run. Not part of the hash. `None` sends them bare.
    pub salt: Option<String>,
}

/// One prompt, ready to be put into a body.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// What it is like.
    pub kind: PromptKind,
    /// What is sent.
    pub content: Content,
    /// Output tokens asked for, where the prompt says so itself.
    pub max_tokens: Option<u32>,
}

/// The two shapes of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Plain text: one user message in a chat.
    Text(String),
    /// Messages, as the user's file has them.
    Messages(Vec<Value>),
}

impl Content {
    /// The bytes that identify the prompt.
    fn fingerprint_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Messages(messages) => Value::Array(messages.clone()).to_string(),
        }
    }
}

/// What was wrong with the prompts.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The prompts' file could not be read.
    #[error("read the prompts in {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line of it is not a prompt.
    #[error("{}:{line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// It has no prompt.
    #[error("{} has no prompt in it", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Messages cannot be sent to an endpoint that takes text.
    #[error("prompt {index} has messages, which {} does not take; use the chat endpoint", api.path())]
    MessagesNeedChat {
        /// The prompt, from 0.
        index: usize,
        /// The endpoint.
        api: Api,
    },
    /// The built-in data does not parse: a bug of ours, caught by a test.
    #[error("read the built-in prompts")]
    BuiltIn(#[from] toml::de::Error),
}

/// The prompts of a run in their order, and how they are sent.
#[derive(Debug, Clone)]
pub struct Prompts {
    request: WorkloadRequest,
    measured: Vec<Prompt>,
    warmup: Vec<Prompt>,
    sha256: String,
}

impl Prompts {
    /// Reads, orders and hashes the prompts. `warmup` is the number of warm-up requests: so many prompts of the
    /// user's file are set aside for them, where it has enough.
    pub fn prepare(request: WorkloadRequest, warmup: usize) -> Result<Self, WorkloadError> {
        let mut rng = ChaCha8Rng::seed_from_u64(request.seed);
        let (measured, reserved) = match &request.source {
            PromptSource::BuiltIn { kinds } => (builtin::prompts(kinds, &mut rng)?, Vec::new()),
            PromptSource::File { path } => {
                let mut all = file::read(path)?;
                let reserved = if all.len() > 2 * warmup {
                    all.split_off(all.len() - warmup)
                } else {
                    Vec::new()
                };
                (all, reserved)
            }
            // Synthetic prompts are made as they are needed: none is ever sent twice.
            PromptSource::Synthetic { .. } => (Vec::new(), Vec::new()),
        };
        if request.api != Api::Chat
            && let Some(index) = measured
                .iter()
                .chain(&reserved)
                .position(|prompt| matches!(prompt.content, Content::Messages(_)))
        {
            return Err(WorkloadError::MessagesNeedChat {
                index,
                api: request.api,
            });
        }
        let warmup = if reserved.is_empty() {
            let mut spare = builtin::warmup()?;
            spare.shuffle(&mut rng);
            spare
        } else {
            reserved
        };
        let sha256 = hash(&request, &measured);
        Ok(Self {
            request,
            measured,
            warmup,
            sha256,
        })
    }

    /// The workload as it is recorded.
    pub fn describe(&self) -> Workload {
        let mut kinds: Vec<PromptKind> = Vec::new();
        for prompt in &self.measured {
            if !kinds.contains(&prompt.kind) {
                kinds.push(prompt.kind);
            }
        }
        if kinds.is_empty() {
            kinds.push(PromptKind::Synthetic);
        }
        Workload {
            api: self.request.api,
            prompts: self.request.source.clone(),
            kinds,
            max_tokens: self.request.max_tokens,
            sampling: self.request.sampling.clone(),
            stream: self.request.stream,
            order_seed: self.request.seed,
            sha256: self.sha256.clone(),
        }
    }

    /// What was asked for.
    pub fn request(&self) -> &WorkloadRequest {
        &self.request
    }

    /// The prompt of the `index`-th measured or filler request of `trial` (from 1).
    pub fn measured(&self, trial: u32, index: u32) -> Prompt {
        let salt = self.request.salt.as_deref();
        if let PromptSource::Synthetic { tokens } = self.request.source {
            return synthetic::prompt(self.request.seed, salt, trial, index, tokens);
        }
        let prompt = &self.measured[index as usize % self.measured.len()];
        match self.request.source {
            PromptSource::BuiltIn { .. } => salted(prompt, salt, trial, index),
            _ => prompt.clone(),
        }
    }

    /// The prompt of the `index`-th warm-up request. No measured request has the same one.
    pub fn warmup(&self, index: u32) -> Prompt {
        let salt = self.request.salt.as_deref();
        if let PromptSource::Synthetic { tokens } = self.request.source {
            return synthetic::prompt(self.request.seed, salt, 0, index, tokens);
        }
        salted(&self.warmup[index as usize % self.warmup.len()], salt, 0, index)
    }

    /// The body of a request for `prompt`, ready to be sent.
    pub fn body(&self, prompt: &Prompt, model: &str, options: BodyOptions) -> Vec<u8> {
        body::encode(&self.request, prompt, model, options)
    }

    /// Output tokens asked for in a request for `prompt`.
    pub fn max_tokens(&self, prompt: &Prompt) -> u32 {
        prompt.max_tokens.unwrap_or(self.request.max_tokens)
    }
}

/// The reference of `prompt` for the record.
pub(crate) fn reference(prompt: &Prompt, index: u32, keep_text: bool) -> PromptRef {
    let text = prompt.content.fingerprint_text();
    PromptRef {
        index,
        kind: prompt.kind,
        sha256: short_hash(text.as_bytes()),
        bytes: u32::try_from(text.len()).unwrap_or(u32::MAX),
        text: keep_text.then_some(text),
    }
}

/// The first 16 hexadecimal digits of the SHA-256 of `bytes`.
pub(crate) fn short_hash(bytes: &[u8]) -> String {
    let mut text = hex(&Sha256::digest(bytes));
    text.truncate(16);
    text
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// A built-in prompt behind a line that no other request has, so that it shares no prefix with any of them.
fn salted(prompt: &Prompt, salt: Option<&str>, trial: u32, index: u32) -> Prompt {
    let (Some(salt), Content::Text(text)) = (salt, &prompt.content) else {
        return prompt.clone();
    };
    let content = Content::Text(format!("Note {salt}-{trial}-{index}.\n\n{text}"));
    Prompt {
        content,
        ..prompt.clone()
    }
}

/// SHA-256 over everything that decides what is sent, the model's name and the salt excepted.
fn hash(request: &WorkloadRequest, prompts: &[Prompt]) -> String {
    let mut hasher = Sha256::new();
    // Each part is preceded by its length: no two different workloads concatenate to the same bytes.
    let mut part = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(b"shakedown.workload/1");
    part(request.api.path().as_bytes());
    part(&request.max_tokens.to_le_bytes());
    part(&[u8::from(request.stream)]);
    part(&request.seed.to_le_bytes());
    part(&[u8::from(request.salt.is_some())]);
    // serde_json writes members in the order of the struct and the map's own order, both stable.
    part(&serde_json::to_vec(&request.sampling).unwrap_or_default());
    if let PromptSource::Synthetic { tokens } = request.source {
        part(b"synthetic");
        part(&tokens.to_le_bytes());
    }
    for prompt in prompts {
        part(prompt.kind.as_str().as_bytes());
        part(&prompt.max_tokens.unwrap_or(0).to_le_bytes());
        part(prompt.content.fingerprint_text().as_bytes());
    }
    hex(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> WorkloadRequest {
        WorkloadRequest {
            api: Api::Chat,
            source: PromptSource::default(),
            max_tokens: 64,
            sampling: Sampling {
                temperature: Some(0.0),
                ..Sampling::default()
            },
            stream: true,
            seed: 1,
            salt: Some("a1b2".to_owned()),
        }
    }

    fn sha(request: WorkloadRequest) -> String {
        Prompts::prepare(request, 2).unwrap().describe().sha256
    }

    #[test]
    fn same_request_same_hash_and_order() {
        let one = Prompts::prepare(request(), 2).unwrap();
        let two = Prompts::prepare(request(), 2).unwrap();
        assert_eq!(one.describe(), two.describe());
        assert_eq!(one.measured(1, 17), two.measured(1, 17));
    }

    #[test]
    fn whatever_decides_what_is_sent_changes_the_hash() {
        let base = sha(request());
        assert_ne!(base, sha(WorkloadRequest { seed: 2, ..request() }));
        assert_ne!(
            base,
            sha(WorkloadRequest {
                max_tokens: 65,
                ..request()
            })
        );
        assert_ne!(
            base,
            sha(WorkloadRequest {
                stream: false,
                ..request()
            })
        );
        assert_ne!(
            base,
            sha(WorkloadRequest {
                api: Api::Completions,
                ..request()
            })
        );
        assert_ne!(
            base,
            sha(WorkloadRequest {
                salt: None,
                ..request()
            })
        );
        assert_ne!(
            base,
            sha(WorkloadRequest {
                sampling: Sampling {
                    temperature: Some(0.5),
                    ..request().sampling
                },
                ..request()
            })
        );
        let code = PromptSource::BuiltIn {
            kinds: vec![PromptKind::Code],
        };
        assert_ne!(
            base,
            sha(WorkloadRequest {
                source: code,
                ..request()
            })
        );
    }

    #[test]
    fn the_salt_itself_is_not_in_the_hash() {
        assert_eq!(
            sha(request()),
            sha(WorkloadRequest {
                salt: Some("other".to_owned()),
                ..request()
            })
        );
    }

    #[test]
    fn no_prompt_is_sent_twice() {
        for source in [PromptSource::default(), PromptSource::Synthetic { tokens: 20 }] {
            let prompts = Prompts::prepare(WorkloadRequest { source, ..request() }, 2).unwrap();
            let mut seen = std::collections::HashSet::new();
            for index in 0..200 {
                assert!(seen.insert(prompts.warmup(index).content.fingerprint_text()));
                for trial in 1..4 {
                    assert!(seen.insert(prompts.measured(trial, index).content.fingerprint_text()));
                }
            }
        }
    }

    #[test]
    fn kinds_alternate() {
        let prompts = Prompts::prepare(request(), 0).unwrap();
        let first: Vec<_> = (0..4).map(|index| prompts.measured(1, index).kind).collect();
        for kind in [
            PromptKind::Chat,
            PromptKind::Code,
            PromptKind::Reasoning,
            PromptKind::Extraction,
        ] {
            assert!(first.contains(&kind), "{first:?}");
        }
    }
}
