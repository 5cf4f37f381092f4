//! `cargo xtask fuzz`: builds the fuzz targets with libFuzzer's coverage on the stable toolchain, and runs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::paths;

/// What `cargo fuzz` passes for coverage, without a sanitizer: there is no unsafe code here for one to watch.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Coverflow-checks --cfg fuzzing";

/// Runs the task with the arguments after its name.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let mut names: Vec<String> = Vec::new();
    let mut seconds: u32 = 60;
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => {
                let value = words.next().context("`--seconds` needs a value")?;
                seconds = value.parse().context("`--seconds` takes a whole number")?;
            }
            _ if word.starts_with('-') => bail!("`fuzz` knows `--seconds`, not `{word}`"),
            _ => names.push(word.clone()),
        }
    }
    let home = paths::root().join("fuzz");
    let all = targets(&home)?;
    if names.is_empty() {
        names.clone_from(&all);
    }
    if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
        bail!(
            "no fuzz target is called `{unknown}`; there are {}",
            all.join(", ")
        );
    }
    let host = host()?;
    build(&home, &host)?;
    let mut failed = Vec::new();
    for name in names {
        println!("\n==> {name}, {seconds} s");
        if !fuzz(&home, &host, &name, seconds)? {
            failed.push(name);
        }
    }
    if failed.is_empty() {
        println!("\nno finding");
        return Ok(ExitCode::SUCCESS);
    }
    println!("\nfindings in {}: see fuzz/artifacts", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

/// The names of all targets, sorted.
fn targets(home: &Path) -> Result<Vec<String>> {
    let dir = home.join("fuzz_targets");
    let mut names = Vec::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("failed to read {}", dir.display()))? {
        let path = entry
            .with_context(|| format!("failed to read {}", dir.display()))?
            .path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// The target triple of this machine. With it named, build scripts are built without coverage.
fn host() -> Result<String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .stdin(Stdio::null())
        .output()
        .context("failed to run rustc")?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("host: ").map(str::to_owned))
        .context("failed to find the host in the version of rustc")
}

fn build(home: &Path, host: &str) -> Result<()> {
    let status = paths::cargo()
        .args(["build", "--release", "--bins", "--jobs", "2", "--target", host])
        .arg("--manifest-path")
        .arg(home.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(home.join("target"))
        .env("RUSTFLAGS", COVERAGE)
        .stdin(Stdio::null())
        .status()
        .context("failed to run cargo")?;
    if !status.success() {
        bail!("failed to build the fuzz targets: cargo ended with {status}");
    }
    Ok(())
}

/// Runs one target; whether it found nothing.
fn fuzz(home: &Path, host: &str, name: &str, seconds: u32) -> Result<bool> {
    let corpus = home.join("corpus").join(name);
    let artifacts = home.join("artifacts").join(name);
    for dir in [&corpus, &artifacts] {
        fs::create_dir_all(dir).with_context(|| format!("failed to create {}", dir.display()))?;
    }
    let binary: PathBuf = [
        home.as_os_str(),
        "target".as_ref(),
        host.as_ref(),
        "release".as_ref(),
        name.as_ref(),
    ]
    .iter()
    .collect();
    let status = Command::new(&binary)
        .arg(&corpus)
        // Inputs that are kept in the repository, where there are any; read, never written.
        .args(Some(home.join("seeds").join(name)).filter(|seeds| seeds.is_dir()))
        .arg(format!("-max_total_time={seconds}"))
        .args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("failed to run {}", binary.display()))?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_known() {
        assert!(host().unwrap().contains(std::env::consts::ARCH));
    }

    #[test]
    fn targets_are_the_sources() {
        let home = std::env::temp_dir().join(format!("xtask-fuzz-{}", std::process::id()));
        let dir = home.join("fuzz_targets");
        fs::create_dir_all(&dir).unwrap();
        for file in ["sse.rs", "http.rs", "notes.txt"] {
            fs::write(dir.join(file), "").unwrap();
        }
        assert_eq!(targets(&home).unwrap(), ["http", "sse"]);
        fs::remove_dir_all(&home).unwrap();
        assert!(targets(&home).is_err());
    }
}
