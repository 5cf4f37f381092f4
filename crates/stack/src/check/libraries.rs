//! Libraries, versions and symbols of every extension, from what the loader would say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use shakedown_model::{Applicability, Confidence, Evidence, Finding, Loads, Verdict};

use super::Facts;
use crate::loader::Fault;
use crate::plan::{Judged, torch_cuda};

/// Symbols that are named in a finding; the others are counted.
const NAMED: usize = 3;

/// One fault in one sentence.
pub fn describe(fault: &Fault) -> String {
    match fault {
        Fault::Missing {
            library, needed_by, ..
        } if needed_by.as_os_str().is_empty() => {
            format!("{library} is not found")
        }
        Fault::Missing {
            library, needed_by, ..
        } => {
            format!("{library} is not found, needed by {}", file_name(needed_by))
        }
        Fault::Unreadable { path, why } => format!("{}: {why}", path.display()),
        Fault::Version {
            version,
            library,
            needed_by,
        } => {
            format!(
                "{} lacks version {version}, needed by {}",
                file_name(library),
                file_name(needed_by)
            )
        }
        Fault::Undefined {
            symbol, needed_by, ..
        } => {
            format!(
                "undefined symbol {}, needed by {}",
                demangle(symbol),
                file_name(needed_by)
            )
        }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(
        || path.display().to_string(),
        |n| n.to_string_lossy().into_owned(),
    )
}

/// A C++ name as it is written, shortened; other names as they are.
pub(crate) fn demangle(symbol: &str) -> String {
    let options = cpp_demangle::DemangleOptions::default();
    let text = cpp_demangle::Symbol::new(symbol)
        .ok()
        .and_then(|s| s.demangle_with_options(&options).ok())
        .unwrap_or_else(|| symbol.to_owned());
    match text.char_indices().nth(160) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Stem and major number of a library name: `libnvrtc.so.12` is (`libnvrtc.so`, 12).
pub(crate) fn stem_and_major(name: &str) -> Option<(&str, u32)> {
    let at = name.find(".so.")?;
    let major: String = name
        .get(at + 4..)?
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    Some((name.get(..at + 3)?, major.parse().ok()?))
}

/// CUDA libraries whose number is that of CUDA's major version, and the wheels that bring them.
const CUDA_LIBRARIES: [(&str, &str, &str); 4] = [
    ("libcudart.so", "nvidia-cuda-runtime", "cuda_runtime"),
    ("libnvrtc.so", "nvidia-cuda-nvrtc", "cuda_nvrtc"),
    ("libcublas.so", "nvidia-cublas", "cublas"),
    ("libcublasLt.so", "nvidia-cublas", "cublas"),
];

fn wheel_of(library: &str) -> Option<String> {
    let (stem, major) = stem_and_major(library)?;
    let (_, package, _) = CUDA_LIBRARIES.iter().find(|(s, _, _)| *s == stem)?;
    Some(if major <= 12 {
        format!("{package}-cu{major}")
    } else {
        format!("'{package}=={major}.*'")
    })
}

pub(super) fn check(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    steps(facts, findings);
    none_of(facts, findings);
    missing(facts, findings);
    versions(facts, findings);
    symbols(facts, findings);
    mixed(facts, findings);
    unknown(facts, findings);
}

/// What stops a package before any extension: torch itself does not load.
fn steps(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let mut said = BTreeSet::new();
    for (package, fault) in &facts.judgement.step_faults {
        // One word about each library, however many files need it.
        let what = match fault {
            Fault::Missing { library, .. } => library.clone(),
            Fault::Version { library, .. } => library.display().to_string(),
            Fault::Undefined { needed_by, .. } => needed_by.display().to_string(),
            Fault::Unreadable { path, .. } => path.display().to_string(),
        };
        if !said.insert((package, what)) {
            continue;
        }
        let mut finding = Finding::new(
            match fault {
                Fault::Missing { .. } => "stack-library-missing",
                Fault::Version { .. } => "stack-version-missing",
                Fault::Undefined { .. } => "stack-symbol-undefined",
                Fault::Unreadable { .. } => "stack-file-unreadable",
            },
            Verdict::Fail,
            package,
            format!("importing {package} fails: {}", describe(fault)),
        )
        .why("nothing that needs it can be loaded");
        if let Fault::Missing {
            library, needed_by, ..
        } = fault
        {
            finding = finding.evidence(Evidence::new(
                needed_by.display().to_string(),
                format!("needs {library}"),
            ));
            if let Some(wheel) = wheel_of(library) {
                finding = finding.fix(
                    format!("install the wheel that brings {library}"),
                    Some(format!("pip install {wheel}")),
                    Applicability::Review,
                );
            }
        }
        findings.push(finding);
    }
}

/// The extensions that do not load and have no sibling that would do.
fn failing<'a>(facts: &'a Facts<'_>) -> Vec<&'a Judged> {
    facts
        .judgement
        .extensions
        .iter()
        .filter(|j| j.verdict.loads == Loads::No && !j.any)
        .collect()
}

/// Packages of which one file among several must load, and none does.
fn none_of(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let mut packages: BTreeMap<&str, Vec<&Judged>> = BTreeMap::new();
    for judged in facts.judgement.extensions.iter().filter(|j| j.any) {
        packages.entry(&judged.verdict.package).or_default().push(judged);
    }
    for (package, members) in packages {
        if members.iter().any(|j| j.verdict.loads != Loads::No) {
            continue;
        }
        let mut finding = Finding::new(
            "stack-library-missing",
            verdict_of(&members),
            package,
            format!("none of the {} builds of {package} loads", members.len()),
        )
        .why("each is for one version of a library, and no version that it was built for is here");
        for judged in &members {
            if let Some(fault) = judged.faults.first() {
                finding = finding.evidence(Evidence::new(&judged.verdict.file, describe(fault)));
            }
        }
        let ffmpeg = members
            .iter()
            .flat_map(|j| &j.faults)
            .any(|fault| matches!(fault, Fault::Missing { library, .. } if library.starts_with("libav")));
        if ffmpeg {
            let command = Some("apt-get install ffmpeg".to_owned());
            finding = finding.fix("install FFmpeg's libraries", command, Applicability::Review);
        }
        findings.push(finding);
    }
}

fn verdict_of(members: &[&Judged]) -> Verdict {
    if members.iter().any(|j| j.needed) {
        Verdict::Fail
    } else {
        Verdict::Warn
    }
}

fn missing(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let mut by_library: BTreeMap<(String, String), Vec<&Judged>> = BTreeMap::new();
    for judged in failing(facts) {
        for fault in &judged.faults {
            if let Fault::Missing { library, .. } = fault {
                let entry = by_library
                    .entry((judged.verdict.package.clone(), library.clone()))
                    .or_default();
                if !entry.iter().any(|j| j.path == judged.path) {
                    entry.push(judged);
                }
            }
        }
    }
    for ((package, library), members) in by_library {
        let files: Vec<&str> = members.iter().map(|j| j.verdict.file.as_str()).collect();
        let other = other_major(facts, &library);
        let (code, why) = match &other {
            Some((major, path)) => (
                "stack-library-wrong-major",
                format!(
                    "this environment brings CUDA {major} ({path}); {package} is built for another major version"
                ),
            ),
            None => (
                "stack-library-missing",
                "the dynamic loader finds it nowhere on its search path".to_owned(),
            ),
        };
        let mut finding = Finding::new(
            code,
            verdict_of(&members),
            &package,
            format!(
                "{library} is not found; {} of {package} {} it",
                listed(&files),
                if files.len() == 1 { "needs" } else { "need" }
            ),
        )
        .why(why);
        for judged in &members {
            for fault in &judged.faults {
                if let Fault::Missing {
                    library: l,
                    needed_by,
                    foreign,
                } = fault
                    && *l == library
                {
                    finding = finding.evidence(Evidence::new(
                        needed_by.display().to_string(),
                        format!("DT_NEEDED {l}"),
                    ));
                    for path in foreign {
                        finding = finding.evidence(Evidence::new(
                            path.display().to_string(),
                            "of another machine or class",
                        ));
                    }
                }
            }
        }
        finding.evidence.truncate(6);
        findings.push(with_fix(facts, finding, &package, &library, other.is_some()));
    }
}

fn with_fix(facts: &Facts<'_>, finding: Finding, package: &str, library: &str, other_major: bool) -> Finding {
    let torch = torch_cuda(facts.root, facts.environment);
    let wanted = stem_and_major(library).map(|(_, m)| m);
    let mut finding = finding;
    if let (true, Some((major, _)), Some(wanted)) = (other_major, torch, wanted)
        && major != wanted
    {
        finding = finding.fix(
            format!("install a build of {package} for CUDA {major}, the major version of this torch"),
            None,
            Applicability::Review,
        );
    }
    if let Some(wheel) = wheel_of(library) {
        finding = finding.fix(
            format!("or install the wheel that brings {library}"),
            Some(format!("pip install {wheel}")),
            Applicability::Review,
        );
    } else if library == "libnuma.so.1" {
        finding = finding.fix(
            "install libnuma",
            Some("apt-get install libnuma1".to_owned()),
            Applicability::Review,
        );
    }
    finding.verify = Some("shakedown stack check".to_owned());
    finding
}

/// Another major version of the same library that the environment brings or maps: its number and path.
fn other_major(facts: &Facts<'_>, library: &str) -> Option<(u32, String)> {
    let (stem, major) = stem_and_major(library)?;
    let (_, _, folder) = CUDA_LIBRARIES.iter().find(|(s, _, _)| *s == stem)?;
    let mapped = facts.judgement.mapped.iter().find_map(|(path, _)| {
        let name = file_name(path);
        let (s, m) = stem_and_major(&name)?;
        (s == stem && m != major).then(|| (m, path.display().to_string()))
    });
    mapped.or_else(|| {
        let places = [
            format!("nvidia/{folder}/lib"),
            "nvidia/cu13/lib".to_owned(),
            "nvidia/cu12/lib".to_owned(),
        ];
        facts.environment.path.sites.iter().find_map(|site| {
            places.iter().find_map(|place| {
                facts
                    .root
                    .matching(&site.join(place), &format!("{stem}.*"))
                    .into_iter()
                    .find_map(|p| {
                        let name = file_name(&p);
                        let (s, m) = stem_and_major(&name)?;
                        (s == stem && m != major).then(|| (m, p.display().to_string()))
                    })
            })
        })
    })
}

fn versions(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let mut seen = BTreeSet::new();
    for judged in failing(facts) {
        for fault in &judged.faults {
            let Fault::Version {
                version,
                library,
                needed_by,
            } = fault
            else {
                continue;
            };
            if !seen.insert((judged.verdict.package.clone(), library.clone())) {
                continue;
            }
            let glibc = version.starts_with("GLIBC_");
            let newest = newest_version(judged, library).unwrap_or_else(|| version.clone());
            let mut finding = Finding::new(
                if glibc {
                    "stack-glibc-too-old"
                } else {
                    "stack-version-missing"
                },
                verdict_of(&[judged]),
                &judged.verdict.package,
                format!(
                    "{} lacks version {newest}, which {} needs",
                    file_name(library),
                    judged.verdict.file
                ),
            )
            .evidence(Evidence::new(
                library.display().to_string(),
                format!("does not define {newest}"),
            ))
            .evidence(Evidence::new(
                needed_by.display().to_string(),
                format!("needs {newest}"),
            ));
            finding = if glibc {
                finding.why("it was built on a newer system than this one").fix(
                    "install a build for an older C library, or use a newer system or container",
                    None,
                    Applicability::Review,
                )
            } else if version.starts_with("GLIBCXX_") || version.starts_with("CXXABI_") {
                finding
                    .why("the first libstdc++ that is loaded is the one for the whole process, and this one is older")
                    .fix("let the newer libstdc++ be found first, or upgrade this one", None, Applicability::Review)
            } else {
                finding.why("the library that is found is older than the one it was built with")
            };
            findings.push(finding);
        }
    }
}

/// The newest of the versions that one file lacks in one library.
fn newest_version(judged: &Judged, library: &Path) -> Option<String> {
    let number = |v: &str| -> Vec<u32> {
        v.rsplit('_')
            .next()
            .unwrap_or_default()
            .split('.')
            .filter_map(|p| p.parse().ok())
            .collect()
    };
    judged
        .faults
        .iter()
        .filter_map(|f| match f {
            Fault::Version {
                version, library: l, ..
            } if l == library => Some(version.clone()),
            _ => None,
        })
        .max_by_key(|v| number(v))
}

fn symbols(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let mut by_package: BTreeMap<&str, Vec<&Judged>> = BTreeMap::new();
    for judged in failing(facts) {
        if judged.faults.iter().any(|f| matches!(f, Fault::Undefined { .. })) {
            by_package
                .entry(&judged.verdict.package)
                .or_default()
                .push(judged);
        }
    }
    for (package, members) in by_package {
        let mut symbols: Vec<(&str, &Path)> = Vec::new();
        for judged in &members {
            for fault in &judged.faults {
                if let Fault::Undefined {
                    symbol, needed_by, ..
                } = fault
                    && !symbols.iter().any(|(s, _)| s == symbol)
                {
                    symbols.push((symbol, needed_by));
                }
            }
        }
        let torch = symbols.iter().any(|(s, _)| is_torch_symbol(s));
        let first = symbols.first().map(|(s, _)| demangle(s)).unwrap_or_default();
        let more = match symbols.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        let mut finding = Finding::new(
            "stack-symbol-undefined",
            verdict_of(&members),
            package,
            format!(
                "{} of {package} asks for {first}{more}, which nothing that is loaded defines",
                members[0].verdict.file
            ),
        );
        for (symbol, path) in symbols.iter().take(NAMED) {
            finding = finding.evidence(Evidence::new(
                path.display().to_string(),
                format!("undefined symbol: {symbol}"),
            ));
        }
        if torch {
            let have = facts.version("torch").unwrap_or("that is installed");
            finding = finding
                .why(format!("it was built for another torch than {have}"))
                .fix(
                    format!("install a build of {package} for torch {have}, or the torch it was built for"),
                    None,
                    Applicability::Review,
                );
            if symbols
                .iter()
                .any(|(s, _)| s.contains("RKSs") || s.ends_with("Ss"))
            {
                finding = finding.evidence(Evidence::new(
                    package,
                    "the old C++ string ABI (a name ends in Ss)",
                ));
            }
        } else {
            finding = finding
                .why("a library of another version, or none at all, stands where it was built against one");
        }
        finding.verify = Some("shakedown stack check".to_owned());
        findings.push(finding);
    }
}

/// Beginnings of the mangled names of libtorch and libc10.
fn is_torch_symbol(symbol: &str) -> bool {
    [
        "_ZN3c10",
        "_ZN2at",
        "_ZN5torch",
        "_ZNK3c10",
        "_ZNK2at",
        "_ZNK5torch",
        "_ZTVN3c10",
        "_ZTIN3c10",
        "_ZTVN5torch",
        "aoti_torch",
        "_ZN6caffe2",
    ]
    .iter()
    .any(|p| symbol.starts_with(p))
}

/// Two major versions of one CUDA library in one process.
fn mixed(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    for (stem, _, _) in CUDA_LIBRARIES {
        let mut majors: BTreeMap<u32, String> = BTreeMap::new();
        for (path, _) in &facts.judgement.mapped {
            let name = file_name(path);
            if let Some((s, major)) = stem_and_major(&name)
                && s == stem
            {
                majors.entry(major).or_insert_with(|| path.display().to_string());
            }
        }
        if majors.len() < 2 {
            continue;
        }
        let numbers: Vec<String> = majors.keys().map(u32::to_string).collect();
        let mut finding = Finding::new(
            "stack-cuda-majors-mixed",
            Verdict::Warn,
            stem,
            format!("{stem} of CUDA {} would be in one process", numbers.join(" and ")),
        )
        .why("each keeps its own state, and memory or streams of one are not known to the other");
        for (major, path) in majors {
            finding = finding.evidence(Evidence::new(path, format!("major {major}")));
        }
        findings.push(finding);
        break;
    }
}

fn unknown(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let broken = !facts.judgement.step_faults.is_empty();
    let mut packages: BTreeMap<&str, &Judged> = BTreeMap::new();
    for judged in facts
        .judgement
        .extensions
        .iter()
        .filter(|j| j.verdict.loads == Loads::Unknown && j.needed)
    {
        packages.entry(&judged.verdict.package).or_insert(judged);
    }
    if broken || packages.is_empty() {
        return;
    }
    for (package, judged) in packages {
        let why = judged.verdict.why.first().cloned().unwrap_or_default();
        findings.push(
            Finding::new(
                "stack-load-unknown",
                Verdict::Unknown,
                package,
                format!(
                    "whether {} of {package} loads is not known: {why}",
                    judged.verdict.file
                ),
            )
            .why("what a real start loads before it decides what it finds")
            .confidence(Confidence::Certain),
        );
    }
}

fn listed(files: &[&str]) -> String {
    match files {
        [one] => (*one).to_owned(),
        [first, ..] => format!("{first} and {} more", files.len() - 1),
        [] => String::new(),
    }
}
