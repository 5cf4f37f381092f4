//! The decision put together: with a cause, without one, and where nothing is wrong.

use shakedown_model::{Confidence, DiagnosedState, Evidence, Verdict};

use super::Sign;
use super::candidates::{CERTAIN, Candidate, Folded, LIKELY, Sorted, explains};
use super::signs::Known;
use super::state::{DEATH, Decision, Plain, Unexplained};
use super::view::View;
use crate::catalog::{Role, Stage};
use crate::log::{How, Level};

impl<'a> View<'a> {
    /// A cause stands: `rest` are the others, `sorted` what has another role.
    pub(super) fn with_cause(
        &self,
        mut top: Candidate<'a>,
        rest: Vec<Candidate<'a>>,
        sorted: Sorted<'a>,
        up: bool,
    ) -> Decision<'a> {
        let Sorted {
            symptoms,
            cascades,
            benign,
            off,
            dropped,
            spoken_of,
            ..
        } = sorted;
        let known: Vec<&Candidate<'a>> = std::iter::once(&top).chain(&rest).chain(&cascades).collect();
        let unexplained = self.unexplained(&known, &spoken_of);
        let confidence = self.confidence(&top, &rest, &unexplained, up);
        // What it explains may stand before it: a shell's word of a kill whose reason the kernel gives later.
        for symptom in symptoms
            .iter()
            .filter(|symptom| explains(top.failure, symptom.failure))
        {
            top.folded.push(Folded {
                failure: symptom.failure,
                first: symptom.events.first().copied(),
                count: symptom.count(),
            });
        }
        let mut followed: Vec<Folded<'a>> = top
            .folded
            .iter()
            .map(|folded| Folded {
                failure: folded.failure,
                first: folded.first,
                count: folded.count,
            })
            .collect();
        let first = top.order();
        for candidate in symptoms.into_iter().chain(cascades) {
            if candidate.last_order() >= first {
                followed.push(Folded {
                    failure: candidate.failure,
                    first: candidate
                        .events
                        .iter()
                        .find(|placed| placed.order >= first)
                        .copied(),
                    count: candidate.count(),
                });
            }
        }
        followed.sort_by_key(|folded| folded.first.map_or(0, |placed| placed.order));
        followed.retain(|folded| folded.failure.code != top.failure.code);
        followed.dedup_by_key(|folded| folded.failure.code.clone());
        let state = top.failure.state.unwrap_or(if up {
            DiagnosedState::Impaired
        } else {
            DiagnosedState::Failed
        });
        let mut beside: Vec<(Candidate<'a>, Confidence)> = rest
            .into_iter()
            .map(|candidate| {
                let own = if candidate.weight >= LIKELY {
                    Confidence::Likely
                } else {
                    Confidence::Possible
                };
                (candidate, own.min(confidence))
            })
            .collect();
        beside.extend(off.into_iter().map(|candidate| {
            let own = if candidate.weight >= CERTAIN {
                Confidence::Certain
            } else {
                Confidence::Likely
            };
            (candidate, own)
        }));
        Decision {
            state,
            top: Some((top, confidence)),
            plain: None,
            beside,
            followed,
            dropped,
            benign,
        }
    }

    /// It came up and nothing explains a failure, for there is none.
    pub(super) fn came_up(&self, sorted: Sorted<'a>) -> Decision<'a> {
        let Sorted {
            symptoms,
            benign,
            mut off,
            dropped,
            spoken_of,
            ..
        } = sorted;
        // A client that fails, or an error that nobody explains, makes the good news less sure.
        let ready_at = self.ready_marks().map(|stage| stage.order).min().unwrap_or(0);
        let stop = self.stop().unwrap_or(usize::MAX);
        let certain_mark = self
            .stages
            .iter()
            .any(|stage| matches!(stage.mark.stage, Stage::Ready | Stage::Listening) && stage.mark.end);
        let doubt = !(certain_mark || matches!(self.sign(Sign::HttpOk), Known::Present(_)))
            || symptoms
                .iter()
                .any(|symptom| symptom.failure.class.starts_with("net."))
            || self.events.iter().any(|placed| {
                let event = placed.event;
                let loud = event.level.is_some_and(|level| level >= Level::Error);
                let warns_late = placed.order > ready_at && event.level == Some(Level::Warn);
                // A line without any prefix is not the engine's own chatter: a client's, or the system's.
                let foreign = event.msg_at == 0;
                !spoken_of.contains(&placed.order)
                    && placed.order < stop
                    && (loud || foreign || event.said.is_some() || warns_late)
            });
        // What was asked for by name and is not in force outweighs that all else is well.
        let asked = off
            .iter()
            .position(|candidate| candidate.weight >= LIKELY && candidate.failure.role == Role::NotInForce);
        if let Some(at) = asked {
            let top = off.remove(at);
            let confidence = if top.weight >= CERTAIN {
                Confidence::Certain
            } else {
                Confidence::Likely
            };
            return Decision {
                state: DiagnosedState::Impaired,
                top: Some((top, confidence)),
                plain: None,
                beside: off
                    .into_iter()
                    .map(|candidate| (candidate, Confidence::Likely))
                    .collect(),
                followed: Vec::new(),
                dropped,
                benign,
            };
        }
        let stopped = self
            .stages
            .iter()
            .rfind(|stage| stage.mark.stage == Stage::Stopping);
        let address = self.server_address().map(|(address, _)| {
            let host = address.host.unwrap_or_else(|| "its address".to_owned());
            address.port.map_or(host.clone(), |port| format!("{host}:{port}"))
        });
        let at = address.map_or(String::new(), |address| format!(" on {address}"));
        let alarming: u64 = benign.iter().map(Candidate::count).sum();
        let noise = match alarming {
            0 => String::new(),
            1 => "; one line of its log looks bad and means nothing".to_owned(),
            count => format!("; {count} lines of its log look bad and mean nothing"),
        };
        let what = if stopped.is_some() {
            format!("It came up and served{at}, and was then stopped in good order{noise}.")
        } else {
            format!("It is up and well{at}{noise}.")
        };
        let mut evidence: Vec<Evidence> = Vec::new();
        if let Known::Present(seen) = self.sign(Sign::HttpOk) {
            evidence.extend(seen.evidence);
        }
        if let Some(stage) = self
            .ready_marks()
            .find(|stage| stage.mark.stage == Stage::Ready)
            .or_else(|| self.ready_marks().next())
        {
            evidence.push(self.quote(stage.log, stage.hit.line, &stage.hit.text));
        }
        if let Some(stage) = stopped {
            evidence.push(self.quote(stage.log, stage.hit.line, &stage.hit.text));
        }
        let (family, class) = benign
            .first()
            .map_or(("server state".to_owned(), "state.up".to_owned()), |candidate| {
                (candidate.failure.family.clone(), candidate.failure.class.clone())
            });
        evidence.extend(
            benign
                .first()
                .and_then(|candidate| candidate.events.first())
                .map(|placed| self.quote_event(placed)),
        );
        Decision {
            state: DiagnosedState::UpAndWell,
            top: None,
            plain: Some(Plain {
                code: if stopped.is_some() {
                    "served-and-stopped"
                } else {
                    "up-and-well"
                },
                family,
                class,
                verdict: Verdict::Ok,
                confidence: if doubt {
                    Confidence::Likely
                } else {
                    Confidence::Certain
                },
                what,
                why: "its log shows that it became ready, and nothing after that took it down".to_owned(),
                evidence,
            }),
            beside: Vec::new(),
            followed: Vec::new(),
            dropped,
            benign,
        }
    }

    /// No cause stands, and it did not come up.
    pub(super) fn without_cause(&self, sorted: Sorted<'a>, gone: bool) -> Decision<'a> {
        let Sorted {
            symptoms,
            cascades,
            mut benign,
            off,
            dropped,
            spoken_of,
            ..
        } = sorted;
        let dead = cascades.iter().any(|candidate| candidate.failure.class == DEATH);
        let unexplained = self.unexplained(&[], &spoken_of);
        let exception = unexplained
            .iter()
            .find(|other| !self.came_up_after(&other.placed));
        let mut followed: Vec<Folded<'a>> = Vec::new();
        for candidate in symptoms.into_iter().chain(cascades) {
            followed.push(Folded {
                failure: candidate.failure,
                first: candidate.events.first().copied(),
                count: candidate.count(),
            });
        }
        let beside = off
            .into_iter()
            .map(|candidate| (candidate, Confidence::Likely))
            .collect();
        let mut decision = Decision {
            state: DiagnosedState::Unknown,
            top: None,
            plain: None,
            beside,
            followed,
            dropped,
            benign: Vec::new(),
        };
        if let Some(other) = exception {
            decision.plain = Some(self.uncatalogued(other));
            decision.benign = benign;
            return decision;
        }
        // Nothing failed so far: a line that only looks bad is what there is to explain.
        let misread = benign
            .iter()
            .position(|candidate| candidate.failure.weight >= LIKELY);
        if !dead
            && !gone
            && let Some(at) = misread
        {
            let top = benign.remove(at);
            let confidence = if top.weight >= CERTAIN {
                Confidence::Certain
            } else {
                Confidence::Likely
            };
            decision.state = if matches!(self.sign(Sign::Alive), Known::Present(_)) {
                DiagnosedState::StillLoading
            } else {
                DiagnosedState::Unknown
            };
            decision.top = Some((top, confidence));
            decision.benign = benign;
            return decision;
        }
        decision.benign = benign;
        let (state, plain) = self.by_stage(dead, gone);
        decision.state = state;
        decision.plain = Some(plain);
        decision
    }

    fn uncatalogued(&self, other: &Unexplained<'a>) -> Plain {
        let original = other
            .trace
            .chain
            .iter()
            .rev()
            .find(|raised| raised.how != How::DirectCause && raised.how != How::During)
            .or_else(|| other.trace.chain.first());
        // While a lookup's failure was being handled, the later exception is the one that tells.
        let telling = match (original, other.trace.chain.last()) {
            (Some(first), Some(last))
                if last.how == How::During
                    && ["KeyError", "StopIteration", "AttributeError", "IndexError"]
                        .contains(&first.name()) =>
            {
                Some(last)
            }
            (first, last) => first.or(last),
        };
        let (name, message) = telling.map_or(("exception", ""), |raised| {
            (raised.name(), raised.message.lines().next().unwrap_or(""))
        });
        let text: String = crate::mask::mask(message).chars().take(200).collect();
        let place = telling
            .and_then(|raised| raised.frames.back())
            .map(|frame| format!(" in {} ({})", frame.function, frame.file))
            .unwrap_or_default();
        let by = other.placed.event.proc.as_ref().and_then(crate::log::Proc::label);
        let who = by.map_or(String::new(), |label| format!(" of {label}"));
        Plain {
            code: "uncatalogued-exception",
            family: "unknown".to_owned(),
            class: "unknown.exception".to_owned(),
            verdict: Verdict::Unknown,
            confidence: Confidence::Possible,
            what: format!(
                "The first exception{who} is one that the catalogue does not know: {name}: {text}{place}."
            ),
            why: "what it means for the server is not known; the lines after it follow from it".to_owned(),
            evidence: vec![self.quote_event(&other.placed)],
        }
    }
}
