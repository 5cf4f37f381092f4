//! Secrets by what they look like, wherever they stand.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::{Captures, Regex};
use shakedown_model::MASK;

/// A text without any of these holds nothing that we would know as a secret.
const SIGNS: &[&str] = &[
    "hf_",
    "sk-",
    "nvapi-",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xox",
    "AKIA",
    "ASIA",
    "eyJ",
    "earer ",
    "uthorization",
    "UTHORIZATION",
    "api-key",
    "Api-Key",
    "API-Key",
    "api_key",
    "apikey",
    "ookie",
    "://",
    "token=",
    "TOKEN=",
    "BEGIN ",
];

struct Rule {
    regex: Regex,
    /// What stays in front of the mask.
    kept: usize,
    /// What is behind the mask.
    tail: usize,
    /// Only what holds a digit or is long: the prefix alone is an ordinary word.
    must_look_random: bool,
}

/// `text` with credentials in URLs, authorization headers and known kinds of keys masked.
pub fn mask_text(text: &str) -> String {
    if !SIGNS.iter().any(|sign| text.contains(sign)) {
        return text.to_owned();
    }
    let mut masked = Cow::Borrowed(text);
    for rule in rules() {
        let replaced = rule.regex.replace_all(&masked, |found: &Captures<'_>| {
            let part = |at: usize| found.get(at).map_or("", |part| part.as_str());
            if (rule.must_look_random && !looks_random(part(0))) || says_that_none_is_set(part(0)) {
                return part(0).to_owned();
            }
            let kept = if rule.kept > 0 { part(rule.kept) } else { "" };
            let tail = if rule.tail > 0 { part(rule.tail) } else { "" };
            format!("{kept}{MASK}{tail}")
        });
        if let Cow::Owned(new) = replaced {
            masked = Cow::Owned(new);
        }
    }
    masked.into_owned()
}

/// `api_key=None` in a log says something worth keeping.
fn says_that_none_is_set(text: &str) -> bool {
    ["=None", ": None", "=null", ": null"]
        .iter()
        .any(|end| text.ends_with(end))
}

fn looks_random(text: &str) -> bool {
    text.len() >= 24 || text.chars().any(|c| c.is_ascii_digit())
}

fn rules() -> &'static [Rule] {
    static RULES: OnceLock<Vec<Rule>> = OnceLock::new();
    RULES.get_or_init(|| {
        // (expression, group kept before the mask, group kept after it, only what looks random)
        [
            (r"([A-Za-z][A-Za-z0-9+.-]*://)[^/@\s'\x22]+(@)", 1, 2, false),
            (
                r"(?i)([?&](?:api[_-]?key|key|[a-z_-]*token|auth|sig|signature|password|secret|x-amz-[a-z-]+)=)[^&#\s'\x22]+",
                1,
                0,
                false,
            ),
            (r"(?i)((?:authorization|x-api-key|api-key|cookie)['\x22]?\s*[:=]\s*['\x22]?)[^'\x22\r\n,}]+", 1, 0, false),
            (r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{6,}", 1, 0, false),
            (r"(?i)\b(api_?key['\x22]?\s*[:=]\s*['\x22]?)[^'\x22\s,}*]+", 1, 0, false),
            (r"\b((?:[A-Z0-9]+_)*TOKEN=)[^\s'\x22]+", 1, 0, false),
            (r"\bhf_[A-Za-z0-9]{8,}", 0, 0, true),
            (r"\bsk-[A-Za-z0-9_-]{8,}", 0, 0, true),
            (r"\bnvapi-[A-Za-z0-9_-]{8,}", 0, 0, false),
            (r"\b(?:ghp|gho|ghs)_[A-Za-z0-9]{16,}|\bgithub_pat_[A-Za-z0-9_]{16,}|\bglpat-[A-Za-z0-9_-]{16,}", 0, 0, false),
            (r"\bxox[a-z]-[A-Za-z0-9-]{8,}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}", 0, 0, false),
            (r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*", 0, 0, false),
            (r"(-----BEGIN [A-Z ]*PRIVATE KEY-----)[\s\S]*", 1, 0, false),
        ]
        .into_iter()
        .filter_map(|(expression, kept, tail, must_look_random)| {
            Some(Rule {
                regex: Regex::new(expression).ok()?,
                kept,
                tail,
                must_look_random,
            })
        })
        .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rules_compile() {
        assert_eq!(rules().len(), 13);
    }

    #[test]
    fn looks() {
        for (text, expected) in [
            ("hf_abcdefGHIJ123456", "***"),
            ("hf_transformers hf_hub_cache", "hf_transformers hf_hub_cache"),
            ("key sk-proj-abc123def456 end", "key *** end"),
            ("task-queue sk-learn", "task-queue sk-learn"),
            ("postgres://u:p@h/db", "postgres://***@h/db"),
            ("http://127.0.0.1:30000/v1", "http://127.0.0.1:30000/v1"),
            ("git@github.com:a/b", "git@github.com:a/b"),
            ("GET /x?api_key=abc&b=1", "GET /x?api_key=***&b=1"),
            ("{'authorization': 'Bearer abcdefgh'}", "{'authorization': '***'}"),
            ("api_key='abc', port=1", "api_key='***', port=1"),
            (
                "ServerArgs(api_key=None, port=1)",
                "ServerArgs(api_key=None, port=1)",
            ),
            ("export HF_TOKEN=abc", "export HF_TOKEN=***"),
            ("eyJhbGciOiJI.eyJzdWIiOiIx.abc", "***"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMII",
                "-----BEGIN RSA PRIVATE KEY-----***",
            ),
            ("nothing here", "nothing here"),
        ] {
            assert_eq!(mask_text(text), expected, "{text}");
        }
    }
}
