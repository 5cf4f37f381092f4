//! Requests as bytes: one buffer, so that one write sends it.

use std::fmt;

use shakedown_model::MASK;

use crate::target::Target;

/// The methods that we send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Method {
    /// GET.
    #[default]
    Get,
    /// HEAD: the answer has no body.
    Head,
    /// POST.
    Post,
}

impl Method {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
        }
    }
}

/// What [`encode`] sends as `User-Agent`.
pub const USER_AGENT: &str = concat!("shakedown/", env!("CARGO_PKG_VERSION"));

/// Headers that decide how bytes are framed or encoded; [`encode`] alone writes them.
const RESERVED: [&str; 6] = [
    "content-length",
    "transfer-encoding",
    "accept-encoding",
    "te",
    "upgrade",
    "expect",
];

/// Headers whose value never shows in `Debug`.
const SENSITIVE: [&str; 6] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-auth-token",
];

/// Request headers in order of insertion. Names and values are checked, so that no value can end the header or
/// the request. `Debug` masks keys and cookies.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Headers(Vec<(String, String)>);

/// Why a header is refused. Values are not shown: they may be keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The name is empty or has a character that names do not have.
    #[error("use the header {name:?}: this is not a header name")]
    Name {
        /// The name.
        name: String,
    },
    /// The value has a line break, a NUL or another control character.
    #[error("use the header {name}: its value has a control character")]
    Value {
        /// The name.
        name: String,
    },
    /// The header is ours to write.
    #[error("use the header {name}: it decides how the answer is framed and cannot be set")]
    Reserved {
        /// The name.
        name: String,
    },
    /// A `NAME: VALUE` line without a colon.
    #[error("use the header line: it has no colon; write NAME: VALUE")]
    NoColon,
}

impl Headers {
    /// No headers.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Sets a header; one of the same name is replaced in place.
    ///
    /// # Errors
    /// [`HeaderError`] for a name or value that may not be sent.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), HeaderError> {
        if name.is_empty() || !name.bytes().all(is_token_byte) {
            return Err(HeaderError::Name {
                name: name.to_owned(),
            });
        }
        if RESERVED
            .iter()
            .any(|reserved| name.eq_ignore_ascii_case(reserved))
        {
            return Err(HeaderError::Reserved {
                name: name.to_owned(),
            });
        }
        let value = value.trim_matches([' ', '\t']);
        // RFC 9110 section 5.5: no control characters but the tab inside a value.
        if value
            .bytes()
            .any(|byte| (byte < b' ' && byte != b'\t') || byte == 0x7f)
        {
            return Err(HeaderError::Value {
                name: name.to_owned(),
            });
        }
        match self
            .0
            .iter_mut()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
        {
            Some(entry) => value.clone_into(&mut entry.1),
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
        Ok(())
    }

    /// Sets a header from one `NAME: VALUE` line, as a command line gives it.
    ///
    /// # Errors
    /// As [`Headers::set`], and [`HeaderError::NoColon`].
    pub fn set_line(&mut self, line: &str) -> Result<(), HeaderError> {
        let (name, value) = line.split_once(':').ok_or(HeaderError::NoColon)?;
        self.set(name.trim(), value)
    }

    /// The value of a header, whatever the case of its name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// All headers in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.iter().map(|(name, value)| {
                let hidden = SENSITIVE.iter().any(|known| name.eq_ignore_ascii_case(known));
                (name, if hidden { MASK } else { value })
            }))
            .finish()
    }
}

/// The characters of a token (RFC 9110 section 5.6.2).
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// One request in one buffer. `path` is the whole path on the server, as [`Target::path`] makes it; bytes that a
/// path cannot carry are percent-encoded. Defaults that `headers` may replace: `Host`, `User-Agent`, `Accept`,
/// `Connection: keep-alive`, `Authorization` from the target's credentials, and for a body
/// `Content-Type: application/json`. `Accept-Encoding: identity` and `Content-Length` are always ours.
pub fn encode(method: Method, target: &Target, path: &str, headers: &Headers, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(512 + body.len());
    out.extend_from_slice(method.as_str().as_bytes());
    out.push(b' ');
    push_path(&mut out, path);
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let mut default = |name: &str, value: &str| {
        if headers.get(name).is_none() {
            push_header(&mut out, name, value);
        }
    };
    default("Host", &target.authority());
    default("User-Agent", USER_AGENT);
    default("Accept", "*/*");
    default("Connection", "keep-alive");
    if let Some(authorization) = target.authorization() {
        default("Authorization", authorization.expose());
    }
    if !body.is_empty() {
        default("Content-Type", "application/json");
    }
    for (name, value) in headers.iter() {
        push_header(&mut out, name, value);
    }
    push_header(&mut out, "Accept-Encoding", "identity");
    if method == Method::Post || !body.is_empty() {
        push_header(&mut out, "Content-Length", &body.len().to_string());
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
    out
}

fn push_header(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn push_path(out: &mut Vec<u8>, path: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in path.bytes() {
        if byte.is_ascii_graphic() && byte != b'#' {
            out.push(byte);
        } else {
            out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_buffer_with_what_a_server_needs() {
        let target = Target::parse("http://h:8000/llm/v1").unwrap();
        let mut headers = Headers::new();
        headers.set("X-Request-Id", "r-1").unwrap();
        let bytes = encode(
            Method::Post,
            &target,
            &target.path("/v1/chat/completions"),
            &headers,
            b"{}",
        );
        let expected = format!(
            "POST /llm/v1/chat/completions HTTP/1.1\r\nHost: h:8000\r\nUser-Agent: {USER_AGENT}\r\n\
             Accept: */*\r\nConnection: keep-alive\r\nContent-Type: application/json\r\nX-Request-Id: r-1\r\n\
             Accept-Encoding: identity\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }

    #[test]
    fn headers_replace_defaults_once() {
        let target = Target::parse("http://a:b@h:1").unwrap();
        let mut headers = Headers::new();
        headers.set("authorization", "Bearer k").unwrap();
        headers.set("connection", "close").unwrap();
        headers.set("Connection", " keep-alive ").unwrap();
        let text = String::from_utf8(encode(Method::Get, &target, "/", &headers, b"")).unwrap();
        assert_eq!(text.to_ascii_lowercase().matches("authorization:").count(), 1);
        assert!(text.contains("authorization: Bearer k\r\n"));
        assert!(text.contains("connection: keep-alive\r\n"));
        assert!(!text.contains("Content-Length"));
    }

    #[test]
    fn nothing_can_end_a_header_early() {
        let mut headers = Headers::new();
        for value in ["a\r\nX: y", "a\nb", "a\rb", "a\0b", "a\x7fb", "\x1b[1m"] {
            assert!(
                matches!(headers.set("X", value), Err(HeaderError::Value { .. })),
                "{value:?}"
            );
        }
        for name in ["", "a b", "a:b", "a\r\nb", "ü"] {
            assert!(
                matches!(headers.set(name, "v"), Err(HeaderError::Name { .. })),
                "{name:?}"
            );
        }
        for name in ["Content-Length", "TRANSFER-ENCODING", "accept-encoding"] {
            assert!(matches!(
                headers.set(name, "v"),
                Err(HeaderError::Reserved { .. })
            ));
        }
        assert!(headers.is_empty());
        headers.set_line("X-Trace:  a: b ").unwrap();
        assert_eq!(headers.get("x-trace"), Some("a: b"));
        assert_eq!(headers.set_line("nothing"), Err(HeaderError::NoColon));
    }

    #[test]
    fn nothing_can_end_the_request_line_early() {
        let target = Target::parse("http://h:1").unwrap();
        let bytes = encode(Method::Get, &target, "/a b\r\nX: y\u{e9}", &Headers::new(), b"");
        assert!(bytes.starts_with(b"GET /a%20b%0D%0AX:%20y%C3%A9 HTTP/1.1\r\n"));
    }

    #[test]
    fn debug_masks_keys() {
        let mut headers = Headers::new();
        headers.set("Authorization", "Bearer sk-1").unwrap();
        headers.set("X-Plain", "v").unwrap();
        let shown = format!("{headers:?}");
        assert!(!shown.contains("sk-1") && shown.contains("\"v\""));
    }
}
