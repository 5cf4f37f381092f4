//! One judged fact and what it rests on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The three answers that anything here can give, and the two that are not answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Something is wrong.
    Fail,
    /// Something deserves a look.
    Warn,
    /// Worth knowing, nothing wrong.
    Info,
    /// Looked at, and well.
    Ok,
    /// Not enough evidence.
    Unknown,
}

/// How sure a finding is. `Certain` is meant to be right at least 98 times in 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// One explanation among several.
    Possible,
    /// The best explanation of the evidence.
    Likely,
    /// The evidence decides it.
    Certain,
}

/// One piece of what a finding rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Where it was read: a file, an endpoint, a measurement.
    pub source: String,
    /// Line number in `source`, from 1, where it has lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The exact line or value, secrets masked.
    pub value: String,
}

impl Evidence {
    /// Evidence without a line number.
    pub fn new(source: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            line: None,
            value: value.into(),
        }
    }

    /// Evidence from line `line` (from 1) of `source`.
    pub fn at_line(source: impl Into<String>, line: u64, value: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            line: Some(line),
            value: value.into(),
        }
    }
}

/// Whether a fix can be applied as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Applicability {
    /// Harmless and reversible.
    Safe,
    /// Right in most cases; read it first.
    Review,
    /// Can lose work or data, or needs privileges.
    Risky,
}

/// One way to mend what a finding says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fix {
    /// What to do, in one sentence.
    pub text: String,
    /// The command that does it, ready to paste.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Whether it can be applied as it stands.
    pub applicability: Applicability,
}

/// One judged fact: what is so, what that rests on, why, how to mend it and how to prove it mended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Stable code, kebab-case, for example `client-limited`.
    pub code: String,
    /// The answer.
    pub verdict: Verdict,
    /// How sure it is.
    pub confidence: Confidence,
    /// What it is about: a server, a process, a request, a run.
    pub subject: String,
    /// What is so, in one sentence with its numbers.
    pub what: String,
    /// Why it is so or why it matters, in one sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What it rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<Fix>,
    /// The command that shows whether the fix worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<String>,
}

impl Finding {
    /// A finding that is certain, about `subject`, with nothing but its sentence.
    pub fn new(
        code: impl Into<String>,
        verdict: Verdict,
        subject: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        Self {
            code: code.into(),
            verdict,
            confidence: Confidence::Certain,
            subject: subject.into(),
            what: what.into(),
            why: String::new(),
            evidence: Vec::new(),
            fixes: Vec::new(),
            verify: None,
        }
    }

    /// The same finding with its reason.
    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    /// The same finding resting on one more piece of evidence.
    #[must_use]
    pub fn evidence(mut self, evidence: Evidence) -> Self {
        self.evidence.push(evidence);
        self
    }

    /// The same finding with a way to mend it.
    #[must_use]
    pub fn fix(
        mut self,
        text: impl Into<String>,
        command: Option<String>,
        applicability: Applicability,
    ) -> Self {
        self.fixes.push(Fix {
            text: text.into(),
            command,
            applicability,
        });
        self
    }

    /// The same finding, less sure.
    #[must_use]
    pub fn confidence(mut self, confidence: Confidence) -> Self {
        self.confidence = confidence;
        self
    }
}
