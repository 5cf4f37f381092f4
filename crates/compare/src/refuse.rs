//! What cannot be compared, and why.

use std::collections::{BTreeMap, BTreeSet};

use shakedown_model::{Load, RUN_SCHEMA, Refusal, RefusalReason, RunDocument, RunEnd, TokenSource, Verdict};

use crate::Side;

/// Codes of findings that void a run's figures.
const CLIENT_LIMITED: [&str; 2] = ["client-limited", "stamp-before-server"];
/// Codes of findings that say that something else took part.
const CONTAMINATED: [&str; 1] = ["contaminated"];

/// Everything that makes the runs of both sides incomparable, one entry a reason; empty when they can be compared. `variant`: one
/// side is a declared variant of the other's model.
pub fn refusals(a: &Side<'_>, b: &Side<'_>, variant: bool) -> Vec<Refusal> {
    let mut found: BTreeMap<RefusalReason, String> = BTreeMap::new();
    let mut refuse = |reason, what: String| {
        found.entry(reason).or_insert(what);
    };
    for side in [a, b] {
        if side.runs.is_empty() {
            refuse(RefusalReason::Sides, format!("there is no run in {}", side.label));
        }
    }
    let mut seen = BTreeSet::new();
    for (run, side) in a
        .runs
        .iter()
        .map(|run| (run, a))
        .chain(b.runs.iter().map(|run| (run, b)))
    {
        if !seen.insert(run.id.as_str()) {
            let twice = side.runs.iter().filter(|other| other.id == run.id).count() > 1;
            let place = if twice {
                format!("twice in {}", side.label)
            } else {
                "on both sides".to_owned()
            };
            refuse(RefusalReason::Sides, format!("run {} is {place}", run.id));
        }
    }
    for run in a.runs.iter().chain(&b.runs) {
        on_its_own(run, &mut refuse);
    }
    if let Some(first) = a.runs.first() {
        // B first: a mixed side is named by what it mixes, not by the other side.
        for run in b.runs.iter().chain(&a.runs) {
            beside(first, run, variant, &mut refuse);
        }
    }
    found
        .into_iter()
        .map(|(reason, what)| Refusal { reason, what })
        .collect()
}

/// Everything that makes the figures of one side say nothing, or of different things.
pub(crate) fn alone(side: &Side<'_>, variant: bool) -> Vec<Refusal> {
    let mut found: BTreeMap<RefusalReason, String> = BTreeMap::new();
    let mut refuse = |reason, what: String| {
        found.entry(reason).or_insert(what);
    };
    if side.runs.is_empty() {
        refuse(RefusalReason::Sides, format!("there is no run in {}", side.label));
    }
    for run in &side.runs {
        on_its_own(run, &mut refuse);
    }
    if let Some(first) = side.runs.first() {
        for run in &side.runs {
            beside(first, run, variant, &mut refuse);
        }
    }
    found
        .into_iter()
        .map(|(reason, what)| Refusal { reason, what })
        .collect()
}

fn on_its_own(run: &RunDocument, refuse: &mut impl FnMut(RefusalReason, String)) {
    if run.schema != RUN_SCHEMA {
        refuse(
            RefusalReason::Definitions,
            format!(
                "run {} is of schema {}, and figures are defined by {RUN_SCHEMA}",
                run.id, run.schema
            ),
        );
    }
    match run.end {
        RunEnd::Running => refuse(RefusalReason::Incomplete, format!("run {} was cut", run.id)),
        RunEnd::Failed => refuse(RefusalReason::Incomplete, format!("run {} failed", run.id)),
        RunEnd::Complete | RunEnd::Interrupted if run.trials.is_empty() => {
            refuse(RefusalReason::Incomplete, format!("run {} has no trial", run.id));
        }
        RunEnd::Complete | RunEnd::Interrupted => {}
    }
    for finding in run
        .findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::Fail)
    {
        let reason = if CLIENT_LIMITED.contains(&finding.code.as_str()) {
            RefusalReason::ClientLimited
        } else if CONTAMINATED.contains(&finding.code.as_str()) {
            RefusalReason::Contaminated
        } else {
            continue;
        };
        refuse(reason, format!("run {}: {}", run.id, finding.what));
    }
}

fn beside(
    first: &RunDocument,
    run: &RunDocument,
    variant: bool,
    refuse: &mut impl FnMut(RefusalReason, String),
) {
    let (one, other) = (&first.workload, &run.workload);
    let pair = |what: &str, one: String, other: String| {
        format!("{what}: {one} in run {}, {other} in run {}", first.id, run.id)
    };
    if first.server.model != run.server.model && !variant {
        let name = |run: &RunDocument| run.server.model.clone().unwrap_or_else(|| "not named".to_owned());
        refuse(RefusalReason::Model, pair("model", name(first), name(run)));
    }
    if one.api != other.api {
        refuse(
            RefusalReason::Endpoint,
            pair("endpoint", one.api.path().to_owned(), other.api.path().to_owned()),
        );
    } else if one.stream != other.stream {
        let word = |stream: bool| (if stream { "streamed" } else { "not streamed" }).to_owned();
        refuse(
            RefusalReason::Endpoint,
            pair("answers", word(one.stream), word(other.stream)),
        );
    }
    if one.kinds != other.kinds {
        let words = |kinds: &[shakedown_model::PromptKind]| {
            kinds
                .iter()
                .map(|kind| kind.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        refuse(
            RefusalReason::PromptKinds,
            pair("prompts", words(&one.kinds), words(&other.kinds)),
        );
    }
    if one.sampling != other.sampling {
        refuse(
            RefusalReason::Sampling,
            pair("sampling", sampling(&one.sampling), sampling(&other.sampling)),
        );
    }
    let explained = one.api != other.api
        || one.stream != other.stream
        || one.kinds != other.kinds
        || one.sampling != other.sampling;
    if one.max_tokens != other.max_tokens {
        refuse(
            RefusalReason::Workload,
            pair(
                "output tokens asked for",
                one.max_tokens.to_string(),
                other.max_tokens.to_string(),
            ),
        );
    } else if one.sha256 != other.sha256 && !explained {
        let short = |hash: &str| hash.chars().take(12).collect::<String>();
        refuse(
            RefusalReason::Workload,
            pair("workload", short(&one.sha256), short(&other.sha256)),
        );
    }
    if first.load != run.load {
        refuse(
            RefusalReason::Load,
            pair("load", load(&first.load), load(&run.load)),
        );
    } else if first.cold != run.cold {
        let word = |cold: bool| (if cold { "one a request" } else { "reused" }).to_owned();
        refuse(
            RefusalReason::Load,
            pair("connections", word(first.cold), word(run.cold)),
        );
    }
    let (source_one, source_other) = (token_source(first), token_source(run));
    // A run without a trial is refused for that alone.
    if source_one != source_other && !first.trials.is_empty() && !run.trials.is_empty() {
        let word = |source: Option<TokenSource>| source.map_or("none", TokenSource::as_str).to_owned();
        refuse(
            RefusalReason::TokenSource,
            pair("tokens counted by", word(source_one), word(source_other)),
        );
    }
}

/// The source of most token counts of a run.
fn token_source(run: &RunDocument) -> Option<TokenSource> {
    let mut counts: BTreeMap<TokenSource, u64> = BTreeMap::new();
    for trial in &run.trials {
        for (source, count) in &trial.metrics.token_sources {
            *counts.entry(*source).or_default() += count;
        }
    }
    counts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .max_by_key(|(_, count)| *count)
        .map(|(source, _)| source)
}

fn load(load: &Load) -> String {
    match load {
        Load::Closed { concurrency } => format!("closed loop, {concurrency} streams"),
        Load::Open {
            rate,
            max_concurrency: None,
            ..
        } => format!("open loop, {rate} requests/s"),
        Load::Open {
            rate,
            max_concurrency: Some(most),
            ..
        } => {
            format!("open loop, {rate} requests/s, at most {most} in flight")
        }
    }
}

/// What differs in a sampling is named; its free members only by name, for they may hold anything.
fn sampling(sampling: &shakedown_model::Sampling) -> String {
    let mut parts = Vec::new();
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            parts.push(format!("{name} {value}"));
        }
    };
    put("temperature", sampling.temperature.map(|value| value.to_string()));
    put("top_p", sampling.top_p.map(|value| value.to_string()));
    put("seed", sampling.seed.map(|value| value.to_string()));
    put("min_tokens", sampling.min_tokens.map(|value| value.to_string()));
    put("ignore_eos", sampling.ignore_eos.then(|| "on".to_owned()));
    put(
        "stop strings",
        (!sampling.stop.is_empty()).then(|| sampling.stop.len().to_string()),
    );
    for name in sampling.extra_body.keys() {
        put("with", Some(name.clone()));
    }
    if parts.is_empty() {
        "the server's own".to_owned()
    } else {
        parts.join(" ")
    }
}
