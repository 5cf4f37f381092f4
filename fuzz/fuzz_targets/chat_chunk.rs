//! Stream events, whole answers, model lists and errors: no panic, and text as another reading of the JSON has it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use shakedown_model::{Api, Channel};
use shakedown_wire::openai::{parse_error_body, parse_event, parse_models, parse_whole};

/// The content of the first choice, by way of a JSON tree; `None` where the frame is not of the plain shape.
fn content(data: &[u8]) -> Option<String> {
    let frame: Value = serde_json::from_slice(data).ok()?;
    let [choice] = frame.as_object()?.get("choices")?.as_array()?.as_slice() else {
        return None;
    };
    if choice.get("index").is_some_and(|index| index != 0) || choice.get("text").is_some() {
        return None;
    }
    let delta = choice.get("delta")?.as_object()?;
    if delta.contains_key("refusal") {
        return None;
    }
    Some(delta.get("content")?.as_str()?.to_owned())
}

fuzz_target!(|data: &[u8]| {
    for api in [Api::Chat, Api::Completions, Api::Generate] {
        let event = parse_event(api, data);
        let _whole = parse_whole(api, data);
        // A frame that repeats a member is refused by the reader and not by the tree.
        if let (Api::Chat, Ok(event), Some(expected)) = (api, event, content(data)) {
            let seen: String = event
                .deltas
                .iter()
                .filter(|(channel, _)| *channel == Channel::Content)
                .map(|(_, text)| text.as_ref())
                .collect();
            assert_eq!(seen, expected);
        }
    }
    let _models = parse_models(data);
    if let Some(line) = parse_error_body(data) {
        assert!(!line.contains(char::is_control) && line.chars().count() <= 501);
    }
});
