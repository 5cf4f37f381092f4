//! From the command line to an exit code, in one place.

use clap::{CommandFactory, Parser};
use shakedown_model::Exit;

use crate::args::{Cli, Command};
use crate::exit::CliError;
use crate::output::{self, Output};
use crate::{bench, practice};

/// Parses, runs the verb, tells what went wrong, and says how the process ends.
pub(crate) fn main() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers, not errors; a closed pipe is nobody's fault.
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Yes
            };
        }
    };
    let output = Output::new(&cli.global);
    let result = match cli.command {
        Command::Bench(args) => bench::run(args, &output),
        Command::Practice(args) => practice::run(args, &output),
        Command::Completions { shell } => completions(shell),
    };
    match result {
        Ok(exit) => exit,
        Err(error) => {
            output.error(&error);
            error.exit()
        }
    }
}

fn completions(shell: clap_complete::Shell) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "shakedown", &mut script);
    output::data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Yes)
}
