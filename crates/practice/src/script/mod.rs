//! Stream scripts: which bytes leave when, written down in TOML. The guide is `docs/practice-scripts.md`.

mod builtin;
mod events;
mod read;
mod run;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use shakedown_model::{RequestOutcome, TokenSource};

pub use builtin::scripts;
pub(crate) use run::{Context, ScriptRun};

use crate::shape::{Finish, ReasoningField, RoleContent};
use crate::sse::Style;

/// Why a text is not a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// It is not TOML, or not of the scripts' form.
    #[error("read the script: {0}")]
    Toml(String),
    /// A step cannot be carried out.
    #[error("read step {number} of script {script}: {why}")]
    Step {
        /// Name of the script.
        script: String,
        /// Number of the step, from 1.
        number: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The script as a whole cannot be carried out.
    #[error("read script {script}: {why}")]
    Script {
        /// Name of the script.
        script: String,
        /// What is wrong with it.
        why: String,
    },
}

/// A stream script. Cloning it is cheap.
#[derive(Debug, Clone, PartialEq)]
pub struct Script(Arc<Body>);

impl Script {
    /// The built-in script of that name.
    pub fn named(name: &str) -> Option<Self> {
        scripts().iter().find(|script| script.name() == name).cloned()
    }

    /// Reads a script from TOML.
    ///
    /// # Errors
    /// When the text is not TOML, has members that a script does not have, or steps that cannot be carried out.
    pub fn from_toml(text: &str) -> Result<Self, ScriptError> {
        read::read(text).map(|body| Self(Arc::new(body)))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What it is, in one sentence.
    pub fn about(&self) -> &str {
        &self.0.about
    }

    /// What a client must make of it, where the script says so.
    pub fn expect(&self) -> Option<&Expect> {
        self.0.expect.as_ref()
    }

    pub(crate) fn status(&self) -> u16 {
        self.0.status
    }

    pub(crate) fn body(&self) -> &Body {
        &self.0
    }
}

/// What a client that is right makes of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// How the request ended.
    pub outcome: RequestOutcome,
    /// Output tokens; absent for a client that cannot know them.
    #[serde(default)]
    pub tokens: Option<u64>,
    /// Where that count came from.
    pub source: TokenSource,
    /// Tokens that the server really sent, whether or not a client can know it.
    #[serde(default)]
    pub generated: u64,
    /// What the client has to be told for this to come out.
    #[serde(default)]
    pub needs: Needs,
}

/// Settings of a client under which an expectation holds. What is absent is the client's own default, but for
/// usage, which it asks for with `stream_options.include_usage`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Needs {
    /// Longest silence within a stream, in milliseconds: the client's must be about this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// Longest wait for the first token, in milliseconds: the client's must be about this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_token_timeout_ms: Option<u64>,
    /// Longest time of a whole request, in milliseconds: the client's must be about this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_timeout_ms: Option<u64>,
    /// The request must carry `ignore_eos`.
    pub ignore_eos: bool,
    /// The request must ask for so many tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The request must be the first on its connection.
    pub fresh_connection: bool,
}

/// When usage comes with a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum When {
    /// When the request asks for it.
    #[default]
    Asked,
    Always,
    Never,
}

/// How the body of the answer is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Framing {
    /// `Transfer-Encoding: chunked`, one chunk a write.
    Chunked,
    /// `Content-Length`.
    Length,
    /// By the end of the connection.
    Close,
    /// No head and no framing: the steps are the bytes of the connection.
    None,
}

/// When the head is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HeadAt {
    /// With the first step, in one write.
    #[default]
    WithFirst,
    /// As soon as the request is read.
    AtOnce,
}

/// Whether a step's bytes wait for the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Join {
    /// They go into the same HTTP chunk.
    Chunk,
    /// They go into the same write, in a chunk of their own.
    Write,
}

/// Where a step's bytes are torn into several writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tear {
    /// Into so many parts of about equal length.
    Parts(usize),
    /// So many bytes behind the first occurrence of a text.
    Behind(String, usize),
}

/// A script, checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Body {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    /// The sentence of an error answer in the engine's shape.
    pub(crate) error: Option<String>,
    pub(crate) framing: Framing,
    pub(crate) head: HeadAt,
    pub(crate) style: Style,
    pub(crate) reasoning: Option<ReasoningField>,
    pub(crate) continuous_usage: When,
    pub(crate) steps: Vec<Step>,
    pub(crate) expect: Option<Expect>,
}

/// One step, repetitions not yet written out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    /// Nanoseconds from the request read.
    pub(crate) at: u64,
    pub(crate) repeat: u32,
    pub(crate) every: u64,
    pub(crate) join: Option<Join>,
    pub(crate) tear: Option<Tear>,
    /// Nanoseconds between the writes of a torn step.
    pub(crate) tear_gap: u64,
    /// The parts are torn with their HTTP framing.
    pub(crate) tear_framing: bool,
    pub(crate) act: Act,
}

/// Text that a step sends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Text {
    /// The next words of the practice model.
    Words(u32),
    /// This text, which counts for so many tokens.
    Given(String, u32),
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Act {
    Role(RoleContent),
    Content {
        text: Text,
        finish: Option<Finish>,
    },
    Reasoning(Text),
    Tool {
        text: Text,
        name: Option<String>,
    },
    Finish(Finish),
    Usage {
        when: When,
        completion: Option<u32>,
    },
    Error {
        message: String,
        code: u16,
    },
    Done,
    Comment(String),
    Raw {
        bytes: Vec<u8>,
        tokens: u32,
        kind: shakedown_model::WriteKind,
    },
    /// One line of so many bytes.
    Giant(u64),
    /// One word again and again, so many nanoseconds apart.
    Endless(u64),
    Cut,
    Reset,
    Stall,
}
