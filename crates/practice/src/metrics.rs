//! `/metrics` in Prometheus text, under each engine's own names.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use crate::counters::{BOUNDS, Counters, Histogram, Latencies};
use crate::options::{Manners, Options};
use crate::shared::{Shared, lock};

/// The page.
pub(crate) fn page(shared: &Shared) -> String {
    // A request's figures are counted while its thread's ring is held, as its last byte is written: who has seen
    // that byte finds them counted.
    for ring in &shared.rings {
        drop(lock(ring));
    }
    let options = &shared.options;
    let latencies = shared.counters.latencies();
    let mut page = Page {
        out: String::with_capacity(8 * 1024),
        prefix: match options.engine {
            Manners::Plain => "practice:",
            Manners::Sglang => "sglang:",
            Manners::Vllm => "vllm:",
            Manners::LlamaCpp => "llamacpp:",
        },
        labels: match options.engine {
            Manners::Plain | Manners::LlamaCpp => String::new(),
            Manners::Sglang => format!(
                r#"engine_type="unified",model_name="{}",pp_rank="0",tp_rank="0""#,
                label(&options.model)
            ),
            Manners::Vllm => format!(r#"engine="0",model_name="{}""#, label(&options.model)),
        },
        created: (options.engine == Manners::Vllm).then_some(shared.started_unix),
    };
    match options.engine {
        Manners::Plain => plain(&mut page, &shared.counters, &latencies),
        Manners::Sglang => sglang(&mut page, options, &shared.counters, &latencies),
        Manners::Vllm => vllm(&mut page, options, &shared.counters, &latencies),
        Manners::LlamaCpp => llama_cpp(&mut page, &shared.counters, &latencies),
    }
    page.out
}

/// What speculation yields by the engines' own formulas.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Speculation {
    pub(crate) drafts: u64,
    pub(crate) draft_tokens: u64,
    pub(crate) accepted_tokens: u64,
}

impl Speculation {
    /// The counts so far.
    pub(crate) fn of(counters: &Counters) -> Self {
        Self {
            drafts: counters.drafts.load(Relaxed),
            draft_tokens: counters.draft_tokens.load(Relaxed),
            accepted_tokens: counters.accepted_tokens.load(Relaxed),
        }
    }

    /// SGLang's accept length: tokens a verify step, bonus token included.
    pub(crate) fn length(self) -> f64 {
        ratio(self.accepted_tokens + self.drafts, self.drafts)
    }

    /// SGLang's accept rate: the bonus token counts on both sides, so it is never below one in the number of
    /// draft tokens.
    fn sglang_rate(self) -> f64 {
        ratio(
            self.accepted_tokens + self.drafts,
            self.draft_tokens + self.drafts,
        )
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

fn label(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

struct Page {
    out: String,
    prefix: &'static str,
    labels: String,
    /// vLLM's page tells when each counter was made, in a gauge of its own.
    created: Option<u64>,
}

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(
            self.out,
            "# HELP {0}{name} {help}\n# TYPE {0}{name} {kind}\n",
            self.prefix
        );
    }

    fn sample(&mut self, name: &str, extra: &str, value: f64) {
        let comma = if self.labels.is_empty() || extra.is_empty() {
            ""
        } else {
            ","
        };
        let labels = match (self.labels.is_empty(), extra.is_empty()) {
            (true, true) => String::new(),
            _ => format!("{{{}{comma}{extra}}}", self.labels),
        };
        let _ = writeln!(self.out, "{}{name}{labels} {value:?}", self.prefix);
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.family(name, "gauge", help);
        self.sample(name, "", value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "counter", help);
        self.sample(name, "", value as f64);
        if let Some(created) = self.created {
            let name = format!("{}_created", name.trim_end_matches("_total"));
            self.gauge(&name, help, created as f64);
        }
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.family(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for (bound, count) in BOUNDS.iter().zip(histogram.counts) {
            self.sample(&bucket, &format!(r#"le="{bound:?}""#), count as f64);
        }
        self.sample(&bucket, r#"le="+Inf""#, histogram.count as f64);
        self.sample(&format!("{name}_count"), "", histogram.count as f64);
        self.sample(&format!("{name}_sum"), "", histogram.sum);
    }

    /// The four counters that vLLM and llama.cpp have in common.
    fn drafts(&mut self, counters: &Counters, positions: usize) {
        let accepted = Speculation::of(counters);
        self.counter("spec_decode_num_drafts_total", "Verify steps.", accepted.drafts);
        self.counter(
            "spec_decode_num_draft_tokens_total",
            "Drafts proposed.",
            accepted.draft_tokens,
        );
        self.counter(
            "spec_decode_num_accepted_tokens_total",
            "Drafts accepted.",
            accepted.accepted_tokens,
        );
        let name = "spec_decode_num_accepted_tokens_per_pos_total";
        self.family(name, "counter", "Drafts accepted by position.");
        for (position, count) in counters.accepted_at.iter().take(positions).enumerate() {
            self.sample(
                name,
                &format!(r#"position="{position}""#),
                count.load(Relaxed) as f64,
            );
        }
    }
}

fn plain(page: &mut Page, counters: &Counters, latencies: &Latencies) {
    page.gauge(
        "requests_running",
        "Requests that run.",
        f64::from(counters.running()),
    );
    page.gauge(
        "requests_waiting",
        "Requests that wait for a slot.",
        f64::from(counters.waiting()),
    );
    page.counter(
        "prompt_tokens_total",
        "Prompt tokens.",
        counters.prompt_tokens.load(Relaxed),
    );
    page.counter(
        "cached_tokens_total",
        "Prompt tokens that were cached.",
        counters.cached_tokens.load(Relaxed),
    );
    page.counter(
        "generation_tokens_total",
        "Tokens generated.",
        counters.generated_tokens.load(Relaxed),
    );
    page.counter(
        "requests_total",
        "Requests that ended.",
        latencies.ended.iter().sum(),
    );
    page.histogram(
        "time_to_first_token_seconds",
        "Time to first token.",
        &latencies.ttft,
    );
    page.histogram(
        "e2e_request_latency_seconds",
        "Time of the whole request.",
        &latencies.e2e,
    );
}

fn sglang(page: &mut Page, options: &Options, counters: &Counters, latencies: &Latencies) {
    let running = f64::from(counters.running());
    let prompt = counters.prompt_tokens.load(Relaxed);
    page.gauge("num_running_reqs", "Requests that run.", running);
    page.gauge(
        "num_queue_reqs",
        "Requests in the queue.",
        f64::from(counters.waiting()),
    );
    page.gauge("num_grammar_queue_reqs", "Requests in the grammar queue.", 0.0);
    page.gauge("num_used_tokens", "Tokens held.", 0.0);
    page.gauge("token_usage", "Share of the token pool that is held.", 0.0);
    page.gauge(
        "max_total_num_tokens",
        "Size of the token pool.",
        f64::from(options.context),
    );
    let per_second = if latencies.predicted_s > 0.0 {
        counters.generated_tokens.load(Relaxed) as f64 / latencies.predicted_s
    } else {
        0.0
    };
    page.gauge("gen_throughput", "Generation in tokens a second.", per_second);
    page.gauge(
        "cache_hit_rate",
        "Share of prompt tokens that were cached.",
        ratio(counters.cached_tokens.load(Relaxed), prompt),
    );
    let accepted = Speculation::of(counters);
    let speculates = options.acceptance.is_some();
    page.gauge(
        "spec_accept_length",
        "Tokens a verify step, bonus token included.",
        if speculates { accepted.length() } else { 0.0 },
    );
    page.gauge(
        "spec_accept_rate",
        "Accept length over the number of draft tokens.",
        if speculates { accepted.sglang_rate() } else { 0.0 },
    );
    page.counter("prompt_tokens_total", "Prompt tokens.", prompt);
    page.counter(
        "cached_tokens_total",
        "Prompt tokens that were cached.",
        counters.cached_tokens.load(Relaxed),
    );
    page.counter(
        "generation_tokens_total",
        "Tokens generated.",
        counters.generated_tokens.load(Relaxed),
    );
    page.counter(
        "num_requests_total",
        "Requests that ended.",
        latencies.ended.iter().sum(),
    );
    page.counter(
        "num_aborted_requests_total",
        "Requests given up.",
        latencies.ended[2],
    );
    page.histogram(
        "time_to_first_token_seconds",
        "Time to first token.",
        &latencies.ttft,
    );
    page.histogram(
        "inter_token_latency_seconds",
        "Time between tokens.",
        &latencies.itl,
    );
    page.histogram(
        "e2e_request_latency_seconds",
        "Time of the whole request.",
        &latencies.e2e,
    );
    page.histogram("queue_time_seconds", "Time in the queue.", &latencies.queue);
}

fn vllm(page: &mut Page, options: &Options, counters: &Counters, latencies: &Latencies) {
    let prompt = counters.prompt_tokens.load(Relaxed);
    let cached = counters.cached_tokens.load(Relaxed);
    page.gauge(
        "num_requests_running",
        "Requests that run.",
        f64::from(counters.running()),
    );
    page.gauge(
        "num_requests_waiting",
        "Requests that wait.",
        f64::from(counters.waiting()),
    );
    page.gauge("kv_cache_usage_perc", "Share of the cache in use.", 0.0);
    page.counter("prefix_cache_queries_total", "Prompt tokens looked up.", prompt);
    page.counter("prefix_cache_hits_total", "Prompt tokens found.", cached);
    page.counter("num_preemptions_total", "Preemptions.", 0);
    page.counter("prompt_tokens_total", "Prompt tokens.", prompt);
    page.counter(
        "generation_tokens_total",
        "Tokens generated.",
        counters.generated_tokens.load(Relaxed),
    );
    page.family(
        "request_success_total",
        "counter",
        "Requests that ended, by reason.",
    );
    for (reason, count) in ["stop", "length", "abort"].into_iter().zip(latencies.ended) {
        page.sample(
            "request_success_total",
            &format!(r#"finished_reason="{reason}""#),
            count as f64,
        );
    }
    page.histogram(
        "time_to_first_token_seconds",
        "Time to first token.",
        &latencies.ttft,
    );
    page.histogram(
        "inter_token_latency_seconds",
        "Time between chunks.",
        &latencies.itl,
    );
    page.histogram(
        "request_time_per_output_token_seconds",
        "Time per output token.",
        &latencies.tpot,
    );
    page.histogram(
        "e2e_request_latency_seconds",
        "Time of the whole request.",
        &latencies.e2e,
    );
    page.histogram(
        "request_queue_time_seconds",
        "Time in the queue.",
        &latencies.queue,
    );
    if let Some(acceptance) = &options.acceptance {
        page.drafts(counters, acceptance.drafts() as usize);
    }
    page.family("cache_config_info", "gauge", "Settings of the cache.");
    page.sample(
        "cache_config_info",
        r#"block_size="16",enable_prefix_caching="True""#,
        1.0,
    );
}

fn llama_cpp(page: &mut Page, counters: &Counters, latencies: &Latencies) {
    let cached = counters.cached_tokens.load(Relaxed);
    let prompt = counters.prompt_tokens.load(Relaxed) - cached;
    let generated = counters.generated_tokens.load(Relaxed);
    let rate = |tokens: u64, seconds: f64| {
        if seconds > 0.0 {
            tokens as f64 / seconds
        } else {
            0.0
        }
    };
    page.counter(
        "prompt_tokens_total",
        "Prompt tokens, cached ones not counted.",
        prompt,
    );
    page.counter(
        "prompt_tokens_cached_total",
        "Prompt tokens that were cached.",
        cached,
    );
    page.family("prompt_seconds_total", "counter", "Seconds on prompts.");
    page.sample("prompt_seconds_total", "", latencies.prompt_s);
    page.counter("tokens_predicted_total", "Tokens generated.", generated);
    page.family(
        "tokens_predicted_seconds_total",
        "counter",
        "Seconds on generation.",
    );
    page.sample("tokens_predicted_seconds_total", "", latencies.predicted_s);
    page.counter("n_decode_total", "Decode calls.", counters.steps.load(Relaxed));
    page.drafts(counters, counters.accepted_at.len());
    page.gauge(
        "prompt_tokens_seconds",
        "Prompt tokens a second.",
        rate(prompt, latencies.prompt_s),
    );
    page.gauge(
        "predicted_tokens_seconds",
        "Tokens a second.",
        rate(generated, latencies.predicted_s),
    );
    page.gauge(
        "requests_processing",
        "Requests that run.",
        f64::from(counters.running()),
    );
    page.gauge(
        "requests_deferred",
        "Requests that wait.",
        f64::from(counters.waiting()),
    );
}
