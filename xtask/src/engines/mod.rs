//! `cargo xtask engines`: a real engine and a real model for the tests, built and unpacked once per cache.
//!
//! `installed.json` in the cache says what is there. It is written last: without it, or with other pins in it
//! than those here, everything is done again (an interrupted build goes on where it was).

mod fetch;
mod installed;
mod llama;
mod model;
pub(crate) mod peers;
mod tools;

use std::fs::{self, File};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::paths;
use installed::Installed;

/// Runs the task with the arguments after its name.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [] => install()?,
        ["--peers"] => peers::install(&paths::engines())?,
        ["--print", what] => print(what)?,
        _ => bail!("`engines` takes `--peers`, `--print llama-server` or `--print model`, or nothing"),
    }
    Ok(ExitCode::SUCCESS)
}

fn install() -> Result<()> {
    let cache = paths::engines();
    fs::create_dir_all(&cache).with_context(|| format!("failed to create {}", cache.display()))?;
    let _lock = lock(&cache)?;
    if let Some(installed) = Installed::read(&cache) {
        println!("engines: present\n{installed}");
        return Ok(());
    }
    let started = Instant::now();
    let work = cache.join("work");
    fs::create_dir_all(&work).with_context(|| format!("failed to create {}", work.display()))?;
    let tools = tools::Tools::find(&cache, &work)?;
    fetch::fetch(&tools, &work)?;
    let model = model::unpack(&tools, &work, &cache)?;
    let llama_server = llama::build(&tools, &work, &cache)?;
    let installed = Installed::new(&cache, &llama_server, &model)?;
    installed.write(&cache)?;
    fs::remove_dir_all(&work).with_context(|| format!("failed to remove {}", work.display()))?;
    println!(
        "engines: installed in {:.0} s\n{installed}",
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

fn print(what: &str) -> Result<()> {
    let cache = paths::engines();
    let Some(installed) = Installed::read(&cache) else {
        bail!(
            "failed to find the engines in {}: run `cargo xtask engines` first",
            cache.display()
        );
    };
    match what {
        "llama-server" => println!("{}", installed.llama_server.path.display()),
        "model" => println!("{}", installed.model.path.display()),
        other => bail!("`--print` knows `llama-server` and `model`, not `{other}`"),
    }
    Ok(())
}

/// Keeps two runs out of each other's way; the lock ends with the file.
fn lock(cache: &std::path::Path) -> Result<File> {
    let path = cache.join("lock");
    let file = File::create(&path).with_context(|| format!("failed to create {}", path.display()))?;
    if file.try_lock().is_err() {
        println!("engines: another run holds {}, waiting", path.display());
        file.lock()
            .with_context(|| format!("failed to lock {}", path.display()))?;
    }
    Ok(file)
}
