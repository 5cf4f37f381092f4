//! Finding an environment: which interpreter, which prefix, which search path, which distributions.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::path::lexical;
use super::{Distribution, MarkerValues, SearchPath};
use crate::root::Root;

const MAX_SMALL: u64 = 1 << 20;

/// Environment variables by name.
pub type Variables = BTreeMap<String, String>;

/// Why no environment was found.
#[derive(Debug, Error)]
pub enum EnvError {
    /// There is no Python under the place that was named.
    #[error("find a Python environment at {place}: no lib/python3.* with site-packages", place = place.display())]
    NoPython {
        /// The place.
        place: PathBuf,
    },
}

/// A Python environment.
#[derive(Debug, Clone)]
pub struct Environment {
    /// `sys.prefix`.
    pub prefix: PathBuf,
    /// `sys.base_prefix`: the interpreter's own.
    pub base_prefix: PathBuf,
    /// Minor version of Python 3, for example 11.
    pub minor: u32,
    /// Full version, where a file tells it.
    pub full_version: Option<String>,
    /// The interpreter's executable, links followed.
    pub executable: Option<PathBuf>,
    /// Whether it is a virtual environment.
    pub is_virtual: bool,
    /// `sys.path`.
    pub path: SearchPath,
    /// The distributions, as the search path finds them: the first of a name wins.
    pub distributions: Vec<Distribution>,
    /// Distributions that a first one of the same name hides.
    pub hidden: Vec<Distribution>,
    /// What could not be read: path and reason.
    pub unread: Vec<(PathBuf, String)>,
}

#[derive(Debug, Default)]
struct VenvConfig {
    home: Option<PathBuf>,
    system_site: bool,
    version: Option<String>,
}

fn venv_config(root: &Root, prefix: &Path) -> Option<VenvConfig> {
    let text = root.read_text(&prefix.join("pyvenv.cfg"), MAX_SMALL).ok()?;
    let mut config = VenvConfig::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        let value = value.trim();
        match key.trim().to_ascii_lowercase().as_str() {
            "home" => config.home = Some(PathBuf::from(value)),
            "include-system-site-packages" => config.system_site = value.eq_ignore_ascii_case("true"),
            "version" | "version_info" => config.version = Some(value.to_owned()),
            _ => {}
        }
    }
    Some(config)
}

/// Minor versions for which there is `lib/python3.N`, newest first.
fn minors(root: &Root, prefix: &Path) -> Vec<u32> {
    let mut found: Vec<u32> = root
        .list(&prefix.join("lib"))
        .unwrap_or_default()
        .iter()
        .filter_map(|n| n.strip_prefix("python3.")?.parse().ok())
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found
}

/// The version in the name of an interpreter's file: `python3.11`.
fn minor_in_name(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let digits: String = name
        .strip_prefix("python3.")?
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

impl Environment {
    /// The environment that the interpreter at `python` (not resolved: a virtual environment's is a link) would start.
    pub fn of_interpreter(root: &Root, python: &Path, variables: &Variables) -> Result<Self, EnvError> {
        let dir = python.parent().unwrap_or(Path::new("/"));
        for place in [dir, dir.parent().unwrap_or(dir)] {
            if root.is_file(&place.join("pyvenv.cfg")) {
                return Self::of_prefix(root, place, variables);
            }
        }
        let real = root.resolve(python).unwrap_or_else(|_| python.to_owned());
        let prefix = real.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        Self::read(root, prefix, minor_in_name(&real), variables)
    }

    /// The environment whose `sys.prefix` is `prefix`: a virtual or conda environment, or an installation.
    pub fn of_prefix(root: &Root, prefix: &Path, variables: &Variables) -> Result<Self, EnvError> {
        Self::read(root, prefix, None, variables)
    }

    fn read(root: &Root, prefix: &Path, minor: Option<u32>, variables: &Variables) -> Result<Self, EnvError> {
        let prefix = lexical(prefix);
        let config = venv_config(root, &prefix);
        let python = ["bin/python3", "bin/python"].map(|n| prefix.join(n));
        let executable = python
            .iter()
            .find_map(|p| root.resolve(p).ok().filter(|r| root.is_file(r)));
        let minor = minor
            .or_else(|| {
                let version = config.as_ref()?.version.as_deref()?;
                version.strip_prefix("3.")?.split('.').next()?.parse().ok()
            })
            .or_else(|| executable.as_deref().and_then(minor_in_name))
            .or_else(|| minors(root, &prefix).first().copied())
            .ok_or_else(|| EnvError::NoPython {
                place: prefix.clone(),
            })?;
        let home = config.as_ref().and_then(|c| c.home.clone());
        let base_prefix = home
            .as_deref()
            .map(|h| root.resolve(h).unwrap_or_else(|_| h.to_owned()))
            .and_then(|h| h.parent().map(Path::to_owned))
            .or_else(|| {
                let real = executable.as_deref()?;
                config.as_ref()?;
                Some(real.parent()?.parent()?.to_owned())
            })
            .unwrap_or_else(|| prefix.clone());
        let executable = executable.or_else(|| {
            [format!("bin/python3.{minor}"), "bin/python3".to_owned()]
                .iter()
                .find_map(|n| root.resolve(&base_prefix.join(n)).ok())
        });
        let mut path = SearchPath::default();
        let is_virtual = config.is_some();
        let user_site = fill_path(
            root,
            &mut path,
            &prefix,
            &base_prefix,
            minor,
            config.as_ref(),
            variables,
        );
        if path.sites.is_empty() && !root.is_dir(&base_prefix.join(format!("lib/python3.{minor}"))) {
            return Err(EnvError::NoPython { place: prefix });
        }
        path.find_customize(root, user_site);
        let full_version = config
            .and_then(|c| c.version)
            .filter(|v| v.split('.').count() >= 3)
            .or_else(|| patch_level(root, &base_prefix, minor));
        let mut environment = Self {
            prefix,
            base_prefix,
            minor,
            full_version,
            executable,
            is_virtual,
            path,
            distributions: Vec::new(),
            hidden: Vec::new(),
            unread: Vec::new(),
        };
        environment.read_distributions(root);
        Ok(environment)
    }

    fn read_distributions(&mut self, root: &Root) {
        let mut seen = HashSet::new();
        let mut dirs = HashSet::new();
        for dir in self.path.entries.clone() {
            // The standard library's own directory holds none, and two names may lead to one place.
            if dir.extension().is_some_and(|e| e == "zip")
                || !dirs.insert(root.resolve(&dir).unwrap_or(dir.clone()))
            {
                continue;
            }
            let Ok(names) = root.list(&dir) else {
                continue;
            };
            for name in names {
                let known = [".dist-info", ".egg-info"]
                    .iter()
                    .any(|e| name.len() > e.len() && name.ends_with(e));
                if !known || name.starts_with('~') {
                    continue;
                }
                let read = Distribution::read(root, &dir.join(&name));
                if let Ok(found) = &read
                    && found.metadata.cut
                {
                    let why = "its headers are longer than any real ones; the rest was not read".to_owned();
                    self.unread.push((dir.join(&name), why));
                }
                match read {
                    Ok(found) if seen.insert(found.name.clone()) => self.distributions.push(found),
                    Ok(found) => self.hidden.push(found),
                    Err(error) => self.unread.push((dir.join(&name), error.to_string())),
                }
            }
        }
        self.distributions.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// The distribution of this (normalized) name.
    pub fn distribution(&self, name: &str) -> Option<&Distribution> {
        let at = self
            .distributions
            .binary_search_by(|d| d.name.as_str().cmp(name))
            .ok()?;
        self.distributions.get(at)
    }

    /// The first file of this relative path on the search path.
    pub fn find(&self, root: &Root, relative: &str) -> Option<PathBuf> {
        self.path
            .sites
            .iter()
            .map(|s| s.join(relative))
            .find(|p| root.metadata(p).is_ok())
    }

    /// The values that markers are evaluated against.
    pub fn marker_values(&self, machine: &str, kernel: Option<&str>) -> MarkerValues {
        let short = format!("3.{}", self.minor);
        MarkerValues {
            python_full_version: self.full_version.clone().unwrap_or_else(|| short.clone()),
            python_version: short,
            platform_machine: machine.to_owned(),
            platform_release: kernel.map(str::to_owned),
        }
    }
}

/// Fills the path in the order of `getpath` and `site.main`; says whether the user's site directory is in use.
fn fill_path(
    root: &Root,
    path: &mut SearchPath,
    prefix: &Path,
    base: &Path,
    minor: u32,
    config: Option<&VenvConfig>,
    variables: &Variables,
) -> bool {
    for entry in variables
        .get("PYTHONPATH")
        .map(|p| p.split(':'))
        .into_iter()
        .flatten()
    {
        if entry.starts_with('/') {
            path.push(lexical(Path::new(entry)));
        }
    }
    path.push(base.join(format!("lib/python3{minor}.zip")));
    path.push(base.join(format!("lib/python3.{minor}")));
    path.push(base.join(format!("lib/python3.{minor}/lib-dynload")));
    let isolated = config.is_some_and(|c| !c.system_site);
    let site = |prefix: &Path| prefix.join(format!("lib/python3.{minor}/site-packages"));
    if config.is_some() {
        path.push_site(root, &site(prefix));
    }
    let user_site = !isolated && !variables.contains_key("PYTHONNOUSERSITE");
    if user_site {
        let user_base = variables
            .get("PYTHONUSERBASE")
            .map(PathBuf::from)
            .or_else(|| variables.get("HOME").map(|h| Path::new(h).join(".local")));
        if let Some(user_base) = user_base {
            path.push_site(root, &site(&user_base));
        }
    }
    if !isolated {
        // Debian keeps what its packages install apart from what others do.
        if base == Path::new("/usr") {
            path.push_site(
                root,
                Path::new(&format!("/usr/local/lib/python3.{minor}/dist-packages")),
            );
            path.push_site(root, Path::new("/usr/lib/python3/dist-packages"));
        }
        path.push_site(root, &site(base));
    }
    user_site
}

/// `PY_VERSION` of the interpreter's own headers.
fn patch_level(root: &Root, base: &Path, minor: u32) -> Option<String> {
    let header = base.join(format!("include/python3.{minor}/patchlevel.h"));
    let text = root.read_text(&header, MAX_SMALL).ok()?;
    let line = text
        .lines()
        .find(|l| l.starts_with("#define PY_VERSION ") || l.starts_with("#define PY_VERSION\t"))?;
    let version = line.split('"').nth(1)?;
    Some(version.trim_end_matches('+').to_owned())
}
