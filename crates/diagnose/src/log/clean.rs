//! Takes off what terminals and log collectors put around a line: escape sequences and carriers.
//!
//! Carriers are the prefixes of container runtimes, journald, compose and kubectl. Their stamp is kept for lines
//! that have none of their own.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// Removes terminal escape sequences; borrows where there are none.
pub(crate) fn strip_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
            continue;
        }
        match chars.next() {
            // Control sequence: parameters and intermediates, then one final byte.
            Some('[') => {
                for c in chars.by_ref() {
                    if ('\u{40}'..='\u{7e}').contains(&c) {
                        break;
                    }
                }
            }
            // Operating system command: up to BEL or ESC \.
            Some(']') => {
                while let Some(c) = chars.next() {
                    if c == '\u{7}' {
                        break;
                    }
                    if c == '\u{1b}' {
                        if chars.peek() == Some(&'\\') {
                            chars.next();
                        }
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    Cow::Owned(out)
}

/// What a carrier said: how many bytes it took and its stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Carrier<'a> {
    /// Length of the carrier's prefix in bytes.
    pub(crate) len: usize,
    /// The carrier's own stamp, in its words.
    pub(crate) stamp: Option<&'a str>,
}

static CRI: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)) (?:stdout|stderr) [FP] ").ok()
});
static STAMPED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,9}Z) (?:\[(?:inf|err)\]\s+)?").ok());
static SYSLOG: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^((?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?)|(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?[+-]\d\d:?\d\d)) [\w.-]+ [\w.@/()-]+(?:\[\d+\])?: ",
    )
    .ok()
});
static COMPOSE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[A-Za-z0-9][\w.-]{1,60}\s*\|(?: |$)").ok());
/// What a job system puts before a task's lines: `[stamp] task >> line`.
static TASK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(?:\[(\d{4}-\d\d-\d\dT[\d:.+-]+Z?)\] )?[\w./-]{3,80} >> ").ok());
static KUBECTL: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\[pod/[^\]]+\] ").ok());

/// The carrier at the start of `text`, if there is one.
pub(crate) fn carrier(text: &str) -> Option<Carrier<'_>> {
    let first = *text.as_bytes().first()?;
    if !(first.is_ascii_alphanumeric() || first == b'[') {
        return None;
    }
    for regex in [&CRI, &SYSLOG, &STAMPED, &TASK] {
        if let Some(found) = regex.as_ref().and_then(|regex| regex.captures(text)) {
            let stamp = found.get(1).map(|m| m.as_str());
            // A tracing log (TGI, the router) starts with such a stamp too, and its level follows.
            let len = found.get(0).map_or(0, |m| m.end());
            let rest = text[len..].trim_start();
            if ["INFO", "WARN", "ERROR", "DEBUG", "TRACE"]
                .iter()
                .any(|level| rest.starts_with(level))
                && text[len..].starts_with(' ')
            {
                return None;
            }
            return Some(Carrier { len, stamp });
        }
    }
    for regex in [&KUBECTL, &COMPOSE] {
        if let Some(found) = regex.as_ref().and_then(|regex| regex.find(text)) {
            return Some(Carrier {
                len: found.end(),
                stamp: None,
            });
        }
    }
    None
}

/// The message inside one line of a JSON carrier (docker's json-file, journald's export, structured logs).
pub(crate) fn json_message(text: &str) -> Option<String> {
    if !text.starts_with('{') || !text.ends_with('}') {
        return None;
    }
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
    let word = |key: &str| object.get(key).and_then(serde_json::Value::as_str);
    // An HTTP error body is no carrier.
    if object.contains_key("error") {
        return None;
    }
    let message = ["log", "MESSAGE", "message", "msg"]
        .iter()
        .find_map(|key| word(key))?;
    let message = message.trim_end_matches(['\n', '\r']);
    let level = ["level", "severity", "levelname"]
        .iter()
        .find_map(|key| word(key));
    let known = level.filter(|level| super::line::Level::from_word(&level.to_ascii_uppercase()).is_some());
    Some(match known {
        Some(level) => format!("{}: {message}", level.to_ascii_uppercase()),
        None => message.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_go_and_text_stays() {
        assert_eq!(
            strip_escapes("\u{1b}[0;36m(EngineCore pid=1)\u{1b}[0;0m x"),
            "(EngineCore pid=1) x"
        );
        assert_eq!(strip_escapes("\u{1b}]0;title\u{7}a\u{1b}]8;;u\u{1b}\\b"), "ab");
        assert!(matches!(strip_escapes("plain"), Cow::Borrowed("plain")));
        assert_eq!(strip_escapes("cut \u{1b}["), "cut ");
    }

    #[test]
    fn carriers_are_known_by_their_shape() {
        let rest = |text: &'static str| carrier(text).map(|found| &text[found.len..]);
        assert_eq!(
            rest("2026-11-30T23:41:41.123456789Z stdout F hello"),
            Some("hello")
        );
        assert_eq!(rest("Nov 30 23:41:41 host python3[123]: hello"), Some("hello"));
        assert_eq!(rest("2026-11-30T23:41:41.123456789Z hello"), Some("hello"));
        assert_eq!(rest("vllm-server-1  | hello"), Some("hello"));
        assert_eq!(rest("[pod/a-b/main] hello"), Some("hello"));
        assert_eq!(
            rest("2024-01-01T00:00:00.123456Z  INFO text_generation_launcher: x"),
            None
        );
        assert_eq!(rest("hello | world is a message"), Some("world is a message"));
        assert_eq!(rest("two words | no carrier"), None);
    }

    #[test]
    fn json_carriers_give_their_message() {
        let docker = r#"{"log":"RuntimeError: x\n","stream":"stderr","time":"2026-01-01T00:00:00Z"}"#;
        assert_eq!(json_message(docker).as_deref(), Some("RuntimeError: x"));
        assert_eq!(
            json_message(r#"{"error":{"code":503,"message":"Loading model"}}"#),
            None
        );
        assert_eq!(
            json_message(r#"{"level":"error","msg":"x"}"#).as_deref(),
            Some("ERROR: x")
        );
        assert_eq!(json_message("{broken}"), None);
    }
}
