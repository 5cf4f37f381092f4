//! GPU code against GPUs, and what a launch's flags ask of them.

use std::collections::BTreeMap;

use shakedown_model::{Applicability, Confidence, Evidence, Finding, StackGroup, Verdict};

use super::Facts;
use crate::catalog::Catalog;
use crate::fatbin::{Coverage, GpuCode};

/// What a launch needs beyond the environment: read from its flags and its model's configuration by the caller.
#[derive(Debug, Clone, Default)]
pub struct LaunchNeeds {
    /// `--enable-flashinfer-allreduce-fusion` or its like.
    pub allreduce_fusion: bool,
    /// `--enable-torch-symm-mem`.
    pub torch_symm_mem: bool,
    /// Weights or cache in FP8.
    pub fp8: bool,
    /// bfloat16 weights.
    pub bf16: bool,
    /// Tensor parallel size.
    pub tp: Option<u32>,
    /// Attention heads of the model.
    pub heads: Option<u32>,
    /// Key-value heads of the model.
    pub kv_heads: Option<u32>,
    /// Whether the model takes images or sound.
    pub multimodal: Option<bool>,
    /// The attention backend that is asked for.
    pub attention_backend: Option<String>,
}

/// The number in `sm_120`, `sm_90a`, `120` or `12.0`.
pub fn parse_sm(text: &str) -> Option<u32> {
    let text = text.trim().to_ascii_lowercase();
    let text = text
        .strip_prefix("sm_")
        .or_else(|| text.strip_prefix("sm"))
        .unwrap_or(&text);
    if let Some((major, minor)) = text.split_once('.') {
        return Some(major.parse::<u32>().ok()? * 10 + minor.parse::<u32>().ok()?);
    }
    let sm: u32 = text.trim_end_matches(['a', 'f']).parse().ok()?;
    (50..1000).contains(&sm).then_some(sm)
}

pub(super) fn check(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    coverage(facts, findings);
    launch(facts, findings);
}

fn names(list: &BTreeMap<u32, u64>) -> String {
    list.keys().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

/// Whether a package brings a compiler's input instead: what is not covered is compiled at first use.
fn has_jit(facts: &Facts<'_>, package: &str) -> bool {
    matches!(package, "flashinfer-python" | "triton" | "deep-gemm")
        || package == "torch" && facts.version("triton").is_some()
}

fn coverage(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    for package in &facts.stack.packages {
        // Libraries of CUDA itself carry code for what their release supports and compile the rest themselves.
        if matches!(package.group, StackGroup::Cuda) {
            continue;
        }
        for sm in &facts.sm {
            let mut none = Vec::new();
            let mut jit = Vec::new();
            for file in package
                .gpu_code
                .iter()
                .filter(|f| is_loaded(facts, &package.name, &f.file))
            {
                let code = GpuCode {
                    cubins: file.cubins.clone(),
                    ptx: file.ptx.clone(),
                    damaged: false,
                };
                match code.coverage(*sm) {
                    Coverage::Native => {}
                    Coverage::Jit => jit.push(file),
                    Coverage::None => none.push(file),
                }
            }
            if let Some(first) = none.first() {
                let needed = none.iter().any(|f| is_needed(facts, &package.name, &f.file));
                let list: Vec<&str> = none.iter().map(|f| f.file.as_str()).collect();
                let mut finding = Finding::new(
                    "stack-gpu-not-covered",
                    if needed { Verdict::Fail } else { Verdict::Warn },
                    &package.name,
                    format!(
                        "{} of {} {} {} no code for sm_{sm}",
                        list.join(", "),
                        package.name,
                        package.version,
                        if list.len() == 1 { "has" } else { "have" }
                    ),
                )
                .why(if has_jit(facts, &package.name) {
                    "what is missing is compiled at first use, if the tools for that are there"
                } else {
                    "a kernel from there ends with `no kernel image is available for execution on the device`"
                });
                for file in none.iter().take(4) {
                    finding = finding.evidence(Evidence::new(
                        &file.file,
                        format!(
                            "cubin {}{}",
                            names(&file.cubins),
                            if file.ptx.is_empty() {
                                String::new()
                            } else {
                                format!("; PTX {}", names(&file.ptx))
                            }
                        ),
                    ));
                }
                let _ = first;
                findings.push(finding.fix(
                    format!(
                        "install a build of {} with sm_{sm}, or choose a backend that does not use it",
                        package.name
                    ),
                    None,
                    Applicability::Review,
                ));
            }
            if !jit.is_empty() {
                let list: Vec<&str> = jit.iter().map(|f| f.file.as_str()).collect();
                findings.push(
                    Finding::new(
                        "stack-gpu-jit-only",
                        Verdict::Info,
                        &package.name,
                        format!(
                            "{} of {} runs on sm_{sm} only through PTX, compiled by the driver at first use",
                            list.join(", "),
                            package.name
                        ),
                    )
                    .why("the first start is slower, and kernels tuned for this GPU are missing"),
                );
            }
        }
    }
}

/// Whether a file with GPU code would be loaded at all on these GPUs: variants for others are not.
fn is_loaded(facts: &Facts<'_>, package: &str, file: &str) -> bool {
    let planned = Catalog::get()
        .plan(package, facts.version(package).unwrap_or_default())
        .is_some_and(|p| !p.extension.is_empty());
    !planned
        || facts
            .judgement
            .extensions
            .iter()
            .any(|j| j.verdict.package == package && j.verdict.file == file)
}

fn is_needed(facts: &Facts<'_>, package: &str, file: &str) -> bool {
    facts
        .judgement
        .extensions
        .iter()
        .any(|j| j.needed && j.verdict.package == package && j.verdict.file == file)
        || (package == "torch" && file.contains("libtorch_cuda"))
}

fn launch(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let Some(needs) = &facts.launch else {
        return;
    };
    for sm in &facts.sm {
        if needs.allreduce_fusion && !matches!(sm / 10, 9 | 10) {
            findings.push(
                Finding::new(
                    "stack-allreduce-fusion",
                    Verdict::Fail,
                    "flashinfer-python",
                    format!("allreduce fusion is asked for; FlashInfer has it for sm_9x and sm_10x only, not for sm_{sm}"),
                )
                .why("capturing the CUDA graph fails: `No supported CUDA architectures found for major versions [9, 10]`")
                .fix("launch without --enable-flashinfer-allreduce-fusion", None, Applicability::Safe),
            );
        }
        if needs.torch_symm_mem && *sm < 90 {
            findings.push(Finding::new(
                "stack-symm-mem",
                Verdict::Fail,
                "torch",
                format!("torch symmetric memory is asked for and needs sm_90 or newer; this is sm_{sm}"),
            ));
        }
        if needs.fp8 && *sm < 89 {
            findings.push(
                Finding::new(
                    "stack-fp8",
                    Verdict::Fail,
                    format!("sm_{sm}"),
                    format!("FP8 is asked for; sm_{sm} has no FP8 units (sm_89 or newer has)"),
                )
                .confidence(Confidence::Likely),
            );
        }
        if needs.bf16 && *sm < 80 {
            findings.push(
                Finding::new(
                    "stack-bf16",
                    Verdict::Fail,
                    format!("sm_{sm}"),
                    format!("bfloat16 is asked for; it needs compute capability 8.0, this is sm_{sm}"),
                )
                .fix("launch with --dtype half", None, Applicability::Review),
            );
        }
        if needs
            .attention_backend
            .as_deref()
            .is_some_and(|b| b.starts_with("trtllm"))
            && sm / 10 != 10
        {
            findings.push(
                Finding::new(
                    "stack-attention-backend",
                    Verdict::Fail,
                    "flashinfer-python",
                    format!("the trtllm attention backend has kernels for sm_10x only, not for sm_{sm}"),
                )
                .confidence(Confidence::Likely)
                .fix(
                    "launch with --attention-backend flashinfer or triton",
                    None,
                    Applicability::Review,
                ),
            );
        }
    }
    if let (Some(tp), Some(heads)) = (needs.tp, needs.heads)
        && tp > 0
        && heads % tp != 0
    {
        findings.push(
            Finding::new(
                "stack-tp-heads",
                Verdict::Fail,
                "tensor parallelism",
                format!("{heads} attention heads cannot be divided among {tp} GPUs"),
            )
            .why("the engine refuses it when it builds the model")
            .fix(
                "choose a tensor parallel size that divides the heads",
                None,
                Applicability::Review,
            ),
        );
    }
    let present = facts.stack.gpus.len() as u32;
    if let Some(tp) = needs.tp
        && !facts.sm_named
        && present > 0
        && tp > present
    {
        findings.push(Finding::new(
            "stack-tp-gpus",
            Verdict::Fail,
            "tensor parallelism",
            format!("{tp} GPUs are asked for, {present} are here"),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        for (text, sm) in [
            ("sm_120", Some(120)),
            ("sm90a", Some(90)),
            ("8.9", Some(89)),
            ("12.1", Some(121)),
            ("100f", Some(100)),
            ("x", None),
            ("9", None),
        ] {
            assert_eq!(parse_sm(text), sm, "{text}");
        }
    }
}
