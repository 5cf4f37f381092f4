//! The driver, toolkits, compat libraries, and what compiling at run time needs.

use shakedown_model::{Applicability, Evidence, Finding, Verdict};

use super::Facts;
use crate::catalog::Catalog;
use crate::plan::torch_cuda;

pub(super) fn check(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    driver(facts, findings);
    compat(facts, findings);
    toolkits(facts, findings);
    ptxas(facts, findings);
    toolchain(facts, findings);
}

fn branch(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

fn two(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((
        parts.next()?.parse().ok()?,
        parts.next().unwrap_or("0").parse().ok()?,
    ))
}

fn driver(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let driver = &facts.stack.driver;
    let Some(version) = driver.module.as_deref().or(driver.library.as_deref()) else {
        if !facts.sm_named && torch_cuda(facts.root, facts.environment).is_some() {
            findings.push(
                Finding::new("stack-driver-absent", Verdict::Unknown, "driver", "no NVIDIA driver is seen here")
                    .why("whether it is new enough, and which GPUs there are, cannot be told; name the GPU with --gpu to judge for another machine")
                    .evidence(Evidence::new("/proc/driver/nvidia/version", "not there"))
                    .evidence(Evidence::new("/sys/module/nvidia/version", "not there")),
            );
        }
        return;
    };
    if let (Some(module), Some(library)) = (&driver.module, &driver.library)
        && module != library
        && !driver
            .library_path
            .as_deref()
            .unwrap_or_default()
            .contains("compat")
    {
        findings.push(
            Finding::new(
                "stack-driver-mismatch",
                Verdict::Fail,
                "driver",
                format!("the kernel module is {module}, libcuda is {library}"),
            )
            .why("CUDA and NVML refuse to start: `Driver/library version mismatch`")
            .evidence(Evidence::new("/proc/driver/nvidia/version", module))
            .evidence(Evidence::new(
                driver.library_path.clone().unwrap_or_default(),
                library,
            ))
            .fix(
                "reload the module or reboot, so that both are of one version",
                None,
                Applicability::Risky,
            ),
        );
    }
    let (Some(cuda), Some(have)) = (torch_cuda(facts.root, facts.environment), branch(version)) else {
        return;
    };
    let (exact, oldest) = Catalog::get().driver_for(cuda);
    if oldest.is_some_and(|oldest| have < oldest) {
        findings.push(
            Finding::new(
                "stack-driver-too-old",
                Verdict::Fail,
                "driver",
                format!(
                    "torch is built for CUDA {}.{}, which needs driver {} or newer; here is {version}",
                    cuda.0,
                    cuda.1,
                    oldest.unwrap_or_default()
                ),
            )
            .why("CUDA starts with `driver version is insufficient for CUDA runtime version`")
            .evidence(Evidence::new("driver", version))
            .fix(
                "upgrade the driver, or install a torch for the older CUDA",
                None,
                Applicability::Risky,
            ),
        );
    } else if exact.is_some_and(|exact| have < exact) {
        findings.push(
            Finding::new(
                "stack-driver-minor",
                Verdict::Info,
                "driver",
                format!("driver {version} is older than CUDA {}.{} was made with ({})", cuda.0, cuda.1, exact.unwrap_or_default()),
            )
            .why("it runs by minor version compatibility: PTX of this release cannot be compiled by this driver"),
        );
    }
}

/// `libcuda` from a compat package before the driver's own.
fn compat(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let Some(path) = &facts.stack.driver.library_path else {
        return;
    };
    if path.contains("compat") {
        findings.push(
            Finding::new(
                "stack-cuda-compat",
                Verdict::Warn,
                "driver",
                format!("libcuda comes from a forward-compatibility package: {path}"),
            )
            .why("it works with datacenter GPUs only: others fail with error 804, `forward compatibility was attempted on non supported HW`")
            .evidence(Evidence::new(path, "found before the driver's own"))
            .fix("remove it from the search path where the driver itself is new enough", None, Applicability::Review),
        );
    }
}

fn toolkits(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let selected: Vec<_> = facts
        .stack
        .toolkits
        .iter()
        .filter(|t| !t.selected_by.is_empty())
        .collect();
    if let [first, .., last] = selected.as_slice()
        && first.version != last.version
    {
        let mut finding = Finding::new(
            "stack-toolkits-disagree",
            Verdict::Warn,
            "cuda toolkit",
            format!(
                "{} selects CUDA {}, {} selects {}",
                first.selected_by.join(", "),
                first.version.as_deref().unwrap_or("of unknown version"),
                last.selected_by.join(", "),
                last.version.as_deref().unwrap_or("one of unknown version")
            ),
        )
        .why("different parts of the stack compile with different compilers");
        for toolkit in &selected {
            finding = finding.evidence(Evidence::new(
                &toolkit.path,
                toolkit.version.clone().unwrap_or_default(),
            ));
        }
        findings.push(finding);
    }
    let torch = torch_cuda(facts.root, facts.environment);
    if let (Some((major, minor)), Some(toolkit)) = (torch, selected.first())
        && let Some(version) = toolkit.version.as_deref().and_then(two)
        && version.0 != major
    {
        findings.push(
            Finding::new(
                "stack-toolkit-major",
                Verdict::Warn,
                "cuda toolkit",
                format!(
                    "the toolkit is CUDA {}.{}, torch is built for {major}.{minor}",
                    version.0, version.1
                ),
            )
            .why("what is compiled at run time is of another major version than what it runs beside"),
        );
    }
}

/// Triton's own assembler, and the toolkit's, against the GPUs.
fn ptxas(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    for sm in &facts.sm {
        let Some(needs) = Catalog::get().ptxas_for(*sm) else {
            continue;
        };
        for tool in facts.stack.tools.iter().filter(|t| t.name.contains("ptxas")) {
            let Some(version) = tool.version.as_deref().and_then(two) else {
                continue;
            };
            // A Triton that brings a second assembler for Blackwell uses that one from sm_100 on.
            let second = facts
                .stack
                .tools
                .iter()
                .any(|t| t.name == "triton ptxas-blackwell");
            if version >= needs || (second && *sm >= 100 && tool.name == "triton ptxas") {
                continue;
            }
            let replaced = facts.variables.contains_key("TRITON_PTXAS_PATH");
            findings.push(
                Finding::new(
                    "stack-ptxas-too-old",
                    if replaced { Verdict::Info } else { Verdict::Fail },
                    &tool.name,
                    format!("{} {}.{} does not know sm_{sm}, which needs CUDA {}.{}", tool.name, version.0, version.1, needs.0, needs.1),
                )
                .why("compiling a kernel ends with `ptxas fatal: Value 'sm_…' is not defined for option 'gpu-name'`")
                .evidence(Evidence::new(&tool.path, tool.version.clone().unwrap_or_default()))
                .fix(
                    "point Triton to the toolkit's assembler",
                    Some("export TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas".to_owned()),
                    Applicability::Safe,
                ),
            );
        }
    }
}

/// What compiling at run time needs: a C compiler for Triton, nvcc and ninja for FlashInfer.
fn toolchain(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let has = |name: &str| facts.stack.tools.iter().any(|t| t.name == name);
    let triton = facts.version("triton").is_some() && facts.version("torch").is_some();
    if triton && !["gcc", "cc", "clang"].iter().any(|n| has(n)) && !facts.variables.contains_key("CC") {
        findings.push(
            Finding::new(
                "stack-toolchain",
                Verdict::Warn,
                "gcc",
                "no C compiler: Triton builds its launchers with one",
            )
            .why("the first Triton kernel ends with `Failed to find C compiler`")
            .fix(
                "install gcc",
                Some("apt-get install gcc".to_owned()),
                Applicability::Review,
            ),
        );
    }
    if triton && !facts.stack.tools.iter().any(|t| t.name == "Python.h") {
        findings.push(
            Finding::new(
                "stack-toolchain",
                Verdict::Warn,
                "Python.h",
                "the interpreter's headers are missing: Triton's launchers include them",
            )
            .why("compiling one ends with `fatal error: Python.h: No such file or directory`")
            .fix(
                "install the headers of this Python",
                Some(format!("apt-get install python3.{}-dev", facts.environment.minor)),
                Applicability::Review,
            ),
        );
    }
    let flashinfer = facts.version("flashinfer-python").is_some();
    if flashinfer && facts.version("flashinfer-jit-cache").is_none() {
        let mut missing = Vec::new();
        if !facts.stack.toolkits.iter().any(|t| t.nvcc) {
            missing.push("nvcc");
        }
        if !has("ninja") {
            missing.push("ninja");
        }
        if !missing.is_empty() {
            findings.push(
                Finding::new(
                    "stack-toolchain",
                    Verdict::Warn,
                    missing.join(", "),
                    format!(
                        "FlashInfer compiles kernels at first use; {} not found",
                        missing.join(" and ") + if missing.len() == 1 { " is" } else { " are" }
                    ),
                )
                .why("an uncached kernel ends with `Could not find nvcc` or a failed ninja")
                .fix(
                    "install the CUDA toolkit of torch's version, or flashinfer-jit-cache",
                    None,
                    Applicability::Review,
                ),
            );
        }
    }
}
