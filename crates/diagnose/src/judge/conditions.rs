//! Whether a catalogue entry's conditions hold.

use std::cell::RefCell;

use shakedown_model::Evidence;

use super::signs::Known;
use super::view::{Argument, Placed, View, value_of};
use super::{Sign, size};
use crate::catalog::{Condition, LazyRegex};

/// The answer of a condition and what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Holds {
    /// It holds.
    Yes(Option<Evidence>),
    /// It does not.
    No(Option<Evidence>),
    /// Nothing was given that could tell.
    NotGiven,
}

impl Holds {
    fn from_known(known: bool, evidence: Option<Evidence>) -> Self {
        if known {
            Self::Yes(evidence)
        } else {
            Self::No(evidence)
        }
    }

    fn turned(self) -> Self {
        match self {
            Self::Yes(evidence) => Self::No(evidence),
            Self::No(evidence) => Self::Yes(evidence),
            Self::NotGiven => Self::NotGiven,
        }
    }
}

/// What a condition is asked about: the events of one explanation.
pub(super) struct Asked<'v, 'a> {
    pub(super) view: &'v View<'a>,
    /// Its events, in order.
    pub(super) events: &'v [Placed<'a>],
    /// Named groups that conditions matched: they fill placeholders too.
    pub(super) captures: RefCell<Vec<(String, String)>>,
}

impl<'v, 'a> Asked<'v, 'a> {
    pub(super) fn new(view: &'v View<'a>, events: &'v [Placed<'a>]) -> Self {
        Self {
            view,
            events,
            captures: RefCell::new(Vec::new()),
        }
    }

    fn value_holds(&self, condition: &Condition, text: &str, number: Option<f64>) -> bool {
        let number = number.or_else(|| size::number(text));
        condition
            .matches
            .as_ref()
            .is_none_or(|regex| self.captures(regex, text))
            && condition
                .min
                .is_none_or(|min| number.is_some_and(|number| number >= min))
            && condition
                .below
                .is_none_or(|below| number.is_some_and(|number| number < below))
    }

    fn captures(&self, regex: &LazyRegex, text: &str) -> bool {
        let Some(regex) = regex.get() else {
            return false;
        };
        let Some(found) = regex.captures(text) else {
            return false;
        };
        for name in regex.capture_names().flatten() {
            if let Some(value) = found.name(name) {
                self.captures
                    .borrow_mut()
                    .push((name.to_owned(), value.as_str().to_owned()));
            }
        }
        true
    }

    /// The answer of `condition`: every member that is given must hold.
    pub(super) fn holds(&self, condition: &Condition) -> Holds {
        let mut parts: Vec<Holds> = Vec::new();
        if let Some(sign) = condition.sign {
            parts.push(self.sign(sign, condition));
        }
        if let Some(paths) = &condition.fact {
            parts.push(self.fact(paths.as_slice(), condition));
        }
        if let Some(name) = &condition.seen {
            let found = self.view.observed(name).find(|(_, observed)| {
                self.value_holds(condition, value_of(observed).unwrap_or(&observed.text), None)
            });
            parts.push(match found {
                Some((log, observed)) => {
                    Holds::Yes(Some(self.view.quote(log, observed.line, &observed.text)))
                }
                None => Holds::No(None),
            });
        }
        if let Some(codes) = &condition.code {
            parts.push(self.code(codes.as_slice()));
        }
        if let Some(stages) = &condition.stage {
            let holds = self.events.first().is_some_and(|placed| {
                let stage = self.view.stage_at(placed.order);
                stages.as_slice().iter().any(|name| {
                    if name == "draft" {
                        self.view.draft_at(placed.order)
                    } else {
                        stage.is_some_and(|stage| stage.name() == name)
                    }
                })
            });
            parts.push(Holds::from_known(holds, None));
        }
        if let Some(engine) = condition.engine {
            parts.push(match self.view.engine {
                Some(known) => Holds::from_known(known == engine, None),
                None => Holds::NotGiven,
            });
        }
        if let Some(regex) = &condition.frame {
            parts.push(self.frame(regex));
        }
        if let Some(regex) = &condition.text {
            let found = self.events.iter().find(|placed| {
                self.captures(regex, &placed.event.text)
                    || self.view.trace_of(placed).is_some_and(|(trace, link)| {
                        trace
                            .chain
                            .get(link)
                            .is_some_and(|raised| self.captures(regex, &raised.message))
                    })
            });
            parts.push(match found {
                Some(placed) => Holds::Yes(Some(self.view.quote_event(placed))),
                None => Holds::No(None),
            });
        }
        if let Some(name) = &condition.arg {
            parts.push(match self.view.argument(name) {
                Argument::NotKnown => Holds::NotGiven,
                Argument::Absent => Holds::No(None),
                Argument::Given(value) => Holds::from_known(self.value_holds(condition, &value, None), None),
            });
        }
        let mut evidence = None;
        let mut unknown = false;
        let mut refused = None;
        for part in parts {
            match part {
                Holds::Yes(own) => evidence = evidence.or(own),
                Holds::No(own) => refused = Some(own),
                Holds::NotGiven => unknown = true,
            }
        }
        let whole = match refused {
            Some(own) => Holds::No(own),
            None if unknown => Holds::NotGiven,
            None => Holds::Yes(evidence),
        };
        if condition.not { whole.turned() } else { whole }
    }

    fn sign(&self, sign: Sign, condition: &Condition) -> Holds {
        match self.view.sign(sign) {
            Known::Present(seen) => Holds::from_known(
                self.value_holds(condition, &seen.text, seen.number),
                seen.evidence,
            ),
            Known::Absent(evidence) => Holds::No(evidence),
            Known::NotGiven => Holds::NotGiven,
        }
    }

    fn fact(&self, paths: &[String], condition: &Condition) -> Holds {
        let mut given = None;
        for path in paths {
            if let Some(package) = path.strip_prefix("packages.") {
                if let Some((fact, version)) = self.view.facts.package(package) {
                    if self.value_holds(condition, &version, None) {
                        return Holds::Yes(Some(Evidence::new(fact.place(), version)));
                    }
                    given.get_or_insert_with(|| Evidence::new(fact.place(), version.clone()));
                }
                continue;
            }
            if let Some(name) = path.strip_prefix("env.") {
                if let Some((fact, value)) = self.view.facts.env(name) {
                    let evidence = Evidence::new(fact.place(), crate::mask::mask(&value).into_owned());
                    if self.value_holds(condition, &value, None) {
                        return Holds::Yes(Some(evidence));
                    }
                    given.get_or_insert(evidence);
                }
                continue;
            }
            for fact in self.view.facts.get(path) {
                let evidence = || {
                    let text: String = crate::mask::mask(&fact.text).chars().take(400).collect();
                    Evidence::new(fact.place(), text)
                };
                if self.value_holds(condition, &fact.text, None) {
                    return Holds::Yes(Some(evidence()));
                }
                given.get_or_insert_with(evidence);
            }
        }
        match given {
            Some(evidence) => Holds::No(Some(evidence)),
            None => Holds::NotGiven,
        }
    }

    fn code(&self, codes: &[String]) -> Holds {
        let found = self.view.events.iter().find(|placed| {
            placed.event.hits.iter().any(|hit| {
                self.view
                    .failure(hit.entry)
                    .is_some_and(|failure| codes.contains(&failure.code))
            })
        });
        match found {
            Some(placed) => Holds::Yes(Some(self.view.quote_event(placed))),
            None => Holds::No(None),
        }
    }

    fn frame(&self, regex: &LazyRegex) -> Holds {
        let found = self.events.iter().any(|placed| {
            regex.is_match(&placed.event.text)
                || self.view.trace_of(placed).is_some_and(|(trace, link)| {
                    trace.chain.get(link).is_some_and(|raised| {
                        raised
                            .frames
                            .iter()
                            .any(|frame| regex.is_match(&format!("{} {}", frame.file, frame.function)))
                    })
                })
        });
        Holds::from_known(found, None)
    }
}
