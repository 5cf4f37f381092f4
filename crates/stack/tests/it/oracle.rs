//! The truth about an extension: a Python that imports what comes before, then opens it with `RTLD_NOW` and reads its
//! own maps.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use shakedown_stack::elf::Image;
use shakedown_stack::loader::{Fault, Opened};

const SCRIPT: &str = r#"
import ctypes, json, os, sys
def maps():
    with open("/proc/self/maps") as f:
        return sorted({l[l.index("/"):].strip() for l in f if "/" in l and ".so" in l})
for name in sys.argv[2].split(","):
    if name:
        __import__(name)
before = maps()
error = None
try:
    ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW)
except OSError as e:
    error = str(e)
print("ORACLE" + json.dumps({"before": before, "error": error, "after": maps()}))
"#;

#[derive(Debug, Deserialize)]
pub struct Truth {
    pub before: Vec<PathBuf>,
    pub error: Option<String>,
    pub after: Vec<PathBuf>,
}

/// Asks the interpreter. An error if even the imports fail, or if it dies.
pub fn ask(python: &Path, imports: &str, file: &Path, variables: &[(&str, String)]) -> Result<Truth, String> {
    let mut command = Command::new(python);
    command.arg("-c").arg(SCRIPT).arg(file).arg(imports);
    for name in ["LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "CUDA_HOME"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().map(|(k, v)| (k, v)));
    let output = command.output().expect("python runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|l| l.strip_prefix("ORACLE"));
    line.and_then(|l| serde_json::from_str(l).ok())
        .ok_or_else(|| format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// A directory with a `libcuda.so.1` that defines what `files` ask of the driver, and nothing else.
pub fn driver_stub(directory: &Path, files: &[PathBuf]) -> PathBuf {
    let mut names = BTreeSet::new();
    for file in files {
        let Ok(image) = Image::read(std::fs::File::open(file).unwrap()) else {
            continue;
        };
        for undefined in image.undefined() {
            let name = undefined.name;
            let driver = |prefix: &str| {
                name.strip_prefix(prefix)
                    .and_then(|r| r.chars().next())
                    .is_some_and(|c| c.is_ascii_uppercase())
            };
            if driver("cu") || driver("nvml") {
                names.insert(name);
            }
        }
    }
    let source: String = names
        .iter()
        .map(|n| format!("int {n}(void) {{ return 100; }}\n"))
        .collect();
    super::support::compile(directory, "libcuda.so.1", &source, &["-Wl,-soname,libcuda.so.1"]);
    directory.to_owned()
}

/// Why our answer is not the interpreter's; nothing if it is.
pub fn disagreement(ours: &Opened, truth: &Truth, stub: Option<&Path>) -> Option<String> {
    match &truth.error {
        Some(error) => {
            if ours.loads() {
                return Some(format!("we say it loads, the loader says: {error}"));
            }
            let named = ours.faults.iter().any(|fault| match fault {
                Fault::Missing { library, .. } => error.contains(library.as_str()),
                Fault::Undefined { symbol, .. } => error.contains(symbol.as_str()),
                Fault::Version { version, .. } => error.contains(version.as_str()),
                Fault::Unreadable { path, .. } => error.contains(&*path.to_string_lossy()),
            });
            (!named).then(|| format!("other reasons: {:?} against {error}", ours.faults.first()))
        }
        None => {
            if !ours.loads() {
                return Some(format!(
                    "the loader loads it, we say {:?} {:?}",
                    ours.faults.first(),
                    ours.unknown
                ));
            }
            let ours: BTreeSet<&PathBuf> = ours.new.iter().map(|(_, real)| real).collect();
            let before: BTreeSet<&PathBuf> = truth.before.iter().collect();
            let after: BTreeSet<&PathBuf> = truth.after.iter().collect();
            let invented: Vec<_> = ours.difference(&after).collect();
            let missed: Vec<_> = after
                .difference(&before)
                .filter(|p| !ours.contains(*p) && !stub.is_some_and(|s| p.starts_with(s)))
                .collect();
            (!invented.is_empty() || !missed.is_empty())
                .then(|| format!("other files: ours only {invented:?}, the loader's only {missed:?}"))
        }
    }
}
