//! Following load plans: what a real start brings into the process before an extension, and what comes of it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use shakedown_model::{ExtensionVerdict, Loads};

use crate::catalog::{Catalog, Plan, PlanExtension, PlanStep};
use crate::elf::Header;
use crate::files::Record;
use crate::loader::{Fault, Opened, Process, Search};
use crate::python::{Distribution, Environment, Variables, extension_tag};
use crate::root::Root;

/// Libraries that the GPU driver supplies.
const DRIVER_LIBRARIES: [&str; 4] = [
    "libcuda.so.1",
    "libnvidia-ml.so.1",
    "libnvidia-ptxjitcompiler.so.1",
    "libcudadebugger.so.1",
];

/// One extension, and what the loader would do with it.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The verdict.
    pub verdict: ExtensionVerdict,
    /// The faults behind a no.
    pub faults: Vec<Fault>,
    /// Importing the package fails without it.
    pub needed: bool,
    /// One of its siblings is enough.
    pub any: bool,
    /// The file itself.
    pub path: PathBuf,
}

/// What following all plans of an environment gave.
#[derive(Debug, Default)]
pub struct Judgement {
    /// The extensions.
    pub extensions: Vec<Judged>,
    /// Files mapped once everything that loads is loaded: path as formed, real path.
    pub mapped: Vec<(PathBuf, PathBuf)>,
    /// Faults of the plans' own steps: package and fault.
    pub step_faults: Vec<(String, Fault)>,
    /// Why some of it is not known.
    pub unknown: Vec<String>,
}

/// Distributions with the plans that are followed for them.
type Members<'a> = Vec<(&'a Distribution, &'a Plan)>;

/// Follows plans in one environment.
#[derive(Debug)]
pub struct Loader<'a> {
    root: &'a Root,
    environment: &'a Environment,
    variables: &'a Variables,
    search: Option<Search>,
    sm: Vec<u32>,
}

impl<'a> Loader<'a> {
    /// A loader for processes of this environment, started with these variables, on GPUs of these architectures.
    pub fn new(root: &'a Root, environment: &'a Environment, variables: &'a Variables, sm: &[u32]) -> Self {
        let machine = environment
            .executable
            .as_deref()
            .and_then(|e| machine_of(root, e))
            .unwrap_or(if cfg!(target_arch = "aarch64") { 183 } else { 62 });
        let library_path = variables.get("LD_LIBRARY_PATH").map(String::as_str);
        Self {
            root,
            environment,
            variables,
            search: Some(Search::of_root(root, machine, library_path)),
            sm: sm.to_vec(),
        }
    }

    fn start(&self, out: &mut Judgement) -> Option<Process> {
        let Some(executable) = &self.environment.executable else {
            out.unknown.push("the interpreter cannot be found".to_owned());
            return None;
        };
        let mut process = Process::new(self.root.clone(), self.search.clone()?, &DRIVER_LIBRARIES);
        let started = process.start(executable, self.variables.get("LD_PRELOAD").map(String::as_str));
        out.unknown.extend(started.unknown);
        for fault in started.faults {
            out.step_faults.push(("python".to_owned(), fault));
        }
        started.object.map(|_| process)
    }

    /// A process in which the plans of `packages`, and those that must come first, have been followed.
    fn after(&self, packages: &[String], out: &mut Judgement) -> Option<Process> {
        let mut process = self.start(out)?;
        let mut done = HashSet::new();
        for package in packages {
            self.follow(package, &mut process, &mut done, out)?;
        }
        Some(process)
    }

    fn follow(
        &self,
        package: &str,
        process: &mut Process,
        done: &mut HashSet<String>,
        out: &mut Judgement,
    ) -> Option<()> {
        if !done.insert(package.to_owned()) {
            return Some(());
        }
        let Some(distribution) = self.environment.distribution(package) else {
            // A package that is not there loads nothing; that it is missing is another check's matter.
            return Some(());
        };
        let Some(plan) = Catalog::get().plan(package, &distribution.version) else {
            out.unknown.push(format!(
                "no load plan is known for {package} {}",
                distribution.version
            ));
            return None;
        };
        for first in &plan.first {
            self.follow(first, process, done, out)?;
        }
        for step in &plan.step {
            self.take(distribution, step, process, out);
        }
        Some(())
    }

    fn take(&self, distribution: &Distribution, step: &PlanStep, process: &mut Process, out: &mut Judgement) {
        if let Some(text) = &step.when_mapped
            && !process
                .objects()
                .iter()
                .any(|o| o.real.to_string_lossy().contains(text.as_str()))
        {
            return;
        }
        if !step.preload.is_empty() {
            let _ = self.preload(&step.preload, process, out);
            return;
        }
        let Some(open) = &step.open else {
            return;
        };
        let pattern = open.replace("{minor}", &self.environment.minor.to_string());
        let Some(file) = self.root.glob(&distribution.site, &pattern).into_iter().next() else {
            out.unknown
                .push(format!("{} has no {pattern}", distribution.name));
            return;
        };
        let name = file.display().to_string();
        let mut opened = process.open(&name, step.global);
        let wants_rescue = opened.faults.iter().any(|fault| match fault {
            Fault::Missing { library, .. } => step.rescue.iter().any(|r| {
                let stem = r
                    .rsplit('/')
                    .next()
                    .and_then(|n| n.split('.').next())
                    .unwrap_or(r);
                library.contains(stem)
            }),
            _ => false,
        });
        if wants_rescue && self.preload(&step.rescue, process, out).is_ok() {
            opened = process.open(&name, step.global);
        }
        out.unknown.extend(opened.unknown);
        for fault in opened.faults {
            let entry = (distribution.name.clone(), fault);
            if !out.step_faults.contains(&entry) {
                out.step_faults.push(entry);
            }
        }
    }

    /// Preloads as torch does: the first match of each on the path; the first that is nowhere ends it.
    fn preload(&self, list: &[String], process: &mut Process, out: &mut Judgement) -> Result<(), ()> {
        let major = self.cuda_major();
        for entry in list {
            let (folder, pattern) = entry.split_once('/').unwrap_or(("", entry));
            let mut places = vec![format!("nvidia/{folder}/lib")];
            places.extend(major.map(|m| format!("nvidia/cu{m}/lib")));
            places.push(format!("{folder}/lib"));
            let found = self.environment.path.entries.iter().find_map(|dir| {
                places.iter().find_map(|place| {
                    let names = self.root.matching(&dir.join(place), pattern);
                    names
                        .into_iter()
                        .find(|n| n.to_string_lossy().ends_with(|c: char| c.is_ascii_digit()))
                })
            });
            let file = found.ok_or(())?;
            let opened = process.open(&file.display().to_string(), false);
            out.unknown.extend(opened.unknown);
            if !opened.faults.is_empty() {
                return Err(());
            }
        }
        Ok(())
    }

    /// The CUDA major version that torch was built for.
    fn cuda_major(&self) -> Option<u32> {
        torch_cuda(self.root, self.environment).map(|(major, _)| major)
    }

    /// Judges the extensions of every distribution that has some, given the RECORDs by metadata directory.
    pub fn judge(&self, records: &HashMap<PathBuf, Record>) -> Judgement {
        let mut out = Judgement::default();
        let mut planned: Vec<(&Distribution, &Plan)> = Vec::new();
        let mut alone = Vec::new();
        for distribution in &self.environment.distributions {
            if let Some(plan) = Catalog::get().plan(&distribution.name, &distribution.version) {
                planned.push((distribution, plan));
            } else if Catalog::get().is_alone(&distribution.name) {
                alone.push(distribution);
            }
        }
        let mut groups: Vec<(Vec<String>, Members<'_>)> = Vec::new();
        for (distribution, plan) in planned {
            let mut chain: Vec<String> = plan.first.clone();
            if !plan.step.is_empty() {
                chain.push(plan.package.clone());
            }
            match groups.iter_mut().find(|(c, _)| *c == chain) {
                Some((_, members)) => members.push((distribution, plan)),
                None => groups.push((chain, vec![(distribution, plan)])),
            }
        }
        let mut mapped = BTreeSet::new();
        for (chain, members) in groups {
            let mut local = Judgement::default();
            let process = self.after(&chain, &mut local);
            if let Some(process) = &process {
                Self::note(process, &mut mapped);
            }
            let reasons = local.unknown.clone();
            let broken = !local.step_faults.is_empty();
            for (distribution, plan) in members {
                for extension in &plan.extension {
                    for file in self.files(distribution, extension) {
                        let judged = match &process {
                            Some(process) if !broken => {
                                self.one(process, distribution, plan, extension, &file, &mut mapped)
                            }
                            _ => unknown(
                                distribution,
                                &file,
                                extension.needed,
                                &reasons,
                                broken.then_some(&chain),
                            ),
                        };
                        out.extensions.push(Judged {
                            any: extension.any,
                            ..judged
                        });
                    }
                }
            }
            out.unknown.extend(
                reasons
                    .into_iter()
                    .filter(|r| !out.unknown.contains(r))
                    .collect::<Vec<_>>(),
            );
            for fault in local.step_faults {
                if !out.step_faults.contains(&fault) {
                    out.step_faults.push(fault);
                }
            }
        }
        self.judge_alone(&alone, records, &mut out);
        out.mapped = mapped.into_iter().collect();
        out
    }

    fn note(process: &Process, mapped: &mut BTreeSet<(PathBuf, PathBuf)>) {
        for object in process.objects().iter().filter(|o| o.image.is_some()) {
            mapped.insert((object.path.clone(), object.real.clone()));
        }
    }

    /// The files of an extension that the GPUs at hand would have loaded.
    fn files(&self, distribution: &Distribution, extension: &PlanExtension) -> Vec<PathBuf> {
        let taken = |sm: &u32| {
            (extension.only_sm.is_empty() || extension.only_sm.contains(sm))
                && !extension.except_sm.contains(sm)
        };
        let chosen = if self.sm.is_empty() {
            extension.only_sm.is_empty()
        } else {
            self.sm.iter().any(taken)
        };
        if !chosen {
            return Vec::new();
        }
        self.root
            .glob(&distribution.site, &extension.files)
            .into_iter()
            .filter(|f| f.to_string_lossy().ends_with(".so"))
            .collect()
    }

    fn one(
        &self,
        process: &Process,
        distribution: &Distribution,
        plan: &Plan,
        extension: &PlanExtension,
        file: &Path,
        mapped: &mut BTreeSet<(PathBuf, PathBuf)>,
    ) -> Judged {
        let mut process = process.clone();
        if let Some(after) = &extension.after {
            for earlier in self.root.glob(&distribution.site, after) {
                let _ = process.open(&earlier.display().to_string(), false);
            }
        }
        let opened = process.open(&file.display().to_string(), false);
        if opened.loads() {
            Self::note(&process, mapped);
        }
        let name = match &plan.versions {
            Some(versions) => format!("{} {versions}", plan.package),
            None => plan.package.clone(),
        };
        judged(distribution, file, extension.needed, Some(name), opened)
    }

    fn judge_alone(
        &self,
        distributions: &[&Distribution],
        records: &HashMap<PathBuf, Record>,
        out: &mut Judgement,
    ) {
        let mut scratch = Judgement::default();
        let started = self.start(&mut scratch);
        for distribution in distributions {
            let Some(record) = records.get(&distribution.info) else {
                continue;
            };
            for file in owned_extensions(record, self.environment, distribution) {
                let Some(mut process) = started.clone() else {
                    out.extensions
                        .push(unknown(distribution, &file, true, &scratch.unknown, None));
                    continue;
                };
                let opened = process.open(&file.display().to_string(), false);
                out.extensions.push(judged(
                    distribution,
                    &file,
                    true,
                    Some("alone".to_owned()),
                    opened,
                ));
            }
        }
    }

    /// What the loader would do with one file after the plans of `first`; `None` where a plan is not known.
    pub fn verdict(&self, first: &[String], file: &Path) -> (Option<Opened>, Vec<String>) {
        let mut out = Judgement::default();
        let Some(mut process) = self.after(first, &mut out) else {
            return (None, out.unknown);
        };
        (
            Some(process.open(&file.display().to_string(), false)),
            out.unknown,
        )
    }
}

/// The extension modules of a distribution that this interpreter could import.
fn owned_extensions(record: &Record, environment: &Environment, distribution: &Distribution) -> Vec<PathBuf> {
    record
        .entries
        .iter()
        .filter(|e| {
            let name = e.path.rsplit('/').next().unwrap_or(&e.path);
            let module = name.contains(".cpython-3") || name.contains(".abi3.");
            let library = e.path.split('/').any(|p| p.ends_with(".libs"));
            e.path.ends_with(".so")
                && module
                && !library
                && !e.path.contains("..")
                && extension_tag(name).is_none_or(|tag| tag == environment.minor)
        })
        .map(|e| distribution.site.join(&e.path))
        .collect()
}

fn relative(distribution: &Distribution, file: &Path) -> String {
    file.strip_prefix(&distribution.site)
        .unwrap_or(file)
        .display()
        .to_string()
}

fn judged(
    distribution: &Distribution,
    file: &Path,
    needed: bool,
    plan: Option<String>,
    opened: Opened,
) -> Judged {
    let loads = if !opened.faults.is_empty() {
        Loads::No
    } else if opened.unknown.is_empty() {
        Loads::Yes
    } else {
        Loads::Unknown
    };
    let mut why: Vec<String> = opened.faults.iter().map(crate::check::describe).collect();
    why.extend(opened.unknown);
    Judged {
        verdict: ExtensionVerdict {
            package: distribution.name.clone(),
            file: relative(distribution, file),
            loads,
            plan,
            maps: opened
                .new
                .iter()
                .map(|(path, _)| path.display().to_string())
                .collect(),
            why,
        },
        faults: opened.faults,
        needed,
        any: false,
        path: file.to_owned(),
    }
}

fn unknown(
    distribution: &Distribution,
    file: &Path,
    needed: bool,
    reasons: &[String],
    broken: Option<&Vec<String>>,
) -> Judged {
    let mut why = reasons.to_vec();
    if let Some(chain) = broken {
        why.push(format!("{} does not load, and must come first", chain.join(", ")));
    }
    Judged {
        verdict: ExtensionVerdict {
            package: distribution.name.clone(),
            file: relative(distribution, file),
            loads: Loads::Unknown,
            plan: None,
            maps: Vec::new(),
            why,
        },
        faults: Vec::new(),
        needed,
        any: false,
        path: file.to_owned(),
    }
}

/// `e_machine` of a file.
pub(crate) fn machine_of(root: &Root, file: &Path) -> Option<u16> {
    use std::io::Read;
    let mut head = [0; 20];
    root.open(file).ok()?.read_exact(&mut head).ok()?;
    Header::parse(&head).ok().map(|h| h.machine)
}

/// The CUDA version that torch was built for, from `torch/version.py`; `None` for a build without CUDA or no torch.
pub(crate) fn torch_cuda(root: &Root, environment: &Environment) -> Option<(u32, u32)> {
    let file = environment.find(root, "torch/version.py")?;
    let text = root.read_text(&file, 1 << 16).ok()?;
    let line = text.lines().find(|l| l.starts_with("cuda"))?;
    let value = line.split(['\'', '"']).nth(1)?;
    let mut parts = value.split('.');
    Some((
        parts.next()?.parse().ok()?,
        parts.next().unwrap_or("0").parse().ok()?,
    ))
}
