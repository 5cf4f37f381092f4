//! Reads and judges the stack of one environment: `readstack PREFIX [--cache DIR] [--gpu sm_120] [--json] [--quiet]`.
//! The measurements of `docs/stack-oracle.md` run this.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use shakedown_stack::check;
use shakedown_stack::python::Environment;
use shakedown_stack::{Options, Root, read};

fn main() {
    let mut args = std::env::args().skip(1);
    let (mut prefix, mut options, mut json, mut quiet) =
        (PathBuf::from("/usr"), Options::default(), false, false);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--cache" => options.cache = args.next().map(PathBuf::from),
            "--gpu" => options.sm.extend(args.next().and_then(|a| check::parse_sm(&a))),
            "--wheel" => options.wheels.extend(args.next().map(PathBuf::from)),
            "--json" => json = true,
            "--quiet" => quiet = true,
            _ => prefix = PathBuf::from(arg),
        }
    }
    let started = Instant::now();
    let root = Root::new("/");
    let variables = std::env::vars().collect();
    let environment = match Environment::of_prefix(&root, Path::new(&prefix), &variables) {
        Ok(environment) => environment,
        Err(error) => {
            eprintln!("failed to {error}");
            return;
        }
    };
    let reading = read(&root, environment, variables, options);
    let checked = reading.check(&root);
    let seconds = started.elapsed().as_secs_f64();
    let verification = &reading.verification;
    eprintln!(
        "{seconds:.3} s; hashed {} files, {} bytes; {} remembered; {} packages; extensions: {} load, {} do not, {} unknown",
        verification.hashed,
        verification.hashed_bytes,
        verification.remembered,
        reading.stack.packages.len(),
        check::count(&checked, shakedown_model::Loads::Yes),
        check::count(&checked, shakedown_model::Loads::No),
        check::count(&checked, shakedown_model::Loads::Unknown),
    );
    if quiet {
        return;
    }
    if json {
        println!(
            "{}",
            serde_json::to_string_pretty(&reading.stack).unwrap_or_default()
        );
        println!("{}", serde_json::to_string_pretty(&checked).unwrap_or_default());
        return;
    }
    for found in &checked.findings {
        let f = &found.finding;
        println!(
            "{}{:?} {} [{}] {}{}",
            if found.primary { "PRIMARY " } else { "" },
            f.verdict,
            f.code,
            f.subject,
            f.what,
            found
                .caused_by
                .as_ref()
                .map(|c| format!(" <- {c}"))
                .unwrap_or_default()
        );
    }
    for extension in checked
        .extensions
        .iter()
        .filter(|e| e.loads != shakedown_model::Loads::Yes)
    {
        println!(
            "{:?} {} {}: {}",
            extension.loads,
            extension.package,
            extension.file,
            extension.why.join("; ")
        );
    }
    println!("exit {:?}", check::exit(&checked));
}
