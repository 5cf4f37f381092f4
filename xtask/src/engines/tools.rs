//! The programs that the build needs, and running them with their output in a log.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

/// What the source package's metadata step needs; the newest of 2026-11.
const BUILD_PACKAGES: [&str; 4] = [
    "setuptools==84.2.1",
    "setuptools-scm==10.3.4",
    "wheel==0.48.0",
    "packaging==26.4",
];
/// Taken from the package index when the machine has no cmake.
const CMAKE_PACKAGE: &str = "cmake==4.4.5";
/// llama.cpp asks for 3.14; older ones are taken for absent.
const CMAKE_OLDEST: (u32, u32) = (3, 14);
/// How often a long step says that it lives.
const HEARTBEAT: Duration = Duration::from_mins(1);
/// Lines of a log that an error shows.
const TAIL_LINES: usize = 25;

/// Python and cmake, found.
pub(super) struct Tools {
    python: PathBuf,
    cmake: PathBuf,
}

impl Tools {
    /// Finds the compilers, makes the Python environment in `cache` and takes cmake from there if need be.
    pub(super) fn find(cache: &Path, work: &Path) -> Result<Self> {
        for (program, package) in [("cc", "gcc"), ("c++", "g++"), ("make", "make")] {
            if !answers(program) {
                bail!("failed to run `{program} --version`: install a C++ toolchain (Debian: {package})");
            }
        }
        let venv = cache.join("venv");
        let mut tools = Self {
            python: venv.join("bin/python"),
            cmake: PathBuf::from("cmake"),
        };
        let ready = venv.join("ready");
        if !ready.exists() {
            tools.make_venv(&venv, work)?;
            fs::write(&ready, "").with_context(|| format!("failed to write {}", ready.display()))?;
        }
        if cmake_version("cmake").is_none_or(|version| version < CMAKE_OLDEST) {
            tools.cmake = venv.join("bin/cmake");
            if !tools.cmake.exists() {
                println!("engines: no cmake on this machine, installing {CMAKE_PACKAGE} into the cache");
                tools.pip_install(&[CMAKE_PACKAGE], work)?;
            }
        }
        Ok(tools)
    }

    fn make_venv(&self, venv: &Path, work: &Path) -> Result<()> {
        if !answers("python3") {
            bail!("failed to run `python3 --version`: install Python 3.9 or newer with its venv module");
        }
        println!("engines: making a Python environment in {}", venv.display());
        let mut command = Command::new("python3");
        command.args(["-m", "venv", "--clear"]).arg(venv);
        self.run(command, work, "make a Python environment")
            .context("python3 needs its venv module with pip (Debian: python3-venv)")?;
        self.pip_install(&BUILD_PACKAGES, work)
    }

    fn pip_install(&self, packages: &[&str], work: &Path) -> Result<()> {
        let mut command = self.python();
        command
            .args([
                "-m",
                "pip",
                "install",
                "--disable-pip-version-check",
                "--no-input",
            ])
            .args(packages);
        self.run(command, work, &format!("install {}", packages.join(", ")))
    }

    /// A command that runs the environment's Python.
    pub(super) fn python(&self) -> Command {
        Command::new(&self.python)
    }

    /// A command that runs cmake.
    pub(super) fn cmake(&self) -> Command {
        Command::new(&self.cmake)
    }

    /// Runs `command` with its output in a log in `work`; `what` completes "failed to ...".
    #[expect(clippy::unused_self, reason = "nothing runs before the tools are known")]
    pub(super) fn run(&self, mut command: Command, work: &Path, what: &str) -> Result<()> {
        let log = work.join("log.txt");
        let out = File::create(&log).with_context(|| format!("failed to create {}", log.display()))?;
        let err = out.try_clone().context("failed to share a log")?;
        command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            // llama.cpp would take this repository's commit for its own.
            .env("GIT_CEILING_DIRECTORIES", work);
        let mut child = command.spawn().with_context(|| {
            format!(
                "failed to {what}: `{}` does not run",
                command.get_program().display()
            )
        })?;
        let started = Instant::now();
        let mut told = 0;
        let status = loop {
            if let Some(status) = child.try_wait().with_context(|| format!("failed to {what}"))? {
                break status;
            }
            thread::sleep(Duration::from_millis(100));
            let beats = started.elapsed().as_secs() / HEARTBEAT.as_secs();
            if beats > told {
                told = beats;
                let last = tail(&log, 1);
                println!("engines: {:4} s  {}", started.elapsed().as_secs(), last.trim());
            }
        };
        if status.success() {
            return Ok(());
        }
        Err(anyhow!(
            "failed to {what}: `{}` ended with {status}; the end of {}:\n{}",
            command.get_program().display(),
            log.display(),
            tail(&log, TAIL_LINES)
        ))
    }
}

/// Whether `program --version` runs.
fn answers(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success())
}

fn cmake_version(program: &str) -> Option<(u32, u32)> {
    let output = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    parse_cmake_version(&String::from_utf8_lossy(&output.stdout))
}

/// Reads the first line of `cmake --version`.
fn parse_cmake_version(text: &str) -> Option<(u32, u32)> {
    let version = text.lines().next()?.rsplit(' ').next()?;
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The last `lines` lines of a log, of which at most 16 KiB are read.
fn tail(log: &Path, lines: usize) -> String {
    const MOST: u64 = 16 * 1024;
    let read = || -> std::io::Result<String> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(MOST)))?;
        let mut bytes = Vec::new();
        file.take(MOST).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cmake_versions_are_read() {
        assert_eq!(parse_cmake_version("cmake version 3.25.1\n\nmore"), Some((3, 25)));
        assert_eq!(parse_cmake_version("cmake version 4.4.5"), Some((4, 4)));
        assert_eq!(parse_cmake_version("no such thing"), None);
        assert_eq!(parse_cmake_version(""), None);
    }

    #[test]
    fn the_end_of_a_log_is_shown() {
        let path = std::env::temp_dir().join(format!("xtask-tail-{}", std::process::id()));
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(tail(&path, 2), "two\nthree");
        assert_eq!(tail(&path, 9), "one\ntwo\nthree");
        fs::remove_file(&path).unwrap();
        assert_eq!(tail(&path, 2), "");
    }
}
