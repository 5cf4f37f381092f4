//! Whether the figures can be believed: findings about the measurement itself.

use shakedown_model::{
    Acceptance, AcceptanceSource, Applicability, ClientHealth, Evidence, Finding, Load, Metrics, Phase,
    PromptKind, PromptSource, RequestOutcome, RequestRecord, Truth, Verdict, Workload,
};

/// Read lag that is never taken for a fault, in microseconds: a busy machine's scheduler alone does this much.
const LAG_FLOOR_US: f64 = 300.0;
/// Sampled reads below which no 99th percentile of their lag is judged.
const LAG_SAMPLES: u64 = 100;
/// Read lag that is a fault, as a share of the median chunk gap. Stamps are the kernel's, so that a late read moves
/// none, until it is so late that chunks which came apart are read together.
const LAG_OF_GAP: f64 = 0.25;
/// Send lag that is a fault, as a share of the median TTFT.
const SEND_LAG_OF_TTFT: f64 = 0.01;
/// CPU share of a runtime thread in any second above which it has no headroom.
const BUSY: f64 = 0.8;
/// Share of multi-event reads above which gaps are "at most this fine".
const COALESCED: f64 = 0.05;
/// Steal above which the machine is not ours enough to measure with.
const STEAL: f64 = 0.02;
/// Lateness of the practice server that is a fault, as a share of the time that it should have kept.
const SERVER_LATE: f64 = 0.02;

/// What the findings are made from.
#[derive(Debug, Clone, Copy)]
pub struct Basis<'a> {
    /// Pooled figures.
    pub metrics: &'a Metrics,
    /// The client's own account.
    pub health: &'a ClientHealth,
    /// Comparison with the practice server's stamps, where there is one.
    pub truth: Option<&'a Truth>,
    /// All records.
    pub records: &'a [RequestRecord],
    /// What was sent.
    pub workload: &'a Workload,
    /// How it was sent.
    pub load: Load,
    /// Share of failed requests that is accepted, 0 to 1.
    pub max_failures: f64,
    /// The warm-up failed whole.
    pub warmup_failed: bool,
}

/// Findings about the run, those that void figures first.
pub fn findings(basis: &Basis<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(early_stamps(basis.truth));
    found.extend(failures(basis));
    found.extend(client_limited(basis));
    found.extend(server_limited(basis));
    found.extend(unknown_tokens(basis.metrics));
    found.extend(coalesced(basis));
    found.extend(no_keep_alive(basis.health));
    found.extend(short_answers(basis.metrics));
    found.extend(prompt_lengths(basis));
    found.extend(cache_hits(basis));
    found.extend(acceptance_on_synthetic(basis));
    found
}

/// Whether a finding means that the figures do not say how fast the server is.
pub fn voids(finding: &Finding) -> bool {
    matches!(finding.code.as_str(), "client-limited" | "stamp-before-server")
}

fn early_stamps(truth: Option<&Truth>) -> Option<Finding> {
    let truth = truth.filter(|truth| truth.early > 0)?;
    Some(
        Finding::new(
            "stamp-before-server",
            Verdict::Fail,
            "the clock",
            format!(
                "{} of {} chunks were stamped before the server wrote them",
                truth.early, truth.chunks
            ),
        )
        .why("A client cannot read what has not been written: the stamps cannot be trusted"),
    )
}

fn failures(basis: &Basis<'_>) -> Option<Finding> {
    let phase = if basis.warmup_failed {
        Phase::Warmup
    } else {
        Phase::Measured
    };
    let of_phase = || basis.records.iter().filter(|record| record.phase == phase);
    let ended = of_phase()
        .filter(|record| record.outcome != RequestOutcome::Cancelled)
        .count();
    let failed: Vec<&RequestRecord> = of_phase().filter(|record| record.outcome.is_failure()).collect();
    let first = failed.first()?;
    let share = failed.len() as f64 / ended.max(1) as f64;
    let over = basis.warmup_failed || share > basis.max_failures;
    let (code, verdict) = if basis.warmup_failed {
        ("warmup-failed", Verdict::Fail)
    } else if over {
        ("requests-failed", Verdict::Fail)
    } else {
        ("requests-failed", Verdict::Warn)
    };
    let what = if basis.warmup_failed {
        format!(
            "all {} warm-up requests failed, so nothing was measured",
            failed.len()
        )
    } else {
        format!(
            "{} of {ended} measured requests failed ({:.1}%)",
            failed.len(),
            share * 100.0
        )
    };
    let first_error = first.error.clone().unwrap_or_else(|| first.outcome.to_string());
    Some(
        Finding::new(code, verdict, "the requests", what)
            .why("Failed requests are in no latency figure, which flatters the server")
            .evidence(Evidence::new(
                format!("request {}", first.id),
                format!("{}: {first_error}", first.outcome),
            )),
    )
}

fn client_limited(basis: &Basis<'_>) -> Option<Finding> {
    let health = basis.health;
    let mut evidence = Vec::new();
    let gap_ms = basis
        .metrics
        .icl_ms
        .as_ref()
        .and_then(shakedown_model::Distribution::median);
    if let Some(lag) = health.read_lag {
        let bound = LAG_FLOOR_US.max(gap_ms.unwrap_or(0.0) * 1000.0 * LAG_OF_GAP);
        // A 99th percentile needs its hundred values here as anywhere.
        if lag.samples >= LAG_SAMPLES && lag.p99_us > bound {
            evidence.push(Evidence::new(
                "kernel receive stamps",
                format!(
                    "read lag p99 {:.0} µs, above {bound:.0} µs ({} samples)",
                    lag.p99_us, lag.samples
                ),
            ));
        }
    }
    let ttft_ms = basis
        .metrics
        .ttft_ms
        .as_ref()
        .and_then(shakedown_model::Distribution::median);
    if let (Some(lag_us), Some(ttft_ms)) = (health.send_lag_p99_us, ttft_ms) {
        let bound = ttft_ms * 1000.0 * SEND_LAG_OF_TTFT;
        // Below the floor the lag is the scheduler's, and no figure contains it: TTFT counts from the send.
        if lag_us > bound.max(LAG_FLOOR_US) && !matches!(basis.load, Load::Closed { .. }) {
            evidence.push(Evidence::new(
                "send stamps",
                format!("send lag p99 {lag_us:.0} µs, above 1% of the median TTFT ({bound:.0} µs)"),
            ));
        }
    }
    if let Some(busy) = health.busiest_thread_cpu.filter(|busy| *busy > BUSY) {
        evidence.push(Evidence::new(
            "thread CPU time",
            format!("{:.0}% of a CPU in its busiest second", busy * 100.0),
        ));
    }
    if let Some(steal) = health.steal.filter(|steal| *steal > STEAL) {
        evidence.push(Evidence::new(
            "/proc/stat",
            format!("{:.1}% of CPU time stolen by the hypervisor", steal * 100.0),
        ));
    }
    if evidence.is_empty() {
        return None;
    }
    let mut finding = Finding::new(
        "client-limited",
        Verdict::Fail,
        "this client",
        "the client itself was late: the figures are partly its own".to_owned(),
    )
    .why("A client that reads late finds several chunks at once and sends its next request late: it measures itself")
    .fix(
        "run the client on another machine, or give it more CPUs or fewer streams",
        None,
        Applicability::Review,
    );
    finding.evidence = evidence;
    Some(finding)
}

fn server_limited(basis: &Basis<'_>) -> Option<Finding> {
    let truth = basis.truth?;
    let gap_ms = basis
        .metrics
        .icl_ms
        .as_ref()
        .and_then(shakedown_model::Distribution::median)?;
    let bound = (gap_ms * SERVER_LATE).max(LAG_FLOOR_US / 1000.0);
    (truth.server_late_p99_ms > bound).then(|| {
        Finding::new(
            "server-limited",
            Verdict::Warn,
            "the practice server",
            format!(
                "the practice server was itself late: p99 {:.2} ms behind its schedule, above {bound:.2} ms",
                truth.server_late_p99_ms
            ),
        )
        .why("The client was compared with when bytes were written, not with when they should have been")
    })
}

fn unknown_tokens(metrics: &Metrics) -> Option<Finding> {
    let all = metrics.successes();
    let unknown = metrics
        .token_sources
        .iter()
        .find(|(source, _)| *source == shakedown_model::TokenSource::Unknown)
        .map_or(0, |(_, count)| *count);
    (unknown > 0).then(|| {
        Finding::new(
            "tokens-unknown",
            Verdict::Warn,
            "token counts",
            format!("the server did not say how many tokens {unknown} of {all} answers had"),
        )
        .why("Chunks are not tokens and the requested length is not the generated one, so nothing is put in their place")
    })
}

fn coalesced(basis: &Basis<'_>) -> Option<Finding> {
    let health = basis.health;
    (health.coalesced > COALESCED).then(|| {
        Finding::new(
            "coalesced-reads",
            Verdict::Warn,
            "chunk gaps",
            format!(
                "{:.0}% of chunks came in one read with the chunk before",
                health.coalesced * 100.0
            ),
        )
        .why("Their gaps were not observed: ITL and ICL are at most this fine")
        .evidence(Evidence::new(
            "reads",
            format!("{} chunks in {} reads", health.events, health.reads),
        ))
    })
}

fn no_keep_alive(health: &ClientHealth) -> Option<Finding> {
    (health.keep_alive == Some(false)).then(|| {
        Finding::new(
            "no-keep-alive",
            Verdict::Info,
            "connections",
            "the server closes its connection after each answer, so each request opened its own",
        )
        .why("Connecting has its own figure and is in no other; a client that counts it has it in TTFT")
    })
}

fn short_answers(metrics: &Metrics) -> Option<Finding> {
    let short = metrics
        .outcomes
        .iter()
        .find(|entry| entry.outcome == RequestOutcome::OkShort)?;
    Some(
        Finding::new(
            "stopped-short",
            Verdict::Warn,
            "answer lengths",
            format!(
                "{} answers stopped before the length asked for although the request ruled that out",
                short.count
            ),
        )
        .why("The server does not honour ignore_eos or min_tokens; figures use the tokens that really came"),
    )
}

fn prompt_lengths(basis: &Basis<'_>) -> Option<Finding> {
    let PromptSource::Synthetic { tokens } = basis.workload.prompts else {
        return None;
    };
    let asked = f64::from(tokens);
    let Some(input) = &basis.metrics.input_tokens else {
        return Some(Finding::new(
            "prompt-length-unknown",
            Verdict::Info,
            "prompt lengths",
            format!("the server did not say how many tokens its prompts had ({tokens} asked for)"),
        ));
    };
    let difference = input.mean - asked;
    let verdict = if difference.abs() > asked * 0.05 {
        Verdict::Warn
    } else {
        Verdict::Info
    };
    Some(
        Finding::new(
            "prompt-length",
            verdict,
            "prompt lengths",
            format!(
                "prompts of {tokens} tokens were asked for; the server counted {:.1} on average ({difference:+.1}, chat template included)",
                input.mean
            ),
        )
        .evidence(Evidence::new("usage.prompt_tokens", format!("{:.0} to {:.0}", input.min, input.max))),
    )
}

fn cache_hits(basis: &Basis<'_>) -> Option<Finding> {
    let hits = basis.metrics.cache_hits?;
    let share = hits.cached_tokens as f64 / hits.input_tokens.max(1) as f64;
    // A chat template's own few tokens are shared by all prompts; a user's own prompts may share what they like.
    let unintended = share > 0.5 && !matches!(basis.workload.prompts, PromptSource::File { .. });
    unintended.then(|| {
        Finding::new(
            "prefix-cache",
            Verdict::Warn,
            "prompt processing",
            format!(
                "{:.0}% of prompt tokens came from the prefix cache",
                share * 100.0
            ),
        )
        .why("TTFT is then that of a warm cache, not of prompts seen for the first time")
    })
}

fn acceptance_on_synthetic(basis: &Basis<'_>) -> Option<Finding> {
    let speculates = |figure: &&Acceptance| {
        figure.source != AcceptanceSource::TokensPerChunk || figure.length.is_some_and(|length| length > 1.0)
    };
    basis.metrics.acceptance.iter().find(speculates)?;
    basis.workload.kinds.contains(&PromptKind::Synthetic).then(|| {
        Finding::new(
            "acceptance-synthetic",
            Verdict::Warn,
            "speculative decoding",
            "acceptance was measured on synthetic prompts",
        )
        .why("Drafts guess random words worse, and loops better, than real text: this acceptance does not represent real use")
        .fix(
            "measure with prompts like your own",
            Some("shakedown bench URL --prompts FILE.jsonl".to_owned()),
            Applicability::Safe,
        )
    })
}
