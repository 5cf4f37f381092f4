//! One pass over a log: a literal prefilter over raw bytes, and lines taken apart only near its hits.

use std::io;

use aho_corasick::Input;
use aho_corasick::automaton::OverlappingState;

use super::launch::{Hit, Launch, TRACES, bounded};
use super::line::{self, Line};
use super::read::Pieces;
use super::trace::{self, Part};
use crate::catalog::{Catalog, Index, Pattern, Stage, Use};

/// Longest line that is taken apart whole; of a longer one, its head and what surrounds each hit.
const WHOLE: usize = 64 * 1024;
/// Bytes looked at around a hit in a longer line.
const AROUND: usize = 2048;
/// Lines looked at unasked when a log or a launch starts, for their stamps.
const FRESH: u32 = 6;
/// Slots of the cache of lines that were looked at.
const SLOTS: usize = 4096;
/// Bytes kept of the end of a log.
const TAIL_BYTES: usize = 24 * 1024;
/// Lines kept of the end of a log.
const TAIL_LINES: usize = 12;

/// What was read of one file or stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Part0 {
    /// Its name.
    pub(crate) name: String,
    /// Number of lines in the parts before it.
    pub(crate) lines_before: u64,
    /// Bytes, decompressed.
    pub(crate) bytes: u64,
    /// Lines.
    pub(crate) lines: u64,
    /// What was cut or could not be read.
    pub(crate) notes: Vec<String>,
}

/// What one log left, rotated parts together.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    /// Its parts, oldest first.
    pub(crate) parts: Vec<Part0>,
    /// Launches found.
    pub(crate) launches: u32,
    /// Number of the launch in `launch`, from 1.
    pub(crate) number: u32,
    /// The launch that was asked about, else the last.
    pub(crate) launch: Launch,
}

impl Scanned {
    /// The part and the line in it of a line number that counts through all parts.
    pub(crate) fn place(&self, line: u64) -> (&str, u64) {
        self.parts
            .iter()
            .rev()
            .find(|part| part.lines_before < line)
            .map_or(("log", line), |part| {
                (part.name.as_str(), line - part.lines_before)
            })
    }
}

#[derive(Debug, Clone, Copy)]
enum Outcome {
    Nothing,
    Event(usize),
}

/// Reads the parts of one log, one after the other.
pub(crate) struct Scanner<'c> {
    catalog: &'c Catalog,
    index: &'c Index,
    asked_pid: Option<u32>,
    out: Scanned,
    current: Launch,
    /// The launch of the asked process, once it is over.
    kept: Option<(u32, Launch)>,
    fresh: u32,
    cache: Vec<(u64, u32, Outcome)>,
    /// Raised with each launch: what was cached or saturated before is void.
    generation: u32,
    saturated: Vec<u32>,
    tail: Vec<u8>,
    line: u64,
    binary: bool,
}

/// A fast hash of a line's bytes.
fn hash(bytes: &[u8]) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = bytes.len() as u64;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(K).rotate_left(29);
    }
    for byte in rest {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(K).rotate_left(29);
    }
    hash ^ (hash >> 32)
}

impl<'c> Scanner<'c> {
    /// A scanner for one log. `asked_pid` selects the launch that is kept.
    pub(crate) fn new(catalog: &'c Catalog, index: &'c Index, asked_pid: Option<u32>) -> Self {
        Self {
            catalog,
            index,
            asked_pid,
            out: Scanned {
                launches: 1,
                ..Scanned::default()
            },
            current: Launch::starting(1),
            kept: None,
            fresh: FRESH,
            cache: vec![(0, 0, Outcome::Nothing); SLOTS],
            generation: 1,
            saturated: vec![0; index.frequent.len()],
            tail: Vec::new(),
            line: 1,
            binary: false,
        }
    }

    /// Reads one part to its end. A read error in the middle ends the part with a note.
    pub(crate) fn part(&mut self, name: &str, reader: Box<dyn io::Read + Send>) -> io::Result<()> {
        let mut part = Part0 {
            name: name.to_owned(),
            lines_before: self.line - 1,
            ..Part0::default()
        };
        let mut pieces = Pieces::new(reader)?;
        let mut ends_whole = true;
        loop {
            match pieces.next_piece() {
                Ok(Some(piece)) => {
                    if part.bytes == 0 {
                        let head = &piece.bytes[..piece.bytes.len().min(8192)];
                        self.binary = memchr::memchr_iter(0, head).count() * 10 > head.len();
                        if self.binary {
                            part.notes
                                .push("it is not text: it holds many zero bytes".to_owned());
                        }
                    }
                    part.bytes += piece.bytes.len() as u64;
                    ends_whole = piece.bytes.last() == Some(&b'\n');
                    self.piece(piece.bytes, piece.continues);
                }
                Ok(None) => break,
                Err(error) => {
                    part.notes
                        .push(format!("it could not be read to its end: {error}"));
                    break;
                }
            }
        }
        if !ends_whole {
            self.line += 1;
        }
        if pieces.cut_lines > 0 {
            part.notes.push(format!(
                "{} line(s) longer than {} KiB were read in part",
                pieces.cut_lines,
                super::read::LONGEST_LINE / 1024
            ));
        }
        part.lines = self.line - 1 - part.lines_before;
        self.out.parts.push(part);
        Ok(())
    }

    /// The log is over.
    pub(crate) fn finish(mut self) -> Scanned {
        self.take_tail();
        let last = self.line.saturating_sub(1);
        self.current.finish(last);
        let asked = self
            .asked_pid
            .is_some_and(|pid| !self.current.pids.contains(&pid));
        match self.kept.take() {
            Some((number, launch)) if asked => {
                self.out.number = number;
                self.out.launch = launch;
            }
            _ => {
                self.out.number = self.out.launches;
                self.out.launch = self.current;
            }
        }
        self.out
    }

    fn piece(&mut self, bytes: &[u8], continues: bool) {
        let mut at = 0;
        let mut counted = 0;
        let mut state = OverlappingState::start();
        let mut head_done = continues;
        while at < bytes.len() {
            if self.fresh > 0 || self.current.building.is_open() {
                let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |offset| at + offset);
                self.line += memchr::memchr_iter(b'\n', &bytes[counted..at]).count() as u64;
                counted = at;
                self.fresh = self.fresh.saturating_sub(1);
                self.look(bytes, at, end.min(at + WHOLE), self.line);
                at = end + 1;
                state = OverlappingState::start();
                head_done = false;
                continue;
            }
            let input = Input::new(bytes).span(at..bytes.len());
            if self
                .index
                .automaton
                .try_find_overlapping(input, &mut state)
                .is_err()
            {
                break;
            }
            let Some(hit) = state.get_match() else {
                break;
            };
            let start = memchr::memrchr(b'\n', &bytes[..hit.start()]).map_or(0, |offset| offset + 1);
            self.line += memchr::memchr_iter(b'\n', &bytes[counted.min(start)..start]).count() as u64;
            counted = counted.max(start);
            let literal = hit.pattern().as_usize();
            if self.saturated.get(literal) == Some(&self.generation) {
                self.frequent_again(literal);
                continue;
            }
            let end =
                memchr::memchr(b'\n', &bytes[hit.end()..]).map_or(bytes.len(), |offset| hit.end() + offset);
            if end - start <= WHOLE {
                self.look_cached(bytes, start, end, self.line);
                at = end + 1;
            } else if hit.end() <= start + WHOLE && !head_done {
                self.look(bytes, start, start + WHOLE, self.line);
                at = start + WHOLE;
                head_done = true;
            } else {
                let from = hit.start().saturating_sub(AROUND).max(start);
                let to = (hit.end() + AROUND).min(end);
                self.look(bytes, from, to, self.line);
                at = to;
            }
            if at > end {
                head_done = false;
            }
            state = OverlappingState::start();
            if self.index.frequent.get(literal) == Some(&true)
                && let Some(mark) = self.saturated.get_mut(literal)
            {
                *mark = self.generation;
            }
        }
        self.line += memchr::memchr_iter(b'\n', &bytes[counted..]).count() as u64;
        let keep = bytes.len().min(TAIL_BYTES);
        if keep == TAIL_BYTES {
            self.tail.clear();
        } else if self.tail.len() + keep > TAIL_BYTES {
            self.tail.drain(..self.tail.len() + keep - TAIL_BYTES);
        }
        self.tail.extend_from_slice(&bytes[bytes.len() - keep..]);
    }

    fn frequent_again(&mut self, literal: usize) {
        let marks: Vec<usize> = self
            .index
            .uses_of(literal)
            .iter()
            .filter_map(|meaning| match meaning {
                Use::Stage { mark, .. } => Some(usize::from(*mark)),
                _ => None,
            })
            .collect();
        for mark in marks {
            self.current.stage_again(mark, self.line);
        }
    }

    fn look_cached(&mut self, bytes: &[u8], start: usize, end: usize, number: u64) {
        let raw = &bytes[start..end];
        let key = hash(raw);
        let slot = usize::try_from(key % SLOTS as u64).unwrap_or(0);
        if let Some((known, generation, outcome)) = self.cache.get(slot)
            && *known == key
            && *generation == self.generation
        {
            if let Outcome::Event(at) = outcome {
                self.current.repeat(*at, number);
            }
            return;
        }
        if let Some(outcome) = self.look(bytes, start, end, number)
            && let Some(place) = self.cache.get_mut(slot)
        {
            *place = (key, self.generation, outcome);
        }
    }

    /// Looks at one line, or at each state of a progress bar in it. Returns what may be cached.
    fn look(&mut self, bytes: &[u8], start: usize, end: usize, number: u64) -> Option<Outcome> {
        let raw = bytes.get(start..end)?;
        let raw = raw.strip_suffix(b"\r").unwrap_or(raw);
        if memchr::memchr(b'\r', raw).is_none() {
            return self.line(bytes, start, raw, number);
        }
        // Of a progress bar's states, the last few tell.
        let states: Vec<&[u8]> = raw
            .split(|byte| *byte == b'\r')
            .filter(|state| !state.is_empty())
            .collect();
        let skip = states.len().saturating_sub(8);
        for state in states.into_iter().skip(skip) {
            self.line(bytes, start, state, number);
        }
        None
    }

    fn line(&mut self, bytes: &[u8], start: usize, raw: &[u8], number: u64) -> Option<Outcome> {
        let line = line::parse(raw);
        let found = self.index.find(&line.text);
        let catalog = self.catalog;
        let mut stages: Vec<usize> = Vec::new();
        let mut observed: Vec<(usize, Vec<(String, String)>)> = Vec::new();
        let mut hits: Vec<Hit> = Vec::new();
        for meaning in &found.uses {
            match *meaning {
                Use::Failure { entry, pattern } => {
                    let entry = usize::from(entry);
                    if hits.last().is_some_and(|hit| hit.entry == entry) {
                        continue;
                    }
                    if let Some(captures) = pattern_of(&catalog.failures.get(entry)?.patterns, pattern)
                        .and_then(|pattern| pattern.captures(&line.text, line.msg()))
                    {
                        hits.push(Hit { entry, captures });
                    }
                }
                Use::Stage { mark, pattern } => {
                    let mark = usize::from(mark);
                    if pattern_of(&catalog.stages.get(mark)?.patterns, pattern)
                        .is_some_and(|pattern| pattern.captures(&line.text, line.msg()).is_some())
                        && stages.last() != Some(&mark)
                    {
                        stages.push(mark);
                    }
                }
                Use::Observe { observe, pattern } => {
                    let observe = usize::from(observe);
                    if let Some(captures) = pattern_of(&catalog.observes.get(observe)?.patterns, pattern)
                        .and_then(|pattern| pattern.captures(&line.text, line.msg()))
                    {
                        observed.push((observe, captures));
                    }
                }
                Use::Generic => {}
            }
        }
        let launches = stages
            .iter()
            .copied()
            .find(|mark| catalog.stages.get(*mark).is_some_and(|mark| mark.launch));
        if let Some(mark) = launches {
            self.maybe_new_launch(mark, number, &line);
        }
        self.current.note(&line);
        let mut part = self.current.building.feed(number, &line, TRACES);
        let head = part == Part::Inside && line.msg().contains("Traceback (most");
        if part == Part::Inside && !head {
            return None;
        }
        if part == Part::Outside
            && let Some(said) = trace::exception_in(line.msg())
        {
            let frames = trace::frames_before(lines_before(bytes, start).iter().map(String::as_str));
            part = self
                .current
                .building
                .headless(number, &line, said, frames, TRACES);
        }
        let said = match part {
            Part::Said { trace, link } => Some((trace, link)),
            _ => None,
        };
        let quiet = stages.is_empty() && observed.is_empty() && said.is_none() && !head;
        for mark in stages {
            if let Some(engine) = catalog.stages.get(mark).and_then(|mark| mark.engine) {
                *self.current.engines.entry(engine).or_default() += 1;
            }
            self.current.add_stage(mark, number, &line);
        }
        for (observe, captures) in observed {
            self.current.add_observed(observe, number, &line, captures);
        }
        let mut outcome = Outcome::Nothing;
        let matters = !hits.is_empty() || said.is_some() || (found.generic && !head);
        if matters && !line.msg().trim().is_empty() && !self.binary_noise(&line) {
            outcome = match self.current.add_event(number, &line, hits, said) {
                Some(at) => Outcome::Event(at),
                None => Outcome::Nothing,
            };
        }
        quiet.then_some(outcome)
    }

    /// A line of a binary file that a generic word brought here.
    fn binary_noise(&self, line: &Line) -> bool {
        self.binary
            && line
                .text
                .chars()
                .filter(|c| c.is_control() || *c == '\u{fffd}')
                .count()
                > 4
    }

    fn maybe_new_launch(&mut self, mark: usize, number: u64, line: &Line) {
        let catalog = self.catalog;
        let engine = catalog.stages.get(mark).and_then(|mark| mark.engine);
        // A further API server of the same launch prints the same banner.
        let further = line
            .proc
            .as_ref()
            .and_then(|proc| proc.name.as_deref())
            .is_some_and(|name| name.starts_with("ApiServer_") && name != "ApiServer_0");
        let stage_of = |hit: &super::launch::StageHit| catalog.stages.get(hit.mark).map(|mark| mark.stage);
        let progress = self
            .current
            .stages
            .iter()
            .any(|hit| stage_of(hit).is_some_and(|stage| stage > Stage::Start));
        let stopping = self
            .current
            .stages
            .iter()
            .any(|hit| stage_of(hit) == Some(Stage::Stopping));
        let failed = !self.current.building.all.is_empty()
            || self.current.events.iter().any(|event| {
                event.hits.iter().any(|hit| {
                    catalog.failures.get(hit.entry).is_some_and(|failure| {
                        failure.weight >= 60 && failure.role != crate::catalog::Role::Benign
                    })
                })
            });
        // An engine inside another's log (Ollama's runners) is no new launch of what is asked about.
        let inner = self
            .current
            .marker_engine
            .is_some_and(|outer| engine.is_some_and(|engine| engine != outer))
            && !stopping
            && !failed;
        if further || inner || !(progress || failed) {
            if self.current.marker.is_none() {
                self.current.marker = Some((number, bounded(&line.text, 512).to_owned()));
                self.current.marker_engine = engine;
            }
            return;
        }
        let mut old = std::mem::replace(&mut self.current, Launch::starting(number));
        old.finish(number - 1);
        if self.asked_pid.is_some_and(|pid| old.pids.contains(&pid)) {
            self.kept = Some((self.out.launches, old));
        }
        self.out.launches += 1;
        self.generation += 1;
        self.fresh = FRESH;
        self.current.marker = Some((number, bounded(&line.text, 512).to_owned()));
        self.current.marker_engine = engine;
    }

    fn take_tail(&mut self) {
        if self.binary {
            return;
        }
        let text = std::mem::take(&mut self.tail);
        let count = memchr::memchr_iter(b'\n', &text).count() as u64
            + u64::from(text.last().is_some_and(|byte| *byte != b'\n'));
        let first = (self.line.saturating_sub(1)).saturating_sub(count) + 1;
        for (offset, raw) in text.split(|byte| *byte == b'\n').enumerate() {
            let number = first + offset as u64;
            let raw = raw.strip_suffix(b"\r").unwrap_or(raw);
            let raw = raw.rsplit(|byte| *byte == b'\r').next().unwrap_or(raw);
            if number < self.current.first_line || raw.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let line = line::parse(&raw[..raw.len().min(WHOLE)]);
            self.current.note(&line);
            self.current
                .tail
                .push((number, bounded(&line.text, 1024).to_owned()));
        }
        let drop = self.current.tail.len().saturating_sub(TAIL_LINES);
        self.current.tail.drain(..drop);
    }
}

fn pattern_of(patterns: &[Pattern], number: u8) -> Option<&Pattern> {
    patterns.get(usize::from(number))
}

/// Messages of the lines just before `start`, the nearest first.
fn lines_before(bytes: &[u8], start: usize) -> Vec<String> {
    let from = start.saturating_sub(16 * 1024);
    let Some(before) = bytes.get(from..start.saturating_sub(1).max(from)) else {
        return Vec::new();
    };
    before
        .rsplit(|byte| *byte == b'\n')
        .take(40)
        .map(|raw| {
            let raw = raw.strip_suffix(b"\r").unwrap_or(raw);
            line::parse(&raw[..raw.len().min(1024)]).msg().to_owned()
        })
        .collect()
}
