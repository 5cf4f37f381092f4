//! What is said of a run in sentences, each under its label.

use shakedown_model::{
    Acceptance, ClientHealth, Distribution, InForce, Metrics, RunDocument, TokenSource, Trial, Truth,
};

use super::figures;
use crate::number::{counted, duration, figure, percent, plus_minus, quantity, row};
use crate::style::Tone;
use crate::text::clean;
use crate::words;

/// Settings in force that are shown; the document has them all.
const SETTINGS_SHOWN: usize = 12;

/// Lines under one label.
#[derive(Debug)]
pub(super) struct Fact {
    pub(super) label: &'static str,
    pub(super) lines: Vec<String>,
    /// What it is, where it should stand out.
    pub(super) tone: Option<Tone>,
}

fn fact(label: &'static str, lines: Vec<String>) -> Fact {
    Fact {
        label,
        lines,
        tone: None,
    }
}

/// All that is to be said, the primary metric first.
pub(super) fn facts(document: &RunDocument, bundle_path: Option<&str>) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(metrics) = &document.pooled {
        facts.push(fact("Output", vec![figures::output(document, metrics)]));
        facts.extend(trials(&document.trials));
        facts.push(requests(metrics));
        facts.push(tokens(metrics));
        facts.extend(chunks(metrics));
        facts.push(fact("Prefix cache", vec![cache(metrics)]));
        if !metrics.acceptance.is_empty() {
            facts.push(fact(
                "Acceptance",
                metrics.acceptance.iter().map(acceptance).collect(),
            ));
        }
    }
    facts.push(fact("In force", in_force(document.server.in_force.as_ref())));
    facts.extend(
        document
            .client_health
            .as_ref()
            .map(|health| fact("Client", vec![client(health)])),
    );
    facts.extend(document.truth.as_ref().map(truth));
    let lasted = document
        .duration_s
        .map(|seconds| format!(", {}", duration(seconds)))
        .unwrap_or_default();
    facts.push(fact("Run", vec![format!("{}{lasted}", clean(&document.id))]));
    facts.extend(bundle_path.map(|path| Fact {
        label: "Kept in",
        lines: vec![clean(path)],
        tone: Some(Tone::Hint),
    }));
    facts
}

/// Rate ± spread over trials, and each trial, so that a drift is seen.
fn trials(trials: &[Trial]) -> Option<Fact> {
    if trials.len() < 2 {
        return None;
    }
    let output = |trial: &Trial| trial.metrics.output_tok_s.map(|rate| rate.value);
    let request = |trial: &Trial| {
        trial
            .metrics
            .request_tok_s
            .as_ref()
            .and_then(Distribution::median)
    };
    let all = |of: &dyn Fn(&Trial) -> Option<f64>| trials.iter().map(of).collect::<Option<Vec<f64>>>();
    let (what, rates) = match (all(&output), all(&request)) {
        (Some(rates), _) => ("output", rates),
        (None, Some(rates)) => ("request", rates),
        (None, None) => {
            return Some(fact(
                "Trials",
                vec!["unknown: not every trial has a rate".to_owned()],
            ));
        }
    };
    let count = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let sd = (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt();
    let trials = rates.len();
    Some(fact(
        "Trials",
        vec![
            format!(
                "{what} {} tok/s ({}, sd of {trials} trials)",
                plus_minus(mean, sd),
                percent(sd / mean)
            ),
            row(mean, &rates).join(", "),
        ],
    ))
}

fn requests(metrics: &Metrics) -> Fact {
    let ways: Vec<String> = metrics
        .outcomes
        .iter()
        .map(|entry| format!("{} {}", entry.count, entry.outcome))
        .collect();
    let all: u64 = metrics.outcomes.iter().map(|entry| entry.count).sum();
    let ways = match ways.as_slice() {
        [] => "none ended".to_owned(),
        [one] => one.clone(),
        several => format!("{all}: {}", several.join(", ")),
    };
    let failures = metrics.failures();
    let failed = if failures > 0 {
        // What we stopped ourselves neither failed nor succeeded.
        let judged = failures + metrics.successes();
        format!(" ({} failed)", percent(failures as f64 / judged as f64))
    } else {
        String::new()
    };
    let rate = metrics
        .requests_s
        .map(|rate| format!("; {} answered a second", figure(rate)));
    Fact {
        label: "Requests",
        lines: vec![format!("{ways}{failed}{}", rate.unwrap_or_default())],
        tone: (failures > 0).then_some(Tone::Bad),
    }
}

fn tokens(metrics: &Metrics) -> Fact {
    let median = |sample: &Option<Distribution>, what: &str| {
        Some(format!("{} {what}", quantity(sample.as_ref()?.median()?)))
    };
    let lengths: Vec<String> = [
        median(&metrics.input_tokens, "in"),
        median(&metrics.output_tokens, "out"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let lengths = if lengths.is_empty() {
        String::new()
    } else {
        format!("{} (medians of a request); ", lengths.join(", "))
    };
    let sources = match metrics.token_sources.as_slice() {
        [] | [(TokenSource::Unknown, _)] => "output counts unknown".to_owned(),
        [(source, _)] => format!("output counted by {}", words::token_source(*source)),
        several => {
            let each = several.iter().map(|(source, count)| match source {
                TokenSource::Unknown => format!("unknown for {count}"),
                known => format!("{} for {count}", words::token_source(*known)),
            });
            format!("output counted by {}", each.collect::<Vec<_>>().join(", "))
        }
    };
    fact("Tokens", vec![format!("{lengths}{sources}")])
}

/// Tokens a chunk, where that is not simply one.
fn chunks(metrics: &Metrics) -> Option<Fact> {
    let sizes = metrics.chunk_sizes.as_ref()?;
    let all: u64 = sizes.histogram.iter().map(|[_, chunks]| chunks).sum();
    if all == 0 || (sizes.known >= 1.0 && matches!(sizes.histogram.as_slice(), [[1, _]])) {
        return None;
    }
    let mut most: Vec<[u64; 2]> = sizes.histogram.clone();
    most.sort_by_key(|&[tokens, chunks]| (std::cmp::Reverse(chunks), tokens));
    let shown: Vec<String> = most
        .iter()
        .take(6)
        .map(|&[tokens, chunks]| {
            format!(
                "{} in {}",
                counted(tokens, "token"),
                percent(chunks as f64 / all as f64)
            )
        })
        .collect();
    let rest = if most.len() > shown.len() {
        ", others in the rest"
    } else {
        ""
    };
    let known = if sizes.known < 1.0 {
        format!("; known for {} of them", percent(sizes.known))
    } else {
        String::new()
    };
    Some(fact("Chunks", vec![format!("{}{rest}{known}", shown.join(", "))]))
}

fn cache(metrics: &Metrics) -> String {
    let Some(hits) = metrics.cache_hits else {
        return "hits unknown: the server does not tell".to_owned();
    };
    let share = if hits.input_tokens > 0 {
        format!(
            " ({})",
            percent(hits.cached_tokens as f64 / hits.input_tokens as f64)
        )
    } else {
        String::new()
    };
    format!(
        "{} of {} prompt tokens came from it{share}, by the usage of {}",
        hits.cached_tokens,
        hits.input_tokens,
        counted(hits.requests, "request")
    )
}

fn acceptance(acceptance: &Acceptance) -> String {
    let about = acceptance
        .kind
        .map_or("all prompts", shakedown_model::PromptKind::as_str);
    let length = acceptance.length.map_or_else(
        || "length unknown".to_owned(),
        |length| format!("{} tokens a step, bonus included", figure(length)),
    );
    let rate = acceptance.rate.map_or_else(
        || "rate unknown".to_owned(),
        |rate| format!("{} of drafted tokens accepted", percent(rate)),
    );
    format!(
        "{about}: {length}, {rate}; from {}",
        words::acceptance_source(acceptance.source)
    )
}

fn in_force(in_force: Option<&InForce>) -> Vec<String> {
    let Some(in_force) = in_force.filter(|in_force| !in_force.settings.is_empty()) else {
        return vec!["unknown: the engine does not tell".to_owned()];
    };
    let mut shown: Vec<String> = in_force
        .settings
        .iter()
        .take(SETTINGS_SHOWN)
        .map(|setting| clean(&format!("{}={}", setting.name, setting.value)))
        .collect();
    let more = in_force.settings.len() - shown.len();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    let mut lines = vec![shown.join(", ")];
    lines.extend(in_force.asked.iter().filter_map(|asked| {
        let real = in_force
            .get(&asked.name)
            .filter(|real| real.value != asked.value)?;
        Some(clean(&format!(
            "not as asked: {} is {}, asked was {}",
            real.name, real.value, asked.value
        )))
    }));
    lines
}

fn client(health: &ClientHealth) -> String {
    let ms = |us: f64| format!("{} ms", figure(us / 1000.0));
    let mut parts = vec![match &health.read_lag {
        Some(lag) => format!("read lag p99 {}", ms(lag.p99_us)),
        None => "read lag unknown".to_owned(),
    }];
    parts.extend(
        health
            .send_lag_p99_us
            .map(|lag| format!("send lag p99 {}", ms(lag))),
    );
    parts.extend(
        health
            .busiest_thread_cpu
            .map(|share| format!("busiest thread {} of a CPU", percent(share))),
    );
    parts.extend(
        health
            .steal
            .filter(|&steal| steal > 0.0)
            .map(|steal| format!("{} stolen", percent(steal))),
    );
    parts.push(format!("{} of chunks shared a read", percent(health.coalesced)));
    parts.join(", ")
}

fn truth(truth: &Truth) -> Fact {
    let mut lines = vec![format!(
        "{} stamped {} ms after the server (p50), p99 {}, max {}",
        counted(truth.chunks, "chunk"),
        figure(truth.p50_ms),
        figure(truth.p99_ms),
        figure(truth.max_ms)
    )];
    if truth.early > 0 {
        lines.push(format!(
            "{} before the server wrote them: the clocks do not agree",
            counted(truth.early, "chunk")
        ));
    }
    if let (Some(ours), Some(theirs)) = (truth.ttft_p99_ms, truth.server_ttft_p99_ms) {
        // The two are alike to more digits than a figure has: what matters is by how much they differ.
        let more = ours / theirs - 1.0;
        let side = if more < 0.0 { "below" } else { "above" };
        lines.push(format!(
            "TTFT p99 {} ms, {} {side} the server's own",
            figure(ours),
            percent(more.abs())
        ));
    }
    lines.push(format!(
        "the server itself was late by {} ms (p99)",
        figure(truth.server_late_p99_ms)
    ));
    Fact {
        label: "Truth",
        lines,
        tone: (truth.early > 0).then_some(Tone::Bad),
    }
}
