//! Versions against requirements, known sets, tags; the CUDA builds of torch and what is compared with it.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifiers};
use shakedown_model::{Applicability, Confidence, Evidence, Finding, Verdict};

use super::Facts;
use crate::catalog::{Catalog, Known};
use crate::plan::torch_cuda;
use crate::python::{Distribution, Interpreter, Requirement, TagFault, check_tags, extension_tag};

/// Packages whose wrong version stops or bends a server; of others a conflict is a warning.
fn is_serving(package: &str) -> bool {
    use shakedown_model::StackGroup as G;
    matches!(
        Catalog::get().group(package),
        G::Engine | G::Kernels | G::Attention | G::Collectives | G::Framework | G::Cuda | G::Model
    )
}

pub(super) fn check(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    requirements(facts, findings);
    known_good(facts, findings);
    tags(facts, findings);
    torch_build(facts, findings);
    flashinfer(facts, findings);
    cudnn(facts, findings);
    hidden(facts, findings);
}

/// Extras that are asked for, package by package, followed to the end.
fn extras(facts: &Facts<'_>) -> BTreeMap<String, BTreeSet<String>> {
    let values = facts
        .environment
        .marker_values(&facts.stack.host.machine, facts.stack.host.kernel.as_deref());
    let mut wanted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    loop {
        let mut grew = false;
        for distribution in &facts.environment.distributions {
            let own = wanted.get(&distribution.name).cloned().unwrap_or_default();
            for requirement in &distribution.metadata.requires {
                let applies = requirement
                    .marker
                    .as_ref()
                    .is_none_or(|m| m.holds(&values, &own) == Some(true));
                if applies {
                    for extra in &requirement.extras {
                        grew |= wanted
                            .entry(requirement.name.clone())
                            .or_default()
                            .insert(extra.clone());
                    }
                }
            }
        }
        if !grew {
            return wanted;
        }
    }
}

fn requirements(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let values = facts
        .environment
        .marker_values(&facts.stack.host.machine, facts.stack.host.kernel.as_deref());
    let wanted = extras(facts);
    let none = BTreeSet::new();
    for distribution in &facts.environment.distributions {
        let own = wanted.get(&distribution.name).unwrap_or(&none);
        let mut said = BTreeSet::new();
        for requirement in &distribution.metadata.requires {
            if !said.insert(requirement.text.as_str()) {
                continue;
            }
            if let Some(marker) = &requirement.marker
                && marker.holds(&values, own) != Some(true)
            {
                continue;
            }
            requirement_of(facts, distribution, requirement, findings);
        }
        if let Some(range) = &distribution.metadata.requires_python
            && let (Ok(range), Ok(version)) = (
                VersionSpecifiers::from_str(range),
                Version::from_str(&values.python_full_version),
            )
            && !range.contains(&version)
        {
            findings.push(
                Finding::new(
                    "stack-python-tag",
                    Verdict::Fail,
                    &distribution.name,
                    format!(
                        "{} {} wants Python {range}, this is {version}",
                        distribution.name, distribution.version
                    ),
                )
                .evidence(Evidence::new(
                    metadata_of(distribution),
                    format!("Requires-Python: {range}"),
                )),
            );
        }
    }
}

fn metadata_of(distribution: &Distribution) -> String {
    distribution.info.join("METADATA").display().to_string()
}

fn requirement_of(
    facts: &Facts<'_>,
    distribution: &Distribution,
    requirement: &Requirement,
    findings: &mut Vec<Finding>,
) {
    let evidence = Evidence::new(
        metadata_of(distribution),
        format!("Requires-Dist: {}", requirement.text),
    );
    let serving = is_serving(&requirement.name);
    let Some(installed) = facts.environment.distribution(&requirement.name) else {
        findings.push(
            Finding::new(
                "stack-pin-missing",
                if serving { Verdict::Fail } else { Verdict::Warn },
                &requirement.name,
                format!(
                    "{} wants {}, which is not installed",
                    distribution.name,
                    requirement.short()
                ),
            )
            .why("importing what needs it fails, at the start or later")
            .evidence(evidence)
            .fix(
                "install it",
                Some(format!("pip install '{}'", requirement.short())),
                Applicability::Review,
            ),
        );
        return;
    };
    if requirement.allows(&installed.version) != Some(false) {
        return;
    }
    findings.push(
        Finding::new(
            "stack-pin-conflict",
            if serving && is_serving(&distribution.name) {
                Verdict::Fail
            } else {
                Verdict::Warn
            },
            &requirement.name,
            format!(
                "{} {} wants {}, {} is installed",
                distribution.name,
                distribution.version,
                requirement.short(),
                installed.version
            ),
        )
        .why("the engine was made for and tested with the other version")
        .evidence(evidence)
        .evidence(Evidence::new(
            metadata_of(installed),
            format!("Version: {}", installed.version),
        ))
        .fix(
            "install the version that is asked for",
            Some(format!("pip install '{}'", requirement.short())),
            Applicability::Review,
        ),
    );
}

/// The release's set, where the engine's own metadata does not ask for it.
fn known_good(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let Some((engine, version)) = facts.engine() else {
        return;
    };
    let Some(set) = Catalog::get().known_good(engine, version) else {
        return;
    };
    let own: BTreeSet<&str> = facts
        .environment
        .distribution(engine)
        .map(|d| d.metadata.requires.iter().map(|r| r.name.as_str()).collect())
        .unwrap_or_default();
    for text in &set.requires {
        let Some(requirement) = Requirement::parse(text) else {
            continue;
        };
        if own.contains(requirement.name.as_str()) {
            continue;
        }
        let Some(installed) = facts.environment.distribution(&requirement.name) else {
            continue;
        };
        if requirement.allows(&installed.version) == Some(false) {
            findings.push(
                Finding::new(
                    "stack-known-good",
                    Verdict::Warn,
                    &requirement.name,
                    format!(
                        "{engine} {version} was released with {text}, {} is installed",
                        installed.version
                    ),
                )
                .confidence(if set.known == Known::Unverified {
                    Confidence::Possible
                } else {
                    Confidence::Certain
                }),
            );
        }
    }
}

fn glibc(facts: &Facts<'_>) -> Option<(u32, u32)> {
    let (major, minor) = facts.stack.host.glibc.as_deref()?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn tags(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let interpreter = Interpreter::of(facts.environment, &facts.stack.host.machine, glibc(facts));
    for distribution in &facts.environment.distributions {
        let Err(fault) = check_tags(&distribution.tags, &interpreter) else {
            continue;
        };
        let evidence = Evidence::new(
            distribution.info.join("WHEEL").display().to_string(),
            format!("Tag: {}", distribution.tags.first().map_or("", String::as_str)),
        );
        let name = &distribution.name;
        let finding = match fault {
            TagFault::Python(tag) => Finding::new(
                "stack-python-tag",
                Verdict::Fail,
                name,
                format!(
                    "{name} is built for {tag}, this is Python 3.{}",
                    facts.environment.minor
                ),
            )
            .why("its extension modules are not even looked at by this interpreter"),
            TagFault::Machine(tag) => Finding::new(
                "stack-python-tag",
                Verdict::Fail,
                name,
                format!(
                    "{name} is built for {tag}, this machine is {}",
                    facts.stack.host.machine
                ),
            ),
            TagFault::Glibc((major, minor)) => Finding::new(
                "stack-glibc-too-old",
                Verdict::Fail,
                name,
                format!(
                    "{name} needs glibc {major}.{minor}, here is {}",
                    facts.stack.host.glibc.as_deref().unwrap_or("another")
                ),
            )
            .why("it was built on a newer system than this one"),
        };
        findings.push(finding.evidence(evidence).fix(
            "install a build for this system",
            Some(format!(
                "pip install --force-reinstall --no-deps '{name}=={}'",
                distribution.version
            )),
            Applicability::Review,
        ));
    }
    foreign_modules(facts, findings);
}

/// Extension modules for another Python in a package that has none for this one.
fn foreign_modules(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    for distribution in &facts.environment.distributions {
        if !distribution.tags.iter().all(|t| t.starts_with("py")) {
            continue;
        }
        let Some(record) = facts.verification.records.get(&distribution.info) else {
            continue;
        };
        let tags: BTreeSet<u32> = record
            .entries
            .iter()
            .filter(|e| e.path.ends_with(".so"))
            .filter_map(|e| extension_tag(e.path.rsplit('/').next()?))
            .collect();
        if !tags.is_empty() && !tags.contains(&facts.environment.minor) {
            let list: Vec<String> = tags.iter().map(|t| format!("3.{t}")).collect();
            findings.push(Finding::new(
                "stack-python-tag",
                Verdict::Fail,
                &distribution.name,
                format!(
                    "the extension modules of {} are for Python {}, this is 3.{}",
                    distribution.name,
                    list.join(", "),
                    facts.environment.minor
                ),
            ));
        }
    }
}

fn torch_build(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let Some(torch) = facts.version("torch") else {
        return;
    };
    let cuda = torch_cuda(facts.root, facts.environment);
    let needs_gpu = [
        "sgl-kernel",
        "sglang-kernel",
        "flashinfer-python",
        "flash-attn",
        "xformers",
    ]
    .iter()
    .find(|p| facts.version(p).is_some());
    let is_cpu = torch.contains("+cpu")
        || (cuda.is_none() && facts.environment.find(facts.root, "torch/version.py").is_some());
    if is_cpu && (needs_gpu.is_some() || !facts.sm.is_empty()) {
        findings.push(
            Finding::new(
                "stack-torch-cpu-only",
                Verdict::Fail,
                "torch",
                format!(
                    "torch {torch} is a CPU build{}",
                    needs_gpu
                        .map(|p| format!(", and {p} needs one for CUDA"))
                        .unwrap_or_default()
                ),
            )
            .why("it sees no GPU, and extensions built for CUDA do not load beside it")
            .evidence(Evidence::new("torch/version.py", "cuda = None"))
            .fix("install a CUDA build of torch", None, Applicability::Review),
        );
    }
    // Companions carry the same local tag where they carry one.
    for companion in ["torchvision", "torchaudio"] {
        let Some(version) = facts.version(companion) else {
            continue;
        };
        if let (Some((_, mine)), Some((_, theirs))) = (torch.split_once('+'), version.split_once('+'))
            && mine != theirs
        {
            findings.push(Finding::new(
                "stack-local-tags-differ",
                Verdict::Warn,
                companion,
                format!("torch is +{mine}, {companion} is +{theirs}"),
            ));
        }
    }
}

fn flashinfer(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let Some(python) = facts.version("flashinfer-python") else {
        return;
    };
    for part in ["flashinfer-cubin", "flashinfer-jit-cache"] {
        let Some(version) = facts.version(part) else {
            continue;
        };
        let public = version.split('+').next().unwrap_or(version);
        if public == python.split('+').next().unwrap_or(python) {
            continue;
        }
        let disabled = facts
            .variables
            .get("FLASHINFER_DISABLE_VERSION_CHECK")
            .is_some_and(|v| v != "0" && !v.is_empty());
        findings.push(
            Finding::new(
                "stack-flashinfer-trio",
                if disabled { Verdict::Warn } else { Verdict::Fail },
                part,
                format!("{part} {version} beside flashinfer-python {python}"),
            )
            .why(if disabled {
                "flashinfer's own check of this is turned off: kernels may not match their callers"
            } else {
                "importing flashinfer raises an error about it"
            })
            .fix(
                "install the same version of both",
                Some(format!("pip install --no-deps '{part}=={python}'")),
                Applicability::Review,
            ),
        );
    }
}

/// SGLang 0.5.6 to 0.5.9 refuse multimodal models with torch 2.9.1 and a cuDNN below 9.15 (pytorch#168167).
fn cudnn(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let (Some(sglang), Some(torch)) = (facts.version("sglang"), facts.version("torch")) else {
        return;
    };
    let affected = ["0.5.6", "0.5.7", "0.5.8", "0.5.9"]
        .iter()
        .any(|v| sglang == *v || sglang.starts_with(&format!("{v}.")));
    if !affected || torch.split('+').next() != Some("2.9.1") {
        return;
    }
    let major = torch_cuda(facts.root, facts.environment).map_or(12, |(m, _)| m);
    let package = format!("nvidia-cudnn-cu{major}");
    let Some(version) = facts.version(&package) else {
        return;
    };
    let old = Version::from_str(version).is_ok_and(|v| v < Version::new([9, 15]));
    if !old {
        return;
    }
    let multimodal = facts.launch.as_ref().and_then(|l| l.multimodal);
    if multimodal == Some(false) {
        return;
    }
    let off = facts
        .variables
        .get("SGLANG_DISABLE_CUDNN_CHECK")
        .is_some_and(|v| v != "0" && !v.is_empty());
    findings.push(
        Finding::new(
            "stack-cudnn-check",
            if multimodal == Some(true) && !off {
                Verdict::Fail
            } else {
                Verdict::Info
            },
            &package,
            format!(
                "SGLang {sglang} refuses multimodal models with torch 2.9.1 and cuDNN {version} (below 9.15)"
            ),
        )
        .why("Conv3d is slow and memory-hungry with that pair; text-only models are not affected")
        .evidence(Evidence::new(&package, version))
        .fix(
            "install a newer cuDNN, which torch's own pin does not ask for",
            Some(format!("pip install --no-deps '{package}==9.16.0.29'")),
            Applicability::Review,
        ),
    );
}

/// A second distribution of the same name behind the first.
fn hidden(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    for behind in &facts.environment.hidden {
        let Some(first) = facts.environment.distribution(&behind.name) else {
            continue;
        };
        let same_place = first.site == behind.site;
        if first.version == behind.version || (!same_place && !is_serving(&behind.name)) {
            continue;
        }
        findings.push(
            Finding::new(
                "stack-duplicate",
                if same_place { Verdict::Warn } else { Verdict::Info },
                &behind.name,
                format!(
                    "{} is there twice: {} and {}",
                    behind.name, first.version, behind.version
                ),
            )
            .evidence(Evidence::new(first.info.display().to_string(), &first.version))
            .evidence(Evidence::new(behind.info.display().to_string(), &behind.version)),
        );
    }
}
