//! The part of an environment that matters to a server.

use std::collections::BTreeMap;

use crate::catalog::Entry;
use crate::mask::mask_variable;

/// Prefixes (or whole names) that matter to every engine; each entry of the catalogue adds its own.
pub const COMMON_VARIABLES: &[&str] = &[
    "CUBLAS_",
    "CUDA_",
    "CUDNN_",
    "CUTE_",
    "FLASHINFER_",
    "GLOO_",
    "GPU_",
    "HF_",
    "HIP_",
    "HSA_",
    "HUGGING_FACE_",
    "KMP_",
    "LD_",
    "MALLOC_",
    "MAX_JOBS",
    "MKL_",
    "MODELSCOPE_",
    "NCCL_",
    "NO_PROXY",
    "NUMEXPR_",
    "NVIDIA_",
    "NVSHMEM_",
    "NVTE_",
    "OMP_",
    "OPENBLAS_",
    "PATH",
    "PYTHONHASHSEED",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTORCH_",
    "RAY_",
    "RCCL_",
    "ROCM_",
    "ROCR_",
    "SAFETENSORS_",
    "TOKENIZERS_",
    "TORCH",
    "TRANSFORMERS_",
    "TRITON_",
    "TVM_",
    "UCX_",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
    "XLA_",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "all_proxy",
];

/// Longest value that is kept, in bytes.
const VALUE_CAP: usize = 4096;

/// The variables of `environment` that matter to the engine of `entry` (to any engine where there is none), with
/// their secrets masked and overlong values cut.
pub fn environment_that_matters(
    entry: Option<&Entry>,
    environment: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let own = entry.map_or(&[][..], |entry| &entry.environment[..]);
    let asked = entry.map_or(&[][..], |entry| &entry.flag[..]);
    environment
        .iter()
        .filter(|(name, _)| {
            let fits = |prefix: &str| {
                name.starts_with(prefix) && (prefix.ends_with('_') || *name == prefix || prefix == "TORCH")
            };
            COMMON_VARIABLES.iter().any(|prefix| fits(prefix))
                || own.iter().any(|prefix| fits(prefix))
                || asked.iter().any(|flag| flag.env.contains(name))
        })
        .map(|(name, value)| (name.clone(), cut(mask_variable(name, value))))
        .collect()
}

fn cut(mut value: String) -> String {
    if value.len() > VALUE_CAP {
        let mut end = VALUE_CAP;
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        value.truncate(end);
        value.push('…');
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use shakedown_model::EngineKind;

    #[test]
    fn what_matters() {
        let environment: BTreeMap<String, String> = [
            ("HOME", "/root"),
            ("PATH", "/bin"),
            ("PATHS", "x"),
            ("NCCL_DEBUG", "INFO"),
            ("SGLANG_X", "1"),
            ("HF_TOKEN", "secret"),
            ("VLLM_PORT", "tcp://10.0.0.1:80"),
            ("TORCHINDUCTOR_CACHE_DIR", "/c"),
            ("LLAMA_ARG_PORT", "1"),
        ]
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
        let catalog = Catalog::built_in();
        let of = |kind: EngineKind| {
            environment_that_matters(Some(catalog.entry(kind)), &environment)
                .into_keys()
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of(EngineKind::Sglang),
            [
                "HF_TOKEN",
                "NCCL_DEBUG",
                "PATH",
                "SGLANG_X",
                "TORCHINDUCTOR_CACHE_DIR"
            ]
        );
        assert!(of(EngineKind::Vllm).contains(&"VLLM_PORT".to_owned()));
        assert!(of(EngineKind::LlamaCpp).contains(&"LLAMA_ARG_PORT".to_owned()));
        assert_eq!(environment_that_matters(None, &environment)["HF_TOKEN"], "***");
    }

    #[test]
    fn overlong_values_are_cut() {
        let environment = [("LD_LIBRARY_PATH".to_owned(), "é".repeat(VALUE_CAP))].into();
        let kept = environment_that_matters(None, &environment);
        assert!(kept["LD_LIBRARY_PATH"].len() <= VALUE_CAP + 4);
    }
}
