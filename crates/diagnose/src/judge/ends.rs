//! A verdict from how far it came, where nothing says why it went no further.

use shakedown_model::{Confidence, DiagnosedState, Evidence, Verdict};

use super::Sign;
use super::signs::Known;
use super::state::Plain;
use super::view::View;
use crate::catalog::Stage;

impl View<'_> {
    /// A verdict from how far it came, where nothing says why it went no further.
    pub(super) fn by_stage(&self, dead: bool, gone: bool) -> (DiagnosedState, Plain) {
        let plain =
            |code, class: &str, verdict, confidence, what: String, why: &str, evidence: Vec<Evidence>| {
                Plain {
                    code,
                    family: match class.split('.').next() {
                        Some("ready") => "not ready yet",
                        Some("ext") => "ended from outside",
                        Some("net") => "network/binding",
                        _ => "unknown",
                    }
                    .to_owned(),
                    class: class.to_owned(),
                    verdict,
                    confidence,
                    what,
                    why: why.to_owned(),
                    evidence,
                }
            };
        let last = self
            .stages
            .iter()
            .rfind(|stage| stage.mark.stage != Stage::Stopping);
        let at = last.map(|stage| stage.mark.stage);
        let mut evidence: Vec<Evidence> = last
            .map(|stage| self.quote(stage.log, stage.hit.last_line, &stage.hit.text))
            .into_iter()
            .collect();
        let doing = at.map_or(String::new(), |stage| format!(" while {}", stage.words()));
        let alive = self.sign(Sign::Alive);
        let hung = self.sign(Sign::Hung);
        let silent = self.sign(Sign::Silent);
        if let (Known::Present(seen), false) = (&hung, gone || dead) {
            evidence.extend(seen.evidence.clone());
            return (
                DiagnosedState::Stalled,
                plain(
                    "stalled",
                    "ready.stalled",
                    Verdict::Fail,
                    Confidence::Likely,
                    format!("It lives and makes no progress{doing}."),
                    "nothing in the log or the facts says what it waits for",
                    evidence,
                ),
            );
        }
        if let (Known::Present(seen), false) = (&alive, gone || dead) {
            evidence.extend(seen.evidence.clone());
            if matches!(silent, Known::Present(_)) {
                return (
                    DiagnosedState::Stalled,
                    plain(
                        "stalled",
                        "ready.stalled",
                        Verdict::Fail,
                        Confidence::Possible,
                        format!("It lives, and its log has said nothing for a long time{doing}."),
                        "a long load or compilation can be silent too",
                        evidence,
                    ),
                );
            }
            return (
                DiagnosedState::StillLoading,
                plain(
                    "still-loading",
                    "ready.still_loading",
                    Verdict::Info,
                    Confidence::Likely,
                    format!("It is on its way{doing}."),
                    "its process lives and its log shows no failure",
                    evidence,
                ),
            );
        }
        if let Known::Present(seen) = self.sign(Sign::ExitSignal) {
            let number = seen.number.unwrap_or(0.0);
            evidence.extend(seen.evidence);
            return (
                DiagnosedState::KilledFromOutside,
                plain(
                    "ended-by-signal",
                    "ext.signal",
                    Verdict::Fail,
                    Confidence::Likely,
                    format!("It was ended by signal {number}{doing}, and its log does not say why."),
                    "a process that is killed cannot log it",
                    evidence,
                ),
            );
        }
        if let (Known::Present(seen), true) = (self.sign(Sign::NoProcess), last.is_none()) {
            evidence.extend(seen.evidence);
            return (
                DiagnosedState::NeverStarted,
                plain(
                    "never-started",
                    "net.no_listener",
                    Verdict::Fail,
                    Confidence::Likely,
                    "No server process exists, and no log shows that one was started.".to_owned(),
                    "there is nothing that could answer",
                    evidence,
                ),
            );
        }
        if let (Some(stage), false) = (at, dead) {
            let early = stage < Stage::Ready;
            let tail = self.logs.iter().find_map(|log| log.launch.tail.last());
            if let (Some((line, text)), true) = (tail, evidence.is_empty()) {
                evidence.push(self.quote(0, *line, text));
            }
            if early {
                return (
                    DiagnosedState::Unknown,
                    plain(
                        "log-stops",
                        "ext.killed",
                        Verdict::Unknown,
                        Confidence::Possible,
                        format!(
                            "The log stops{doing} without an error: it was killed from outside (a kill leaves no word), or it is still at it."
                        ),
                        "an engine that fails says so; one that is killed cannot",
                        evidence,
                    ),
                );
            }
        }
        let why = if self.has_lines() {
            "no line of it is a known failure, and no stage of a known engine was recognised after which it could have stopped"
        } else {
            "there is no log to read"
        };
        let what = match (self.has_lines(), gone || dead) {
            (false, _) => "There is not enough evidence: the log is empty.".to_owned(),
            (true, true) => format!("It ended{doing}, and the log does not say why."),
            (true, false) => "The evidence does not say what is the matter.".to_owned(),
        };
        (
            DiagnosedState::Unknown,
            plain(
                "unknown",
                "unknown.cause",
                Verdict::Unknown,
                Confidence::Possible,
                what,
                why,
                evidence,
            ),
        )
    }
}
