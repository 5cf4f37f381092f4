//! `shakedown practice`: its options and what they mean together.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::Value;
use shakedown_model::Secret;
use shakedown_verbs::practice::{Acceptance, Manners, Options, Phase, Script, Startup};

use super::value;
use crate::exit::CliError;

const EXAMPLES: &str = "\
Examples:
  shakedown practice                              listen on 127.0.0.1:8910, 50 ms to the first token, 10 ms a token
  shakedown practice --engine sglang              SGLang's port, endpoints and shapes
  shakedown practice --port 0 --ttft 200ms --itl 20ms --slots 4
  shakedown practice --acceptance 0.2,0.3,0.5     speculative decoding: weights of 1, 2, 3 tokens a step
  shakedown practice --script error-in-stream     every stream breaks in a way that clients overlook
  shakedown practice --list-scripts
  curl -s localhost:8910/truth                    the server's own stamps of every write";

/// Run the built-in practice server, whose timing is exactly known
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PracticeArgs {
    /// Host to listen on
    #[arg(long, default_value = "127.0.0.1", help_heading = "Server")]
    host: String,
    /// Port to listen on; 0 for any [default: the engine's, else 8910]
    #[arg(short, long, help_heading = "Server")]
    port: Option<u16>,
    /// Whose manners to wear: port, endpoints, headers, shapes, metric names
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "ENGINE",
        help_heading = "Server"
    )]
    engine: EngineArg,
    /// Name of the model
    #[arg(short, long, value_name = "NAME", help_heading = "Server")]
    model: Option<String>,
    /// Environment variable that holds the API key to require
    #[arg(long, value_name = "NAME", help_heading = "Server")]
    api_key_env: Option<String>,
    /// Threads that serve
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Server")]
    threads: u32,
    /// A setting asked for, in SGLang's report of its arguments
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting, help_heading = "Server")]
    asked: Vec<(String, Value)>,
    /// A setting in force where it differs from what was asked for
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting, help_heading = "Server")]
    in_force: Vec<(String, Value)>,

    /// From the request read to the first token
    #[arg(long, value_name = "TIME", value_parser = value::duration, default_value = "50ms", help_heading = "Timing")]
    ttft: Duration,
    /// From one chunk to the next
    #[arg(long, value_name = "TIME", value_parser = value::duration, default_value = "10ms", help_heading = "Timing")]
    itl: Duration,
    /// Each chunk is up to so much early or late
    #[arg(long, value_name = "TIME", value_parser = value::duration, default_value = "0ms", help_heading = "Timing")]
    jitter: Duration,
    /// When streams emit: each at its own times, or all together as an engine's batch does
    #[arg(long, value_enum, default_value_t, help_heading = "Timing")]
    phase: PhaseArg,
    /// Tokens in each chunk
    #[arg(
        long,
        value_name = "K",
        default_value_t = 1,
        conflicts_with = "acceptance",
        help_heading = "Timing"
    )]
    tokens_per_chunk: u32,
    /// Weights of a verify step yielding 1, 2, … tokens
    #[arg(long, value_name = "WEIGHTS", value_delimiter = ',', help_heading = "Timing")]
    acceptance: Vec<f64>,
    /// Requests that run at the same time; the others wait
    #[arg(long, value_name = "N", help_heading = "Timing")]
    slots: Option<u32>,
    /// Tokens for a request that sets no limit
    #[arg(long, value_name = "N", help_heading = "Timing")]
    default_tokens: Option<u32>,
    /// The model ends by itself after so many tokens
    #[arg(long, value_name = "N", help_heading = "Timing")]
    eos_after: Option<u32>,
    /// Seed of texts, jitter and acceptance
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Timing")]
    seed: u64,

    /// Answer with this stream script: a built-in name or a TOML file
    #[arg(long, value_name = "NAME|FILE", help_heading = "Stream scripts")]
    script: Option<String>,
    /// List the built-in stream scripts
    #[arg(long, help_heading = "Stream scripts")]
    pub(crate) list_scripts: bool,

    /// Take the address only after so long
    #[arg(long, value_name = "TIME", value_parser = value::duration, default_value = "0ms", help_heading = "Bring-up")]
    bound_after: Duration,
    /// Accept connections only after so long
    #[arg(long, value_name = "TIME", value_parser = value::duration, default_value = "0ms", help_heading = "Bring-up")]
    listening_after: Duration,
    /// Be healthy only after so long
    #[arg(long, value_name = "TIME", value_parser = value::duration, default_value = "0ms", help_heading = "Bring-up")]
    healthy_after: Duration,
    /// List the model only after so long
    #[arg(long, value_name = "TIME", value_parser = value::duration, default_value = "0ms", help_heading = "Bring-up")]
    listed_after: Duration,
    /// Send no token before so long
    #[arg(long, value_name = "TIME", value_parser = value::duration, default_value = "0ms", help_heading = "Bring-up")]
    first_token_after: Duration,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum EngineArg {
    /// Nobody's
    #[default]
    Plain,
    /// SGLang's
    Sglang,
    /// vLLM's
    Vllm,
    /// llama-server's
    #[value(name = "llama.cpp")]
    LlamaCpp,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum PhaseArg {
    /// Each at its own multiples
    #[default]
    Spread,
    /// All at the same multiples
    Aligned,
}

impl PracticeArgs {
    /// The server that is asked for.
    pub(crate) fn into_options(self) -> Result<Options, CliError> {
        let defaults = Options::default();
        let api_key = match &self.api_key_env {
            None => None,
            Some(name) => Some(Secret::new(std::env::var(name).map_err(|_| {
                CliError::usage(format!("environment variable {name} is not set"), None)
            })?)),
        };
        Ok(Options {
            host: self.host,
            port: self.port,
            engine: match self.engine {
                EngineArg::Plain => Manners::Plain,
                EngineArg::Sglang => Manners::Sglang,
                EngineArg::Vllm => Manners::Vllm,
                EngineArg::LlamaCpp => Manners::LlamaCpp,
            },
            model: self.model.unwrap_or(defaults.model),
            ttft: self.ttft,
            itl: self.itl,
            jitter: self.jitter,
            tokens_per_chunk: self.tokens_per_chunk,
            acceptance: (!self.acceptance.is_empty()).then(|| Acceptance {
                weights: self.acceptance,
                by_kind: BTreeMap::new(),
            }),
            slots: self.slots,
            phase: match self.phase {
                PhaseArg::Spread => Phase::Spread,
                PhaseArg::Aligned => Phase::Aligned,
            },
            default_tokens: self.default_tokens.unwrap_or(defaults.default_tokens),
            eos_after: self.eos_after,
            api_key,
            threads: self.threads,
            seed: self.seed,
            script: self.script.as_deref().map(script).transpose()?,
            settings_asked: self.asked.into_iter().collect(),
            settings_in_force: self.in_force.into_iter().collect(),
            startup: Startup {
                bound: self.bound_after,
                listening: self.listening_after,
                healthy: self.healthy_after,
                listed: self.listed_after,
                first_token: self.first_token_after,
            },
            ..defaults
        })
    }
}

/// A built-in script, else the file of that name.
fn script(wanted: &str) -> Result<Script, CliError> {
    if let Some(script) = Script::named(wanted) {
        return Ok(script);
    }
    let path = PathBuf::from(wanted);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        CliError::usage(
            format!("{wanted:?} is neither a built-in stream script nor a file that can be read: {error}"),
            Some("list the built-in ones with `shakedown practice --list-scripts`"),
        )
    })?;
    Script::from_toml(&text).map_err(|error| CliError::usage(format!("{}: {error}", path.display()), None))
}

/// Reads `name=value`, the value as JSON where it is JSON and as text otherwise.
fn setting(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok((name.to_owned(), value))
}
