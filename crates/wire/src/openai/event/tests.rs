use super::*;

fn chat(data: &str) -> StreamEvent<'_> {
    parse_event(Api::Chat, data.as_bytes()).unwrap()
}

/// The deltas as pairs that compare easily.
fn deltas<'a>(event: &'a StreamEvent<'_>) -> Vec<(Channel, &'a str)> {
    event
        .deltas
        .iter()
        .map(|(channel, text)| (*channel, text.as_ref()))
        .collect()
}

fn delta(json: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{json},"finish_reason":null}}]}}"#)
}

#[test]
fn terminator_and_empty_data() {
    for data in ["[DONE]", " [DONE]\r", "[DONE] "] {
        assert!(chat(data).done, "{data:?}");
    }
    assert_eq!(chat(""), StreamEvent::default());
    assert_eq!(chat(" "), StreamEvent::default());
}

#[test]
fn the_role_chunk_is_no_token() {
    for json in [
        r#"{"role":"assistant","content":""}"#,
        r#"{"role":"assistant","content":null}"#,
        r#"{"role":"assistant"}"#,
    ] {
        let data = delta(json);
        let event = chat(&data);
        assert!(
            event.role && event.deltas.is_empty() && !event.empty_content && !event.has_text(),
            "{json}"
        );
    }
    // SGLang writes the role and nulls into later chunks too, others a role with text.
    let data = delta(r#"{"role":null,"content":"hi","reasoning_content":null,"tool_calls":null}"#);
    assert_eq!(deltas(&chat(&data)), [(Channel::Content, "hi")]);
    assert!(!chat(&data).role);
    let data = delta(r#"{"role":"assistant","content":"hi"}"#);
    assert_eq!(deltas(&chat(&data)), [(Channel::Content, "hi")]);
}

#[test]
fn channels_in_order_of_generation() {
    let data = delta(
        r#"{"content":"c","reasoning_content":"r","tool_calls":[{"index":0,"function":{"name":"f","arguments":"{"}}]}"#,
    );
    assert_eq!(
        deltas(&chat(&data)),
        [
            (Channel::Reasoning, "r"),
            (Channel::Content, "c"),
            (Channel::ToolCall, "f"),
            (Channel::ToolCall, "{")
        ]
    );
    for json in [
        r#"{"reasoning":"r"}"#,
        r#"{"reasoning_content":"r","reasoning":"r"}"#,
        r#"{"reasoning_content":"","reasoning":"r"}"#,
        r#"{"reasoning":"r","reasoning_details":[{"type":"reasoning.text","text":"r"}]}"#,
        r#"{"reasoning_details":[{"type":"reasoning.text","text":"r"}]}"#,
        r#"{"reasoning_details":[{"type":"reasoning.summary","summary":"r"}]}"#,
    ] {
        assert_eq!(deltas(&chat(&delta(json))), [(Channel::Reasoning, "r")], "{json}");
    }
    let data = delta(r#"{"function_call":{"name":"f","arguments":""}}"#);
    assert_eq!(deltas(&chat(&data)), [(Channel::ToolCall, "f")]);
    let data = delta(r#"{"refusal":"no"}"#);
    assert_eq!(deltas(&chat(&data)), [(Channel::Content, "no")]);
    let data = delta(r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#);
    assert_eq!(
        deltas(&chat(&data)),
        [(Channel::Content, "a"), (Channel::Content, "b")]
    );
}

#[test]
fn empty_content_without_a_role_may_be_a_token() {
    let data = delta(r#"{"content":""}"#);
    assert!(chat(&data).empty_content && !chat(&data).has_text());
    for json in [r#"{"content":null}"#, r"{}", r#"{"content":"","reasoning":"r"}"#] {
        assert!(!chat(&delta(json)).empty_content, "{json}");
    }
}

#[test]
fn escapes_and_borrowing() {
    let data = delta(r#"{"content":"a\n\u00e9\ud83d\ude00"}"#);
    let event = chat(&data);
    assert_eq!(deltas(&event), [(Channel::Content, "a\né😀")]);
    assert!(matches!(event.deltas.first(), Some((_, Cow::Owned(_)))));
    let data = delta(r#"{"content":"é"}"#);
    assert!(matches!(
        chat(&data).deltas.first(),
        Some((_, Cow::Borrowed("é")))
    ));
}

#[test]
fn finish_usage_and_ids() {
    let event = chat(
        r#"{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"length","stop_reason":null,"token_ids":[5,6,7]}],
            "usage":{"prompt_tokens":42,"total_tokens":106,"completion_tokens":64,
                     "prompt_tokens_details":{"cached_tokens":41},"completion_tokens_details":{"reasoning_tokens":3}}}"#,
    );
    assert_eq!(event.finish_reason.as_deref(), Some("length"));
    assert_eq!(event.token_ids, Some(3));
    assert_eq!(
        event.usage,
        Some(Usage {
            input: Some(42),
            output: Some(64),
            cached: Some(41),
            reasoning: Some(3)
        })
    );
    let nulls = r#"{"choices":[{"delta":{},"token_ids":null}],"usage":null,"timings":null,"metrics":null}"#;
    let event = chat(nulls);
    assert_eq!(
        (event.token_ids, event.usage, event.timings, event.spec),
        (None, None, None, None)
    );
    let event = chat(
        r#"{"choices":[],"usage":{"completion_tokens":0,"prompt_tokens_details":null,"reasoning_tokens":0}}"#,
    );
    assert_eq!(
        event.usage,
        Some(Usage {
            input: None,
            output: Some(0),
            cached: None,
            reasoning: Some(0)
        }),
        "what is not there is unknown, not 0"
    );
}

#[test]
fn counts_are_counts() {
    for (number, count) in [
        ("12", Some(12)),
        ("12.0", Some(12)),
        ("12.5", None),
        ("-1", None),
        ("\"12\"", None),
        ("1e30", None),
    ] {
        let data = format!(r#"{{"choices":[],"usage":{{"completion_tokens":{number}}}}}"#);
        assert_eq!(
            chat(&data).usage.and_then(|usage| usage.output),
            count,
            "{number}"
        );
    }
}

#[test]
fn completions() {
    let read = |data| parse_event(Api::Completions, data).unwrap();
    let event = read(br#"{"choices":[{"index":0,"text":" the","logprobs":null,"finish_reason":null}]}"#);
    assert_eq!(deltas(&event), [(Channel::Content, " the")]);
    let event = read(br#"{"choices":[{"index":0,"text":"","finish_reason":"stop"}]}"#);
    assert!(event.deltas.is_empty() && event.empty_content);
    assert_eq!(event.finish_reason.as_deref(), Some("stop"));
}

#[test]
fn errors_in_any_frame() {
    for (data, expected) in [
        (r#"{"error":{"message":"boom","type":"x","code":500}}"#, "boom"),
        (r#"{"error":{"type":"server_error"}}"#, "server_error"),
        (r#"{"error":"boom"}"#, "boom"),
        (r#"{"object":"error","message":"boom","code":400}"#, "boom"),
        (r#"{"object":"error"}"#, "an error without a message"),
        (r#"{"error":{}}"#, "an error without a message"),
        (r#"{"choices":[],"error":{"message":"boom"}}"#, "boom"),
    ] {
        for api in [Api::Chat, Api::Completions, Api::Generate] {
            let event = parse_event(api, data.as_bytes()).unwrap();
            assert_eq!(event.error.as_deref(), Some(expected), "{data}");
        }
    }
    for data in [
        r#"{"error":null}"#,
        r#"{"error":""}"#,
        r#"{"error":false}"#,
        r#"{"message":"m"}"#,
    ] {
        assert_eq!(chat(data).error, None, "{data}");
    }
}

#[test]
fn only_the_first_choice_counts() {
    let event = chat(r#"{"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"stop"}]}"#);
    assert!(event.other_choice && event.deltas.is_empty() && event.finish_reason.is_none());
    let event =
        chat(r#"{"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]}"#);
    assert_eq!(deltas(&event), [(Channel::Content, "a")]);
}

#[test]
fn speculation_of_both_engines() {
    let expected = Some(SpecFigures {
        verify_steps: Some(10),
        drafted: Some(30),
        accepted: Some(15),
        length: Some(2.5),
        rate: Some(0.5),
    });
    let figures = r#"{"speculative_decoding":{"mean_acceptance_length":2.5,"draft_acceptance_rate":0.5,
        "acceptance_histogram":[1,2],"num_spec_steps":10,"num_accepted_draft_tokens":15,"num_draft_tokens":30,"num_spec_tokens":3}}"#;
    let within = format!(r#"{{"choices":[],"usage":{{"completion_tokens":25,"metrics":{figures}}}}}"#);
    assert_eq!(chat(&within).spec, expected);
    let beside = format!(r#"{{"choices":[],"usage":{{"completion_tokens":25}},"metrics":{figures}}}"#);
    assert_eq!(chat(&beside).spec, expected);
    let generate = parse_event(
        Api::Generate,
        br#"{"text":"abc","output_ids":[1,2],"meta_info":{"id":"x","finish_reason":{"type":"length","length":25},
            "prompt_tokens":4,"completion_tokens":25,"cached_tokens":1,"spec_accept_length":2.5,"spec_accept_rate":0.5,
            "spec_accept_token_num":15,"spec_draft_token_num":30,"spec_verify_ct":10,"spec_accept_histogram":[1]}}"#,
    )
    .unwrap();
    assert_eq!(generate.spec, expected);
    assert_eq!(generate.generate_text.as_deref(), Some("abc"));
    assert_eq!(generate.generate_tokens, Some(25));
    assert_eq!(generate.finish_reason.as_deref(), Some("length"));
    let usage = generate.usage.unwrap();
    assert_eq!(
        (usage.input, usage.output, usage.cached),
        (Some(4), Some(25), Some(1))
    );
    assert!(generate.has_text());
}

#[test]
fn an_aborted_generate_is_an_error() {
    let data = br#"{"text":"","meta_info":{"finish_reason":{"type":"abort","message":"too long","status_code":400}}}"#;
    let event = parse_event(Api::Generate, data).unwrap();
    assert_eq!(event.error.as_deref(), Some("too long"));
    assert_eq!(event.finish_reason.as_deref(), Some("abort"));
}

#[test]
fn what_is_no_frame_is_refused_without_being_shown() {
    type Check = fn(&ParseError) -> bool;
    let cases: [(&[u8], Check); 9] = [
        (b"{\"choices\":[", |e| matches!(e, ParseError::Incomplete)),
        (b"{\"choices\":[}", |e| matches!(e, ParseError::Syntax { .. })),
        (b"{\"choices\":\"PRIVATE\"}", |e| {
            matches!(e, ParseError::Shape { .. })
        }),
        (b"{\"choices\":[{\"delta\":\"PRIVATE\"}]}", |e| {
            matches!(e, ParseError::Shape { .. })
        }),
        (b"{\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}", |e| {
            matches!(e, ParseError::Syntax { .. })
        }),
        (b"PRIVATE", |e| matches!(e, ParseError::NotAnObject)),
        (b"[]", |e| matches!(e, ParseError::NotAnObject)),
        (b"7", |e| matches!(e, ParseError::NotAnObject)),
        (b"{} {}", |e| matches!(e, ParseError::Syntax { .. })),
    ];
    for (data, check) in cases {
        let error = parse_event(Api::Chat, data).unwrap_err();
        assert!(check(&error), "{}: {error:?}", data.escape_ascii());
        assert!(!format!("{error} {error:?}").contains("PRIVATE"));
    }
}
