//! What one launch of a server left in one log: events, tracebacks, stages, observations.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use shakedown_model::EngineKind;

use super::line::{Level, Line, Proc};
use super::time::Time;
use super::trace::{Trace, Traces};

/// Events kept for a launch.
const EVENTS: usize = 6000;
/// Of these, events that only a generic word made.
const GENERIC_EVENTS: usize = 1500;
/// Stage hits kept one by one.
const STAGE_HITS: usize = 3000;
/// Observations kept.
const OBSERVED: usize = 2000;
/// Tracebacks kept.
pub(super) const TRACES: usize = 600;
/// Bytes of a line that are kept.
const TEXT: usize = 4096;

/// A failure pattern that matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Index of the failure in the catalogue.
    pub(crate) entry: usize,
    /// Named groups that took part.
    pub(crate) captures: Vec<(String, String)>,
}

/// A line that may matter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    /// Its number, from 1.
    pub(crate) line: u64,
    /// Number of the last line that said the same.
    pub(crate) last_line: u64,
    /// How many lines said the same.
    pub(crate) count: u64,
    /// When.
    pub(crate) time: Option<Time>,
    /// When, in the log's words.
    pub(crate) stamp: Option<String>,
    /// Who.
    pub(crate) proc: Option<Proc>,
    /// How loud.
    pub(crate) level: Option<Level>,
    /// What it says, prefixes included, bounded.
    pub(crate) text: String,
    /// Where the message starts in `text`.
    pub(crate) msg_at: usize,
    /// Failure patterns that matched.
    pub(crate) hits: Vec<Hit>,
    /// The exception that it belongs to: traceback and place in its chain.
    pub(crate) said: Option<(usize, usize)>,
}

impl Event {
    /// What it says without prefixes.
    pub(crate) fn msg(&self) -> &str {
        self.text.get(self.msg_at..).unwrap_or("")
    }
}

/// A stage mark that was seen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StageHit {
    /// Index of the mark in the catalogue.
    pub(crate) mark: usize,
    /// First line.
    pub(crate) line: u64,
    /// Last line that said the same.
    pub(crate) last_line: u64,
    /// When.
    pub(crate) time: Option<Time>,
    /// Who.
    pub(crate) proc: Option<Proc>,
    /// The line.
    pub(crate) text: String,
}

/// A value that the log told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Observed {
    /// Index of the observation in the catalogue.
    pub(crate) observe: usize,
    /// The line that told it.
    pub(crate) line: u64,
    /// Named groups that took part.
    pub(crate) captures: Vec<(String, String)>,
    /// The line's text, bounded.
    pub(crate) text: String,
}

/// One launch in one log.
#[derive(Debug, Default)]
pub(crate) struct Launch {
    /// First line.
    pub(crate) first_line: u64,
    /// Last line.
    pub(crate) last_line: u64,
    /// The line that began it, where one was recognised.
    pub(crate) marker: Option<(u64, String)>,
    /// The engine whose mark it is.
    pub(crate) marker_engine: Option<EngineKind>,
    /// First and last stamp, in the log's words.
    pub(crate) stamps: Option<(String, String)>,
    /// First and last time.
    pub(crate) times: Option<(Time, Time)>,
    /// Process ids seen in prefixes.
    pub(crate) pids: BTreeSet<u32>,
    /// Engines by the count of prefixes and marks that are theirs.
    pub(crate) engines: BTreeMap<EngineKind, u32>,
    /// Lines that may matter.
    pub(crate) events: Vec<Event>,
    /// Tracebacks.
    pub(crate) traces: Vec<Trace>,
    /// Stages.
    pub(crate) stages: Vec<StageHit>,
    /// Values.
    pub(crate) observed: Vec<Observed>,
    /// The last lines: number and text.
    pub(crate) tail: Vec<(u64, String)>,
    /// Events that did not fit.
    pub(crate) dropped: u64,
    pub(super) building: Traces,
    known: HashMap<u64, usize>,
    stage_known: HashMap<(usize, Option<Proc>), usize>,
    generic: usize,
}

/// Cuts `text` to at most `limit` bytes at a character's border.
pub(crate) fn bounded(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A number for lines that differ in digits only.
fn likeness(line: &Line, said: Option<(usize, usize)>) -> u64 {
    // FNV-1a: small, stable, and collisions only fold two lines into one.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut mix = |byte: u8| {
        hash ^= u64::from(byte);
        hash = hash.wrapping_mul(0x0100_0000_01b3);
    };
    let mut digits = false;
    for byte in bounded(line.msg(), TEXT).bytes() {
        if byte.is_ascii_digit() {
            if !digits {
                mix(b'0');
            }
            digits = true;
        } else {
            digits = false;
            mix(byte);
        }
    }
    if let Some(proc) = &line.proc {
        mix(b'|');
        proc.label().unwrap_or_default().bytes().for_each(&mut mix);
    }
    if let Some((trace, link)) = said {
        mix(b'#');
        trace
            .to_le_bytes()
            .into_iter()
            .chain(link.to_le_bytes())
            .for_each(&mut mix);
    }
    hash
}

impl Launch {
    /// A launch that starts at `line`.
    pub(crate) fn starting(line: u64) -> Self {
        Self {
            first_line: line,
            last_line: line,
            ..Self::default()
        }
    }

    /// Takes the stamp and process of a line that was looked at.
    pub(super) fn note(&mut self, line: &Line) {
        if let Some(pid) = line.proc.as_ref().and_then(|proc| proc.pid)
            && self.pids.len() < 4096
        {
            self.pids.insert(pid);
        }
        if let Some(engine) = line.engine {
            *self.engines.entry(engine).or_default() += 1;
        }
        if let Some(stamp) = &line.stamp {
            match &mut self.stamps {
                Some((_, last)) => last.clone_from(stamp),
                None => self.stamps = Some((stamp.clone(), stamp.clone())),
            }
        }
        if let Some(time) = line.time {
            match &mut self.times {
                Some((_, last)) => *last = time,
                None => self.times = Some((time, time)),
            }
        }
    }

    /// Adds an event, or counts it with one that says the same. Returns its index.
    pub(super) fn add_event(
        &mut self,
        number: u64,
        line: &Line,
        hits: Vec<Hit>,
        said: Option<(usize, usize)>,
    ) -> Option<usize> {
        let key = likeness(line, said);
        if let Some(event) = self.known.get(&key).and_then(|at| self.events.get_mut(*at)) {
            event.count += 1;
            event.last_line = number;
            return self.known.get(&key).copied();
        }
        let only_generic = hits.is_empty() && said.is_none();
        if self.events.len() >= EVENTS || (only_generic && self.generic >= GENERIC_EVENTS) {
            self.dropped += 1;
            return None;
        }
        self.generic += usize::from(only_generic);
        let time = line.time.or(self.times.map(|(_, last)| last));
        self.events.push(Event {
            line: number,
            last_line: number,
            count: 1,
            time,
            stamp: line
                .stamp
                .clone()
                .or_else(|| self.stamps.as_ref().map(|(_, last)| last.clone())),
            proc: line.proc.clone().or_else(|| {
                // The lines of a traceback belong to whoever printed its head.
                said.and_then(|(trace, _)| self.building.all.get(trace)?.proc.clone())
            }),
            level: line.level,
            text: bounded(&line.text, TEXT).to_owned(),
            msg_at: line.msg_at.min(bounded(&line.text, TEXT).len()),
            hits,
            said,
        });
        self.known.insert(key, self.events.len() - 1);
        Some(self.events.len() - 1)
    }

    /// Counts one more line like event `at`.
    pub(super) fn repeat(&mut self, at: usize, number: u64) {
        if let Some(event) = self.events.get_mut(at) {
            event.count += 1;
            event.last_line = number;
        }
    }

    pub(super) fn add_stage(&mut self, mark: usize, number: u64, line: &Line) {
        if self.stages.len() < STAGE_HITS {
            self.stages.push(StageHit {
                mark,
                line: number,
                last_line: number,
                time: line.time,
                proc: line.proc.clone(),
                text: bounded(&line.text, 512).to_owned(),
            });
            self.stage_known
                .insert((mark, line.proc.clone()), self.stages.len() - 1);
        } else if let Some(hit) = self
            .stage_known
            .get(&(mark, line.proc.clone()))
            .and_then(|at| self.stages.get_mut(*at))
        {
            hit.last_line = number;
        }
    }

    /// A frequent stage mark was seen again.
    pub(super) fn stage_again(&mut self, mark: usize, number: u64) {
        if let Some(hit) = self.stages.iter_mut().rev().find(|hit| hit.mark == mark) {
            hit.last_line = number;
        }
    }

    pub(super) fn add_observed(
        &mut self,
        observe: usize,
        number: u64,
        line: &Line,
        captures: Vec<(String, String)>,
    ) {
        if self.observed.len() < OBSERVED
            && !self
                .observed
                .iter()
                .rev()
                .take(64)
                .any(|known| known.observe == observe && known.captures == captures)
        {
            self.observed.push(Observed {
                observe,
                line: number,
                captures,
                text: bounded(&line.text, TEXT).to_owned(),
            });
        }
    }

    /// The launch is over: nothing more will come.
    pub(super) fn finish(&mut self, last_line: u64) {
        self.last_line = last_line.max(self.first_line);
        self.building.finish();
        // Events point into this list: it stays as it is, tracebacks that were cut before their exception included.
        self.traces = std::mem::take(&mut self.building.all);
        self.known.clear();
        self.stage_known.clear();
    }
}
