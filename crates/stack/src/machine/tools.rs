//! CUDA toolkits and the programs that compile at run time. Nothing is run: versions come from files.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use shakedown_model::{StackTool, StackToolkit};

use crate::python::{Environment, Variables};
use crate::root::Root;

const MAX_JSON: u64 = 1 << 20;

#[derive(Deserialize)]
struct VersionFile {
    cuda: VersionEntry,
}

#[derive(Deserialize)]
struct VersionEntry {
    version: String,
}

fn toolkit_version(root: &Root, path: &Path) -> Option<String> {
    let json = root.read(&path.join("version.json"), MAX_JSON).ok();
    if let Some(file) = json.and_then(|b| serde_json::from_slice::<VersionFile>(&b).ok()) {
        return Some(file.cuda.version);
    }
    // `#define CUDA_VERSION 12080` of cuda.h, thousands for the major and tens for the minor number.
    let header = root.read_text(&path.join("include/cuda.h"), 8 << 20).ok()?;
    let line = header.lines().find(|l| l.starts_with("#define CUDA_VERSION "))?;
    let number: u32 = line.split_whitespace().nth(2)?.parse().ok()?;
    Some(format!("{}.{}", number / 1000, number % 1000 / 10))
}

/// The toolkits of a machine, those that something selects first.
pub fn read_toolkits(root: &Root, variables: &Variables) -> Vec<StackToolkit> {
    let mut found: Vec<(PathBuf, Vec<String>)> = Vec::new();
    let mut note = |path: PathBuf, by: Option<String>| {
        if !root.is_dir(&path) {
            return;
        }
        let real = root.resolve(&path).unwrap_or(path);
        match found.iter_mut().find(|(p, _)| *p == real) {
            Some((_, selected)) => selected.extend(by),
            None => found.push((real, by.into_iter().collect())),
        }
    };
    for name in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(path) = variables.get(name) {
            note(PathBuf::from(path), Some(name.to_owned()));
        }
    }
    for dir in variables.get("PATH").map(|p| p.split(':')).into_iter().flatten() {
        let nvcc = Path::new(dir).join("nvcc");
        if root.is_file(&nvcc)
            && let Some(home) = root
                .resolve(&nvcc)
                .ok()
                .and_then(|p| Some(p.parent()?.parent()?.to_owned()))
        {
            note(home, Some("PATH".to_owned()));
            break;
        }
    }
    note(
        PathBuf::from("/usr/local/cuda"),
        Some("/usr/local/cuda".to_owned()),
    );
    for path in root.matching(Path::new("/usr/local"), "cuda-*") {
        note(path, None);
    }
    found
        .into_iter()
        .map(|(path, selected_by)| StackToolkit {
            version: toolkit_version(root, &path),
            nvcc: root.is_file(&path.join("bin/nvcc")),
            path: path.display().to_string(),
            selected_by,
        })
        .filter(|t| t.version.is_some() || t.nvcc)
        .collect()
}

/// The version that a program carries in its own bytes after a marker, for programs of bounded size.
fn embedded_version(root: &Root, path: &Path, marker: &[u8]) -> Option<String> {
    let bytes = root.read(path, 256 << 20).ok()?;
    let at = find(&bytes, marker)? + marker.len();
    let text: String = bytes
        .get(at..at + 16)?
        .iter()
        .take_while(|b| b.is_ascii_digit() || **b == b'.')
        .map(|b| char::from(*b))
        .collect();
    (!text.is_empty()).then(|| text.trim_end_matches('.').to_owned())
}

/// Position of `needle`: candidates by its first byte.
fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    let mut from = 0;
    while let Some(at) = bytes.get(from..)?.iter().position(|b| *b == first) {
        if bytes.get(from + at..)?.starts_with(needle) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

/// The programs that the stack compiles with at run time. `cached` keeps versions that are costly to read.
pub fn read_tools(
    root: &Root,
    environment: Option<&Environment>,
    variables: &Variables,
    cached: &mut dyn FnMut(&Path, &mut dyn FnMut() -> String) -> String,
) -> Vec<StackTool> {
    let mut tools = Vec::new();
    let mut dirs: Vec<PathBuf> = environment.map(|e| e.prefix.join("bin")).into_iter().collect();
    let path = variables
        .get("PATH")
        .map_or("/usr/local/bin:/usr/bin:/bin", String::as_str);
    dirs.extend(path.split(':').filter(|d| d.starts_with('/')).map(PathBuf::from));
    for name in ["gcc", "cc", "clang", "g++", "ninja", "nvcc"] {
        if let Some(found) = dirs.iter().map(|d| d.join(name)).find(|p| root.is_file(p)) {
            // Debian's gcc is a link whose name carries the major version.
            let version = root.resolve(&found).ok().and_then(|real| {
                let file = real.file_name()?.to_str()?.to_owned();
                let (_, version) = file.rsplit_once('-')?;
                version
                    .chars()
                    .all(|c| c.is_ascii_digit() || c == '.')
                    .then(|| version.to_owned())
            });
            tools.push(StackTool {
                name: name.to_owned(),
                path: found.display().to_string(),
                version,
            });
        }
    }
    let mut assemblers: Vec<(String, PathBuf)> = Vec::new();
    if let Some(environment) = environment {
        for site in &environment.path.sites {
            for file in root.matching(&site.join("triton/backends/nvidia/bin"), "ptxas*") {
                let name = file
                    .file_name()
                    .map(|n| n.to_string_lossy().into_owned())
                    .unwrap_or_default();
                assemblers.push((format!("triton {name}"), file));
            }
        }
        let header = environment
            .base_prefix
            .join(format!("include/python3.{}/Python.h", environment.minor));
        if root.is_file(&header) {
            tools.push(StackTool {
                name: "Python.h".to_owned(),
                path: header.display().to_string(),
                version: None,
            });
        }
    }
    if let Some(found) = dirs.iter().map(|d| d.join("ptxas")).find(|p| root.is_file(p)) {
        assemblers.push(("ptxas".to_owned(), found));
    }
    for (name, file) in assemblers {
        let mut read =
            || embedded_version(root, &file, b"Cuda compilation tools, release ").unwrap_or_default();
        let version = cached(&file, &mut read);
        tools.push(StackTool {
            name,
            path: file.display().to_string(),
            version: (!version.is_empty()).then_some(version),
        });
    }
    tools
}
