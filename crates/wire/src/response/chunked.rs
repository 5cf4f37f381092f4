//! Chunked bodies (RFC 9112 section 7.1), read byte by byte between the data, so that nothing but a trailer
//! section is ever kept. Lines end with CRLF: a lone LF is refused, as hyper refuses it.

use super::Limits;
use super::error::HttpError;
use super::head::trailer_reason;

/// More trailer lines than this nobody sends.
const MAX_TRAILERS: usize = 64;

const BAD_LINE_END: HttpError = HttpError::BadTrailers {
    reason: "a line does not end with CRLF",
};

#[derive(Debug)]
pub(super) struct Chunked {
    state: State,
    /// Bytes of the current chunk-size line.
    line: usize,
    /// The trailer section so far, empty for nearly every response.
    trailers: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Before the first digit of a size.
    SizeStart,
    /// Within the size; the value so far.
    Size(u64),
    /// White space after the size.
    SizeSpace(u64),
    /// Within extensions.
    Extension(u64),
    /// After the CR of a size line.
    SizeLf(u64),
    /// Within the data; bytes missing.
    Data(u64),
    /// At the CR after the data.
    DataCr,
    /// At the LF after the data.
    DataLf,
    /// At the start of a trailer line; after its CR.
    TrailerStart,
    TrailerStartLf,
    /// Within a trailer line; after its CR.
    Trailer,
    TrailerLf,
}

pub(super) enum Step<'a> {
    NeedMore,
    Data(&'a [u8]),
    End,
}

impl Chunked {
    pub(super) const fn new() -> Self {
        Self {
            state: State::SizeStart,
            line: 0,
            trailers: Vec::new(),
        }
    }

    /// Reads up to and including the next data, or to the end of the body.
    pub(super) fn step<'a>(
        &mut self,
        input: &'a [u8],
        limits: &Limits,
    ) -> Result<(usize, Step<'a>), HttpError> {
        let mut at = 0;
        while let Some(&byte) = input.get(at) {
            if let State::Data(missing) = self.state {
                let rest = &input[at..];
                let take = usize::try_from(missing).unwrap_or(usize::MAX).min(rest.len());
                self.state = match missing - take as u64 {
                    0 => State::DataCr,
                    left => State::Data(left),
                };
                return Ok((at + take, Step::Data(&rest[..take])));
            }
            at += 1;
            if self.byte(byte, limits)? {
                return Ok((at, Step::End));
            }
        }
        Ok((at, Step::NeedMore))
    }

    /// Takes one byte outside the data. True when it was the last of the body.
    fn byte(&mut self, byte: u8, limits: &Limits) -> Result<bool, HttpError> {
        self.state = match self.state {
            State::SizeStart => {
                self.line = 0;
                self.count(limits)?;
                State::Size(u64::from(digit(byte).ok_or_else(|| bad(byte))?))
            }
            State::Size(size) => {
                self.count(limits)?;
                match (byte, digit(byte)) {
                    (_, Some(digit)) => State::Size(
                        size.checked_mul(16).ok_or(HttpError::ChunkSizeOverflow)? | u64::from(digit),
                    ),
                    (b' ' | b'\t', _) => State::SizeSpace(size),
                    (b';', _) => State::Extension(size),
                    (b'\r', _) => State::SizeLf(size),
                    _ => return Err(bad(byte)),
                }
            }
            State::SizeSpace(size) => {
                self.count(limits)?;
                match byte {
                    b' ' | b'\t' => State::SizeSpace(size),
                    b';' => State::Extension(size),
                    b'\r' => State::SizeLf(size),
                    _ => return Err(bad(byte)),
                }
            }
            State::Extension(size) => {
                self.count(limits)?;
                match byte {
                    b'\r' => State::SizeLf(size),
                    b'\n' => return Err(bad(byte)),
                    _ => State::Extension(size),
                }
            }
            State::SizeLf(size) => match (byte, size) {
                (b'\n', 0) => State::TrailerStart,
                (b'\n', size) => State::Data(size),
                _ => return Err(bad(byte)),
            },
            // The caller hands data on without looking at its bytes.
            State::Data(missing) => State::Data(missing),
            State::DataCr => expect(byte, b'\r', State::DataLf)?,
            State::DataLf => expect(byte, b'\n', State::SizeStart)?,
            State::TrailerStart if byte == b'\r' => State::TrailerStartLf,
            State::TrailerStart | State::Trailer => {
                self.keep(byte, limits)?;
                match byte {
                    b'\r' => State::TrailerLf,
                    b'\n' => return Err(BAD_LINE_END),
                    _ => State::Trailer,
                }
            }
            State::TrailerLf => {
                self.keep(byte, limits)?;
                if byte != b'\n' {
                    return Err(BAD_LINE_END);
                }
                State::TrailerStart
            }
            State::TrailerStartLf => {
                if byte != b'\n' {
                    return Err(BAD_LINE_END);
                }
                self.check_trailers()?;
                return Ok(true);
            }
        };
        Ok(false)
    }

    fn count(&mut self, limits: &Limits) -> Result<(), HttpError> {
        self.line += 1;
        if self.line > limits.chunk_line {
            return Err(HttpError::ChunkLineTooLong {
                limit: limits.chunk_line,
            });
        }
        Ok(())
    }

    fn keep(&mut self, byte: u8, limits: &Limits) -> Result<(), HttpError> {
        if self.trailers.len() >= limits.head {
            return Err(HttpError::TrailersTooLarge { limit: limits.head });
        }
        self.trailers.push(byte);
        Ok(())
    }

    /// Trailers bring nothing that we use; they must only be what they claim to be.
    fn check_trailers(&mut self) -> Result<(), HttpError> {
        if self.trailers.is_empty() {
            return Ok(());
        }
        self.trailers.extend_from_slice(b"\r\n");
        let mut lines = [httparse::EMPTY_HEADER; MAX_TRAILERS];
        match httparse::parse_headers(&self.trailers, &mut lines) {
            Ok(httparse::Status::Complete((length, _))) if length == self.trailers.len() => Ok(()),
            Ok(_) => Err(HttpError::BadTrailers {
                reason: "they have no clear end",
            }),
            Err(error) => Err(HttpError::BadTrailers {
                reason: trailer_reason(error),
            }),
        }
    }
}

fn digit(byte: u8) -> Option<u32> {
    char::from(byte).to_digit(16)
}

fn bad(byte: u8) -> HttpError {
    HttpError::ChunkSize {
        byte: byte.escape_ascii().to_string(),
    }
}

fn expect(byte: u8, wanted: u8, next: State) -> Result<State, HttpError> {
    if byte == wanted {
        Ok(next)
    } else {
        Err(HttpError::ChunkEnd)
    }
}
