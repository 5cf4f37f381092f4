//! The words for what a document says by its kinds.

use shakedown_model::{
    AcceptanceSource, Applicability, Arrival, Confidence, PromptKind, RunEnd, TokenSource, Verdict,
};

use crate::style::Tone;

/// The word that leads a finding, and its colour.
pub(crate) const fn verdict(verdict: Verdict) -> (&'static str, Tone) {
    match verdict {
        Verdict::Fail => ("error", Tone::Bad),
        Verdict::Warn => ("warning", Tone::Warning),
        Verdict::Info => ("info", Tone::Hint),
        Verdict::Ok => ("ok", Tone::Good),
        Verdict::Unknown => ("unknown", Tone::Warning),
    }
}

/// What stands before a sentence that is not certain.
pub(crate) const fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Certain => "",
        Confidence::Likely => "likely: ",
        Confidence::Possible => "possibly: ",
    }
}

/// What stands after a fix that should not be applied blindly.
pub(crate) const fn applicability(applicability: Applicability) -> &'static str {
    match applicability {
        Applicability::Safe => "",
        Applicability::Review => " (read it before you run it)",
        Applicability::Risky => " (risky: it can lose work, or needs privileges)",
    }
}

/// Where a token count came from.
pub(crate) const fn token_source(source: TokenSource) -> &'static str {
    match source {
        TokenSource::ServerUsage => "the server's usage",
        TokenSource::ContinuousUsage => "usage in each chunk",
        TokenSource::TokenIds => "token ids in each chunk",
        TokenSource::ServerTokenize => "the server's tokenizer",
        TokenSource::Unknown => "unknown",
    }
}

/// Where a figure of speculative decoding came from.
pub(crate) const fn acceptance_source(source: AcceptanceSource) -> &'static str {
    match source {
        AcceptanceSource::EngineCounters => "the engine's counters over the run",
        AcceptanceSource::EngineGauge => "a gauge of the engine over an interval of its own",
        AcceptanceSource::PerRequest => "figures in the replies",
        AcceptanceSource::TokensPerChunk => "tokens per chunk, a chunk taken for a step",
    }
}

/// What a run is that did not end as it should.
pub(crate) const fn run_end(end: RunEnd) -> Option<(&'static str, &'static str, Tone)> {
    match end {
        RunEnd::Complete => None,
        RunEnd::Interrupted => Some((
            "interrupted",
            "the figures cover what was measured before",
            Tone::Warning,
        )),
        RunEnd::Failed => Some(("failed", "the target could not be measured", Tone::Bad)),
        RunEnd::Running => Some((
            "unfinished",
            "the run goes on, or its process was killed",
            Tone::Warning,
        )),
    }
}

/// The arrival process of an open loop.
pub(crate) const fn arrival(arrival: Arrival) -> &'static str {
    match arrival {
        Arrival::Poisson => "Poisson",
        Arrival::Constant => "equal gaps",
    }
}

/// Kinds of prompts in one phrase; empty for none.
pub(crate) fn kinds(kinds: &[PromptKind]) -> String {
    kinds
        .iter()
        .map(|kind| kind.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}
