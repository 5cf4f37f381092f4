//! Frames: JSON into an event of a stream, an event into an HTTP chunk.

use std::io::Write as _;

/// How events of a stream are written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Style {
    /// Lines end in CR LF.
    pub(crate) crlf: bool,
    /// No blank behind `data:`.
    pub(crate) no_space: bool,
    /// An `event:` line before the data.
    pub(crate) event: Option<String>,
}

impl Style {
    const fn eol(&self) -> &'static [u8] {
        if self.crlf { b"\r\n" } else { b"\n" }
    }

    /// Begins an event; the data follows.
    pub(crate) fn open(&self, out: &mut Vec<u8>) {
        if let Some(event) = &self.event {
            out.extend_from_slice(b"event: ");
            out.extend_from_slice(event.as_bytes());
            out.extend_from_slice(self.eol());
        }
        out.extend_from_slice(if self.no_space { b"data:" } else { b"data: " });
    }

    /// Ends an event.
    pub(crate) fn close(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.eol());
        out.extend_from_slice(self.eol());
    }

    /// The event that ends a stream.
    pub(crate) fn done(&self, out: &mut Vec<u8>) {
        let plain = Self {
            event: None,
            ..self.clone()
        };
        plain.open(out);
        out.extend_from_slice(b"[DONE]");
        plain.close(out);
    }

    /// A comment.
    pub(crate) fn comment(&self, out: &mut Vec<u8>, text: &str) {
        out.extend_from_slice(b":");
        if !text.is_empty() {
            out.push(b' ');
            out.extend_from_slice(text.as_bytes());
        }
        self.close(out);
    }
}

/// The chunk that ends a chunked body.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Appends `bytes` as one HTTP chunk.
pub(crate) fn chunk(out: &mut Vec<u8>, bytes: &[u8]) {
    let _ = write!(out, "{:x}\r\n", bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}
