//! `cargo xtask bench`: the figures that depend on the machine and on what else runs there.
//!
//! Each benchmark measures `shakedown` as a user runs it, a release build in a process of its own, and prints
//! medians with the noise of the machine beside them. Where there is a limit it is checked, and the exit code says
//! whether it held.

mod accuracy;
mod cost;
mod figures;
mod interleave;
mod noise;
mod practice;
mod process;
mod startup;

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::paths;
use figures::Check;
use noise::Noise;
use process::Finished;

/// One benchmark.
struct Benchmark {
    name: &'static str,
    about: &'static str,
    run: fn(&Context) -> Result<Vec<Check>>,
}

const BENCHMARKS: [Benchmark; 4] = [
    Benchmark {
        name: "startup",
        about: "CPU and wall time from exec to the first byte sent, beside oha and vLLM's Rust client",
        run: startup::run,
    },
    Benchmark {
        name: "accuracy",
        about: "error of the client's stamps against the practice server's own",
        run: accuracy::run,
    },
    Benchmark {
        name: "cpu-per-token",
        about: "CPU time of the client for each token received, 64 streams, beside the same peers",
        run: cost::cpu_per_token,
    },
    Benchmark {
        name: "bytes-per-token",
        about: "bytes in requests.jsonl for each token of a steady stream",
        run: cost::bytes_per_token,
    },
];

/// What every benchmark needs.
struct Context {
    /// The binary that is measured.
    shakedown: PathBuf,
    /// Where peers lie.
    engines: PathBuf,
    /// Rounds of an interleaved comparison, repetitions of a measurement.
    rounds: usize,
    /// A directory for run bundles and the like, emptied at the start.
    scratch: PathBuf,
    /// Runs so far.
    runs: Cell<u32>,
}

/// One run of `shakedown bench`.
struct Run {
    /// The run document that it printed.
    document: Value,
    /// Its process.
    finished: Finished,
    /// The store of this run alone.
    store: PathBuf,
}

impl Context {
    /// A directory in which nothing is yet.
    fn store(&self) -> PathBuf {
        self.runs.set(self.runs.get() + 1);
        self.scratch.join(format!("store-{}", self.runs.get()))
    }

    /// Measures `url` with `shakedown bench`.
    ///
    /// A run that is not valid (the machine is busy) or had failures still has a document; the other ways to end
    /// have none.
    fn bench(&self, url: &str, args: &[&str]) -> Result<Run> {
        let store = self.store();
        let mut command = Command::new(&self.shakedown);
        command
            .args(["bench", url, "--format", "json", "--store"])
            .arg(&store)
            .args(args);
        let finished = process::run(command)?;
        if !matches!(finished.status.code(), Some(0 | 1 | 5)) {
            bail!(
                "failed to measure {url}: {} ended with {}: {}",
                self.shakedown.display(),
                finished.status,
                finished.talk()
            );
        }
        let document = serde_json::from_slice(&finished.stdout)
            .with_context(|| format!("failed to read the run document of {url}: {}", finished.talk()))?;
        Ok(Run {
            document,
            finished,
            store,
        })
    }
}

impl Run {
    /// The figure at `pointer` of the document.
    fn figure(&self, pointer: &str) -> Result<f64> {
        figure(&self.document, pointer)
    }

    /// The text of the bundle's requests.jsonl.
    fn requests(&self) -> Result<String> {
        let file = file_called("requests.jsonl", &self.store)?;
        fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))
    }
}

/// Runs the task with the arguments after its name.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let mut names: Vec<&str> = Vec::new();
    let mut rounds = 5;
    let mut binary = None;
    let mut words = args.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("`{word}` needs a value"));
        match word {
            "--rounds" => {
                rounds = value()?
                    .parse()
                    .context("`--rounds` takes a number, at least 1")?;
            }
            "--bin" => binary = Some(PathBuf::from(value()?)),
            _ if word.starts_with('-') => bail!("`bench` knows `--rounds` and `--bin`, not `{word}`"),
            _ => names.push(word),
        }
    }
    if names.is_empty() {
        for benchmark in &BENCHMARKS {
            println!("{:16} {}", benchmark.name, benchmark.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if rounds == 0 {
        bail!("`--rounds` takes a number, at least 1");
    }
    let chosen = choose(&names)?;

    let scratch = paths::target().join("xtask-bench");
    if scratch.exists() {
        fs::remove_dir_all(&scratch).with_context(|| format!("failed to empty {}", scratch.display()))?;
    }
    fs::create_dir_all(&scratch).with_context(|| format!("failed to create {}", scratch.display()))?;
    let context = Context {
        shakedown: match binary {
            Some(path) => path
                .canonicalize()
                .with_context(|| format!("failed to find {}", path.display()))?,
            None => build()?,
        },
        engines: paths::engines(),
        rounds,
        scratch,
        runs: Cell::new(0),
    };
    let mut held = true;
    for benchmark in chosen {
        println!("\n{}: {}", benchmark.name, benchmark.about);
        let noise = Noise::start()?;
        let checks =
            (benchmark.run)(&context).with_context(|| format!("failed to run {}", benchmark.name))?;
        println!("  {}", noise.stop()?);
        for check in &checks {
            println!("  {check}");
            held &= check.held();
        }
    }
    Ok(if held {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn choose(names: &[&str]) -> Result<Vec<&'static Benchmark>> {
    if names == ["all"] {
        return Ok(BENCHMARKS.iter().collect());
    }
    names
        .iter()
        .map(|name| {
            BENCHMARKS
                .iter()
                .find(|benchmark| benchmark.name == *name)
                .with_context(|| format!("no benchmark is called `{name}`"))
        })
        .collect()
}

/// Builds the binary as it is released.
fn build() -> Result<PathBuf> {
    let status = paths::cargo()
        .args(["build", "--release", "--bin", "shakedown"])
        .current_dir(paths::root())
        .stdin(Stdio::null())
        .status()
        .context("failed to run cargo")?;
    if !status.success() {
        bail!("failed to build shakedown: cargo ended with {status}");
    }
    Ok(paths::target().join("release/shakedown"))
}

/// The figure at `pointer` of a document.
fn figure(document: &Value, pointer: &str) -> Result<f64> {
    document
        .pointer(pointer)
        .and_then(Value::as_f64)
        .with_context(|| format!("failed to find {pointer} in the run document"))
}

/// The median of a distribution of a document's pooled metrics.
fn pooled_median(document: &Value, metric: &str) -> Result<f64> {
    let pointer = format!("/pooled/{metric}/percentiles");
    document
        .pointer(&pointer)
        .and_then(Value::as_array)
        .and_then(|all| {
            all.iter()
                .find(|entry| entry["p"].as_f64() == Some(50.0))?
                .get("value")?
                .as_f64()
        })
        .with_context(|| format!("failed to find the median of {metric} in the run document"))
}

/// The one file called `name` below `dir`.
fn file_called(name: &str, dir: &Path) -> Result<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).with_context(|| format!("failed to read {}", dir.display()))? {
            let path = entry
                .with_context(|| format!("failed to read {}", dir.display()))?
                .path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.file_name().is_some_and(|file| file == name) {
                found.push(path);
            }
        }
    }
    match <[PathBuf; 1]>::try_from(found) {
        Ok([file]) => Ok(file),
        Err(found) => bail!(
            "found {} files called {name} in {}, not one",
            found.len(),
            dir.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_are_found_where_the_document_has_them() {
        let document = json!({
            "truth": {"p50_ms": 0.05, "early": 0},
            "pooled": {"itl_ms": {"count": 2, "percentiles": [
                {"p": 90.0, "value": 11.0}, {"p": 50.0, "value": 10.0},
            ]}},
        });
        assert!((figure(&document, "/truth/p50_ms").unwrap() - 0.05).abs() < 1e-12);
        assert!(figure(&document, "/truth/p99_ms").is_err());
        assert!((pooled_median(&document, "itl_ms").unwrap() - 10.0).abs() < 1e-12);
        assert!(pooled_median(&document, "icl_ms").is_err());
    }

    #[test]
    fn names_are_chosen_in_order_and_must_exist() {
        let chosen = choose(&["accuracy", "startup"]).unwrap();
        assert_eq!(
            chosen.iter().map(|benchmark| benchmark.name).collect::<Vec<_>>(),
            ["accuracy", "startup"]
        );
        assert_eq!(choose(&["all"]).unwrap().len(), BENCHMARKS.len());
        assert!(choose(&["speed"]).is_err());
    }
}
