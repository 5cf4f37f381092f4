//! What is known of packages, switches, drivers and consequences: the files of `catalog/stack`, parsed once.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::OnceLock;

use pep440_rs::{Version, VersionSpecifiers};
use serde::Deserialize;
use shakedown_model::StackGroup;

use crate::root::wildcard;

/// How an entry is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Known {
    /// From a run of ours.
    Seen,
    /// Read in the code of the package, or in its maker's documentation.
    Source,
    /// Neither: it never makes a finding certain.
    Unverified,
}

/// One step of a plan: open a file, or preload a list.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanStep {
    /// The file to open, relative to the site directory.
    pub open: Option<String>,
    /// Whether its symbols become visible to all.
    #[serde(default)]
    pub global: bool,
    /// CUDA libraries to preload, `folder/pattern`.
    #[serde(default)]
    pub preload: Vec<String>,
    /// What is preloaded when opening fails for want of one of them.
    #[serde(default)]
    pub rescue: Vec<String>,
    /// The step is taken only if the path of a mapped file holds this.
    pub when_mapped: Option<String>,
}

/// Extensions that a plan leads to.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanExtension {
    /// The files, relative to the site directory.
    pub files: String,
    /// Whether importing the package fails without it.
    pub needed: bool,
    /// One of the files is enough.
    #[serde(default)]
    pub any: bool,
    /// GPU architectures on which alone it is loaded.
    #[serde(default)]
    pub only_sm: Vec<u32>,
    /// GPU architectures on which it is not loaded.
    #[serde(default)]
    pub except_sm: Vec<u32>,
    /// A file of the same package that is loaded before it.
    pub after: Option<String>,
}

/// How a package brings native code into a process.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The package, normalized.
    pub package: String,
    /// Its versions; absent: all.
    pub versions: Option<String>,
    /// Packages whose plans are followed first.
    #[serde(default)]
    pub first: Vec<String>,
    /// How it is known.
    pub known: Known,
    /// What importing the package loads.
    #[serde(default)]
    pub step: Vec<PlanStep>,
    /// What is loaded after that.
    #[serde(default)]
    pub extension: Vec<PlanExtension>,
}

#[derive(Debug, Deserialize)]
struct Alone {
    known: Known,
    packages: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Plans {
    plan: Vec<Plan>,
    alone: Alone,
}

/// An environment variable that turns a check off.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Its name.
    pub name: String,
    /// The value that turns the check off; absent: any that is not empty, 0 or false.
    pub on_value: Option<String>,
    /// What it hides.
    pub hides: String,
    /// How it is known.
    pub known: Known,
}

impl Switch {
    /// Whether this value turns the check off.
    pub fn is_off(&self, value: &str) -> bool {
        match &self.on_value {
            Some(on) => on == value,
            None => !matches!(
                value.to_ascii_lowercase().as_str(),
                "" | "0" | "false" | "no" | "off"
            ),
        }
    }
}

#[derive(Debug, Deserialize)]
struct Switches {
    switch: Vec<Switch>,
}

/// What an engine's release was made for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownGood {
    /// The engine's package.
    pub engine: String,
    /// Its version.
    pub version: String,
    /// What it requires.
    pub requires: Vec<String>,
    /// How it is known.
    pub known: Known,
}

#[derive(Debug, Deserialize)]
struct KnownGoods {
    set: Vec<KnownGood>,
}

#[derive(Debug, Deserialize)]
struct CudaDriver {
    version: String,
    driver: u32,
}

#[derive(Debug, Deserialize)]
struct MajorDriver {
    cuda: u32,
    driver: u32,
}

#[derive(Debug, Deserialize)]
struct Ptxas {
    sm: u32,
    cuda: String,
}

#[derive(Debug, Deserialize)]
struct Drivers {
    cuda: Vec<CudaDriver>,
    major: Vec<MajorDriver>,
    ptxas: Vec<Ptxas>,
}

/// What follows from a difference.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consequence {
    subject: String,
    from: Option<String>,
    to: Option<String>,
    /// What follows.
    pub text: String,
    /// How it is known.
    pub known: Known,
}

#[derive(Debug, Deserialize)]
struct Consequences {
    consequence: Vec<Consequence>,
}

#[derive(Debug, Deserialize)]
struct KeptVariables {
    keep: Vec<String>,
    place: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Roles {
    groups: BTreeMap<StackGroup, Vec<String>>,
    environment: KeptVariables,
    libraries: BTreeMap<String, String>,
}

/// The whole catalogue of stacks.
#[derive(Debug)]
pub struct Catalog {
    plans: Plans,
    switches: Vec<Switch>,
    known_good: Vec<KnownGood>,
    drivers: Drivers,
    consequences: Vec<Consequence>,
    roles: Roles,
}

fn parse() -> Result<Catalog, toml::de::Error> {
    Ok(Catalog {
        plans: toml::from_str(include_str!("../../../catalog/stack/plans.toml"))?,
        switches: toml::from_str::<Switches>(include_str!("../../../catalog/stack/switches.toml"))?.switch,
        known_good: toml::from_str::<KnownGoods>(include_str!("../../../catalog/stack/known_good.toml"))?.set,
        drivers: toml::from_str(include_str!("../../../catalog/stack/drivers.toml"))?,
        consequences: toml::from_str::<Consequences>(include_str!(
            "../../../catalog/stack/consequences.toml"
        ))?
        .consequence,
        roles: toml::from_str(include_str!("../../../catalog/stack/roles.toml"))?,
    })
}

fn two(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((
        parts.next()?.parse().ok()?,
        parts.next().unwrap_or("0").parse().ok()?,
    ))
}

impl Catalog {
    /// The catalogue that is compiled in. A test holds it well-formed.
    pub fn get() -> &'static Self {
        static CATALOG: OnceLock<Catalog> = OnceLock::new();
        CATALOG.get_or_init(|| parse().unwrap_or_else(|error| unreachable!("catalog/stack: {error}")))
    }

    /// The plan of a package in this version.
    pub fn plan(&self, package: &str, version: &str) -> Option<&Plan> {
        let version = Version::from_str(version).ok();
        self.plans
            .plan
            .iter()
            .filter(|p| p.package == package)
            .find(|p| match &p.versions {
                None => true,
                Some(range) => match (VersionSpecifiers::from_str(range), &version) {
                    (Ok(range), Some(version)) => range.contains(version),
                    _ => false,
                },
            })
    }

    /// Whether a package's extension modules ask for nothing but the interpreter.
    pub fn is_alone(&self, package: &str) -> bool {
        self.plans.alone.known != Known::Unverified && self.plans.alone.packages.iter().any(|p| p == package)
    }

    /// The switches that turn checks off.
    pub fn switches(&self) -> &[Switch] {
        &self.switches
    }

    /// The set that an engine's release was made for.
    pub fn known_good(&self, engine: &str, version: &str) -> Option<&KnownGood> {
        let version = Version::from_str(version).ok()?;
        self.known_good.iter().find(|set| {
            set.engine == engine
                && Version::from_str(&set.version)
                    .is_ok_and(|v| v.release() == version.release() && v.post() == version.post())
        })
    }

    /// The oldest driver branch for a CUDA release as it was built, and the oldest that runs it at all.
    pub fn driver_for(&self, cuda: (u32, u32)) -> (Option<u32>, Option<u32>) {
        let exact = self
            .drivers
            .cuda
            .iter()
            .filter(|c| two(&c.version).is_some_and(|v| v.0 == cuda.0 && v <= cuda))
            .map(|c| c.driver)
            .max();
        let major = self
            .drivers
            .major
            .iter()
            .find(|m| m.cuda == cuda.0)
            .map(|m| m.driver);
        (exact, major)
    }

    /// The newest CUDA that a driver branch runs.
    pub fn cuda_of_driver(&self, driver: u32) -> Option<&str> {
        let newest = self
            .drivers
            .cuda
            .iter()
            .filter(|c| c.driver <= driver)
            .max_by_key(|c| c.driver)?;
        Some(&newest.version)
    }

    /// The oldest CUDA whose `ptxas` knows an architecture.
    pub fn ptxas_for(&self, sm: u32) -> Option<(u32, u32)> {
        two(&self.drivers.ptxas.iter().find(|p| p.sm == sm)?.cuda)
    }

    /// What follows from a difference, where that is known.
    pub fn consequence(
        &self,
        subject: &str,
        before: Option<&str>,
        after: Option<&str>,
    ) -> Option<&Consequence> {
        let fits = |pattern: &Option<String>, value: Option<&str>| match pattern {
            None => true,
            Some(pattern) if pattern.is_empty() => value.is_none(),
            Some(pattern) => value.is_some_and(|v| wildcard(pattern, v)),
        };
        self.consequences
            .iter()
            .find(|c| wildcard(&c.subject, subject) && fits(&c.from, before) && fits(&c.to, after))
    }

    /// What a package is there for.
    pub fn group(&self, package: &str) -> StackGroup {
        self.roles
            .groups
            .iter()
            .find(|(_, names)| names.iter().any(|n| wildcard(n, package)))
            .map_or(StackGroup::Other, |(group, _)| *group)
    }

    /// Whether an environment variable changes what a server does.
    pub fn keeps_variable(&self, name: &str) -> bool {
        self.roles.environment.keep.iter().any(|k| wildcard(k, name))
    }

    /// Whether a variable only tells where things lie.
    pub fn is_place(&self, name: &str) -> bool {
        self.roles.environment.place.iter().any(|k| wildcard(k, name))
    }

    /// The native libraries that are shown: name, and the beginning of the file name.
    pub fn libraries(&self) -> &BTreeMap<String, String> {
        &self.roles.libraries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::Requirement;

    #[test]
    fn well_formed() {
        let catalog = parse().expect("the catalogue parses");
        for plan in &catalog.plans.plan {
            if let Some(range) = &plan.versions {
                VersionSpecifiers::from_str(range).expect(range);
            }
            for step in &plan.step {
                assert!(
                    step.open.is_some() == step.preload.is_empty(),
                    "{}: one of open, preload",
                    plan.package
                );
                assert!(step.preload.iter().chain(&step.rescue).all(|p| p.contains('/')));
            }
        }
        for set in &catalog.known_good {
            assert!(
                set.requires.iter().all(|r| Requirement::parse(r).is_some()),
                "{set:?}"
            );
        }
        for ptxas in &catalog.drivers.ptxas {
            assert!(two(&ptxas.cuda).is_some());
        }
    }

    #[test]
    fn answers() {
        let catalog = Catalog::get();
        assert!(catalog.plan("torch", "2.9.1+cu130").is_some());
        assert!(catalog.plan("torch", "1.13.0").is_none(), "no plan is known");
        assert_eq!(catalog.driver_for((13, 0)), (Some(580), Some(580)));
        assert_eq!(catalog.driver_for((12, 8)), (Some(570), Some(525)));
        assert_eq!(catalog.cuda_of_driver(575), Some("12.9"));
        assert_eq!(catalog.group("nvidia-nccl-cu12"), StackGroup::Collectives);
        assert_eq!(catalog.group("nvidia-cudnn-cu13"), StackGroup::Cuda);
        assert_eq!(catalog.group("requests"), StackGroup::Other);
        assert!(catalog.keeps_variable("NCCL_DEBUG") && !catalog.keeps_variable("AWS_SECRET_ACCESS_KEY"));
        let off = &catalog
            .switches()
            .iter()
            .find(|s| s.name == "SGLANG_DISABLE_CUDNN_CHECK")
            .unwrap();
        assert!(off.is_off("1") && !off.is_off("0"));
        assert!(catalog.known_good("sglang", "0.5.9").is_some());
        assert!(catalog.known_good("sglang", "0.5.9.post1").is_none());
        assert!(
            catalog
                .consequence("torch", Some("2.9.1+cu128"), Some("2.9.1+cu130"))
                .is_some()
        );
    }
}
