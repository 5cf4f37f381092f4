//! Files stay small enough to be read in one sitting.

use std::fs;
use std::path::{Path, PathBuf};

use crate::metadata::root;

/// A file of more lines than this asks to be split.
const SOFT: usize = 500;
/// No file may have more lines than this.
const HARD: usize = 800;
/// `main.rs` of the binary has fewer lines than this: it has no logic.
const MAIN: usize = 25;

/// Lines of a source before its unit tests.
fn code_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    lines
        .iter()
        .position(|line| line.trim_end() == "#[cfg(test)]")
        .filter(|at| {
            lines
                .get(at + 1)
                .is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
        })
        .unwrap_or(lines.len())
}

fn sources(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

#[test]
fn no_source_file_passes_the_hard_cap() {
    let root = root();
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let src = entry.unwrap().path().join("src");
        if src.is_dir() {
            sources(&src, &mut files);
        }
    }
    sources(&root.join("xtask/src"), &mut files);
    assert!(files.len() > 10, "looked in the wrong place");

    let mut long: Vec<(usize, String)> = files
        .iter()
        .map(|path| {
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            (code_lines(&fs::read_to_string(path).unwrap()), name)
        })
        .filter(|(lines, _)| *lines > SOFT)
        .collect();
    long.sort_by(|a, b| b.cmp(a));
    for (lines, name) in &long {
        println!("{name} has {lines} lines: more than {SOFT} ask to be split");
    }
    let too_long: Vec<&(usize, String)> = long.iter().filter(|(lines, _)| *lines > HARD).collect();
    assert!(too_long.is_empty(), "more than {HARD} lines: {too_long:?}");
}

#[test]
fn the_binary_has_no_logic() {
    let path = root().join("crates/cli/src/main.rs");
    if !root().join("crates/cli").exists() {
        println!("skipped: there is no binary yet");
        return;
    }
    let text = fs::read_to_string(&path).unwrap();
    let lines = text.lines().count();
    assert!(lines < MAIN, "{} has {lines} lines", path.display());
}

#[test]
fn unit_tests_do_not_count() {
    let code = "//! Doc.\nfn a() {}\n";
    let tests = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn b() {}\n}\n";
    assert_eq!(code_lines(code), 2);
    assert_eq!(code_lines(&format!("{code}{tests}")), 2);
    let elsewhere = "#[cfg(test)]\nuse std::fs;\nfn a() {}\n";
    assert_eq!(code_lines(elsewhere), 3, "only a module of tests ends the code");
}
