//! `cargo xtask`: work on the project itself.
//!
//! `engines` installs the real engine and model that tests run against; `bench` takes the figures that no test
//! may assert, because a busy machine would break them; `fuzz` runs the fuzz targets.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for a terminal")]

mod bench;
mod engines;
mod fuzz;
mod paths;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask engines [--peers | --print llama-server|model]
       cargo xtask bench [NAME... | all] [--rounds N] [--bin PATH]
       cargo xtask fuzz [NAME...] [--seconds N]

engines   build llama-server and unpack a small model under target/engines (nothing to do when they are there)
  --print   print the path of one of them, or fail when it is not installed
  --peers   install the clients that benchmarks compare with
bench     without NAME: list the benchmarks
  --rounds  rounds of a benchmark (5)
  --bin     the shakedown to measure, instead of building this tree's
fuzz      run the fuzz targets, all without NAME
  --seconds for each of them (60)";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &[String]) -> Result<ExitCode> {
    let (verb, rest) = match args.split_first() {
        Some((verb, rest)) => (verb.as_str(), rest),
        None => ("help", args),
    };
    match verb {
        "engines" => engines::run(rest),
        "bench" => bench::run(rest),
        "fuzz" => fuzz::run(rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        other => bail!("no task is called `{other}`\n\n{USAGE}"),
    }
}
