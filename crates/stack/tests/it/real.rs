//! Real wheels: numpy where the machine has it, and, outside CI, the environments that `SHAKEDOWN_STACK_PAIRS` names.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use shakedown_stack::plan::Loader;
use shakedown_stack::python::{Environment, Variables};
use shakedown_stack::{Catalog, Root};

use super::oracle::{ask, disagreement, driver_stub};

/// The interpreter's own extension modules: every one of them is loaded by our rules as by the loader.
#[test]
fn the_interpreters_own_modules() {
    let root = Root::new("/");
    let found = std::process::Command::new("python3")
        .args([
            "-c",
            "import sys,sysconfig;print(sys.executable);print(sysconfig.get_path('platstdlib'))",
        ])
        .output();
    let Ok(output) = found else {
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    let python = PathBuf::from(lines.next().unwrap());
    let modules = Path::new(lines.next().unwrap()).join("lib-dynload");
    let environment = Environment::of_interpreter(&root, &python, &Variables::new()).unwrap();
    let variables = Variables::new();
    let loader = Loader::new(&root, &environment, &variables, &[]);
    let mut compared = 0;
    for entry in std::fs::read_dir(&modules).unwrap().flatten().take(12) {
        let file = entry.path();
        let (ours, unknown) = loader.verdict(&[], &file);
        assert!(unknown.is_empty(), "{unknown:?}");
        let truth = ask(&python, "", &file, &[]).expect("the interpreter answers");
        assert_eq!(
            disagreement(&ours.unwrap(), &truth, None),
            None,
            "{}",
            file.display()
        );
        compared += 1;
    }
    assert!(compared > 0 || !modules.exists());
}

struct Row {
    torch: String,
    extension: String,
    ours: String,
    truth: String,
    agree: Option<String>,
}

fn sentence(text: &str) -> String {
    let text = text.replace('|', "/");
    text.chars().take(110).collect()
}

/// All pairs of a directory: `TORCH/` are virtual environments, `x/NAME==VERSION/` are installed packages.
#[test]
#[ignore = "needs real wheels: SHAKEDOWN_STACK_PAIRS names their directory, SHAKEDOWN_STACK_TABLE the table to write"]
fn real_pairs() {
    let base = PathBuf::from(std::env::var("SHAKEDOWN_STACK_PAIRS").unwrap());
    let root = Root::new("/");
    let mut rows = Vec::new();
    for torch in ["t2.8.0", "sglang", "t2.11.0"] {
        let prefix = base.join(torch);
        let mut packages: Vec<_> = std::fs::read_dir(base.join("x"))
            .unwrap()
            .flatten()
            .map(|e| e.path())
            .collect();
        packages.sort();
        for package in packages {
            let label = package.file_name().unwrap().to_string_lossy().into_owned();
            let (name, version) = label.split_once("==").unwrap();
            let Some(plan) = Catalog::get().plan(name, version) else {
                continue;
            };
            let overlay = package.display().to_string();
            let variables: Variables = BTreeMap::from([("PYTHONPATH".to_owned(), overlay.clone())]);
            let environment = Environment::of_prefix(&root, &prefix, &variables).unwrap();
            let torch_version = environment.distribution("torch").unwrap().version.clone();
            let loader = Loader::new(&root, &environment, &variables, &[]);
            let files: Vec<PathBuf> = plan
                .extension
                .iter()
                .flat_map(|e| root.glob(&package, &e.files))
                .filter(|f| f.to_string_lossy().ends_with(".so"))
                .collect();
            let stub_dir = tempfile::tempdir().unwrap();
            let stub = driver_stub(stub_dir.path(), &files);
            for file in files {
                let (ours, unknown) = loader.verdict(&plan.first, &file);
                assert!(unknown.is_empty(), "{unknown:?}");
                let ours = ours.unwrap();
                let truth = ask(
                    &prefix.join("bin/python"),
                    &plan.first.join(","),
                    &file,
                    &[
                        ("PYTHONPATH", overlay.clone()),
                        ("LD_LIBRARY_PATH", stub.display().to_string()),
                    ],
                );
                // Every library and symbol was found, and a constructor of the extension ended the process: it loads,
                // and its ABI does not fit, which is more than the loader can say.
                let truth = match truth {
                    Ok(truth) => truth,
                    Err(died) => {
                        rows.push(Row {
                            torch: torch_version.clone(),
                            extension: format!("{label} {}", file.strip_prefix(&package).unwrap().display()),
                            ours: if ours.loads() {
                                "loads".to_owned()
                            } else {
                                "does not load".to_owned()
                            },
                            truth: format!("linked, then died: {}", died.lines().next().unwrap_or_default()),
                            agree: (!died.starts_with("signal") || !ours.loads()).then_some(died),
                        });
                        continue;
                    }
                };
                rows.push(Row {
                    torch: torch_version.clone(),
                    extension: format!("{label} {}", file.strip_prefix(&package).unwrap().display()),
                    ours: match ours.faults.first() {
                        None => format!("loads, {} files", ours.new.len()),
                        Some(fault) => shakedown_stack::check::describe(fault),
                    },
                    truth: truth.error.clone().map_or_else(
                        || "loads".to_owned(),
                        |e| e.rsplit('/').next().unwrap_or_default().to_owned(),
                    ),
                    agree: disagreement(&ours, &truth, Some(&stub)),
                });
            }
        }
    }
    let mut table =
        String::from("| torch | extension | our verdict | the loader's | agree |\n|---|---|---|---|---|\n");
    for row in &rows {
        let agree = if row.agree.is_none() { "yes" } else { "**no**" };
        writeln!(
            table,
            "| {} | {} | {} | {} | {agree} |",
            row.torch,
            row.extension,
            sentence(&row.ours),
            sentence(&row.truth)
        )
        .unwrap();
    }
    if let Ok(path) = std::env::var("SHAKEDOWN_STACK_TABLE") {
        std::fs::write(path, &table).unwrap();
    }
    println!("{table}");
    let wrong: Vec<_> = rows
        .iter()
        .filter_map(|r| Some(format!("{} {}: {}", r.torch, r.extension, r.agree.as_ref()?)))
        .collect();
    assert!(rows.len() >= 20, "{} pairs", rows.len());
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
}
