//! Prompts from the user's own file: one JSON object a line, with `prompt` or `messages`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use shakedown_model::PromptKind;

use super::{Content, Prompt, WorkloadError};

/// A line of the file. Other members are allowed: such files carry labels and answers too.
#[derive(Deserialize)]
struct Line {
    prompt: Option<String>,
    messages: Option<Vec<Value>>,
    #[serde(alias = "max_tokens", alias = "output_length", alias = "output_len")]
    output_tokens: Option<u32>,
}

/// Reads all prompts of `path` in the order of the file.
pub(super) fn read(path: &Path) -> Result<Vec<Prompt>, WorkloadError> {
    let failed = |source| WorkloadError::Read {
        path: path.to_owned(),
        source,
    };
    let reader = BufReader::new(File::open(path).map_err(failed)?);
    let mut prompts = Vec::new();
    for (index, text) in reader.lines().enumerate() {
        let text = text.map_err(failed)?;
        if text.trim().is_empty() {
            continue;
        }
        let prompt = parse(&text).map_err(|problem| WorkloadError::Line {
            path: path.to_owned(),
            line: index + 1,
            problem,
        })?;
        prompts.push(prompt);
    }
    if prompts.is_empty() {
        return Err(WorkloadError::Empty {
            path: path.to_owned(),
        });
    }
    Ok(prompts)
}

fn parse(text: &str) -> Result<Prompt, String> {
    let line: Line = serde_json::from_str(text).map_err(|error| format!("not a prompt: {error}"))?;
    let content = match (line.prompt, line.messages) {
        (Some(text), None) => Content::Text(text),
        (None, Some(messages)) if messages.is_empty() => return Err("`messages` is empty".to_owned()),
        (None, Some(messages)) => Content::Messages(messages),
        (Some(_), Some(_)) => return Err("has both `prompt` and `messages`; keep one".to_owned()),
        (None, None) => return Err("has neither `prompt` nor `messages`".to_owned()),
    };
    if line.output_tokens == Some(0) {
        return Err("asks for 0 output tokens".to_owned());
    }
    Ok(Prompt {
        kind: PromptKind::Custom,
        content,
        max_tokens: line.output_tokens,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_shapes() {
        let prompt = parse(r#"{"prompt":"hi","output_tokens":7,"id":"x"}"#).unwrap();
        assert_eq!(prompt.content, Content::Text("hi".to_owned()));
        assert_eq!(prompt.max_tokens, Some(7));
        let prompt = parse(r#"{"messages":[{"role":"user","content":"hi"}]}"#).unwrap();
        assert!(matches!(prompt.content, Content::Messages(messages) if messages.len() == 1));
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(parse("{}").unwrap_err().contains("neither"));
        assert!(
            parse(r#"{"prompt":"a","messages":[{}]}"#)
                .unwrap_err()
                .contains("both")
        );
        assert!(parse("[1]").unwrap_err().contains("not a prompt"));
    }
}
