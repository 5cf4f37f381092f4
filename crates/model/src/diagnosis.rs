//! The document of a diagnosis: what is the matter with a server, schema `shakedown.diagnosis/1`.
//!
//! It carries everything that a rendering needs: the verdict, the lines to quote, why, how to mend it, how to
//! prove it mended, what was considered and ruled out, and what was read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Confidence, Evidence, Exit, Finding};

/// Name and version of the diagnosis document's schema.
pub const DIAGNOSIS_SCHEMA: &str = "shakedown.diagnosis/1";

/// What state the server is in, as far as the evidence tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosedState {
    /// It did not come up, or went down, for a cause that was found.
    Failed,
    /// It serves, but something asked for is not in force, or its clients fail for a cause that was found.
    Impaired,
    /// It serves, and nothing is wrong.
    UpAndWell,
    /// It serves, at another address than the one that was asked.
    UpElsewhere,
    /// It serves, and the way from here to it is closed.
    UnreachableFromHere,
    /// It is on its way.
    StillLoading,
    /// It lives and makes no progress.
    Stalled,
    /// It was never started.
    NeverStarted,
    /// Somebody else ended it.
    KilledFromOutside,
    /// The evidence does not decide.
    Unknown,
}

impl DiagnosedState {
    /// The word used in documents and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Impaired => "impaired",
            Self::UpAndWell => "up_and_well",
            Self::UpElsewhere => "up_elsewhere",
            Self::UnreachableFromHere => "unreachable_from_here",
            Self::StillLoading => "still_loading",
            Self::Stalled => "stalled",
            Self::NeverStarted => "never_started",
            Self::KilledFromOutside => "killed_from_outside",
            Self::Unknown => "unknown",
        }
    }

    /// The exit status that goes with it.
    pub const fn exit(self) -> Exit {
        match self {
            Self::UpAndWell | Self::UpElsewhere => Exit::Yes,
            Self::UnreachableFromHere => Exit::Unreachable,
            Self::Unknown => Exit::NotEnoughEvidence,
            Self::Failed
            | Self::Impaired
            | Self::StillLoading
            | Self::Stalled
            | Self::NeverStarted
            | Self::KilledFromOutside => Exit::No,
        }
    }
}

/// How a catalogue entry is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// Nobody checked it; never makes a finding certain.
    Unverified,
    /// Read in the engine's code or in a public thread.
    Source,
    /// Seen in a run of ours.
    Seen,
}

/// One judged cause or state: a finding with what the failure catalogue knows of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosed {
    /// The finding itself.
    #[serde(flatten)]
    pub finding: Finding,
    /// Group of kinds, for example `memory`.
    pub family: String,
    /// The kind, `area.kind`, for example `oom.host_killed`.
    pub class: String,
    /// The cause in one sentence; the same words as the finding's `what`.
    pub cause: String,
    /// How the catalogue knows of it; absent for what was judged without an entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// Which process or rank it was seen in first, where the log tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// When, in the log's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The stage of bring-up that it happened in, where the log tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// What only followed from it, in order of appearance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub led_to: Vec<Consequence>,
}

/// Something that only followed from a cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Consequence {
    /// Catalogue code of what was seen.
    pub code: String,
    /// Its title.
    pub title: String,
    /// Its first line.
    pub evidence: Evidence,
    /// How many lines said the same.
    pub count: u64,
}

/// An explanation that was considered and dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuledOut {
    /// Catalogue code of the explanation.
    pub code: String,
    /// Its title.
    pub title: String,
    /// Why it is not the cause, in one sentence.
    pub reason: String,
    /// The evidence against it, or the line that suggested it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

/// A stage of bring-up that the log shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageSeen {
    /// The stage's name.
    pub stage: String,
    /// Whether its end was seen too.
    pub ended: bool,
    /// The line of its last mark.
    pub evidence: Evidence,
}

/// What was read of one file or stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Covered {
    /// The file, as it was named.
    pub source: String,
    /// Bytes read, after decompression.
    pub bytes: u64,
    /// Lines read.
    pub lines: u64,
    /// Launches found in it.
    pub launches: u32,
    /// Number of the launch that was judged, from 1; 0 for none.
    pub judged_launch: u32,
    /// First and last line of that launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_lines: Option<(u64, u64)>,
    /// First stamp in it, in the log's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_stamp: Option<String>,
    /// Last stamp in it, in the log's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_stamp: Option<String>,
    /// Seconds since the last write to it when it was read, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_s: Option<u64>,
    /// What could not be read or was cut, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Why a server is not up, or that it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// [`DIAGNOSIS_SCHEMA`].
    pub schema: String,
    /// The verdict in one word.
    pub state: DiagnosedState,
    /// The verdict in one sentence.
    pub verdict: String,
    /// How sure the verdict is: the confidence of the first finding.
    pub confidence: Confidence,
    /// Where the server listens, where the evidence tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The engine's word, where the evidence tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Its version in its own words, where the evidence tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_version: Option<String>,
    /// The findings: the first is the verdict, the others stand beside it.
    pub findings: Vec<Diagnosed>,
    /// What was considered and dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ruled_out: Vec<RuledOut>,
    /// Alarming lines that mean nothing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub harmless: Vec<Consequence>,
    /// The stages that were seen, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageSeen>,
    /// The most unusual lines, where the cause is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unusual: Vec<Evidence>,
    /// Where to look next, where the cause is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub look_next: Vec<String>,
    /// The last lines of what was judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tail: Vec<Evidence>,
    /// What was read.
    pub covered: Vec<Covered>,
}

impl Diagnosis {
    /// The finding that is the verdict.
    pub fn first(&self) -> Option<&Diagnosed> {
        self.findings.first()
    }

    /// The exit status that goes with it.
    pub const fn exit(&self) -> Exit {
        self.state.exit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_agree_with_serde() {
        for state in [
            DiagnosedState::UpAndWell,
            DiagnosedState::KilledFromOutside,
            DiagnosedState::Unknown,
        ] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
    }
}
