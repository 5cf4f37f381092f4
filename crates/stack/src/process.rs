//! A running process: its variables, its interpreter and the libraries that it really mapped.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::python::{EnvError, Environment, Variables};
use crate::root::Root;

/// Bytes of `/proc/PID/environ`, `cmdline` and `maps` that anything real has fewer of.
const MAX_ENVIRON: u64 = 4 << 20;
const MAX_MAPS: u64 = 64 << 20;

fn read(pid: u32, name: &str, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(format!("/proc/{pid}/{name}"))?
        .take(limit)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The variables that a process was started with.
pub fn variables(pid: u32) -> std::io::Result<Variables> {
    let bytes = read(pid, "environ", MAX_ENVIRON)?;
    Ok(bytes
        .split(|b| *b == 0)
        .filter_map(|entry| {
            let text = String::from_utf8_lossy(entry);
            let (name, value) = text.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        })
        .collect())
}

/// The ELF files that a process has mapped, by path as seen from inside it.
pub fn mapped(pid: u32) -> std::io::Result<Vec<PathBuf>> {
    Ok(parse_maps(&String::from_utf8_lossy(&read(
        pid, "maps", MAX_MAPS,
    )?)))
}

fn parse_maps(text: &str) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    for line in text.lines() {
        // address, permissions, offset, device, inode, path
        let mut fields = line.splitn(6, ' ');
        let executable = fields.nth(1).is_some_and(|p| p.contains('x'));
        let path = line.find('/').and_then(|at| line.get(at..)).unwrap_or_default();
        let path = path.strip_suffix(" (deleted)").unwrap_or(path);
        if executable && path.contains(".so") {
            seen.insert(PathBuf::from(path));
        }
    }
    seen.into_iter().collect()
}

/// The root that a process lives in, and the environment that it runs, with its variables.
pub fn environment(pid: u32) -> Result<(Root, Environment, Variables), EnvError> {
    let inside = PathBuf::from(format!("/proc/{pid}/root"));
    // A process in our own mount namespace sees what we see; its root need not be entered, which may not be allowed.
    let same = std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok()
        == std::fs::read_link("/proc/self/ns/mnt").ok()
        && std::fs::read_link(&inside).is_ok_and(|r| r == Path::new("/"));
    let root = if same { Root::new("/") } else { Root::new(inside) };
    let variables = variables(pid).unwrap_or_default();
    let lost = || EnvError::NoPython {
        place: PathBuf::from(format!("/proc/{pid}")),
    };
    // A native module of some site directory that is mapped tells most surely.
    let from_maps = mapped(pid).unwrap_or_default().into_iter().find_map(|path| {
        let text = path.to_string_lossy().into_owned();
        let at = text.find("/lib/python3.")?;
        text.get(at..)?
            .contains("/site-packages/")
            .then(|| PathBuf::from(text.get(..at).unwrap_or_default()))
    });
    if let Some(prefix) = from_maps
        && let Ok(found) = Environment::of_prefix(&root, &prefix, &variables)
    {
        return Ok((root, found, variables));
    }
    let line = read(pid, "cmdline", MAX_ENVIRON).unwrap_or_default();
    let first = String::from_utf8_lossy(line.split(|b| *b == 0).next().unwrap_or_default()).into_owned();
    let mut candidates = Vec::new();
    if first.starts_with('/') {
        candidates.push(PathBuf::from(&first));
    } else if !first.is_empty() && !first.contains('/') {
        let dirs = variables.get("PATH").map(|p| p.split(':')).into_iter().flatten();
        candidates.extend(dirs.map(|d| Path::new(d).join(&first)));
    }
    candidates.extend(std::fs::read_link(format!("/proc/{pid}/exe")));
    for python in candidates.into_iter().filter(|c| root.is_file(c)) {
        if let Ok(found) = Environment::of_interpreter(&root, &python, &variables) {
            return Ok((root, found, variables));
        }
    }
    Err(lost())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_lines() {
        let text = "7f00-7f10 r-xp 00000000 08:01 12   /opt/a b/libx.so.1\n7f10-7f20 r--p 00000000 08:01 12   /opt/liby.so\n\
            7f20-7f30 r-xp 00000000 08:01 13   /opt/libz.so (deleted)\n7ffd-7ffe r-xp 00000000 00:00 0   [vdso]\n";
        assert_eq!(
            parse_maps(text),
            ["/opt/a b/libx.so.1", "/opt/libz.so"].map(PathBuf::from)
        );
    }

    #[test]
    fn this_process() {
        let maps = mapped(std::process::id()).unwrap();
        assert!(
            maps.iter().any(|m| m.to_string_lossy().contains("libc.so")),
            "{maps:?}"
        );
        assert!(variables(std::process::id()).unwrap().contains_key("PATH"));
    }
}
