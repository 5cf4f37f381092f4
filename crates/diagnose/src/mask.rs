//! Takes secrets out of whatever is printed or saved. What a secret looks like is known to `engines`; logs add
//! values behind names, in all the ways in which programs print their arguments.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;
use shakedown_engines::mask_text;
use shakedown_model::MASK;

/// A value after a name that speaks of a secret: `HF_TOKEN=X`, `'api_key': 'X'`, `password: X`.
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)(?P<name>\b[\w.-]*(?:api[_-]?keys?|access[_-]?keys?(?:[_-]?id)?|secret(?:[_-]\w+)?|passw(?:or)?d|passphrase|credentials?|private[_-]?key|token|_key)['"]?\s*[=:]\s*\[?\s*)(?P<quote>['"]?)(?P<value>[^\s'",;&)\]}]+)"#,
    )
    .ok()
});
/// The same for flags, whose value stands after a blank: `--api-key X`.
static FLAG: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)(?P<name>(?:^|\s)--?[\w-]*(?:api[_-]?key|secret|passw(?:or)?d|token|credentials?|access[_-]?key)s?(?:\s+|=))(?P<quote>['"]?)(?P<value>[^\s'"]+)"#,
    )
    .ok()
});
/// User and password in a URL.
static IN_URL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*://)(?P<who>[^/\s:@]*):(?P<value>[^/\s@]+)@").ok()
});
/// Values after a secret's name that are no secrets: switches, absent values, and code.
fn is_plain(value: &str) -> bool {
    let value = value.trim_matches(['\'', '"', ')', ']', '}', ',']);
    matches!(
        value,
        "" | "None"
            | "none"
            | "null"
            | "True"
            | "False"
            | "true"
            | "false"
            | "is"
            | "not"
            | "was"
            | "for"
            | "of"
            | "in"
            | "and"
            | "or"
            | "to"
            | "set"
            | "required"
            | "missing"
            | "invalid"
            | "still"
            | "wrong"
            | "has"
            | "with"
            | "--"
            | "="
            | ":"
            | "***"
            | "dim"
            | "type"
    ) || value.starts_with("--")
        || value.starts_with(['<', '$', '{'])
        || value.len() < 3
}

/// `text` without its secrets; borrows where there are none.
pub fn mask(text: &str) -> Cow<'_, str> {
    let mut out = Cow::Borrowed(text);
    if let Some(regex) = IN_URL.as_ref()
        && regex.is_match(&out)
    {
        out = Cow::Owned(
            regex
                .replace_all(&out, format!("${{scheme}}{MASK}@"))
                .into_owned(),
        );
    }
    for regex in [&NAMED, &FLAG] {
        let Some(regex) = regex.as_ref().filter(|regex| regex.is_match(&out)) else {
            continue;
        };
        let masked = regex.replace_all(&out, |found: &regex::Captures<'_>| {
            let part = |name: &str| found.name(name).map_or("", |m| m.as_str());
            let counted = part("name").to_ascii_lowercase().contains("token")
                && part("value").chars().all(|c| c.is_ascii_digit() || c == '.');
            if counted || is_plain(part("value")) {
                found.get(0).map_or("", |m| m.as_str()).to_owned()
            } else {
                format!("{}{}{MASK}", part("name"), part("quote"))
            }
        });
        out = Cow::Owned(masked.into_owned());
    }
    // Last, so that what it leaves of a list of values was masked before.
    let shapes = mask_text(&out);
    if shapes == out { out } else { Cow::Owned(shapes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go() {
        for (text, secret) in [
            ("vllm serve m --api-key s3cr3tvalue --port 1", "s3cr3tvalue"),
            ("server_args=ServerArgs(api_key='abcdef12', port=1)", "abcdef12"),
            ("{'api_key': ['abcdef12'], 'x': 1}", "abcdef12"),
            ("HF_TOKEN=hf_abcdefghijk", "hf_abcdefghijk"),
            ("export OPENAI_API_KEY=\"zzzzzz\"", "zzzzzz"),
            ("Authorization: Bearer abc.def-ghi", "abc.def-ghi"),
            ("http://user:hunter2@proxy:3128/", "hunter2"),
            ("using sk-abcdefghijklm1234 now", "sk-abcdefghijklm1234"),
            ("password: hunter22", "hunter22"),
            ("AWS_SECRET_ACCESS_KEY=abcd/efgh+1", "abcd/efgh+1"),
            ("--hf-token=qwertyuiop", "qwertyuiop"),
        ] {
            let masked = mask(text);
            assert!(!masked.contains(secret), "{masked}");
            assert!(masked.contains(MASK), "{masked}");
        }
    }

    #[test]
    fn words_stay() {
        for text in [
            "no API key is set and CORS allows all origins",
            "max_new_tokens=16 num_tokens: 123456",
            "token usage: 0.00, #token: 353",
            "api_key=None, port=30000",
            "KeyError: 'model.embed_tokens.weight'",
            "num_key_value_heads=8",
            "http://127.0.0.1:30000/health",
            "special token <|im_end|> is not control",
            "{'code': 401, 'message': 'Invalid API Key'}",
        ] {
            assert_eq!(mask(text), text);
        }
    }
}
