//! The licences of everything that is built, against the list in `deny.toml`.

use std::collections::BTreeSet;
use std::fs;

use crate::metadata::{Metadata, root};

/// The `licenses.allow` list of `deny.toml`.
fn allowed() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("deny.toml")).unwrap();
    let document: toml::Table = toml::from_str(&text).unwrap();
    document["licenses"]["allow"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap().to_owned())
        .collect()
}

/// Whether an SPDX expression can be met with allowed licences: every term of an AND, one of an OR. `/` is the old
/// spelling of OR, and `X WITH exception` is met only when it is listed as such.
fn met(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let answer = any(&words, &mut at, allowed);
    answer && at == words.len()
}

fn any(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut answer = all(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        answer |= all(words, at, allowed);
    }
    answer
}

fn all(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut answer = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        answer &= one(words, at, allowed);
    }
    answer
}

fn one(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let word = words.get(*at);
    *at += 1;
    // Past the end, where something should stand: `met` sees that `at` went too far.
    let Some(word) = word else {
        return false;
    };
    if *word == "(" {
        let answer = any(words, at, allowed);
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return answer && closed;
    }
    if words.get(*at) == Some(&"WITH") {
        let exception = words.get(*at + 1).copied().unwrap_or_default();
        *at += 2;
        return allowed.contains(&format!("{word} WITH {exception}"));
    }
    allowed.contains(*word)
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let allowed = allowed();
    let metadata = Metadata::resolved();
    assert!(metadata.packages.len() > 20, "nothing was resolved");
    let refused: Vec<String> = metadata
        .packages
        .iter()
        .filter(|package| {
            !package
                .license
                .as_deref()
                .is_some_and(|expression| met(expression, &allowed))
        })
        .map(|package| format!("{} {}: {:?}", package.name, package.version, package.license))
        .collect();
    assert!(refused.is_empty(), "\n{}\n", refused.join("\n"));
}

#[test]
fn expressions_are_read_as_spdx_says() {
    let allowed: BTreeSet<String> = ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_owned).into();
    for good in [
        "MIT",
        "MIT OR GPL-3.0",
        "GPL-3.0/MIT",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "GPL-3.0 OR (MIT AND Apache-2.0)",
        "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
    ] {
        assert!(met(good, &allowed), "{good}");
    }
    for bad in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT OR Apache-2.0) AND GPL-3.0",
        "Apache-2.0 WITH LLVM-exception",
        "MIT OR",
        "(MIT",
        "MIT Apache-2.0",
    ] {
        assert!(!met(bad, &allowed), "{bad}");
    }
}
