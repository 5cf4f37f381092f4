//! Reading an HTTP/1.1 response without I/O: heads by httparse, bodies by length, by chunks or until close.
//!
//! The body is handed on as slices of the input and never buffered; only a head or a trailer section that is
//! still incomplete is kept, within a cap. Where messages are ambiguous this reader refuses rather than guesses:
//! a measurement of a body that two readers see differently is worth nothing.

mod chunked;
mod error;
mod head;

pub use error::HttpError;
pub use head::{Framing, Head, Version};

use chunked::{Chunked, Step};

use crate::request::Method;

/// Caps of a [`ResponseReader`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one head, and of one trailer section.
    pub head: usize,
    /// Bytes of one chunk-size line, extensions included.
    pub chunk_line: usize,
    /// Interim (1xx) answers before the final one.
    pub interim: u32,
}

impl Default for Limits {
    /// 64 KiB, 16 KiB, 16: what clients and proxies in the field allow, or more.
    fn default() -> Self {
        Self {
            head: 64 * 1024,
            chunk_line: 16 * 1024,
            interim: 16,
        }
    }
}

/// One step of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// All input is consumed and the response is not over: read more.
    NeedMore,
    /// The final head is complete; see [`ResponseReader::head`].
    Head,
    /// A part of the body.
    Body(&'a [u8]),
    /// The response is over. What follows in the input is not part of it.
    End,
}

/// Reads one response after the other from the bytes of one connection.
#[derive(Debug)]
pub struct ResponseReader {
    limits: Limits,
    method: Method,
    state: State,
    /// An incomplete head.
    partial: Vec<u8>,
    /// Empty lines before the head, counted against its cap.
    skipped: usize,
    interim: u32,
    /// Whether a byte of this response has come.
    begun: bool,
    head: Option<Head>,
    failed: Option<HttpError>,
}

#[derive(Debug)]
enum State {
    Head,
    Chunked(Chunked),
    Length(u64),
    UntilClose,
    Done,
}

impl ResponseReader {
    /// A reader for the answer to a GET or POST.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            method: Method::Get,
            state: State::Head,
            partial: Vec::new(),
            skipped: 0,
            interim: 0,
            begun: false,
            head: None,
            failed: None,
        }
    }

    /// Says which method the next answer belongs to: the answer to a HEAD has no body. Holds until [`Self::reset`].
    #[must_use]
    pub fn answering(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// Reads on. Returns how many bytes of `input` are consumed and what they brought. Call it again with the rest
    /// until it says [`Piece::NeedMore`] or [`Piece::End`], also when the rest is empty: a body of length 0 ends
    /// without a byte.
    ///
    /// # Errors
    /// [`HttpError`] when the bytes are not a response that can be read in one way only. The error stays: every
    /// later call returns it too.
    pub fn read<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Piece<'a>), HttpError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.step(input)
            .inspect_err(|error| self.failed = Some(error.clone()))
    }

    /// The final head, once [`Piece::Head`] was returned.
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// Says that the connection has ended. Fine where the response is over or lasts until the close.
    ///
    /// # Errors
    /// [`HttpError::Closed`] where not a byte of the response had come, [`HttpError::TruncatedHead`] or
    /// [`HttpError::TruncatedBody`] where it was cut.
    pub fn eof(&mut self) -> Result<(), HttpError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = match &self.state {
            State::Done | State::UntilClose => Ok(()),
            State::Head if !self.begun => Err(HttpError::Closed),
            State::Head => Err(HttpError::TruncatedHead),
            State::Length(missing) if *missing == 0 => Ok(()),
            State::Length(missing) => Err(HttpError::TruncatedBody {
                missing: Some(*missing),
            }),
            State::Chunked(_) => Err(HttpError::TruncatedBody { missing: None }),
        };
        match &result {
            Ok(()) => self.state = State::Done,
            Err(error) => self.failed = Some(error.clone()),
        }
        result
    }

    /// Whether the response is over.
    pub fn is_done(&self) -> bool {
        self.failed.is_none() && matches!(self.state, State::Done)
    }

    /// Whether a byte of the response has come.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Makes ready for the next response on the connection, to a GET or POST. Buffers are kept.
    pub fn reset(&mut self) {
        let mut partial = std::mem::take(&mut self.partial);
        partial.clear();
        *self = Self {
            partial,
            ..Self::new(self.limits)
        };
    }

    fn step<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Piece<'a>), HttpError> {
        self.begun |= !input.is_empty();
        match &mut self.state {
            State::Head => self.step_head(input),
            State::Length(0) => {
                self.state = State::Done;
                Ok((0, Piece::End))
            }
            State::Done => Ok((0, Piece::End)),
            _ if input.is_empty() => Ok((0, Piece::NeedMore)),
            State::Length(missing) => {
                let take = usize::try_from(*missing).unwrap_or(usize::MAX).min(input.len());
                *missing -= take as u64;
                Ok((take, Piece::Body(&input[..take])))
            }
            State::UntilClose => Ok((input.len(), Piece::Body(input))),
            State::Chunked(chunked) => {
                let (consumed, step) = chunked.step(input, &self.limits)?;
                let piece = match step {
                    Step::NeedMore => Piece::NeedMore,
                    Step::Data(data) => Piece::Body(data),
                    Step::End => {
                        self.state = State::Done;
                        Piece::End
                    }
                };
                Ok((consumed, piece))
            }
        }
    }

    fn step_head<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Piece<'a>), HttpError> {
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            let Some(took) = self.take_head(rest)? else {
                return Ok((input.len(), Piece::NeedMore));
            };
            consumed += took;
            if let Some(head) = &self.head {
                self.state = match head.framing {
                    Framing::Chunked => State::Chunked(Chunked::new()),
                    Framing::Length(length) => State::Length(length),
                    Framing::UntilClose => State::UntilClose,
                    Framing::None => State::Length(0),
                };
                return Ok((consumed, Piece::Head));
            }
            self.interim += 1;
            if self.interim > self.limits.interim {
                return Err(HttpError::TooManyInterim {
                    limit: self.limits.interim,
                });
            }
        }
    }

    /// Takes one head, interim or final, from the kept bytes and `input`. Returns how much of `input` belongs to
    /// it, or `None` when it is not complete and all of `input` is kept. A final head is left in `self.head`.
    fn take_head(&mut self, input: &[u8]) -> Result<Option<usize>, HttpError> {
        if self.partial.is_empty() {
            let start = self.skip_empty_lines(input)?;
            let bytes = &input[start..];
            check_beginning(bytes)?;
            if let Some(end) = end_of_head(bytes, 0) {
                self.accept_head(&bytes[..end])?;
                return Ok(Some(start + end));
            }
            self.check_size(bytes.len())?;
            self.partial.extend_from_slice(bytes);
            return Ok(None);
        }
        let kept = self.partial.len();
        // One byte above the cap is enough to see that the head is too large.
        let room = (self.limits.head + 1).saturating_sub(self.skipped + kept);
        self.partial.extend_from_slice(&input[..input.len().min(room)]);
        let partial = std::mem::take(&mut self.partial);
        let result = self.take_kept_head(&partial, kept);
        self.partial = partial;
        match result? {
            Kept::Complete(end) => {
                self.partial.clear();
                Ok(Some(end - kept))
            }
            Kept::Incomplete(start) => {
                self.partial.drain(..start);
                self.check_size(self.partial.len())?;
                Ok(None)
            }
        }
    }

    fn take_kept_head(&mut self, partial: &[u8], searched: usize) -> Result<Kept, HttpError> {
        let start = self.skip_empty_lines(partial)?;
        let bytes = &partial[start..];
        check_beginning(bytes)?;
        // The end is three bytes at most, so that its first can be among the last two searched.
        match end_of_head(bytes, searched.saturating_sub(start + 2)) {
            Some(end) => {
                self.check_size(end)?;
                self.accept_head(&bytes[..end])?;
                Ok(Kept::Complete(start + end))
            }
            None => Ok(Kept::Incomplete(start)),
        }
    }

    fn accept_head(&mut self, bytes: &[u8]) -> Result<(), HttpError> {
        self.check_size(bytes.len())?;
        let head = Head::parse(bytes, self.method)?;
        self.skipped = 0;
        if head.status == 101 {
            return Err(HttpError::SwitchingProtocols);
        }
        if head.status >= 200 {
            self.head = Some(head);
        }
        Ok(())
    }

    fn check_size(&self, bytes: usize) -> Result<(), HttpError> {
        if self.skipped + bytes > self.limits.head {
            return Err(HttpError::HeadTooLarge {
                limit: self.limits.head,
            });
        }
        Ok(())
    }

    /// Empty lines before a head are skipped (RFC 9112 section 2.2), within the head's cap.
    fn skip_empty_lines(&mut self, bytes: &[u8]) -> Result<usize, HttpError> {
        let mut start = 0;
        loop {
            start += match &bytes[start..] {
                [b'\n', ..] => 1,
                [b'\r', b'\n', ..] => 2,
                _ => break,
            };
            // The end of one read may hold the empty lines of many reads' worth of nothing.
            if self.skipped + start > self.limits.head {
                return Err(HttpError::HeadTooLarge {
                    limit: self.limits.head,
                });
            }
        }
        self.skipped += start;
        Ok(start)
    }
}

enum Kept {
    /// The head ends at this offset of the kept bytes.
    Complete(usize),
    /// It does not end yet; this many bytes of empty lines stand before it.
    Incomplete(usize),
}

/// Says early that this is no HTTP/1: a TLS record, an SSH banner or an endless line need not fill the cap first.
fn check_beginning(bytes: &[u8]) -> Result<(), HttpError> {
    const BEGINNING: &[u8] = b"HTTP/1.";
    let length = bytes.len().min(BEGINNING.len());
    // A lone CR may become an empty line.
    if bytes[..length] == BEGINNING[..length] || bytes == b"\r" {
        return Ok(());
    }
    Err(HttpError::NotHttp {
        beginning: bytes[..bytes.len().min(24)].escape_ascii().to_string(),
    })
}

/// The offset behind the empty line that ends a head. Lines end with LF or CRLF, as httparse reads them.
fn end_of_head(bytes: &[u8], from: usize) -> Option<usize> {
    memchr::memchr_iter(b'\n', bytes.get(from..)?).find_map(|at| match &bytes[from + at + 1..] {
        [b'\n', ..] => Some(from + at + 2),
        [b'\r', b'\n', ..] => Some(from + at + 3),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
