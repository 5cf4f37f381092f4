//! `shakedown bench`: its options and what they mean together.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value};
use shakedown_model::verb::{BenchRequest, ChunkUsage, RequestLimits, Salt};
use shakedown_model::{Api, PromptKind, PromptSource, Sampling, Secret, Stop};

use super::value;
use crate::exit::CliError;

const EXAMPLES: &str = "\
Examples:
  shakedown bench --practice                      try it on the built-in server
  shakedown bench http://localhost:30000          one stream, the server's first model
  shakedown bench http://gpu1:8000 -c 16 --requests 160
  shakedown bench http://gpu1:8000 -c 64 --duration 60s --runs 3
  shakedown bench http://localhost:30000 -c 1 --requests 1 --warmup 2 --runs 5 --max-tokens 2048
                                                  the classic: 2 warm-ups, 5 runs, 2048 tokens, one stream
  shakedown bench http://localhost:8080 --format json | jq .pooled.output_tok_s";

/// Measure one server: how fast is it, and can I believe that?
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    /// The server, for example http://localhost:30000
    url: Option<String>,
    /// Start the built-in practice server for this run and measure that
    #[arg(long, conflicts_with = "url")]
    practice: bool,

    /// Requests in flight [default: 1; with --practice 4]
    #[arg(short, long, value_name = "N", help_heading = "Load")]
    concurrency: Option<u32>,
    /// Measured requests in each run [default: 4 for each stream, at least 10]
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        conflicts_with = "duration",
        help_heading = "Load"
    )]
    requests: Option<u32>,
    /// Start measured requests for so long, instead of counting them
    #[arg(short, long, value_name = "TIME", value_parser = value::duration, help_heading = "Load")]
    duration: Option<Duration>,
    /// Warm-up requests before the first run, never measured
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Load")]
    warmup: u32,
    /// Repetitions of the whole
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Load")]
    runs: u32,
    /// Open a new connection for each request
    #[arg(long, help_heading = "Load")]
    cold: bool,
    /// Client threads [default: one for each 256 streams]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256), help_heading = "Load")]
    threads: Option<u32>,

    /// Output tokens asked for [default: 256; with --practice 128]
    #[arg(long, value_name = "N", help_heading = "Workload")]
    max_tokens: Option<u32>,
    /// The model's name [default: the first that the server lists]
    #[arg(short, long, value_name = "NAME", help_heading = "Workload")]
    model: Option<String>,
    /// Endpoint and dialect
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "API",
        help_heading = "Workload"
    )]
    api: ApiArg,
    /// Built-in prompts of these kinds only
    #[arg(
        long,
        value_enum,
        value_name = "KIND",
        value_delimiter = ',',
        help_heading = "Workload"
    )]
    kind: Vec<KindArg>,
    /// Your own prompts: JSON lines with `prompt` or `messages`, optionally `output_tokens`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kind", "prompt_tokens"], help_heading = "Workload")]
    prompts: Option<PathBuf>,
    /// Synthetic prompts of so many tokens
    #[arg(long, value_name = "N", conflicts_with = "kind", help_heading = "Workload")]
    prompt_tokens: Option<u32>,
    /// Seed of the order of prompts and of synthetic prompts
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Workload")]
    order_seed: u64,
    /// Text that keeps built-in prompts out of the prefix cache; `none` sends them bare [default: new each run]
    #[arg(long, value_name = "TEXT", help_heading = "Workload")]
    prompt_salt: Option<String>,
    /// Ask for whole answers instead of streams
    #[arg(long, help_heading = "Workload")]
    no_stream: bool,
    /// Ask for usage with every chunk, which tells the tokens of each
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        help_heading = "Workload"
    )]
    chunk_usage: ChunkUsageArg,

    /// Sampling temperature; `server` leaves it to the server
    #[arg(long, value_name = "T", default_value = "0", help_heading = "Sampling")]
    temperature: String,
    /// Nucleus sampling
    #[arg(long, value_name = "P", help_heading = "Sampling")]
    top_p: Option<f64>,
    /// Sampling seed that is sent along
    #[arg(long, value_name = "N", help_heading = "Sampling")]
    seed: Option<u64>,
    /// Go on past the end token up to --max-tokens
    #[arg(long, help_heading = "Sampling")]
    ignore_eos: bool,
    /// Least output tokens
    #[arg(long, value_name = "N", help_heading = "Sampling")]
    min_tokens: Option<u32>,
    /// A stop string; may be given several times
    #[arg(long, value_name = "TEXT", help_heading = "Sampling")]
    stop: Vec<String>,
    /// Further members of each request's body, as a JSON object
    #[arg(long, value_name = "JSON", help_heading = "Sampling")]
    extra_body: Option<String>,

    /// Longest wait for the first token
    #[arg(long, value_name = "TIME", value_parser = value::duration, default_value = "300s", help_heading = "Limits")]
    timeout_first_token: Duration,
    /// Longest silence within a stream
    #[arg(long, value_name = "TIME", value_parser = value::duration, default_value = "120s", help_heading = "Limits")]
    timeout_idle: Duration,
    /// Longest time for a whole request
    #[arg(long, value_name = "TIME", value_parser = value::duration, default_value = "1h", help_heading = "Limits")]
    timeout: Duration,
    /// Share of failed requests that is accepted
    #[arg(long, value_name = "SHARE", value_parser = value::share, default_value = "1%", help_heading = "Limits")]
    max_failures: f64,

    /// Environment variable that holds the API key
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "api_key_file",
        help_heading = "Access"
    )]
    api_key_env: Option<String>,
    /// File that holds the API key
    #[arg(long, value_name = "FILE", help_heading = "Access")]
    api_key_file: Option<PathBuf>,
    /// A further request header, 'Name: value'; sent, never recorded
    #[arg(long, value_name = "HEADER", value_parser = value::header, help_heading = "Access")]
    header: Vec<(String, String)>,

    /// Where runs are kept [default: nearest .shakedown/ upwards, else the user's data directory]
    #[arg(long, value_name = "DIR", env = "SHAKEDOWN_STORE", help_heading = "Record")]
    store: Option<PathBuf>,
    /// A tag for the run; may be given several times
    #[arg(long, value_name = "TAG", help_heading = "Record")]
    tag: Vec<String>,
    /// Keep prompts and answers; without it only their hash and length are kept
    #[arg(long, help_heading = "Record")]
    keep_text: bool,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum ApiArg {
    /// POST /v1/chat/completions
    #[default]
    Chat,
    /// POST /v1/completions
    Completions,
    /// SGLang's POST /generate
    Generate,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum ChunkUsageArg {
    /// Where the engine is known to have it
    #[default]
    Auto,
    /// Always
    On,
    /// Never
    Off,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum KindArg {
    Chat,
    Code,
    Reasoning,
    Extraction,
}

impl BenchArgs {
    /// What is asked for, defaults filled in.
    pub(crate) fn into_request(self) -> Result<BenchRequest, CliError> {
        let concurrency = self.concurrency.unwrap_or(if self.practice { 4 } else { 1 });
        let requests = self
            .requests
            .unwrap_or_else(|| concurrency.saturating_mul(4).max(10));
        let api_key = self.api_key()?;
        let sampling = self.sampling()?;
        let prompts = match (self.prompts, self.prompt_tokens) {
            (Some(path), _) => PromptSource::File { path },
            (None, Some(tokens)) => PromptSource::Synthetic { tokens },
            (None, None) => PromptSource::BuiltIn {
                kinds: self.kind.into_iter().map(KindArg::kind).collect(),
            },
        };
        Ok(BenchRequest {
            url: self.url,
            practice: self.practice,
            api: match self.api {
                ApiArg::Chat => Api::Chat,
                ApiArg::Completions => Api::Completions,
                ApiArg::Generate => Api::Generate,
            },
            model: self.model,
            concurrency,
            stop: self.duration.map_or(Stop::Requests(requests), |duration| {
                Stop::Seconds(duration.as_secs_f64())
            }),
            warmup: self.warmup,
            trials: self.runs,
            max_tokens: self.max_tokens.unwrap_or(if self.practice { 128 } else { 256 }),
            sampling,
            prompts,
            order_seed: self.order_seed,
            salt: match self.prompt_salt.as_deref() {
                None => Salt::Random,
                Some("none") => Salt::Bare,
                Some(text) => Salt::Text(text.to_owned()),
            },
            stream: !self.no_stream,
            chunk_usage: match self.chunk_usage {
                ChunkUsageArg::Auto => ChunkUsage::Auto,
                ChunkUsageArg::On => ChunkUsage::On,
                ChunkUsageArg::Off => ChunkUsage::Off,
            },
            cold: self.cold,
            keep_text: self.keep_text,
            limits: RequestLimits {
                first_token_s: self.timeout_first_token.as_secs_f64(),
                idle_s: self.timeout_idle.as_secs_f64(),
                total_s: self.timeout.as_secs_f64(),
                ..RequestLimits::default()
            },
            max_failures: self.max_failures,
            threads: self.threads,
            store: self.store,
            tags: self.tag,
            api_key,
            headers: self
                .header
                .into_iter()
                .map(|(name, value)| (name, Secret::new(value)))
                .collect(),
        })
    }

    fn sampling(&self) -> Result<Sampling, CliError> {
        let temperature = match self.temperature.as_str() {
            "server" => None,
            text => Some(
                text.parse::<f64>()
                    .ok()
                    .filter(|value| value.is_finite() && *value >= 0.0)
                    .ok_or_else(|| {
                        CliError::usage(
                            format!("--temperature {text:?} is neither a number nor `server`"),
                            None,
                        )
                    })?,
            ),
        };
        Ok(Sampling {
            temperature,
            top_p: self.top_p,
            seed: self.seed,
            ignore_eos: self.ignore_eos,
            min_tokens: self.min_tokens,
            stop: self.stop.clone(),
            extra_body: self
                .extra_body
                .as_deref()
                .map(object)
                .transpose()?
                .unwrap_or_default(),
        })
    }

    fn api_key(&self) -> Result<Option<Secret>, CliError> {
        if let Some(name) = &self.api_key_env {
            let key = std::env::var(name)
                .map_err(|_| CliError::usage(format!("environment variable {name} is not set"), None))?;
            return Ok(Some(Secret::new(key)));
        }
        let Some(path) = &self.api_key_file else {
            return Ok(None);
        };
        let key = std::fs::read_to_string(path).map_err(|error| {
            CliError::usage(format!("read the API key in {}: {error}", path.display()), None)
        })?;
        Ok(Some(Secret::new(key.trim())))
    }
}

impl KindArg {
    const fn kind(self) -> PromptKind {
        match self {
            Self::Chat => PromptKind::Chat,
            Self::Code => PromptKind::Code,
            Self::Reasoning => PromptKind::Reasoning,
            Self::Extraction => PromptKind::Extraction,
        }
    }
}

fn object(text: &str) -> Result<Map<String, Value>, CliError> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(CliError::usage(
            "--extra-body is not a JSON object",
            Some("for example '{\"top_k\": 1}'"),
        )),
        Err(error) => Err(CliError::usage(
            format!("--extra-body is not JSON: {error}"),
            Some("for example '{\"top_k\": 1}'"),
        )),
    }
}
