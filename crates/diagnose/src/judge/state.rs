//! The verdict: which state the server is in, and which explanation, if any, says why.

use std::collections::BTreeSet;

use shakedown_model::{Confidence, DiagnosedState, Evidence, Verdict};

use super::Sign;
use super::candidates::{CERTAIN, Candidate, Dropped, Folded, LIKELY, Sorted, repeats};
use super::signs::Known;
use super::view::{Placed, PlacedStage, View};
use crate::catalog::{Role, Stage};
use crate::log::Trace;

/// The class of cascade entries that say that a process ended.
pub(super) const DEATH: &str = "cascade.death";
/// From this weight on a symptom is told even of a server that came up.
const WORTH_TELLING: u8 = 45;

/// What was decided.
pub(super) struct Decision<'a> {
    pub(super) state: DiagnosedState,
    /// The explanation that is the verdict, where one is.
    pub(super) top: Option<(Candidate<'a>, Confidence)>,
    /// A verdict without a catalogue entry.
    pub(super) plain: Option<Plain>,
    /// Explanations that stand beside it.
    pub(super) beside: Vec<(Candidate<'a>, Confidence)>,
    /// Consequences.
    pub(super) followed: Vec<Folded<'a>>,
    pub(super) dropped: Vec<Dropped<'a>>,
    pub(super) benign: Vec<Candidate<'a>>,
}

/// A verdict that rests on the state alone.
pub(super) struct Plain {
    pub(super) code: &'static str,
    pub(super) family: String,
    pub(super) class: String,
    pub(super) verdict: Verdict,
    pub(super) confidence: Confidence,
    pub(super) what: String,
    pub(super) why: String,
    pub(super) evidence: Vec<Evidence>,
}

/// An exception that no entry explains.
pub(super) struct Unexplained<'a> {
    pub(super) order: usize,
    pub(super) placed: Placed<'a>,
    pub(super) trace: &'a Trace,
}

fn lower(confidence: Confidence) -> Confidence {
    match confidence {
        Confidence::Certain => Confidence::Likely,
        Confidence::Likely | Confidence::Possible => Confidence::Possible,
    }
}

impl<'a> View<'a> {
    /// Whether the server came up, or went on serving, after `placed` was said for the last time.
    pub(super) fn came_up_after(&self, placed: &Placed<'_>) -> bool {
        self.ready_marks().any(|stage| {
            if stage.log == placed.log {
                stage.hit.last_line > placed.event.last_line
            } else {
                stage.order > placed.order
            }
        })
    }

    pub(super) fn ready_marks(&self) -> impl Iterator<Item = &PlacedStage<'a>> {
        let sglang = self.engine == Some(shakedown_model::EngineKind::Sglang);
        self.stages.iter().filter(move |stage| match stage.mark.stage {
            Stage::Ready | Stage::Serving => true,
            Stage::Listening => stage.mark.end && !sglang,
            _ => false,
        })
    }

    /// Where a server that had come up, and had not failed, was told to stop: what comes after that means nothing.
    pub(super) fn stop(&self) -> Option<usize> {
        let ready = self.ready_marks().map(|stage| stage.order).min()?;
        let stop = self
            .stages
            .iter()
            .find(|stage| stage.order > ready && stage.mark.stage == Stage::Stopping)?;
        let failed_before = self.events.iter().any(|placed| {
            let fatal = placed.event.hits.iter().any(|hit| {
                self.failure(hit.entry).is_some_and(|failure| {
                    failure.class == DEATH
                        || (failure.role == Role::Cause && !failure.when_up && failure.weight >= LIKELY)
                })
            });
            fatal && placed.order > ready && placed.order < stop.order
        });
        (!failed_before).then_some(stop.order)
    }

    /// The exceptions of which no standing explanation speaks, and that none in `known` repeats.
    pub(super) fn unexplained(
        &self,
        known: &[&Candidate<'a>],
        spoken_of: &BTreeSet<usize>,
    ) -> Vec<Unexplained<'a>> {
        let mut all: Vec<Unexplained<'a>> = Vec::new();
        let stop = self.stop();
        for placed in self
            .events
            .iter()
            .filter(|placed| stop.is_none_or(|stop| placed.order < stop))
        {
            let Some((trace, link)) = self.trace_of(placed) else {
                continue;
            };
            // Further lines of a message are not exceptions of their own.
            let Some(raised) = trace
                .chain
                .get(link)
                .filter(|raised| raised.line == placed.event.line)
            else {
                continue;
            };
            let explained = self.events.iter().any(|other| {
                spoken_of.contains(&other.order)
                    && (other.order == placed.order
                        || self
                            .trace_of(other)
                            .is_some_and(|(own, _)| std::ptr::eq(own, trace)))
            });
            let repeated = known.iter().any(|candidate| {
                candidate.events.iter().any(|event| {
                    repeats(&raised.message, event.event.msg()) || repeats(event.event.msg(), &raised.message)
                })
            });
            if explained || repeated || all.iter().any(|known| std::ptr::eq(known.trace, trace)) {
                continue;
            }
            all.push(Unexplained {
                order: placed.order,
                placed: *placed,
                trace,
            });
        }
        all
    }

    /// Whether the explanation is a mere log line of a process (no exception) that nothing follows but ordinary lines.
    pub(super) fn goes_on_after(&self, top: &Candidate<'a>) -> bool {
        let Some(last) = top.events.last() else {
            return false;
        };
        let logged = top
            .events
            .iter()
            .all(|placed| placed.event.said.is_none() && placed.event.level.is_some());
        let nothing_follows = !self.events.iter().any(|placed| {
            placed.order > last.order
                && placed.event.hits.iter().any(|hit| {
                    self.failure(hit.entry)
                        .is_some_and(|failure| matches!(failure.role, Role::Cascade | Role::Symptom))
                })
        });
        let more = self.logs.get(last.log).is_some_and(|scanned| {
            scanned
                .launch
                .tail
                .last()
                .is_some_and(|(line, _)| *line > last.event.last_line)
        });
        logged && nothing_follows && more
    }

    /// How sure an explanation is, among the others.
    pub(super) fn confidence(
        &self,
        top: &Candidate<'a>,
        rest: &[Candidate<'a>],
        unexplained: &[Unexplained<'a>],
        up: bool,
    ) -> Confidence {
        let mut confidence = if top.weight >= CERTAIN {
            Confidence::Certain
        } else if top.weight >= LIKELY {
            Confidence::Likely
        } else {
            Confidence::Possible
        };
        let first = top.order();
        let by_facts = top.events.is_empty();
        // An exception that nobody explains and that came first may be the true beginning.
        if !by_facts && top.confirmed.is_empty() && unexplained.iter().any(|other| other.order < first) {
            confidence = lower(confidence);
        } else if !top.fatal
            && top.confirmed.is_empty()
            && !up
            && unexplained.iter().any(|other| other.order > first)
        {
            // A mere warning, and after it something died of what we do not know.
            confidence = lower(confidence);
        }
        // A line that is only logged, and after which the log goes on as if nothing were, may not be what stopped it.
        if !up && !by_facts && top.confirmed.is_empty() && self.goes_on_after(top) {
            confidence = confidence.min(Confidence::Likely);
        }
        let rival = rest.iter().any(|other| {
            other.weight >= CERTAIN
                && other.weight + 6 >= top.weight
                && other.failure.class != top.failure.class
                && (other.fatal || !top.fatal)
        });
        if rival {
            confidence = confidence.min(Confidence::Likely);
        }
        confidence
    }

    /// Decides.
    pub(super) fn decide(&self, sorted: Sorted<'a>) -> Decision<'a> {
        let mut sorted = sorted;
        let causes = std::mem::take(&mut sorted.causes);
        let http_ok = matches!(self.sign(Sign::HttpOk), Known::Present(_));
        let gone = matches!(self.sign(Sign::NoProcess), Known::Present(_))
            || matches!(self.sign(Sign::ExitSignal), Known::Present(_))
            || matches!(self.sign(Sign::ExitCode), Known::Present(ref seen) if seen.number != Some(0.0));
        let ready = self.ready_marks().map(|stage| stage.order).max();
        let stop = self.stop();
        let death = sorted
            .cascades
            .iter()
            .filter(|candidate| candidate.failure.class == DEATH)
            .flat_map(|candidate| candidate.events.iter())
            .filter(|placed| !self.came_up_after(placed) && stop.is_none_or(|stop| placed.order < stop))
            .map(|placed| placed.order)
            .max();
        let mut standing = Vec::new();
        for candidate in causes {
            let outlived = !candidate.failure.when_up
                && match candidate.events.last() {
                    Some(last) => self.came_up_after(last) || (http_ok && death.is_none()),
                    None => http_ok,
                };
            let after_stop =
                !candidate.events.is_empty() && stop.is_some_and(|stop| candidate.order() > stop);
            if after_stop && !candidate.failure.when_up {
                sorted.dropped.push(Dropped {
                    failure: candidate.failure,
                    first: candidate.events.first().copied(),
                    reason: "it came after the server was told to stop".to_owned(),
                    evidence: None,
                });
            } else if outlived {
                sorted.dropped.push(Dropped {
                    failure: candidate.failure,
                    first: candidate.events.first().copied(),
                    reason: "the server came up after it".to_owned(),
                    evidence: self
                        .ready_marks()
                        .last()
                        .map(|stage| self.quote(stage.log, stage.hit.line, &stage.hit.text)),
                });
            } else {
                standing.push(candidate);
            }
        }
        let early: Option<usize> = {
            let known: Vec<&Candidate<'a>> = standing.iter().collect();
            self.unexplained(&known, &sorted.spoken_of)
                .iter()
                .filter(|other| !self.came_up_after(&other.placed))
                .map(|other| other.order)
                .min()
        };
        // Nor where a failure that does explain itself came first: what ends a process is often its supervisor.
        let early_cause = standing
            .iter()
            .filter(|candidate| {
                !candidate.failure.alone && !candidate.failure.when_up && candidate.weight >= LIKELY
            })
            .filter(|candidate| !candidate.events.is_empty() && candidate.fatal)
            .map(Candidate::order)
            .min();
        standing.retain(|candidate| {
            let comes_first = |early: usize| candidate.events.is_empty() || early < candidate.order();
            !(candidate.failure.alone
                && (early.is_some_and(comes_first) || early_cause.is_some_and(comes_first)))
        });
        let mut roots = self.rank(standing);
        let killed = roots
            .iter()
            .any(|root| !root.failure.when_up && root.failure.state.is_none() && root.weight >= LIKELY);
        let up = http_ok || (ready.is_some() && death.is_none() && !gone && !killed);
        let top = if roots.is_empty() {
            None
        } else {
            Some(roots.remove(0))
        };
        if let Some(top) = top {
            return self.with_cause(top, roots, sorted, up);
        }
        let mut symptoms = self.rank(std::mem::take(&mut sorted.symptoms));
        let stands =
            |symptom: &Candidate<'a>| !symptom.events.last().is_some_and(|last| self.came_up_after(last));
        if up || (ready.is_some() && !gone && death.is_none()) {
            // What a client, or the system, says of it afterwards is not well even where its own log is.
            let after = symptoms
                .iter()
                .position(|symptom| stands(symptom) && symptom.weight >= WORTH_TELLING);
            if let (Some(at), false) = (after, http_ok) {
                let top = symptoms.remove(at);
                return self.with_cause(top, symptoms, sorted, true);
            }
            sorted.symptoms = symptoms;
            return self.came_up(sorted);
        }
        if let Some(at) = symptoms.iter().position(stands) {
            let top = symptoms.remove(at);
            let unexplained = self.unexplained(&[&top], &sorted.spoken_of);
            // A mere symptom never speaks over an exception that is there to be read.
            if unexplained.is_empty() || top.weight >= LIKELY {
                return self.with_cause(top, symptoms, sorted, false);
            }
            symptoms.insert(0, top);
        }
        sorted.symptoms = symptoms;
        self.without_cause(sorted, gone)
    }
}
