//! What differs between two sides: candidates, never causes.

use std::collections::{BTreeMap, BTreeSet};

use shakedown_model::{Difference, DifferenceKind, InForce, RunDocument};

use crate::Side;

/// Settings that are known to move throughput or latency, most able first, by our names and by those of common flags
/// (without dashes, `-` as `_`). A catalogue can bring its own order ([`Options::movers`](crate::Options)).
pub const KNOWN_MOVERS: &[&str] = &[
    "attention_backend",
    "decode_attention_backend",
    "prefill_attention_backend",
    "speculative_algorithm",
    "speculative_config",
    "speculative_num_steps",
    "speculative_num_draft_tokens",
    "speculative_eagle_topk",
    "speculative_attention_mode",
    "speculative_draft_model",
    "speculative_draft_model_path",
    "quantization",
    "kv_cache_dtype",
    "dtype",
    "disable_cuda_graph",
    "enforce_eager",
    "cuda_graph_max_bs",
    "cudagraph_mode",
    "compilation_config",
    "moe_runner_backend",
    "moe_a2a_backend",
    "sampling_backend",
    "tp_size",
    "tp",
    "tensor_parallel_size",
    "pp_size",
    "dp_size",
    "ep_size",
    "dp_attention",
    "allreduce_fusion",
    "disable_custom_all_reduce",
    "torch_symm_mem",
    "disable_overlap_schedule",
    "chunked_prefill_size",
    "max_num_batched_tokens",
    "max_running_requests",
    "max_num_seqs",
    "disable_radix_cache",
    "enable_prefix_caching",
    "mem_fraction_static",
    "gpu_memory_utilization",
    "page_size",
    "threads",
    "t",
    "threads_batch",
    "n_gpu_layers",
    "ngl",
    "flash_attn",
    "fa",
    "parallel",
    "np",
    "batch_size",
    "ubatch_size",
    "context_length",
];

/// Beginnings of environment variables that are known to move throughput or latency.
const MOVING_ENVIRONMENT: &[&str] = &[
    "CUDA_",
    "FLASHINFER_",
    "NCCL_",
    "OMP_",
    "SGLANG_",
    "SGL_",
    "TORCH",
    "TRITON_",
    "VLLM_",
    "GGML_",
    "LLAMA_",
    "ROCR_",
    "HIP_",
    "LD_PRELOAD",
];

/// What differs between the runs of two sides, sorted: settings in force, then the engine, arguments, environment,
/// stack and machine; within each what can move the figures first. A side whose runs differ among themselves shows
/// all its values.
pub fn differences(a: &Side<'_>, b: &Side<'_>, movers: &[String]) -> Vec<Difference> {
    let mut found = Vec::new();
    in_force(a, b, &mut found);
    let mut compare = |kind, of: fn(&RunDocument) -> BTreeMap<String, String>| {
        let (values_a, values_b) = (gather(a, of), gather(b, of));
        let names: BTreeSet<&String> = values_a.keys().chain(values_b.keys()).collect();
        for name in names {
            let (one, other) = (values_a.get(name), values_b.get(name));
            if one != other {
                found.push(difference(kind, name, one, other));
            }
        }
    };
    compare(DifferenceKind::Engine, engine);
    compare(DifferenceKind::Argument, |run| flags(&run.server.arguments));
    compare(DifferenceKind::Environment, |run| run.server.environment.clone());
    compare(DifferenceKind::Stack, |run| {
        run.stack_fingerprint
            .iter()
            .map(|print| ("fingerprint".to_owned(), print.clone()))
            .collect()
    });
    compare(DifferenceKind::Host, machine);
    for difference in &mut found {
        difference.can_move = can_move(difference, movers);
    }
    sort_differences(&mut found, movers);
    found
}

/// Sorts differences as [`differences`] does, after others have been added.
pub fn sort_differences(differences: &mut [Difference], movers: &[String]) {
    differences.sort_by_cached_key(|difference| {
        let name = plain(&difference.name);
        let place = movers
            .iter()
            .position(|mover| *mover == name)
            .unwrap_or(usize::MAX);
        (
            difference.kind,
            !difference.can_move,
            place,
            difference.name.clone(),
        )
    });
}

fn can_move(difference: &Difference, movers: &[String]) -> bool {
    match difference.kind {
        DifferenceKind::InForce | DifferenceKind::Argument => {
            let name = plain(&difference.name);
            movers.contains(&name)
        }
        DifferenceKind::Environment => MOVING_ENVIRONMENT
            .iter()
            .any(|start| difference.name.starts_with(start)),
        DifferenceKind::Engine
        | DifferenceKind::Patch
        | DifferenceKind::Hook
        | DifferenceKind::Stack
        | DifferenceKind::Gpu => true,
        DifferenceKind::Host => difference.name != "shakedown",
    }
}

/// A flag's name as settings are named.
fn plain(name: &str) -> String {
    name.trim_start_matches('-').replace('-', "_")
}

/// The values of each name over the runs of a side.
fn gather(
    side: &Side<'_>,
    of: impl Fn(&RunDocument) -> BTreeMap<String, String>,
) -> BTreeMap<String, BTreeSet<Option<String>>> {
    let each: Vec<_> = side.runs.iter().map(|run| of(run)).collect();
    let names: BTreeSet<&String> = each.iter().flat_map(BTreeMap::keys).collect();
    names
        .into_iter()
        .map(|name| {
            (
                name.clone(),
                each.iter().map(|values| values.get(name).cloned()).collect(),
            )
        })
        .collect()
}

fn difference(
    kind: DifferenceKind,
    name: &str,
    a: Option<&BTreeSet<Option<String>>>,
    b: Option<&BTreeSet<Option<String>>>,
) -> Difference {
    let shown = |values: Option<&BTreeSet<Option<String>>>| {
        values.map(|values| {
            let words: Vec<&str> = values
                .iter()
                .map(|value| value.as_deref().unwrap_or("(absent)"))
                .collect();
            words.join(" | ")
        })
    };
    let mixed = |values: Option<&BTreeSet<Option<String>>>| values.is_some_and(|values| values.len() > 1);
    let note = match (mixed(a), mixed(b)) {
        (false, false) => None,
        (true, false) => Some("it varies among the runs of A".to_owned()),
        (false, true) => Some("it varies among the runs of B".to_owned()),
        (true, true) => Some("it varies among the runs of both sides".to_owned()),
    };
    Difference {
        kind,
        name: name.to_owned(),
        a: shown(a),
        b: shown(b),
        can_move: false,
        note,
    }
}

/// Settings in force, where both sides tell: an engine that does not report one does not lack it.
fn in_force(a: &Side<'_>, b: &Side<'_>, found: &mut Vec<Difference>) {
    let told =
        |side: &Side<'_>| !side.runs.is_empty() && side.runs.iter().all(|run| run.server.in_force.is_some());
    if !told(a) || !told(b) {
        return;
    }
    let settings = |of: fn(&InForce) -> &Vec<shakedown_model::Setting>| {
        move |run: &RunDocument| -> BTreeMap<String, String> {
            run.server
                .in_force
                .iter()
                .flat_map(of)
                .map(|setting| (setting.name.clone(), setting.value.clone()))
                .collect()
        }
    };
    let (force_a, force_b) = (
        gather(a, settings(|in_force| &in_force.settings)),
        gather(b, settings(|in_force| &in_force.settings)),
    );
    let (asked_a, asked_b) = (
        gather(a, settings(|in_force| &in_force.asked)),
        gather(b, settings(|in_force| &in_force.asked)),
    );
    let names: BTreeSet<&String> = force_a.keys().chain(force_b.keys()).collect();
    for name in names {
        let (one, other) = (force_a.get(name), force_b.get(name));
        if one == other {
            continue;
        }
        let mut difference = difference(DifferenceKind::InForce, name, one, other);
        if difference.note.is_none() {
            difference.note = match (asked_a.get(name), asked_b.get(name)) {
                (None, None) => Some("asked for on neither side: the engine chose".to_owned()),
                (asked, other_asked) if asked == other_asked => {
                    Some("asked for alike on both sides: the engine chose otherwise".to_owned())
                }
                _ => Some("asked for differently".to_owned()),
            };
        }
        found.push(difference);
    }
}

fn engine(run: &RunDocument) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    if let Some(engine) = &run.server.engine {
        values.insert("engine".to_owned(), engine.kind.to_string());
        if let Some(version) = &engine.version {
            values.insert("version".to_owned(), version.clone());
        }
    }
    values
}

fn machine(run: &RunDocument) -> BTreeMap<String, String> {
    let client = &run.client;
    let mut values = BTreeMap::from([
        ("host".to_owned(), client.host.clone()),
        ("kernel".to_owned(), client.kernel.clone()),
        ("CPUs".to_owned(), client.cpus.to_string()),
        ("shakedown".to_owned(), run.tool_version.clone()),
    ]);
    if let Some(model) = &client.cpu_model {
        values.insert("CPU".to_owned(), model.clone());
    }
    values
}

/// Arguments by flag: `--port 8000` and `--port=8000` are one thing, a flag given twice has both values, a flag without
/// a value is "given", and what stands before the first flag is the command.
fn flags(arguments: &[String]) -> BTreeMap<String, String> {
    let is_flag = |text: &str| text.len() > 1 && text.starts_with('-') && text.parse::<f64>().is_err();
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut current: Option<(String, Vec<String>)> = None;
    let mut command = Vec::new();
    let mut put = |flag: Option<(String, Vec<String>)>| {
        if let Some((name, words)) = flag {
            let value = if words.is_empty() {
                "given".to_owned()
            } else {
                words.join(" ")
            };
            values.entry(name).or_default().push(value);
        }
    };
    for argument in arguments {
        if is_flag(argument) {
            put(current.take());
            current = Some(match argument.split_once('=') {
                Some((name, value)) => (name.to_owned(), vec![value.to_owned()]),
                None => (argument.clone(), Vec::new()),
            });
        } else if let Some((_, words)) = &mut current {
            words.push(argument.clone());
        } else {
            command.push(argument.clone());
        }
    }
    put(current);
    if !command.is_empty() {
        values.insert("command".to_owned(), vec![command.join(" ")]);
    }
    values
        .into_iter()
        .map(|(name, values)| (name, values.join(", ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> BTreeMap<String, String> {
        flags(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn spellings_of_one_flag_are_one() {
        assert_eq!(of("serve --port 8000 --tp 8"), of("serve --tp=8 --port=8000"));
        let flags = of("python -m sglang.launch_server --seed -1 --enable-metrics --header a --header b");
        assert_eq!(flags["command"], "python");
        assert_eq!(flags["-m"], "sglang.launch_server");
        assert_eq!(flags["--seed"], "-1");
        assert_eq!(flags["--enable-metrics"], "given");
        assert_eq!(flags["--header"], "a, b");
    }
}
