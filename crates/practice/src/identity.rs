//! What the server says of itself: the endpoints by which each engine is known, and its settings.

use serde_json::{Map, Value, json};

use crate::metrics::Speculation;
use crate::options::{Manners, Options};
use crate::shared::Shared;
use crate::tokenizer;

/// The version that each engine's manners are taken from.
const SGLANG_VERSION: &str = "0.5.9";
const VLLM_VERSION: &str = "0.33.0";
/// Decode steps between two of SGLang's log lines: figures of speculation exist only after the first.
const SGLANG_LOG_INTERVAL: u64 = 40;

/// The list of models.
pub(crate) fn models(shared: &Shared, listed: bool) -> Value {
    let options = &shared.options;
    let (model, created, context) = (&options.model, shared.started_unix, options.context);
    if !listed {
        return json!({"object": "list", "data": []});
    }
    let data = match options.engine {
        Manners::Plain => json!({
            "id": model, "object": "model", "created": created, "owned_by": "shakedown",
            "max_model_len": context,
        }),
        Manners::Sglang => json!({
            "id": model, "object": "model", "created": created, "owned_by": "sglang", "root": model,
            "parent": null, "max_model_len": context,
        }),
        Manners::Vllm => json!({
            "id": model, "object": "model", "created": created, "owned_by": "vllm", "root": model,
            "parent": null, "max_model_len": context,
            "permission": [{
                "id": "modelperm-practice", "object": "model_permission", "created": created,
                "allow_create_engine": false, "allow_sampling": true, "allow_logprobs": true,
                "allow_search_indices": false, "allow_view": true, "allow_fine_tuning": false,
                "organization": "*", "group": null, "is_blocking": false,
            }],
        }),
        Manners::LlamaCpp => json!({
            "id": model, "aliases": [model], "tags": [], "object": "model",
            "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
            "created": created, "owned_by": "llamacpp",
            "meta": {
                "vocab_type": 2, "n_vocab": tokenizer::VOCABULARY, "n_ctx": context, "n_ctx_train": context,
                "n_embd": 576, "n_params": 134_515_008, "size": 96_576_768, "ftype": "Q4_1",
            },
        }),
    };
    let mut list = json!({"object": "list", "data": [data]});
    if options.engine == Manners::LlamaCpp {
        list["models"] = json!([{
            "name": model, "model": model, "modified_at": "", "size": "", "digest": "", "type": "model",
            "description": "", "tags": [""], "capabilities": ["completion"], "parameters": "",
            "details": {
                "parent_model": "", "format": "gguf", "family": "", "families": [""], "parameter_size": "",
                "quantization_level": "",
            },
        }]);
    }
    list
}

/// An endpoint of SGLang's own.
pub(crate) fn sglang(shared: &Shared, path: &str) -> Option<Value> {
    let options = &shared.options;
    match path {
        "/model_info" | "/get_model_info" => Some(json!({
            "model_path": options.model, "tokenizer_path": options.model, "is_generation": true,
            "preferred_sampling_params": null, "weight_version": "default", "has_image_understanding": false,
            "has_audio_understanding": false, "model_type": "practice",
            "architectures": ["PracticeForCausalLM"],
        })),
        "/server_info" | "/get_server_info" => Some(server_info(shared)),
        "/" => Some(json!("Ollama is running")),
        _ => None,
    }
}

fn server_info(shared: &Shared) -> Value {
    let options = &shared.options;
    let mut asked = sglang_arguments(options, shared.address.port());
    let mut state = asked.clone();
    asked.extend(settings(&options.settings_asked));
    // What the scheduler resolved for itself: the launcher's copy still has what was asked.
    state.insert("attention_backend".to_owned(), json!("flashinfer"));
    state.insert("sampling_backend".to_owned(), json!("flashinfer"));
    state.extend(settings(&options.settings_asked));
    state.extend(settings(&options.settings_in_force));
    let counters = &shared.counters;
    let latencies = counters.latencies();
    let generated = counters
        .generated_tokens
        .load(std::sync::atomic::Ordering::Relaxed);
    let throughput = if latencies.predicted_s > 0.0 {
        generated as f64 / latencies.predicted_s
    } else {
        0.0
    };
    state.insert("last_gen_throughput".to_owned(), json!(throughput));
    state.insert(
        "memory_usage".to_owned(),
        json!({"weight": 0.25, "kvcache": 1.5, "token_capacity": options.context, "graph": 0.1}),
    );
    state.insert(
        "effective_max_running_requests_per_dp".to_owned(),
        json!(options.slots.unwrap_or(2048)),
    );
    let accepted = Speculation::of(counters);
    if options.acceptance.is_some() && accepted.drafts >= SGLANG_LOG_INTERVAL {
        state.insert("avg_spec_accept_length".to_owned(), json!(accepted.length()));
    }
    asked.insert("status".to_owned(), json!("ready"));
    asked.insert("max_total_num_tokens".to_owned(), json!(options.context));
    asked.insert(
        "max_req_input_len".to_owned(),
        json!(options.context.saturating_sub(6)),
    );
    asked.insert("internal_states".to_owned(), json!([state]));
    asked.insert("version".to_owned(), json!(SGLANG_VERSION));
    Value::Object(asked)
}

fn settings(
    settings: &std::collections::BTreeMap<String, Value>,
) -> impl Iterator<Item = (String, Value)> + '_ {
    settings.iter().map(|(name, value)| (name.clone(), value.clone()))
}

/// The arguments as the launcher keeps them.
fn sglang_arguments(options: &Options, port: u16) -> Map<String, Value> {
    let steps = options
        .acceptance
        .as_ref()
        .map(crate::options::Acceptance::drafts);
    let value = json!({
        "model_path": options.model, "tokenizer_path": options.model, "served_model_name": options.model,
        "host": options.host, "port": port,
        // As this version does: in clear. Whoever stores it has to mask it.
        "api_key": options.api_key.as_ref().map(shakedown_model::Secret::expose),
        "dtype": "auto", "quantization": null, "kv_cache_dtype": "auto", "context_length": options.context,
        "tp_size": 1, "dp_size": 1, "pp_size": 1, "ep_size": 1, "mem_fraction_static": 0.85,
        "max_running_requests": options.slots, "chunked_prefill_size": 8192, "page_size": 1,
        "schedule_policy": "fcfs", "disable_radix_cache": !options.prefix_cache, "disable_cuda_graph": false,
        "disable_overlap_schedule": steps.is_some(), "attention_backend": null, "sampling_backend": null,
        "prefill_attention_backend": null, "decode_attention_backend": null,
        "enable_flashinfer_allreduce_fusion": false, "enable_torch_symm_mem": false, "enable_symm_mem": false,
        "disable_custom_all_reduce": false, "enable_metrics": options.metrics,
        "enable_cache_report": options.report_cached.unwrap_or(false), "stream_interval": 1,
        "speculative_algorithm": steps.map(|_| "EAGLE3"),
        "speculative_draft_model_path": steps.map(|_| format!("{}-draft", options.model)),
        "speculative_num_steps": steps, "speculative_eagle_topk": steps.map(|_| 1),
        "speculative_num_draft_tokens": steps.map(|steps| steps + 1),
        "random_seed": options.seed,
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// An endpoint of vLLM's own.
pub(crate) fn vllm(shared: &Shared, path: &str) -> Option<Value> {
    match path {
        "/version" => Some(json!({"version": VLLM_VERSION})),
        "/load" => Some(json!({"server_load": shared.counters.running() + shared.counters.waiting()})),
        _ => None,
    }
}

/// An endpoint of llama-server's own.
pub(crate) fn llama_cpp(shared: &Shared, path: &str) -> Option<Value> {
    let options = &shared.options;
    let total = options.slots.unwrap_or(4);
    let speculates = options.acceptance.is_some();
    match path {
        "/props" => Some(json!({
            "default_generation_settings": {
                "params": {
                    "seed": u32::MAX, "temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05,
                    "max_tokens": -1, "n_predict": -1, "ignore_eos": false, "stream": false,
                    "speculative.types": if speculates { "draft-simple" } else { "none" },
                    "timings_per_token": false, "lora": [],
                },
                "n_ctx": options.context,
            },
            "total_slots": total, "model_alias": options.model, "model_ftype": "Q4_1",
            "model_path": format!("models/{}.gguf", options.model),
            "modalities": {"vision": false, "video": false, "audio": false},
            "endpoint_slots": true, "endpoint_props": false, "endpoint_metrics": options.metrics,
            "chat_template": tokenizer::TEMPLATE, "bos_token": "<|turn|>", "eos_token": "<|end|>",
            "build_info": "b0-practice", "is_sleeping": false,
        })),
        "/slots" => {
            let running = shared.counters.running();
            let slots: Vec<Value> = (0..total.min(1024))
                .map(|id| {
                    json!({
                        "id": id, "n_ctx": options.context, "speculative": speculates,
                        "is_processing": id < running,
                    })
                })
                .collect();
            Some(Value::Array(slots))
        }
        _ => None,
    }
}
