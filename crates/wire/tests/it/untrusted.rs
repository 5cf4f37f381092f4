//! Nothing that a server says makes the rest of the crate panic, and what is printed does not leak.

use proptest::prelude::*;
use serde_json::{Value, json};
use shakedown_model::Api;
use shakedown_wire::openai::{parse_error_body, parse_event, parse_models, parse_whole};
use shakedown_wire::prometheus;
use shakedown_wire::target::Target;

const APIS: [Api; 3] = [Api::Chat, Api::Completions, Api::Generate];

/// Any JSON, made of the members that the dialects have.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z\\\\\"é\n]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 5, |inner| {
        let key = prop::sample::select(vec![
            "choices",
            "index",
            "delta",
            "message",
            "text",
            "content",
            "role",
            "reasoning_content",
            "reasoning",
            "reasoning_details",
            "tool_calls",
            "function",
            "function_call",
            "name",
            "arguments",
            "finish_reason",
            "token_ids",
            "usage",
            "prompt_tokens",
            "completion_tokens",
            "prompt_tokens_details",
            "cached_tokens",
            "timings",
            "predicted_n",
            "metrics",
            "speculative_decoding",
            "num_spec_steps",
            "meta_info",
            "error",
            "object",
            "type",
            "data",
            "id",
            "meta",
            "detail",
            "msg",
            "refusal",
            "summary",
            "other",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6).prop_map(|members| Value::Object(
                members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
            )),
        ]
    })
}

/// A chunk of the ordinary shape, with any text in any channel.
fn chunk() -> impl Strategy<Value = (Value, [Option<String>; 3])> {
    let text = || prop::option::of("\\PC{0,8}|[\"\\\\\n\t\u{0}]{1,3}");
    (text(), text(), text()).prop_map(|(content, reasoning, arguments)| {
        let frame = json!({"id": "x", "choices": [{"index": 0, "delta": {
            "content": content, "reasoning_content": reasoning,
            "tool_calls": [{"index": 0, "function": {"arguments": arguments}}],
        }, "finish_reason": null}]});
        (frame, [reasoning, content, arguments])
    })
}

proptest! {
    #![proptest_config(super::cases(3000))]

    #[test]
    fn any_json_is_survived(value in value()) {
        let text = value.to_string();
        for api in APIS {
            let _event = parse_event(api, text.as_bytes());
            let _whole = parse_whole(api, text.as_bytes());
        }
        let _models = parse_models(text.as_bytes());
        let _error = parse_error_body(text.as_bytes());
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        for api in APIS {
            let _event = parse_event(api, &bytes);
            let _whole = parse_whole(api, &bytes);
        }
        let _error = parse_error_body(&bytes);
        let _page = prometheus::parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn all_text_comes_through_as_it_was((frame, texts) in chunk()) {
        let data = frame.to_string();
        let event = parse_event(Api::Chat, data.as_bytes()).unwrap();
        let seen: Vec<&str> = event.deltas.iter().map(|(_, text)| text.as_ref()).collect();
        let sent: Vec<&str> = texts.iter().flatten().map(String::as_str).filter(|text| !text.is_empty()).collect();
        prop_assert_eq!(seen, sent);
    }

    #[test]
    fn what_was_written_as_a_sample_is_read_as_it(
        name in "[a-zA-Z_:][a-zA-Z0-9_:]{0,8}",
        labels in prop::collection::vec(("[a-zA-Z_][a-zA-Z0-9_]{0,5}", "[a-z\"\\\\\n,}= é]{0,8}"), 0..4),
        value in any::<f64>(),
    ) {
        let shown: Vec<String> = labels
            .iter()
            .map(|(label, value)| {
                let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                format!("{label}=\"{value}\"")
            })
            .collect();
        let page = prometheus::parse(&format!("{name}{{{}}} {value:e} 17\n", shown.join(",")));
        prop_assert_eq!(page.bad_lines(), 0);
        let sample = &page.samples()[0];
        prop_assert_eq!(&sample.name, &name);
        prop_assert_eq!(&sample.labels, &labels);
        prop_assert!(sample.value.to_bits() == value.to_bits() || (sample.value.is_nan() && value.is_nan()));
    }

    #[test]
    fn targets_that_parse_parse_again(text in "(http://|https://|)[a-z0-9.@:/\\[\\]%-]{0,24}") {
        if let Ok(target) = Target::parse(&text)
            && target.authorization().is_none()
        {
            let again = Target::parse(&target.to_string());
            prop_assert_eq!(again.as_ref(), Ok(&target));
            prop_assert!(!target.authority().contains(['@', '/', ' ', '\r', '\n']));
        }
    }

    #[test]
    fn passwords_never_show(password in "[a-z0-9/:?#@%]{0,6}SECRET[a-z0-9/:?#@%]{0,6}", after in "[a-z:/?0-9]{0,8}") {
        for text in [format!("http://u:{password}@h:1{after}"), format!("u:{password}@h{after}")] {
            let shown = match Target::parse(&text) {
                Ok(target) => format!("{target} {target:?}"),
                Err(error) => format!("{error} {error:?}"),
            };
            prop_assert!(!shown.contains("SECRET"), "{}", shown);
        }
    }
}
