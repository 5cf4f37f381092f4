//! The edges between the crates, and the dependencies that few or none may have.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde::Deserialize;

use crate::metadata::{Dependency, Metadata, Package, root};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Law {
    edges: BTreeMap<String, BTreeSet<String>>,
    external: External,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct External {
    dev_only: BTreeSet<String>,
    never: BTreeSet<String>,
}

impl Law {
    fn read() -> Self {
        toml::from_str(&fs::read_to_string(root().join("xtask/edges.toml")).unwrap()).unwrap()
    }

    /// What breaks the law in these packages, one sentence each.
    fn breaches<'a>(&self, packages: impl Iterator<Item = &'a Package>) -> Vec<String> {
        let mut breaches = Vec::new();
        for package in packages {
            let name = short(&package.name);
            let Some(allowed) = self.edges.get(name) else {
                breaches.push(format!("{name} is not in xtask/edges.toml"));
                continue;
            };
            for dependency in &package.dependencies {
                let to = short(&dependency.name);
                let kind = dependency.kind.as_deref().unwrap_or("normal");
                if is_ours(&dependency.name) {
                    if !allowed.contains(to) {
                        breaches.push(format!("{name} must not depend on {to} ({kind})"));
                    }
                } else if self.external.never.contains(to) {
                    breaches.push(format!("{name} depends on {to}, which nothing may"));
                } else if kind != "dev" && self.external.dev_only.contains(to) {
                    breaches.push(format!("{name} depends on {to} outside its tests"));
                }
            }
        }
        breaches
    }
}

/// The binary's package, in `crates/cli`.
const BINARY: &str = "shakedown";
const PREFIX: &str = "shakedown-";

fn is_ours(name: &str) -> bool {
    name == BINARY || name.starts_with(PREFIX)
}

/// The name of a package as the table has it: its directory.
fn short(name: &str) -> &str {
    if name == BINARY {
        "cli"
    } else {
        name.strip_prefix(PREFIX).unwrap_or(name)
    }
}

fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
    Package {
        name: name.to_owned(),
        version: String::new(),
        id: String::new(),
        license: None,
        dependencies: dependencies
            .iter()
            .map(|(name, kind)| Dependency {
                name: (*name).to_owned(),
                kind: kind.map(str::to_owned),
            })
            .collect(),
    }
}

#[test]
fn crates_depend_only_along_the_edges() {
    let metadata = Metadata::workspace();
    let breaches = Law::read().breaches(metadata.members());
    assert!(breaches.is_empty(), "\n{}\n", breaches.join("\n"));
}

/// The table itself: arrows go one way, whatever crates exist yet.
#[test]
fn the_edges_have_no_cycle_and_no_unknown_end() {
    let edges = Law::read().edges;
    let mut settled: BTreeSet<&str> = BTreeSet::new();
    loop {
        let next: Vec<&str> = edges
            .iter()
            .filter(|(name, to)| {
                !settled.contains(name.as_str()) && to.iter().all(|to| settled.contains(to.as_str()))
            })
            .map(|(name, _)| name.as_str())
            .collect();
        if next.is_empty() {
            break;
        }
        settled.extend(next);
    }
    let stuck: Vec<&String> = edges
        .keys()
        .filter(|name| !settled.contains(name.as_str()))
        .collect();
    assert!(
        stuck.is_empty(),
        "in a cycle, or leading to a crate that is not listed: {stuck:?}"
    );
}

/// The oracle must not share code with its subject.
#[test]
fn the_practice_server_sees_nothing_but_the_model() {
    let law = Law::read();
    assert_eq!(law.edges["practice"], BTreeSet::from(["model".to_owned()]));
    assert!(law.edges["model"].is_empty() && law.edges["stats"].is_empty());
}

#[test]
fn a_breach_is_found_in_every_kind_of_dependency() {
    let law = Law::read();
    let guilty = [
        package("shakedown-stats", &[("shakedown-model", None)]),
        package("shakedown-practice", &[("shakedown-wire", Some("dev"))]),
        package("shakedown-report", &[("shakedown-host", Some("build"))]),
        package("shakedown-wire", &[("tokio", None), ("hyper", Some("dev"))]),
        package("shakedown-bench", &[("openssl", Some("dev"))]),
        package("shakedown-surprise", &[]),
        package("shakedown", &[("shakedown-wire", None)]),
        package("shakedown-model", &[("shakedown", Some("dev"))]),
    ];
    assert_eq!(
        law.breaches(guilty.iter()),
        [
            "stats must not depend on model (normal)",
            "practice must not depend on wire (dev)",
            "report must not depend on host (build)",
            "wire depends on tokio outside its tests",
            "bench depends on openssl, which nothing may",
            "surprise is not in xtask/edges.toml",
            "cli must not depend on wire (normal)",
            "model must not depend on cli (dev)",
        ]
    );
    let innocent = [package(
        "shakedown-bench",
        &[
            ("shakedown-wire", None),
            ("shakedown-stats", Some("dev")),
            ("tokio", Some("dev")),
        ],
    )];
    assert!(law.breaches(innocent.iter()).is_empty());
}
