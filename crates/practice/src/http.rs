//! HTTP/1.1 requests: read from bytes that may be anything, within caps.

/// Longest head of a request.
pub(crate) const HEAD_CAP: usize = 64 * 1024;
/// Longest body of a request.
pub(crate) const BODY_CAP: usize = 64 * 1024 * 1024;
/// Most headers of a request.
const HEADERS_CAP: usize = 100;

/// The head of a request: what the server looks at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) method: String,
    /// Path without the query.
    pub(crate) path: String,
    pub(crate) query: String,
    /// Whether the connection may serve another request.
    pub(crate) keep_alive: bool,
    pub(crate) http_1_0: bool,
    pub(crate) expects_continue: bool,
    pub(crate) authorization: Option<String>,
    pub(crate) request_id: Option<String>,
    /// `X-Practice-Script`.
    pub(crate) script: Option<String>,
    /// `X-Prompt-Kind`.
    pub(crate) prompt_kind: Option<String>,
    pub(crate) length: Length,
}

/// How the body's end is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Length {
    /// There is none.
    #[default]
    None,
    /// By its length in bytes.
    Bytes(usize),
    /// By its last chunk.
    Chunked,
}

/// Why bytes are not a request: the status to answer, and the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bad(pub(crate) u16, pub(crate) &'static str);

/// Finds the end of a head in `bytes`, looking only at what came after the first `seen` bytes.
pub(crate) fn head_end(bytes: &[u8], seen: usize) -> Option<usize> {
    let from = seen.saturating_sub(3);
    let tail = bytes.get(from..)?;
    let mut at = 0;
    while let Some(newline) = tail.get(at..)?.iter().position(|byte| *byte == b'\n') {
        let next = at + newline + 1;
        match tail.get(next..)? {
            [b'\n', ..] => return Some(from + next + 1),
            [b'\r', b'\n', ..] => return Some(from + next + 2),
            _ => at = next,
        }
    }
    None
}

/// Reads a whole head.
pub(crate) fn parse_head(bytes: &[u8]) -> Result<Head, Bad> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_CAP];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err(Bad(400, "incomplete head")),
        Err(httparse::Error::TooManyHeaders) => return Err(Bad(431, "too many headers")),
        Err(_) => return Err(Bad(400, "not an HTTP request")),
    }
    let target = request.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let http_1_0 = request.version == Some(0);
    let mut head = Head {
        method: request.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        keep_alive: !http_1_0,
        http_1_0,
        ..Head::default()
    };
    for header in request.headers.iter() {
        let value = || String::from_utf8_lossy(header.value).trim().to_owned();
        let name = header.name;
        if name.eq_ignore_ascii_case("content-length") {
            let length: usize = value()
                .parse()
                .map_err(|_| Bad(400, "content-length is not a number"))?;
            if head.length != Length::None && head.length != Length::Bytes(length) {
                return Err(Bad(400, "two lengths"));
            }
            if length > BODY_CAP {
                return Err(Bad(413, "body too large"));
            }
            head.length = Length::Bytes(length);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            if head.length != Length::None {
                return Err(Bad(400, "two lengths"));
            }
            if !value().eq_ignore_ascii_case("chunked") {
                return Err(Bad(501, "unknown transfer-encoding"));
            }
            head.length = Length::Chunked;
        } else if name.eq_ignore_ascii_case("connection") {
            for word in value().split(',') {
                let word = word.trim();
                if word.eq_ignore_ascii_case("close") {
                    head.keep_alive = false;
                } else if word.eq_ignore_ascii_case("keep-alive") && http_1_0 {
                    head.keep_alive = true;
                }
            }
        } else if name.eq_ignore_ascii_case("expect") {
            head.expects_continue = value().eq_ignore_ascii_case("100-continue");
        } else if name.eq_ignore_ascii_case("authorization") {
            head.authorization = Some(value());
        } else if name.eq_ignore_ascii_case("x-request-id") {
            head.request_id = Some(value());
        } else if name.eq_ignore_ascii_case("x-practice-script") {
            head.script = Some(value());
        } else if name.eq_ignore_ascii_case("x-prompt-kind") {
            head.prompt_kind = Some(value());
        }
    }
    Ok(head)
}

/// Takes a chunked body apart as its bytes come.
#[derive(Debug, Default)]
pub(crate) struct Dechunker {
    /// Bytes of the input that were taken.
    at: usize,
    /// Bytes of the current chunk that are still to come.
    left: usize,
    state: Chunk,
    body: Vec<u8>,
}

/// Where a [`Dechunker`] is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Chunk {
    /// Before a size line.
    #[default]
    Size,
    /// Within a chunk's bytes.
    Data,
    /// Before the line end behind a chunk's bytes.
    DataEnd,
    /// In the lines behind the last chunk.
    Trailer,
    /// Behind it all.
    Done,
}

impl Dechunker {
    /// Goes on with `input`, which holds the whole body from its first byte as far as it has come. Gives the
    /// length of the encoded body once it is whole.
    pub(crate) fn feed(&mut self, input: &[u8]) -> Result<Option<usize>, Bad> {
        const BROKEN: Bad = Bad(400, "broken chunked body");
        loop {
            let rest = input.get(self.at..).unwrap_or_default();
            match self.state {
                Chunk::Done => return Ok(Some(self.at)),
                Chunk::Data => {
                    let take = rest.len().min(self.left);
                    if self.body.len() + take > BODY_CAP {
                        return Err(Bad(413, "body too large"));
                    }
                    self.body.extend_from_slice(&rest[..take]);
                    self.at += take;
                    self.left -= take;
                    if self.left > 0 {
                        return Ok(None);
                    }
                    self.state = Chunk::DataEnd;
                }
                Chunk::Size | Chunk::DataEnd | Chunk::Trailer => {
                    let Some(newline) = rest.iter().take(4096).position(|byte| *byte == b'\n') else {
                        return if rest.len() >= 4096 { Err(BROKEN) } else { Ok(None) };
                    };
                    let line = rest[..newline].strip_suffix(b"\r").unwrap_or(&rest[..newline]);
                    self.at += newline + 1;
                    match self.state {
                        Chunk::DataEnd if line.is_empty() => self.state = Chunk::Size,
                        Chunk::Trailer if line.is_empty() => self.state = Chunk::Done,
                        Chunk::Trailer => {}
                        Chunk::Size => {
                            let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
                            let size = std::str::from_utf8(digits)
                                .ok()
                                .and_then(|text| usize::from_str_radix(text.trim(), 16).ok())
                                .ok_or(BROKEN)?;
                            if size > BODY_CAP {
                                return Err(Bad(413, "body too large"));
                            }
                            self.left = size;
                            self.state = if size == 0 { Chunk::Trailer } else { Chunk::Data };
                        }
                        _ => return Err(BROKEN),
                    }
                }
            }
        }
    }

    /// The body so far, taken out.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_matters() {
        let head = parse_head(
            b"POST /v1/chat/completions?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\nX-Request-ID: abc\r\n\
              Authorization: Bearer k\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n",
        )
        .unwrap();
        assert_eq!(head.path, "/v1/chat/completions");
        assert_eq!(head.query, "x=1");
        assert_eq!(head.length, Length::Bytes(12));
        assert_eq!(head.request_id.as_deref(), Some("abc"));
        assert!(head.expects_continue && !head.keep_alive);
    }

    #[test]
    fn refuses_two_lengths_and_huge_ones() {
        let of = |headers: &str| parse_head(format!("POST / HTTP/1.1\r\n{headers}\r\n").as_bytes());
        assert_eq!(
            of("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")
                .unwrap_err()
                .0,
            400
        );
        assert_eq!(
            of("Content-Length: 5\r\nContent-Length: 6\r\n").unwrap_err().0,
            400
        );
        assert_eq!(of("Content-Length: 99999999999\r\n").unwrap_err().0, 413);
        assert_eq!(of("Content-Length: -1\r\n").unwrap_err().0, 400);
        assert_eq!(of(&"X: y\r\n".repeat(200)).unwrap_err().0, 431);
        assert_eq!(of("Transfer-Encoding: gzip\r\n").unwrap_err().0, 501);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = parse_head(&bytes);
            let _ = head_end(&bytes, 0);
            let _ = Dechunker::default().feed(&bytes);
        }

        #[test]
        fn the_head_ends_at_the_same_place_however_it_comes(
            lines in proptest::collection::vec("[a-z: ]{0,20}", 0..8), cut in 0_usize..200,
        ) {
            let text = lines.iter().map(|line| format!("{line}x\r\n")).collect::<Vec<_>>().concat() + "\r\nbody\n\n";
            let whole = head_end(text.as_bytes(), 0);
            let cut = cut.min(text.len());
            let parts = head_end(&text.as_bytes()[..cut], 0).or_else(|| head_end(text.as_bytes(), cut));
            prop_assert_eq!(whole, parts);
        }

        #[test]
        fn a_chunked_body_comes_out_as_it_went_in(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..8),
            step in 1_usize..40,
        ) {
            let mut encoded = Vec::new();
            for part in &parts {
                encoded.extend_from_slice(format!("{:x};ext=1\r\n", part.len()).as_bytes());
                encoded.extend_from_slice(part);
                encoded.extend_from_slice(b"\r\n");
            }
            encoded.extend_from_slice(b"0\r\nTrailer: 1\r\n\r\n");
            let mut dechunker = Dechunker::default();
            let mut end = None;
            let mut upto = 0;
            while end.is_none() {
                upto = (upto + step).min(encoded.len());
                end = dechunker.feed(&encoded[..upto]).unwrap();
                prop_assert!(end.is_some() || upto < encoded.len());
            }
            prop_assert_eq!(end, Some(encoded.len()));
            prop_assert_eq!(dechunker.take(), parts.concat());
        }
    }
}
