//! Will it load and run here? Facts in, findings out, one of them the cause to mend first.

mod cause;
mod gpu;
mod libraries;
mod packages;
mod patches;
mod system;

pub use gpu::{LaunchNeeds, parse_sm};
pub use libraries::describe;

use shakedown_model::{Exit, Finding, Loads, STACK_CHECK_SCHEMA, Stack, StackCheck, Verdict};

use crate::files::Verification;
use crate::plan::Judgement;
use crate::python::{Environment, Variables};
use crate::root::Root;

/// All that the checks look at.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The file system.
    pub root: &'a Root,
    /// The environment.
    pub environment: &'a Environment,
    /// The variables in force.
    pub variables: &'a Variables,
    /// The stack as it was read.
    pub stack: &'a Stack,
    /// What the loader would do.
    pub judgement: &'a Judgement,
    /// What became of the files.
    pub verification: &'a Verification,
    /// GPU architectures to judge for: those that were named, else those that are present.
    pub sm: Vec<u32>,
    /// They were named: a driver that is absent here is no fault.
    pub sm_named: bool,
    /// What a launch needs, where one is meant.
    pub launch: Option<LaunchNeeds>,
}

impl Facts<'_> {
    fn version(&self, package: &str) -> Option<&str> {
        self.environment.distribution(package).map(|d| d.version.as_str())
    }

    /// The engine's package and version, where one is installed.
    fn engine(&self) -> Option<(&str, &str)> {
        ["sglang", "vllm", "lmdeploy", "tensorrt-llm"]
            .into_iter()
            .find_map(|e| self.version(e).map(|v| (e, v)))
    }
}

/// Judges a stack.
pub fn check(facts: &Facts<'_>) -> StackCheck {
    let mut findings: Vec<Finding> = Vec::new();
    libraries::check(facts, &mut findings);
    packages::check(facts, &mut findings);
    gpu::check(facts, &mut findings);
    system::check(facts, &mut findings);
    patches::check(facts, &mut findings);
    StackCheck {
        schema: STACK_CHECK_SCHEMA.to_owned(),
        fingerprint: facts.stack.fingerprint.clone(),
        gpus: facts.sm.clone(),
        findings: cause::link(findings),
        extensions: facts
            .judgement
            .extensions
            .iter()
            .map(|j| j.verdict.clone())
            .collect(),
    }
}

/// The answer as an exit status: no where something fails, not enough evidence where something needed is unknown.
pub fn exit(check: &StackCheck) -> Exit {
    let any = |verdict: Verdict| check.findings.iter().any(|f| f.finding.verdict == verdict);
    if any(Verdict::Fail) {
        Exit::No
    } else if any(Verdict::Unknown) {
        Exit::NotEnoughEvidence
    } else {
        Exit::Yes
    }
}

/// Number of extensions with this answer.
pub fn count(check: &StackCheck, loads: Loads) -> usize {
    check.extensions.iter().filter(|e| e.loads == loads).count()
}
