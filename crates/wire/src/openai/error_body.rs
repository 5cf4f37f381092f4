//! The error in the body of an HTTP error, of any engine or of a proxy before it, in one line.

use serde::Deserialize;

use super::event::error_of;
use super::lenient::{Mixed, Text};
use super::raw::RawError;

/// Longer than this no error needs to be, in characters.
const MAX_CHARS: usize = 500;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Body<'a> {
    #[serde(borrow)]
    error: Mixed<'a, RawError<'a>>,
    #[serde(borrow)]
    object: Text<'a>,
    #[serde(borrow)]
    message: Text<'a>,
    /// FastAPI: a text, or a list with one `msg` per invalid member. Its `input` repeats the request and is private.
    #[serde(borrow)]
    detail: Mixed<'a, Detail<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Detail<'a> {
    #[serde(borrow)]
    msg: Text<'a>,
    #[serde(borrow)]
    message: Text<'a>,
    #[serde(borrow)]
    error: Text<'a>,
}

/// The error that a body tells, in the server's words, on one line and cut at 500 characters. JSON of OpenAI's
/// shape, FastAPI's `detail`, TGI's and Ollama's bare string, the title of a proxy's HTML page, or plain text.
/// `None` where the body says nothing.
pub fn parse_error_body(body: &[u8]) -> Option<String> {
    let trimmed = body.trim_ascii();
    match trimmed.first()? {
        b'{' => match serde_json::from_slice::<Body<'_>>(trimmed) {
            Ok(body) => of_json(body),
            Err(_) => one_line(&String::from_utf8_lossy(trimmed)),
        },
        b'<' => title(&String::from_utf8_lossy(trimmed)),
        b'"' => match serde_json::from_slice::<String>(trimmed) {
            Ok(text) => one_line(&text),
            Err(_) => one_line(&String::from_utf8_lossy(trimmed)),
        },
        _ => one_line(&String::from_utf8_lossy(trimmed)),
    }
}

fn of_json(body: Body<'_>) -> Option<String> {
    if let Some(error) = error_of(body.error, &body.object, body.message.clone()) {
        return one_line(&error);
    }
    let words = |detail: Detail<'_>| {
        let text = detail
            .msg
            .filled()
            .or_else(|| detail.message.filled())
            .or_else(|| detail.error.filled());
        text.map(std::borrow::Cow::into_owned)
    };
    let detail = match body.detail {
        Mixed::Text(text) => Some(text.into_owned()),
        Mixed::Object(detail) => words(detail),
        Mixed::List(details) => Some(
            details
                .into_iter()
                .filter_map(words)
                .collect::<Vec<_>>()
                .join("; "),
        ),
        Mixed::Absent => None,
    };
    detail
        .and_then(|text| one_line(&text))
        .or_else(|| one_line(&body.message.filled()?))
}

fn one_line(text: &str) -> Option<String> {
    let mut line = String::new();
    for (index, word) in text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .enumerate()
    {
        if index > 0 {
            line.push(' ');
        }
        line.push_str(word);
    }
    if let Some((at, _)) = line.char_indices().nth(MAX_CHARS) {
        line.truncate(at);
        line.push('…');
    }
    (!line.is_empty()).then_some(line)
}

fn title(page: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower[start..].find('>')? + 1;
    let end = start + lower[start..].find("</title")?;
    one_line(&page[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engines_error_is_read() {
        for (body, expected) in [
            (
                r#"{"error":{"message":"too long","type":"BadRequestError","param":"p","code":400}}"#,
                "too long",
            ),
            (
                r#"{"object":"error","message":"old vLLM","type":"x","code":404}"#,
                "old vLLM",
            ),
            (
                r#"{"error":"bare string","error_type":"validation"}"#,
                "bare string",
            ),
            (r#"{"error":{"type":"server_error"}}"#, "server_error"),
            (r#"{"detail":"Not Found"}"#, "Not Found"),
            (
                r#"{"detail":[{"loc":["body","n"],"msg":"bad n","input":"PRIVATE"},{"msg":"bad m"}]}"#,
                "bad n; bad m",
            ),
            (r#"{"detail":{"error":"nested"}}"#, "nested"),
            (r#"{"message":"no route"}"#, "no route"),
            (r#"{"error":null,"message":"m"}"#, "m"),
            ("\"just a string\"", "just a string"),
            ("upstream connect\n  error", "upstream connect error"),
            (
                "<html><head><TITLE>502 Bad\nGateway</title></head></html>",
                "502 Bad Gateway",
            ),
            ("{broken", "{broken"),
        ] {
            assert_eq!(
                parse_error_body(body.as_bytes()).as_deref(),
                Some(expected),
                "{body}"
            );
        }
    }

    #[test]
    fn nothing_is_made_up() {
        for body in [
            "",
            "  \n",
            "{}",
            "<html></html>",
            r#"{"detail":[]}"#,
            r#"{"error":null}"#,
        ] {
            assert_eq!(parse_error_body(body.as_bytes()), None, "{body}");
        }
    }

    #[test]
    fn long_and_wild_bodies_become_one_short_line() {
        let line = parse_error_body("é\u{1b}[31m\n".repeat(1000).as_bytes()).unwrap();
        assert_eq!(line.chars().count(), MAX_CHARS + 1);
        assert!(!line.contains(char::is_control));
        assert!(parse_error_body(&[0xff, 0xfe, b'x']).unwrap().ends_with('x'));
    }
}
