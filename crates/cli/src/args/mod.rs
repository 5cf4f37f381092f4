//! The command line: what can be asked, and its help.

mod bench;
mod practice;
mod value;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use bench::BenchArgs;
pub(crate) use practice::PracticeArgs;

/// Takes an LLM inference server from launched to measured.
#[derive(Debug, Parser)]
#[command(
    name = "shakedown",
    version,
    about,
    max_term_width = 100,
    after_help = "Try it without a server:\n  shakedown bench --practice\n\nExit codes: 0 yes, 1 no, 2 usage, 3 unreachable, 4 nothing found, 5 not enough evidence, 130 interrupted"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every verb understands.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// What stdout is for: people or programs
    #[arg(long, value_enum, default_value_t, global = true, value_name = "FORMAT")]
    pub(crate) format: Format,
    /// Say nothing on stderr but errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

/// What stdout is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// Text for people
    #[default]
    Human,
    /// One JSON document with a schema name
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure one server: how fast is it, and can I believe that?
    Bench(BenchArgs),
    /// Run the built-in practice server, whose timing is exactly known
    Practice(PracticeArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
