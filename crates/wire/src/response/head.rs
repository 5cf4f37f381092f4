//! Response heads and the framing that they ask for (RFC 9112 section 6.3).

use super::error::{HttpError, shown};
use crate::request::Method;

/// More header lines than this no server sends; hyper's own cap is 100.
const MAX_HEADERS: usize = 128;

/// The HTTP version of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// How the end of a body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Framing {
    /// By the last chunk.
    Chunked,
    /// By its length in bytes.
    Length(u64),
    /// By the end of the connection.
    UntilClose,
    /// There is no body: the answer to a HEAD, 204 or 304.
    None,
}

/// The final head of a response. Text that is not UTF-8 shows replacement characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// The HTTP version.
    pub version: Version,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Content-Encoding`; `identity` counts as none.
    pub content_encoding: Option<String>,
    /// `Location`.
    pub location: Option<String>,
    /// `Retry-After`: seconds or a date, as sent.
    pub retry_after: Option<String>,
    /// `Server`.
    pub server: Option<String>,
    /// How the body ends.
    pub framing: Framing,
    /// Whether the connection can carry another request after this response.
    pub keep_alive: bool,
    headers: Vec<(String, String)>,
}

impl Head {
    /// The first value of a header, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// All headers in order.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Reads a whole head, its last empty line included.
    pub(super) fn parse(bytes: &[u8], method: Method) -> Result<Self, HttpError> {
        let mut lines = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Response::new(&mut lines);
        match parsed.parse(bytes) {
            Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
            // The caller has found the empty line, so that this head ends there or nowhere.
            Ok(_) => {
                return Err(HttpError::BadHead {
                    reason: "the head has no clear end",
                });
            }
            Err(httparse::Error::TooManyHeaders) => {
                return Err(HttpError::TooManyHeaders { limit: MAX_HEADERS });
            }
            Err(error) => {
                return Err(HttpError::BadHead {
                    reason: reason(error),
                });
            }
        }
        let status = parsed.code.unwrap_or_default();
        if !(100..=999).contains(&status) {
            return Err(HttpError::BadHead {
                reason: "the status is below 100",
            });
        }
        let version = if parsed.version == Some(0) {
            Version::Http10
        } else {
            Version::Http11
        };
        let framing = framing(status, version, method, parsed.headers)?;
        let headers: Vec<(String, String)> = parsed
            .headers
            .iter()
            .map(|line| {
                (
                    line.name.to_owned(),
                    String::from_utf8_lossy(line.value).trim().to_owned(),
                )
            })
            .collect();
        let keep_alive = framing != Framing::UntilClose && keep_alive(version, &headers);
        let mut head = Self {
            status,
            version,
            content_type: None,
            content_encoding: None,
            location: None,
            retry_after: None,
            server: None,
            framing,
            keep_alive,
            headers,
        };
        let first = |name: &str| head.header(name).map(str::to_owned);
        let (content_type, location) = (first("content-type"), first("location"));
        let (retry_after, server) = (first("retry-after"), first("server"));
        let content_encoding = first("content-encoding")
            .filter(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity"));
        head.content_type = content_type;
        head.content_encoding = content_encoding;
        head.location = location;
        head.retry_after = retry_after;
        head.server = server;
        Ok(head)
    }
}

fn reason(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::HeaderName => "a header line has a name that is none",
        httparse::Error::HeaderValue => "a header value has a byte that is not allowed",
        httparse::Error::NewLine => "a line does not end as lines do",
        httparse::Error::Status => "the status is not three digits",
        httparse::Error::Token => "the status line has a byte that is not allowed",
        httparse::Error::TooManyHeaders => "it has too many lines",
        httparse::Error::Version => "the version is not HTTP/1.0 or HTTP/1.1",
    }
}

pub(super) fn trailer_reason(error: httparse::Error) -> &'static str {
    reason(error)
}

fn framing(
    status: u16,
    version: Version,
    method: Method,
    headers: &[httparse::Header<'_>],
) -> Result<Framing, HttpError> {
    let values = |name: &'static str| {
        headers
            .iter()
            .filter(move |line| line.name.eq_ignore_ascii_case(name))
            .map(|line| line.value)
    };
    if method == Method::Head || status < 200 || status == 204 || status == 304 {
        return Ok(Framing::None);
    }
    let mut codings = values("transfer-encoding");
    if let Some(coding) = codings.next() {
        if values("content-length").next().is_some() {
            return Err(HttpError::LengthAndTransferEncoding);
        }
        let alone = codings.next().is_none();
        if !alone || version == Version::Http10 || !coding.trim_ascii().eq_ignore_ascii_case(b"chunked") {
            return Err(HttpError::TransferEncoding { value: shown(coding) });
        }
        return Ok(Framing::Chunked);
    }
    Ok(content_length(values("content-length"))?.map_or(Framing::UntilClose, Framing::Length))
}

/// The one length that all Content-Lengths agree on. Repetition of the same number is tolerated (RFC 9112
/// section 6.3, item 5), because proxies do it and it can be read in one way only.
fn content_length<'a>(values: impl Iterator<Item = &'a [u8]>) -> Result<Option<u64>, HttpError> {
    let mut length = None;
    for value in values {
        for part in value.split(|byte| *byte == b',') {
            let part = part.trim_ascii();
            let bad = || HttpError::ContentLength { value: shown(value) };
            if part.is_empty() || !part.iter().all(u8::is_ascii_digit) {
                return Err(bad());
            }
            let number: u64 = std::str::from_utf8(part)
                .ok()
                .and_then(|digits| digits.parse().ok())
                .ok_or_else(bad)?;
            match length {
                None => length = Some(number),
                Some(first) if first != number => {
                    return Err(HttpError::ConflictingLengths {
                        first,
                        second: number,
                    });
                }
                Some(_) => {}
            }
        }
    }
    Ok(length)
}

fn keep_alive(version: Version, headers: &[(String, String)]) -> bool {
    let has = |word: &str| {
        headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("connection"))
            .flat_map(|(_, value)| value.split(','))
            .any(|option| option.trim().eq_ignore_ascii_case(word))
    };
    !has("close") && (version == Version::Http11 || has("keep-alive"))
}
