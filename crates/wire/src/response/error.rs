//! What can be wrong with a response.

/// Why bytes are not a response, or not one that can be read in one way only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The first bytes are not those of an HTTP/1 response.
    #[error("read the response: this is not HTTP/1.x, it begins with \"{beginning}\"")]
    NotHttp {
        /// The first bytes, escaped.
        beginning: String,
    },
    /// The head does not parse.
    #[error("read the response head: {reason}")]
    BadHead {
        /// The parser's words.
        reason: &'static str,
    },
    /// The head, or the trailer section, does not end within the cap.
    #[error("read the response head: it is larger than {limit} bytes")]
    HeadTooLarge {
        /// The cap in bytes.
        limit: usize,
    },
    /// More header lines than any server sends.
    #[error("read the response head: it has more than {limit} lines")]
    TooManyHeaders {
        /// The cap in lines.
        limit: usize,
    },
    /// Interim answers without end.
    #[error("read the response: more than {limit} interim answers came before the final one")]
    TooManyInterim {
        /// The cap.
        limit: u32,
    },
    /// An answer to a question that we do not ask.
    #[error("read the response: the server switches protocols unasked")]
    SwitchingProtocols,
    /// A Content-Length that is not a number.
    #[error("read the response head: the Content-Length \"{value}\" is not a number")]
    ContentLength {
        /// The value, escaped and cut.
        value: String,
    },
    /// Several Content-Lengths that disagree.
    #[error("read the response head: two Content-Lengths disagree ({first} and {second})")]
    ConflictingLengths {
        /// The first.
        first: u64,
        /// The one that disagrees.
        second: u64,
    },
    /// Two framings at once: the way to smuggle a response.
    #[error("read the response head: it has both a Transfer-Encoding and a Content-Length")]
    LengthAndTransferEncoding,
    /// A Transfer-Encoding other than `chunked` alone, or one in HTTP/1.0.
    #[error("read the response head: the Transfer-Encoding \"{value}\" is not \"chunked\" in HTTP/1.1")]
    TransferEncoding {
        /// The value, escaped and cut.
        value: String,
    },
    /// A chunk-size line that is not a hexadecimal number and extensions.
    #[error("read the response body: \"{byte}\" does not belong in a chunk-size line")]
    ChunkSize {
        /// The offending byte, escaped.
        byte: String,
    },
    /// A chunk size beyond 64 bits.
    #[error("read the response body: a chunk size does not fit in 64 bits")]
    ChunkSizeOverflow,
    /// A chunk-size line without end.
    #[error("read the response body: a chunk-size line is longer than {limit} bytes")]
    ChunkLineTooLong {
        /// The cap in bytes.
        limit: usize,
    },
    /// A chunk that is longer than it said.
    #[error("read the response body: a chunk does not end where its size says")]
    ChunkEnd,
    /// Trailers that are not header lines.
    #[error("read the response trailers: {reason}")]
    BadTrailers {
        /// The parser's words.
        reason: &'static str,
    },
    /// Trailers without end.
    #[error("read the response trailers: they are larger than {limit} bytes")]
    TrailersTooLarge {
        /// The cap in bytes.
        limit: usize,
    },
    /// The connection ended before the first byte.
    #[error("read the response: the connection was closed before the first byte")]
    Closed,
    /// The connection ended within the head.
    #[error("read the response head: the connection was closed within it")]
    TruncatedHead,
    /// The connection ended within the body.
    #[error("read the response body: the connection was closed {}", match missing {
        Some(bytes) => format!("{bytes} bytes before its end"),
        None => "before the last chunk".to_owned(),
    })]
    TruncatedBody {
        /// Bytes missing, where the length was known.
        missing: Option<u64>,
    },
}

/// A header value as an error may show it: escaped and cut.
pub(super) fn shown(value: &[u8]) -> String {
    value[..value.len().min(40)].escape_ascii().to_string()
}
