//! Secrets out of arguments, environments, reports and free text, before anything keeps or shows them.
//!
//! A value is masked by the name that it is given to, and by what it looks like wherever it stands. Too much masked
//! is a nuisance; too little is a leak.

mod name;
mod text;
mod words;

use std::collections::BTreeMap;

use serde_json::Value;
use shakedown_model::MASK;

pub use name::{is_secret_name, is_secret_variable};
pub use text::mask_text;
pub use words::{join_words, split_words};

/// Deepest nesting of a report that is looked into; what is deeper is masked whole.
const DEPTH_CAP: usize = 64;

/// The arguments of a process with their secrets masked: `--api-key K`, `--api-key=K`, `TOKEN=K`, secrets in JSON
/// arguments, credentials in URLs, and what looks like a key wherever it stands.
pub fn mask_arguments(arguments: &[String]) -> Vec<String> {
    let mut masked = Vec::with_capacity(arguments.len());
    let mut secret_follows = false;
    for argument in arguments {
        // Values go on to the next flag: vLLM takes several keys after one `--api-key`.
        if argument.starts_with('-') {
            secret_follows = false;
        } else if secret_follows {
            masked.push(MASK.to_owned());
            continue;
        }
        if let Some((name, value)) = argument.split_once('=') {
            let is_flag = name.starts_with('-');
            if !value.is_empty()
                && ((is_flag && is_secret_name(name)) || (!is_flag && is_secret_variable(name)))
            {
                masked.push(format!("{name}={MASK}"));
                continue;
            }
            if is_flag && looks_like_json(value) {
                masked.push(format!("{name}={}", mask_json_text(value)));
                continue;
            }
        } else if argument.starts_with('-') && is_secret_name(argument) {
            secret_follows = true;
        }
        masked.push(if looks_like_json(argument) {
            mask_json_text(argument)
        } else {
            mask_text(argument)
        });
    }
    masked
}

/// A command line in one string, masked as its arguments are.
pub fn mask_command_line(line: &str) -> String {
    join_words(&mask_arguments(&split_words(line)))
}

/// An environment with its secrets masked, by the names of its variables and by what their values look like.
pub fn mask_environment(environment: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    environment
        .iter()
        .map(|(name, value)| (name.clone(), mask_variable(name, value)))
        .collect()
}

/// The value of one variable, masked where its name or its looks say so.
pub fn mask_variable(name: &str, value: &str) -> String {
    if value.is_empty() {
        String::new()
    } else if is_secret_variable(name) {
        MASK.to_owned()
    } else if looks_like_json(value) {
        mask_json_text(value)
    } else {
        mask_text(value)
    }
}

/// A report with its secrets masked: members by their names (`api_key`, `hf_token`, …), command lines by their
/// flags, every string by what it looks like.
pub fn mask_json(value: &mut Value) {
    mask_value(value, DEPTH_CAP);
}

fn mask_value(value: &mut Value, depth: usize) {
    if depth == 0 {
        *value = Value::String(MASK.to_owned());
        return;
    }
    match value {
        Value::String(text) => {
            let masked = mask_text(text);
            if masked != *text {
                *text = masked;
            }
        }
        Value::Array(list) => {
            if let Some(words) = words_of(list) {
                // A list of words may be a command line: flags and their values are neighbours.
                let masked = mask_arguments(&words);
                *list = masked.into_iter().map(Value::String).collect();
            } else {
                for item in list.iter_mut() {
                    mask_value(item, depth - 1);
                }
            }
        }
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if is_command_name(name)
                    && let Value::String(line) = member
                {
                    *line = mask_command_line(line);
                } else if is_secret_name(name) || is_secret_variable(name) {
                    mask_whole(member);
                } else {
                    mask_value(member, depth - 1);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Null, booleans and empty values are no secrets, and say that none is set.
fn mask_whole(value: &mut Value) {
    let empty = match value {
        Value::Null | Value::Bool(_) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Number(_) => false,
    };
    if !empty {
        *value = Value::String(MASK.to_owned());
    }
}

fn words_of(list: &[Value]) -> Option<Vec<String>> {
    let flags = list
        .iter()
        .any(|item| item.as_str().is_some_and(|word| word.starts_with('-')));
    flags.then(|| {
        list.iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
    })?
}

fn is_command_name(name: &str) -> bool {
    matches!(
        name,
        "launch_command" | "command" | "command_line" | "cmdline" | "argv" | "cmd"
    )
}

fn looks_like_json(text: &str) -> bool {
    text.starts_with('{') || text.starts_with('[')
}

/// JSON in a string; text that only looks like it is masked as text, member names included.
fn mask_json_text(text: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(text) else {
        return mask_text(text);
    };
    let before = value.clone();
    mask_json(&mut value);
    if value == before {
        text.to_owned()
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(line: &str) -> String {
        mask_command_line(line)
    }

    #[test]
    fn flags_of_engines() {
        for (line, expected) in [
            (
                "vllm serve m --api-key K1 K2 --port 1",
                "vllm serve m --api-key *** *** --port 1",
            ),
            (
                "vllm serve m --api-key=K1 --port 1",
                "vllm serve m --api-key=*** --port 1",
            ),
            ("x --admin-api-key K", "x --admin-api-key ***"),
            ("x --admin_api_key K", "x --admin_api_key ***"),
            (
                "llama-server -hft hf_x --hf-token T -m a",
                "llama-server -hft *** --hf-token *** -m a",
            ),
            (
                "x --ssl-keyfile-password p --ssl-keyfile /a/key.pem",
                "x --ssl-keyfile-password *** --ssl-keyfile /a/key.pem",
            ),
            ("x --api-key-file /run/key", "x --api-key-file /run/key"),
            (
                "x --max-tokens 5 --tokenizer-path p --token-usage 1",
                "x --max-tokens 5 --tokenizer-path p --token-usage 1",
            ),
            ("env HF_TOKEN=abc A=b python", "env HF_TOKEN=*** A=b python"),
            (
                "x --url http://u:p@h:1/v1?token=abc&n=2",
                "x --url 'http://***@h:1/v1?token=***&n=2'",
            ),
            ("x -H 'Authorization: Bearer abcdef'", "x -H 'Authorization: ***'"),
            (
                "x --speculative-config '{\"method\":\"eagle3\",\"hf_token\":\"q\"}'",
                "x --speculative-config '{\"hf_token\":\"***\",\"method\":\"eagle3\"}'",
            ),
            (
                "x --speculative-config '{\"method\": \"eagle3\"}'",
                "x --speculative-config '{\"method\": \"eagle3\"}'",
            ),
        ] {
            assert_eq!(masked(line), expected, "{line}");
        }
    }

    #[test]
    fn environments() {
        let environment: BTreeMap<String, String> = [
            ("HF_TOKEN", "x"),
            ("HUGGING_FACE_HUB_TOKEN", "x"),
            ("VLLM_API_KEY", "1234"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("NGC_API_KEY", "x"),
            ("HTTP_PROXY", "http://user:pass@proxy:3128"),
            ("NCCL_DEBUG", "INFO"),
            ("TOKENIZERS_PARALLELISM", "false"),
            ("SGLANG_X", "Bearer abcdefgh"),
            ("EMPTY_TOKEN", ""),
            ("VLLM_CONFIG", "{\"api_key\":\"k\"}"),
        ]
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
        let masked = mask_environment(&environment);
        for name in [
            "HF_TOKEN",
            "HUGGING_FACE_HUB_TOKEN",
            "VLLM_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "NGC_API_KEY",
        ] {
            assert_eq!(masked[name], MASK, "{name}");
        }
        assert_eq!(masked["HTTP_PROXY"], "http://***@proxy:3128");
        assert_eq!(masked["NCCL_DEBUG"], "INFO");
        assert_eq!(masked["TOKENIZERS_PARALLELISM"], "false");
        assert_eq!(masked["SGLANG_X"], "Bearer ***");
        assert_eq!(masked["EMPTY_TOKEN"], "");
        assert_eq!(masked["VLLM_CONFIG"], "{\"api_key\":\"***\"}");
    }

    #[test]
    fn reports() {
        let mut report = serde_json::json!({
            "api_key": "sk-1", "admin_api_key": null, "tokenizer_path": "p", "max_total_num_tokens": 5,
            "bos_token": "<s>", "skip_tokenizer_init": false, "hf_token": "q",
            "launch_command": "python -m sglang.launch_server --api-key 'a b' --port 1",
            "argv": ["x", "--api-key", "zz", "--port", "1"],
            "internal_states": [{"api_key": "k", "speculative_num_draft_tokens": 4, "page_size": 1}],
            "watermark_key": "w", "model_path": "s3://id:secret@bucket/m",
        });
        mask_json(&mut report);
        assert_eq!(
            report,
            serde_json::json!({
                "api_key": "***", "admin_api_key": null, "tokenizer_path": "p", "max_total_num_tokens": 5,
                "bos_token": "<s>", "skip_tokenizer_init": false, "hf_token": "***",
                "launch_command": "python -m sglang.launch_server --api-key *** --port 1",
                "argv": ["x", "--api-key", "***", "--port", "1"],
                "internal_states": [{"api_key": "***", "speculative_num_draft_tokens": 4, "page_size": 1}],
                "watermark_key": "***", "model_path": "s3://***@bucket/m",
            })
        );
    }

    #[test]
    fn deep_reports_end() {
        let mut value = Value::String("x".into());
        for _ in 0..120 {
            value = Value::Array(vec![value]);
        }
        mask_json(&mut value);
        assert!(value.to_string().contains(MASK));
    }
}
