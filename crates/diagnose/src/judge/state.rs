//! The verdict: which state the server is in, and which explanation, if any, says why.

use shakedown_model::{Confidence, Evidence, ServerState, Verdict};

use super::Sign;
use super::candidates::{CERTAIN, Candidate, Dropped, Folded, LIKELY, Sorted, repeats};
use super::signs::Known;
use super::view::{Placed, PlacedStage, View};
use crate::catalog::{Role, Stage};
use crate::log::{How, Level, Trace};

/// The class of cascade entries that say that a process ended.
const DEATH: &str = "cascade.death";
/// From this weight on a symptom is told even of a server that came up.
const WORTH_TELLING: u8 = 45;

/// What was decided.
pub(super) struct Decision<'a> {
    pub(super) state: ServerState,
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

/// Places of the events of which a standing explanation speaks.
type SpokenOf = std::collections::BTreeSet<usize>;

/// An exception that no entry explains.
struct Unexplained<'a> {
    order: usize,
    placed: Placed<'a>,
    trace: &'a Trace,
}

fn lower(confidence: Confidence) -> Confidence {
    match confidence {
        Confidence::Certain => Confidence::Likely,
        Confidence::Likely | Confidence::Possible => Confidence::Possible,
    }
}

impl<'a> View<'a> {
    /// Whether the server came up, or went on serving, after `placed`.
    fn came_up_after(&self, placed: &Placed<'_>) -> bool {
        self.ready_marks().any(|stage| {
            stage.order > placed.order
                || (stage.log == placed.log && stage.hit.last_line > placed.event.last_line)
        })
    }

    fn ready_marks(&self) -> impl Iterator<Item = &PlacedStage<'a>> {
        let sglang = self.engine == Some(shakedown_model::EngineKind::Sglang);
        self.stages.iter().filter(move |stage| match stage.mark.stage {
            Stage::Ready | Stage::Serving => true,
            Stage::Listening => stage.mark.end && !sglang,
            _ => false,
        })
    }

    /// Where a server that had come up, and had not failed, was told to stop: what comes after that means nothing.
    fn stop(&self) -> Option<usize> {
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
    fn unexplained(&self, known: &[&Candidate<'a>], spoken_of: &SpokenOf) -> Vec<Unexplained<'a>> {
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
    fn goes_on_after(&self, top: &Candidate<'a>) -> bool {
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
    fn confidence(
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
        let Sorted {
            causes,
            symptoms,
            cascades,
            benign,
            off,
            mut dropped,
        } = sorted;
        let spoken_of: &SpokenOf = &[&causes, &symptoms, &cascades, &benign, &off]
            .into_iter()
            .flatten()
            .flat_map(|candidate| candidate.events.iter().map(|placed| placed.order))
            .collect();
        let http_ok = matches!(self.sign(Sign::HttpOk), Known::Present(_));
        let gone = matches!(self.sign(Sign::NoProcess), Known::Present(_))
            || matches!(self.sign(Sign::ExitSignal), Known::Present(_))
            || matches!(self.sign(Sign::ExitCode), Known::Present(ref seen) if seen.number != Some(0.0));
        let ready = self.ready_marks().map(|stage| stage.order).max();
        let stop = self.stop();
        let death = cascades
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
                dropped.push(Dropped {
                    failure: candidate.failure,
                    first: candidate.events.first().copied(),
                    reason: "it came after the server was told to stop".to_owned(),
                    evidence: None,
                });
            } else if outlived {
                dropped.push(Dropped {
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
            self.unexplained(&known, spoken_of)
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
            return self.with_cause(
                top, roots, symptoms, cascades, benign, off, dropped, up, spoken_of,
            );
        }
        let mut symptoms = self.rank(symptoms);
        let stands =
            |symptom: &Candidate<'a>| !symptom.events.last().is_some_and(|last| self.came_up_after(last));
        if up || (ready.is_some() && !gone && death.is_none()) {
            // What a client, or the system, says of it afterwards is not well even where its own log is.
            let after = symptoms
                .iter()
                .position(|symptom| stands(symptom) && symptom.weight >= WORTH_TELLING);
            if let (Some(at), false) = (after, http_ok) {
                let top = symptoms.remove(at);
                return self.with_cause(
                    top,
                    symptoms,
                    Vec::new(),
                    cascades,
                    benign,
                    off,
                    dropped,
                    true,
                    spoken_of,
                );
            }
            return self.came_up(symptoms, cascades, benign, off, dropped, spoken_of);
        }
        if let Some(at) = symptoms.iter().position(stands) {
            let top = symptoms.remove(at);
            let unexplained = self.unexplained(&[&top], spoken_of);
            // A mere symptom never speaks over an exception that is there to be read.
            if unexplained.is_empty() || top.weight >= LIKELY {
                return self.with_cause(
                    top,
                    symptoms,
                    Vec::new(),
                    cascades,
                    benign,
                    off,
                    dropped,
                    false,
                    spoken_of,
                );
            }
            symptoms.insert(0, top);
        }
        self.without_cause(symptoms, cascades, benign, off, dropped, gone, spoken_of)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the sorted explanations, each in its role"
    )]
    fn with_cause(
        &self,
        top: Candidate<'a>,
        rest: Vec<Candidate<'a>>,
        symptoms: Vec<Candidate<'a>>,
        cascades: Vec<Candidate<'a>>,
        benign: Vec<Candidate<'a>>,
        off: Vec<Candidate<'a>>,
        dropped: Vec<Dropped<'a>>,
        up: bool,
        spoken_of: &SpokenOf,
    ) -> Decision<'a> {
        let known: Vec<&Candidate<'a>> = std::iter::once(&top).chain(&rest).chain(&cascades).collect();
        let unexplained = self.unexplained(&known, spoken_of);
        let confidence = self.confidence(&top, &rest, &unexplained, up);
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
            ServerState::Impaired
        } else {
            ServerState::Failed
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
    fn came_up(
        &self,
        symptoms: Vec<Candidate<'a>>,
        cascades: Vec<Candidate<'a>>,
        benign: Vec<Candidate<'a>>,
        mut off: Vec<Candidate<'a>>,
        dropped: Vec<Dropped<'a>>,
        spoken_of: &SpokenOf,
    ) -> Decision<'a> {
        let _ = cascades;
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
                state: ServerState::Impaired,
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
            state: ServerState::UpAndWell,
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

    fn without_cause(
        &self,
        symptoms: Vec<Candidate<'a>>,
        cascades: Vec<Candidate<'a>>,
        mut benign: Vec<Candidate<'a>>,
        off: Vec<Candidate<'a>>,
        dropped: Vec<Dropped<'a>>,
        gone: bool,
        spoken_of: &SpokenOf,
    ) -> Decision<'a> {
        let dead = cascades.iter().any(|candidate| candidate.failure.class == DEATH);
        let unexplained = self.unexplained(&[], spoken_of);
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
            state: ServerState::Unknown,
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
                ServerState::StillLoading
            } else {
                ServerState::Unknown
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

    /// A verdict from how far it came, where nothing says why it went no further.
    fn by_stage(&self, dead: bool, gone: bool) -> (ServerState, Plain) {
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
                ServerState::Stalled,
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
                    ServerState::Stalled,
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
                ServerState::StillLoading,
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
                ServerState::KilledFromOutside,
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
                ServerState::NeverStarted,
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
                    ServerState::Unknown,
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
            ServerState::Unknown,
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
