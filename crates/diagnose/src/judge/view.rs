//! All logs of a case as one story: events and stages of the judged launches in one order, beside the facts.

use shakedown_model::{EngineKind, Evidence};

use crate::catalog::{Catalog, Failure, Stage, StageMark};
use crate::facts::Facts;
use crate::log::{Event, Observed, Scanned, StageHit, Time, Trace};
use crate::mask::mask;

/// Longest quotation, in characters.
const QUOTE: usize = 600;

/// An event with its place in the story.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed<'a> {
    /// Place in the order of everything.
    pub(super) order: usize,
    /// Which log.
    pub(super) log: usize,
    /// The event.
    pub(super) event: &'a Event,
}

/// A stage mark with its place in the story.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedStage<'a> {
    pub(super) order: usize,
    pub(super) log: usize,
    pub(super) hit: &'a StageHit,
    pub(super) mark: &'a StageMark,
}

/// The story.
pub(super) struct View<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) facts: &'a Facts,
    pub(super) logs: &'a [Scanned],
    pub(super) events: Vec<Placed<'a>>,
    pub(super) stages: Vec<PlacedStage<'a>>,
    /// The engine that most lines speak for.
    pub(super) engine: Option<EngineKind>,
    /// Values that the facts tell in the words of a log or of a command line.
    told: Vec<Observed>,
}

/// The number by which facts stand where a log's index is asked for.
const FACTS: usize = usize::MAX;

enum Item<'a> {
    Event(&'a Event),
    Stage(&'a StageHit, &'a StageMark),
}

impl<'a> View<'a> {
    pub(super) fn new(catalog: &'a Catalog, facts: &'a Facts, logs: &'a [Scanned]) -> Self {
        let mut items: Vec<(Option<Time>, usize, u64, Item<'a>)> = Vec::new();
        for (log, scanned) in logs.iter().enumerate() {
            let mut own: Vec<(Option<Time>, u64, Item<'a>)> = Vec::new();
            // A line that both marks a stage and tells something happened in that stage.
            for hit in &scanned.launch.stages {
                if let Some(mark) = catalog.stages.get(hit.mark) {
                    own.push((hit.time, hit.line, Item::Stage(hit, mark)));
                }
            }
            for event in &scanned.launch.events {
                own.push((event.time, event.line, Item::Event(event)));
            }
            own.sort_by_key(|(_, line, _)| *line);
            // A line without stamp happened when its neighbour did.
            let mut last = own.iter().find_map(|(time, _, _)| *time);
            for (time, line, item) in own {
                last = time.or(last);
                items.push((last, log, line, item));
            }
        }
        let one_clock = items
            .iter()
            .all(|(time, ..)| matches!(time, Some(Time::Wall { .. })));
        if logs.len() > 1 && one_clock {
            // Stable: lines of one log keep their order where its stamps are equal.
            items.sort_by(|a, b| {
                let apart = match (a.0, b.0) {
                    (Some(a), Some(b)) => a.seconds_since(b).unwrap_or(0.0),
                    _ => 0.0,
                };
                apart.total_cmp(&0.0)
            });
        }
        let mut view = Self {
            catalog,
            facts,
            logs,
            events: Vec::new(),
            stages: Vec::new(),
            engine: None,
            told: told_by_facts(catalog, facts),
        };
        for (order, (_, log, _, item)) in items.into_iter().enumerate() {
            match item {
                Item::Event(event) => view.events.push(Placed { order, log, event }),
                Item::Stage(hit, mark) => view.stages.push(PlacedStage {
                    order,
                    log,
                    hit,
                    mark,
                }),
            }
        }
        view.engine = view.most_likely_engine();
        view
    }

    fn most_likely_engine(&self) -> Option<EngineKind> {
        let mut votes: std::collections::BTreeMap<EngineKind, u32> = std::collections::BTreeMap::new();
        for scanned in self.logs {
            for (engine, count) in &scanned.launch.engines {
                *votes.entry(*engine).or_default() += count;
            }
            if let Some(engine) = scanned.launch.marker_engine {
                *votes.entry(engine).or_default() += 20;
            }
        }
        let from_log = votes
            .into_iter()
            .max_by_key(|(_, count)| *count)
            .map(|(engine, _)| engine);
        from_log.or_else(|| {
            let argv: Vec<String> = self
                .facts
                .get(crate::facts::key::ARGV)
                .chain(self.facts.get(crate::facts::key::PROCESSES))
                .map(|fact| fact.text.to_ascii_lowercase())
                .collect();
            [
                ("sglang_router", EngineKind::SglangRouter),
                ("sglang", EngineKind::Sglang),
                ("vllm", EngineKind::Vllm),
                ("trtllm", EngineKind::TensorRtLlm),
                ("text-generation", EngineKind::Tgi),
                ("ollama", EngineKind::Ollama),
                ("llama-server", EngineKind::LlamaCpp),
                ("llama.cpp", EngineKind::LlamaCpp),
                ("lmdeploy", EngineKind::LmDeploy),
                ("mistralrs", EngineKind::MistralRs),
            ]
            .into_iter()
            .find(|(word, _)| argv.iter().any(|text| text.contains(word)))
            .map(|(_, engine)| engine)
        })
    }

    /// The entry of a hit.
    pub(super) fn failure(&self, entry: usize) -> Option<&'a Failure> {
        self.catalog.failures.get(entry)
    }

    /// The observations by that name, in the order of the logs.
    pub(super) fn observed<'n>(&'n self, name: &'n str) -> impl Iterator<Item = (usize, &'n Observed)> + 'n {
        self.logs
            .iter()
            .enumerate()
            .flat_map(move |(log, scanned)| {
                scanned
                    .launch
                    .observed
                    .iter()
                    .map(move |observed| (log, observed))
            })
            .chain(self.told.iter().map(|observed| (FACTS, observed)))
            .filter(move |(_, observed)| {
                self.catalog
                    .observes
                    .get(observed.observe)
                    .is_some_and(|entry| entry.name == name)
            })
    }

    /// The value of the last observation by that name.
    pub(super) fn last_observed<'n>(&'n self, name: &'n str) -> Option<(usize, &'n Observed, &'n str)> {
        self.observed(name)
            .filter_map(|(log, observed)| value_of(observed).map(|value| (log, observed, value)))
            .last()
    }

    /// The traceback that an event belongs to, and its place in the chain.
    pub(super) fn trace_of(&self, placed: &Placed<'a>) -> Option<(&'a Trace, usize)> {
        let (trace, link) = placed.event.said?;
        Some((self.logs.get(placed.log)?.launch.traces.get(trace)?, link))
    }

    /// A line as evidence.
    pub(super) fn quote(&self, log: usize, line: u64, text: &str) -> Evidence {
        let masked = mask(text.trim());
        let mut value: String = masked.chars().take(QUOTE).collect();
        if value.len() < masked.len() {
            value.push('…');
        }
        match self.logs.get(log) {
            Some(scanned) => {
                let (name, line) = scanned.place(line);
                Evidence::at_line(name, line, value)
            }
            None => Evidence::new("facts", value),
        }
    }

    /// An event as evidence.
    pub(super) fn quote_event(&self, placed: &Placed<'_>) -> Evidence {
        self.quote(placed.log, placed.event.line, &placed.event.text)
    }

    /// The stage that was under way at `order`, by the marks before it; the marks of the same process first.
    pub(super) fn stage_at(&self, order: usize) -> Option<Stage> {
        self.stages
            .iter()
            .take_while(|stage| stage.order <= order)
            .filter(|stage| stage.mark.stage != Stage::Stopping)
            .last()
            .map(|stage| stage.mark.stage)
    }

    /// Whether the draft model of a speculating server was being brought up at `order`: weights are loaded a
    /// second time by the same process, after its KV cache was allocated or its first load ended.
    pub(super) fn draft_at(&self, order: usize) -> bool {
        let before: Vec<&PlacedStage<'a>> = self
            .stages
            .iter()
            .take_while(|stage| stage.order <= order)
            .collect();
        before.iter().enumerate().any(|(at, begin)| {
            begin.mark.stage == Stage::LoadingWeights
                && !begin.mark.end
                && before[..at].iter().any(|earlier| {
                    earlier.log == begin.log
                        && earlier.hit.proc == begin.hit.proc
                        && (earlier.mark.stage == Stage::AllocatingKv
                            || (earlier.mark.stage == Stage::LoadingWeights && earlier.mark.end))
                })
        })
    }

    /// Whether anything of a launch was read at all.
    pub(super) fn has_lines(&self) -> bool {
        self.logs
            .iter()
            .any(|scanned| scanned.parts.iter().any(|part| part.lines > 0))
    }

    /// The text of the server's arguments: from the facts, else as the log printed them.
    pub(super) fn arguments(&self) -> Option<String> {
        let mut all: Vec<String> = self
            .facts
            .get(crate::facts::key::ARGV)
            .map(|fact| fact.text.clone())
            .collect();
        all.extend(
            self.observed("args")
                .filter_map(|(_, observed)| value_of(observed).map(str::to_owned)),
        );
        (!all.is_empty()).then(|| all.join(" "))
    }

    /// The value of an argument: `--some-name value`, `some_name=value` or `'some_name': value`.
    pub(super) fn argument(&self, name: &str) -> Argument {
        let Some(text) = self.arguments() else {
            return Argument::NotKnown;
        };
        let wanted = name.replace('-', "_");
        let normal = text.replace('-', "_");
        let mut from = 0;
        let mut answer = Argument::Absent;
        while let Some(offset) = normal.get(from..).and_then(|rest| rest.find(&wanted)) {
            let at = from + offset;
            let end = at + wanted.len();
            from = end;
            let before = normal[..at].chars().next_back();
            let after = normal[end..].chars().next();
            let own_word = before
                .is_none_or(|c| !c.is_alphanumeric() && c != '_' || normal[..at].ends_with("__"))
                && after.is_none_or(|c| !c.is_alphanumeric() && c != '_');
            if !own_word {
                continue;
            }
            let rest = text[end..].trim_start_matches(['\'', '"']).trim_start();
            let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start();
            let value: String = match rest.chars().next() {
                Some(quote @ ('\'' | '"')) => rest[1..].chars().take_while(|c| *c != quote).collect(),
                Some('[' | '{') => rest.chars().take_while(|c| *c != ']' && *c != '}').collect(),
                _ => rest
                    .chars()
                    .take_while(|c| !c.is_whitespace() && !matches!(c, ',' | ')' | '}' | '\'' | '"'))
                    .collect(),
            };
            if value == "None" || value == "null" {
                continue;
            }
            answer = Argument::Given(if value.starts_with("--") {
                String::new()
            } else {
                value
            });
            break;
        }
        answer
    }
}

/// Observations in the facts that quote what was run or printed.
fn told_by_facts(catalog: &Catalog, facts: &Facts) -> Vec<Observed> {
    use crate::facts::key;
    let mut told = Vec::new();
    for key in [key::ARGV, key::CLIENT, key::SERVER, key::PROC] {
        for fact in facts.get(key) {
            let text = match &fact.name {
                Some(name) => format!("{name} {}", fact.text),
                None => fact.text.clone(),
            };
            for (observe, entry) in catalog.observes.iter().enumerate() {
                if let Some(captures) = entry.patterns.iter().find_map(|pattern| pattern.find_in(&text)) {
                    told.push(Observed {
                        observe,
                        line: 0,
                        captures,
                        text: text.clone(),
                    });
                }
            }
        }
    }
    told
}

/// What is known of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Argument {
    /// No arguments are known at all.
    NotKnown,
    /// It is not among them.
    Absent,
    /// It is, with this value (empty for a switch).
    Given(String),
}

/// The group `value` of an observation.
pub(super) fn value_of(observed: &Observed) -> Option<&str> {
    observed
        .captures
        .iter()
        .find(|(name, _)| name == "value")
        .map(|(_, value)| value.as_str())
}
