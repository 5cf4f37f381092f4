//! Reading a whole stack: the environment, the machine under it, what was changed, and which libraries win.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use shakedown_model::{
    ChangeKind, GpuCodeOf, PackageOrigin, STACK_SCHEMA, Stack, StackGpu, StackHook, StackHookKind,
    StackLibrary, StackPackage, StackPython, StackSource, Unread,
};

use crate::catalog::Catalog;
use crate::check::{Facts, LaunchNeeds};
use crate::fatbin::GpuCode;
use crate::files::{HashCache, Record, Verification, Verifier, Wheel, unified};
use crate::git;
use crate::machine;
use crate::plan::{Judgement, Loader};
use crate::python::{DirectKind, Distribution, Environment, HookKind, Variables};
use crate::root::Root;

/// Bytes of a Python file that is compared with its original.
const MAX_COMPARED: u64 = 4 << 20;

/// How a stack is to be read.
#[derive(Debug, Default)]
pub struct Options {
    /// Directory of the hash cache; without one every file is hashed in every run.
    pub cache: Option<PathBuf>,
    /// Threads that hash; 0: as many as there are CPUs.
    pub threads: usize,
    /// The GPUs, where the caller knows them.
    pub gpus: Vec<StackGpu>,
    /// The topology table, where the caller has it.
    pub topology: Option<String>,
    /// GPU architectures to judge for in place of those that are present.
    pub sm: Vec<u32>,
    /// Wheels to compare installed files with.
    pub wheels: Vec<PathBuf>,
    /// What a launch needs.
    pub launch: Option<LaunchNeeds>,
    /// The process, where a running one is read: its maps tell which libraries win.
    pub pid: Option<u32>,
}

/// A stack as it was read, with what its judgement rests on.
#[derive(Debug)]
pub struct Reading {
    /// The document.
    pub stack: Stack,
    /// The environment.
    pub environment: Environment,
    /// The variables in force.
    pub variables: Variables,
    /// What the loader would do.
    pub judgement: Judgement,
    /// What became of the files.
    pub verification: Verification,
    sm: Vec<u32>,
    sm_named: bool,
    launch: Option<LaunchNeeds>,
}

impl Reading {
    /// Judges it.
    pub fn check(&self, root: &Root) -> shakedown_model::StackCheck {
        crate::check::check(&Facts {
            root,
            environment: &self.environment,
            variables: &self.variables,
            stack: &self.stack,
            judgement: &self.judgement,
            verification: &self.verification,
            sm: self.sm.clone(),
            sm_named: self.sm_named,
            launch: self.launch.clone(),
        })
    }
}

/// Reads the stack of a Python environment with these variables in force.
pub fn read(root: &Root, environment: Environment, variables: Variables, options: Options) -> Reading {
    let mut cache = match &options.cache {
        Some(directory) => HashCache::open(
            directory,
            &root.base().join(
                environment
                    .prefix
                    .strip_prefix("/")
                    .unwrap_or(&environment.prefix),
            ),
        ),
        None => HashCache::none(),
    };
    let threads = if options.threads == 0 {
        std::thread::available_parallelism().map_or(1, usize::from)
    } else {
        options.threads
    };
    let own = owned_distributions(&environment);
    let verification = Verifier::new(root, &environment.prefix, threads).run(&own, &mut cache);

    let mut stack = Stack {
        schema: STACK_SCHEMA.to_owned(),
        source: StackSource {
            path: environment.prefix.display().to_string(),
            root: (!root.is_host()).then(|| root.base().display().to_string()),
            pid: options.pid,
        },
        python: Some(python_of(&environment)),
        host: machine::read_host(root, options.pid),
        toolkits: machine::read_toolkits(root, &variables),
        gpus: options.gpus,
        topology: options.topology,
        changes: verification.changes.clone(),
        unread: verification.unread.clone(),
        ..Stack::default()
    };
    stack
        .unread
        .extend(environment.unread.iter().map(|(path, why)| Unread {
            what: path.display().to_string(),
            why: why.clone(),
        }));
    let machine_code = environment
        .executable
        .as_deref()
        .and_then(|e| crate::plan::machine_of(root, e))
        .unwrap_or(if cfg!(target_arch = "aarch64") { 183 } else { 62 });
    if machine_code == 183 {
        "aarch64".clone_into(&mut stack.host.machine);
    }
    stack.driver = machine::read_driver(root, &variables, machine_code);
    stack.environment = kept(&variables);
    stack.packages = packages(root, &environment, &verification, &mut cache);
    stack.hooks = hooks(root, &environment, &variables, &verification);
    stack.checkouts = git::checkouts(root, &environment, &mut stack.unread);
    stack.tools = machine::read_tools(root, Some(&environment), &variables, &mut |path, read| {
        let Some(stamp) = crate::files::stamp(root, path) else {
            return String::new();
        };
        let key = format!("version {}", path.display());
        if let Some(known) = cache.note(&key, stamp) {
            return known.to_owned();
        }
        let text = read();
        cache.set_note(key, stamp, text.clone());
        text
    });
    // A hook is reported as one, not as a stray file too.
    let hook_files: BTreeSet<String> = stack.hooks.iter().map(|h| h.path.clone()).collect();
    stack.changes.retain(|c| {
        c.kind != ChangeKind::Added
            || !environment
                .path
                .sites
                .iter()
                .any(|s| hook_files.contains(&s.join(&c.path).display().to_string()))
    });
    compare_with_wheels(root, &environment, &options.wheels, &mut stack);

    let sm_named = !options.sm.is_empty();
    let sm: Vec<u32> = if sm_named {
        options.sm.clone()
    } else {
        stack
            .gpus
            .iter()
            .filter_map(|g| g.sm)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    };
    let judgement = Loader::new(root, &environment, &variables, &sm).judge(&verification.records);
    let mapped = match options.pid {
        Some(pid) => crate::process::mapped(pid).unwrap_or_default(),
        None => Vec::new(),
    };
    stack.libraries = libraries(root, &environment, &judgement, &mapped);
    stack.fingerprint = crate::fingerprint::of(&stack);
    // Without its cache the next run only takes longer.
    let _ = cache.save();
    Reading {
        stack,
        environment,
        variables,
        judgement,
        verification,
        sm,
        sm_named,
        launch: options.launch,
    }
}

/// The distributions that lie under the environment's own prefix.
fn owned_distributions(environment: &Environment) -> Vec<&Distribution> {
    environment
        .distributions
        .iter()
        .chain(&environment.hidden)
        .filter(|d| d.site.starts_with(&environment.prefix))
        .collect()
}

fn python_of(environment: &Environment) -> StackPython {
    StackPython {
        version: environment
            .full_version
            .clone()
            .unwrap_or_else(|| format!("3.{}", environment.minor)),
        executable: environment.executable.as_ref().map(|e| e.display().to_string()),
        prefix: environment.prefix.display().to_string(),
        base_prefix: (environment.base_prefix != environment.prefix)
            .then(|| environment.base_prefix.display().to_string()),
        path: environment
            .path
            .entries
            .iter()
            .map(|p| p.display().to_string())
            .collect(),
    }
}

/// The variables that matter, secrets masked.
pub(crate) fn kept(variables: &Variables) -> BTreeMap<String, String> {
    variables
        .iter()
        .filter(|(name, _)| Catalog::get().keeps_variable(name))
        .map(|(name, value)| (name.clone(), crate::mask::variable(name, value)))
        .collect()
}

fn packages(
    root: &Root,
    environment: &Environment,
    verification: &Verification,
    cache: &mut HashCache,
) -> Vec<StackPackage> {
    environment
        .distributions
        .iter()
        .map(|d| {
            let origin = match &d.direct {
                None => PackageOrigin::Index,
                Some(direct) => {
                    let url = direct.url.clone();
                    match &direct.kind {
                        DirectKind::Editable => PackageOrigin::Editable { url },
                        DirectKind::Directory => PackageOrigin::Directory { url },
                        DirectKind::Vcs { commit } => PackageOrigin::Vcs {
                            url,
                            commit: commit.clone(),
                        },
                        DirectKind::Archive => PackageOrigin::Archive { url },
                    }
                }
            };
            StackPackage {
                name: d.name.clone(),
                version: d.version.clone(),
                group: Catalog::get().group(&d.name),
                origin,
                installer: d.installer.clone(),
                site: d.site.display().to_string(),
                gpu_code: verification
                    .records
                    .get(&d.info)
                    .map(|r| gpu_code(root, d, r, cache))
                    .unwrap_or_default(),
            }
        })
        .collect()
}

fn gpu_code(
    root: &Root,
    distribution: &Distribution,
    record: &Record,
    cache: &mut HashCache,
) -> Vec<GpuCodeOf> {
    use shakedown_model::StackGroup as G;
    let group = Catalog::get().group(&distribution.name);
    if matches!(group, G::Other | G::Model | G::Python | G::Compiler | G::Cuda) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for entry in &record.entries {
        if !(entry.path.ends_with(".so") || entry.path.contains(".so.")) || entry.path.contains("..") {
            continue;
        }
        let path = distribution.site.join(&entry.path);
        let Some(stamp) = crate::files::stamp(root, &path) else {
            continue;
        };
        let key = format!("gpu {}", path.display());
        let code = match cache.note(&key, stamp).and_then(code_from_note) {
            Some(code) => code,
            None => {
                let code = root
                    .open(&path)
                    .ok()
                    .and_then(|file| GpuCode::read(file).ok())
                    .unwrap_or_default();
                cache.set_note(key, stamp, code_to_note(&code));
                code
            }
        };
        if !code.is_empty() {
            found.push(GpuCodeOf {
                file: entry.path.clone(),
                cubins: code.cubins,
                ptx: code.ptx,
            });
        }
    }
    found
}

fn code_to_note(code: &GpuCode) -> String {
    let part = |list: &BTreeMap<u32, u64>| {
        list.iter()
            .map(|(k, v)| format!("{k}:{v}"))
            .collect::<Vec<_>>()
            .join(",")
    };
    format!("{};{}", part(&code.cubins), part(&code.ptx))
}

fn code_from_note(text: &str) -> Option<GpuCode> {
    let (cubins, ptx) = text.split_once(';')?;
    let part = |list: &str| -> Option<BTreeMap<u32, u64>> {
        list.split(',')
            .filter(|e| !e.is_empty())
            .map(|e| {
                let (k, v) = e.split_once(':')?;
                Some((k.parse().ok()?, v.parse().ok()?))
            })
            .collect()
    };
    Some(GpuCode {
        cubins: part(cubins)?,
        ptx: part(ptx)?,
        damaged: false,
    })
}

fn hooks(
    root: &Root,
    environment: &Environment,
    variables: &Variables,
    verification: &Verification,
) -> Vec<StackHook> {
    let mut hooks: Vec<StackHook> = environment
        .path
        .hooks
        .iter()
        .map(|hook| StackHook {
            kind: match hook.kind {
                HookKind::SiteCustomize => StackHookKind::Sitecustomize,
                HookKind::UserCustomize => StackHookKind::Usercustomize,
                HookKind::PthLine => StackHookKind::PthLine,
            },
            path: hook.path.display().to_string(),
            line: hook.line,
            text: hook.text.clone(),
            package: owner(environment, &hook.path, verification),
            sha256: sha256_of(root, &hook.path),
        })
        .collect();
    for path in variables
        .get("LD_PRELOAD")
        .map(|p| p.split([':', ' ']))
        .into_iter()
        .flatten()
    {
        if !path.is_empty() {
            hooks.push(StackHook {
                kind: StackHookKind::Preload,
                path: path.to_owned(),
                line: None,
                text: "LD_PRELOAD".to_owned(),
                package: None,
                sha256: sha256_of(root, Path::new(path)),
            });
        }
    }
    hooks
}

fn sha256_of(root: &Root, path: &Path) -> Option<String> {
    let bytes = root.read(path, 64 << 20).ok()?;
    Some(crate::files::hex(&Sha256::digest(&bytes)))
}

/// The package whose RECORD lists a file that lies directly in a site directory.
fn owner(environment: &Environment, path: &Path, verification: &Verification) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    if matches!(name, "_virtualenv.pth" | "distutils-precedence.pth") {
        return Some("setuptools".to_owned());
    }
    // What an interpreter's own distributor puts into its standard library is the system's.
    if path.starts_with(
        environment
            .base_prefix
            .join(format!("lib/python3.{}", environment.minor)),
    ) && !path.components().any(|c| c.as_os_str() == "site-packages")
    {
        return Some("python".to_owned());
    }
    environment
        .distributions
        .iter()
        .chain(&environment.hidden)
        .filter(|d| path.starts_with(&d.site))
        .find(|d| {
            verification
                .records
                .get(&d.info)
                .is_some_and(|r| r.entries.iter().any(|e| e.path == name))
        })
        .map(|d| d.name.clone())
}

/// Adds the diff of every modified file whose original is in one of the wheels; and, for packages that were built
/// from source, finds what differs from the upstream wheel.
fn compare_with_wheels(root: &Root, environment: &Environment, wheels: &[PathBuf], stack: &mut Stack) {
    for path in wheels {
        let wheel = match Wheel::open(path) {
            Ok(wheel) => wheel,
            Err(error) => {
                stack.unread.push(Unread {
                    what: path.display().to_string(),
                    why: error.to_string(),
                });
                continue;
            }
        };
        let Some((name, version)) = wheel.name_and_version() else {
            continue;
        };
        let Some(distribution) = environment
            .distribution(&name)
            .filter(|d| same_version(&d.version, &version))
        else {
            stack.unread.push(Unread {
                what: path.display().to_string(),
                why: format!("no {name} {version} is installed to compare it with"),
            });
            continue;
        };
        for file in wheel.names() {
            let text = [".py", ".pth", ".json", ".toml", ".cu", ".cuh", ".h", ".txt"]
                .iter()
                .any(|e| file.ends_with(e));
            if !text || file.contains(".dist-info/") || file.contains("..") {
                continue;
            }
            let known = stack.changes.iter().position(|c| {
                c.package.as_deref() == Some(&name) && c.path == file && c.kind == ChangeKind::Modified
            });
            // Of an installation from the index the RECORD has told which files to look at.
            if known.is_none() && distribution.direct.is_none() {
                continue;
            }
            let (Some(before), Ok(after)) = (
                wheel.read(file),
                root.read(&distribution.site.join(file), MAX_COMPARED),
            ) else {
                continue;
            };
            if before == after {
                continue;
            }
            let at = known.unwrap_or_else(|| {
                stack.changes.push(shakedown_model::StackChange {
                    package: Some(name.clone()),
                    path: file.to_owned(),
                    kind: ChangeKind::Modified,
                    sha256: Some(crate::files::hex(&Sha256::digest(&after))),
                    added: None,
                    removed: None,
                    diff: None,
                });
                stack.changes.len() - 1
            });
            if let (Some(change), Some(diff)) = (stack.changes.get_mut(at), unified(&before, &after, file)) {
                change.added = Some(diff.added);
                change.removed = Some(diff.removed);
                change.diff = Some(diff.text);
            }
        }
    }
}

fn same_version(a: &str, b: &str) -> bool {
    let public = |v: &str| v.split('+').next().unwrap_or(v).to_owned();
    public(a) == public(b)
}

/// The libraries that matter, and which copy of each wins.
fn libraries(
    root: &Root,
    environment: &Environment,
    judgement: &Judgement,
    mapped: &[PathBuf],
) -> Vec<StackLibrary> {
    let mut found = Vec::new();
    for (name, stem) in Catalog::get().libraries() {
        let is = |path: &Path| {
            path.file_name().is_some_and(|n| {
                let n = n.to_string_lossy();
                n.strip_prefix(stem.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        };
        let by_process: Vec<PathBuf> = mapped.iter().filter(|p| is(p)).cloned().collect();
        let by_rule = judgement
            .mapped
            .iter()
            .filter(|(p, _)| is(p))
            .map(|(_, real)| real.clone());
        let winners: BTreeSet<PathBuf> = if by_process.is_empty() {
            by_rule.collect()
        } else {
            by_process.into_iter().collect()
        };
        let mut copies = BTreeSet::new();
        for site in &environment.path.sites {
            for folder in root.list(&site.join("nvidia")).unwrap_or_default() {
                copies.extend(root.matching(
                    &site.join("nvidia").join(folder).join("lib"),
                    &format!("{stem}.*"),
                ));
            }
            copies.extend(root.matching(&site.join("torch/lib"), &format!("{stem}*")));
        }
        let copies: BTreeSet<PathBuf> = copies.into_iter().filter_map(|p| root.resolve(&p).ok()).collect();
        let shadowed: Vec<String> = if winners.is_empty() {
            Vec::new()
        } else {
            copies
                .difference(&winners)
                .map(|p| p.display().to_string())
                .collect()
        };
        for path in &winners {
            let file = path
                .file_name()
                .map(|n| n.to_string_lossy().into_owned())
                .unwrap_or_default();
            let package = wheel_that_owns(environment, path);
            found.push(StackLibrary {
                name: name.clone(),
                version: package
                    .map(|d| d.version.clone())
                    .or_else(|| version_in_name(&file, stem)),
                package: package.map(|d| d.name.clone()),
                soname: file,
                path: path.display().to_string(),
                mapped: mapped.contains(path),
                shadowed: shadowed.clone(),
            });
        }
    }
    found
}

/// A version with at least two numbers in a file's name.
fn version_in_name(file: &str, stem: &str) -> Option<String> {
    let version = file.strip_prefix(stem)?.strip_prefix('.')?;
    (!version.is_empty()).then(|| version.to_owned())
}

/// The NVIDIA wheel that a library under `nvidia/` belongs to, by the names of both.
fn wheel_that_owns<'e>(environment: &'e Environment, path: &Path) -> Option<&'e Distribution> {
    let text = path.to_string_lossy();
    if text.contains("/torch/lib/") {
        return environment.distribution("torch");
    }
    let (_, rest) = text.split_once("/nvidia/")?;
    let folder = rest.split('/').next()?;
    let file = path.file_name()?.to_string_lossy().into_owned();
    let stem = file.strip_prefix("lib")?.split('.').next()?.to_ascii_lowercase();
    let of_folder =
        |suffix: &str| environment.distribution(&format!("nvidia-{}{suffix}", folder.replace('_', "-")));
    if folder.starts_with("cu1") {
        let name = match stem.as_str() {
            "cudart" => "cuda-runtime",
            "nvrtc" => "cuda-nvrtc",
            "cublaslt" => "cublas",
            "cupti" => "cuda-cupti",
            other => other,
        };
        return environment.distribution(&format!("nvidia-{name}"));
    }
    ["-cu12", "-cu13", "-cu11", ""].iter().find_map(|s| of_folder(s))
}
