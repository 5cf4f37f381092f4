//! Recordings of real servers (vLLM 0.32, llama.cpp with a draft model), read to the last member.

use std::ops::ControlFlow;

use shakedown_model::{Api, Channel};
use shakedown_wire::openai::{
    SpecFigures, Timings, Usage, parse_error_body, parse_event, parse_models, parse_whole,
};
use shakedown_wire::prometheus;
use shakedown_wire::sse::{SseEvent, SseReader};

#[derive(Default)]
struct Stream {
    events: usize,
    roles: usize,
    content_chunks: usize,
    text: String,
    finish: Option<String>,
    usage: Option<Usage>,
    timings: Option<Timings>,
    spec: Option<SpecFigures>,
    done: usize,
    token_ids: Option<u32>,
}

fn read(bytes: &[u8], push: usize) -> Stream {
    let mut stream = Stream::default();
    let mut reader = SseReader::new(1 << 20);
    for part in bytes.chunks(push) {
        reader
            .push(part, |event| {
                let SseEvent::Data { data, event: None } = event else {
                    panic!("{event:?}")
                };
                let event = parse_event(Api::Chat, data).unwrap();
                stream.events += 1;
                stream.roles += usize::from(event.role);
                stream.done += usize::from(event.done);
                assert!(event.error.is_none() && !event.empty_content && !event.other_choice);
                assert!(event.deltas.len() <= 1);
                for (channel, text) in &event.deltas {
                    assert_eq!(*channel, Channel::Content);
                    stream.content_chunks += 1;
                    stream.text.push_str(text);
                }
                if let Some(reason) = event.finish_reason {
                    assert_eq!(
                        stream.finish.replace(reason.into_owned()),
                        None,
                        "one finish reason"
                    );
                }
                stream.usage = event.usage.or(stream.usage);
                stream.timings = event.timings.or(stream.timings);
                stream.spec = event.spec.or(stream.spec);
                stream.token_ids = event.token_ids.or(stream.token_ids);
                ControlFlow::Continue(())
            })
            .unwrap();
    }
    assert!(!reader.has_unfinished_event());
    stream
}

#[test]
fn vllm_stream() {
    for push in [1, 7, 4096, usize::MAX] {
        let stream = read(include_bytes!("../data/chat-vllm.sse"), push);
        // Role, 64 tokens of which the last brings the finish reason, usage, terminator.
        assert_eq!(
            (stream.events, stream.roles, stream.content_chunks, stream.done),
            (67, 1, 64, 1)
        );
        assert_eq!(stream.finish.as_deref(), Some("length"));
        assert_eq!(
            stream.usage,
            Some(Usage {
                input: Some(42),
                output: Some(64),
                cached: None,
                reasoning: None
            })
        );
        assert_eq!(
            (stream.timings, stream.spec, stream.token_ids),
            (None, None, None)
        );
        assert!(stream.text.starts_with("As the AI, AI"), "{}", stream.text);
        assert!(stream.text.ends_with(" with creating a robot"), "{}", stream.text);
    }
}

#[test]
fn llama_cpp_stream() {
    for push in [1, 7, 4096, usize::MAX] {
        let stream = read(include_bytes!("../data/chat-llamacpp.sse"), push);
        // Role with null, 64 tokens, an empty finish chunk, usage with timings, terminator.
        assert_eq!(
            (stream.events, stream.roles, stream.content_chunks, stream.done),
            (68, 1, 64, 1)
        );
        assert_eq!(stream.finish.as_deref(), Some("length"));
        assert_eq!(
            stream.usage,
            Some(Usage {
                input: Some(42),
                output: Some(64),
                cached: Some(41),
                reasoning: None
            })
        );
        assert_eq!(
            stream.timings,
            Some(Timings {
                predicted_n: Some(64),
                predicted_ms: Some(7806.603),
                predicted_per_second: Some(8.070_091_434_135_95),
                prompt_n: Some(1),
                cache_n: Some(41),
                draft_n: Some(47),
                draft_n_accepted: Some(47),
            })
        );
        // This build's rate is (n - 1) / time.
        let timings = stream.timings.unwrap();
        let rate = 63.0 / (timings.predicted_ms.unwrap() / 1000.0);
        assert!((rate - timings.predicted_per_second.unwrap()).abs() < 1e-9);
        assert!(stream.text.ends_with(" its existence lay"), "{}", stream.text);
    }
}

#[test]
fn whole_answers() {
    let vllm = parse_whole(Api::Chat, include_bytes!("../data/vllm-chat_nonstream.json")).unwrap();
    assert_eq!(vllm.finish_reason.as_deref(), Some("length"));
    assert_eq!(vllm.usage.unwrap().output, Some(64));
    assert_eq!(vllm.texts.len(), 1);
    assert!(
        vllm.text(Channel::Content)
            .contains("named \"Pixel,\" was tasked")
    );
    assert!(vllm.text(Channel::Content).contains(".\n\nPixel"));
    assert_eq!((vllm.error, vllm.timings, vllm.token_ids), (None, None, None));
    let llama = parse_whole(Api::Chat, include_bytes!("../data/llamacpp-chat_nonstream.json")).unwrap();
    assert_eq!(llama.usage.unwrap().cached, Some(41));
    assert_eq!(llama.timings.unwrap().predicted_n, Some(64));
    assert_eq!(llama.timings.unwrap().draft_n, None, "no draft model, no figures");
}

#[test]
fn whole_answers_of_the_other_dialects() {
    let completion = parse_whole(
        Api::Completions,
        br#"{"choices":[{"index":0,"text":" a b","finish_reason":"stop","token_ids":[1,2]}],"usage":{"completion_tokens":2}}"#,
    )
    .unwrap();
    assert_eq!(completion.text(Channel::Content), " a b");
    assert_eq!(
        (completion.token_ids, completion.usage.unwrap().output),
        (Some(2), Some(2))
    );
    let generate = parse_whole(
        Api::Generate,
        br#"{"text":" a b","meta_info":{"finish_reason":{"type":"stop","matched":2},"completion_tokens":2}}"#,
    )
    .unwrap();
    assert_eq!(generate.text(Channel::Content), " a b");
    assert_eq!(generate.finish_reason.as_deref(), Some("stop"));
    let error = parse_whole(Api::Chat, br#"{"error":{"message":"m"}}"#).unwrap();
    assert_eq!(error.error.as_deref(), Some("m"));
}

#[test]
fn errors_and_models() {
    let vllm = parse_error_body(include_bytes!("../data/vllm-err_too_long.json")).unwrap();
    assert!(
        vllm.starts_with("This model's maximum context length is 2048 tokens."),
        "{vllm}"
    );
    let llama = parse_error_body(include_bytes!("../data/llamacpp-err_too_long.json")).unwrap();
    assert!(
        llama.starts_with("request (9031 tokens) exceeds the available context size"),
        "{llama}"
    );
    let models = parse_models(include_bytes!("../data/vllm-v1_models.json")).unwrap();
    assert_eq!(models.len(), 1);
    assert_eq!(
        (models[0].id.as_str(), models[0].context),
        ("SmolLM2", Some(2048))
    );
    assert_eq!(models[0].owned_by.as_deref(), Some("vllm"));
    let models = parse_models(include_bytes!("../data/llamacpp-v1_models.json")).unwrap();
    assert_eq!(
        (models[0].id.as_str(), models[0].context),
        ("SmolLM2", Some(2048))
    );
    assert_eq!(models[0].owned_by.as_deref(), Some("llamacpp"));
}

#[test]
fn metrics_pages() {
    let page = prometheus::parse(include_str!("../data/vllm-metrics_after.prom"));
    assert_eq!(page.bad_lines(), 0);
    assert_eq!(page.sum("vllm:generation_tokens_total"), Some(192.0));
    assert_eq!(
        page.value("vllm:request_success_total", &[("finished_reason", "length")]),
        Some(3.0)
    );
    assert_eq!(page.sum("vllm:request_success_total"), Some(3.0));
    assert_eq!(
        page.value("vllm:time_to_first_token_seconds_bucket", &[("le", "+Inf")]),
        Some(3.0)
    );
    assert_eq!(
        page.value("process_resident_memory_bytes", &[]),
        Some(1_129_615_360.0)
    );
    let info = page.named("python_info").next().unwrap();
    assert_eq!(info.label("version"), Some("3.11.7"));
    let page = prometheus::parse(include_str!("../data/llamacpp-metrics_after.prom"));
    assert_eq!(page.bad_lines(), 0);
    assert_eq!(page.value("llamacpp:tokens_predicted_total", &[]), Some(196.0));
    assert_eq!(page.value("llamacpp:prompt_seconds_total", &[]), Some(1.86975));
}
