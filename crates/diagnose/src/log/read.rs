//! Bytes of a log in large pieces of whole lines: plain, gzip or UTF-16, with bounded memory.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

/// Bytes read at a time.
const PIECE: usize = 512 * 1024;
/// A line longer than this is handed on in parts, so that memory stays flat.
pub(crate) const LONGEST_LINE: usize = 256 * 1024;

/// Whole lines of a log, a piece at a time.
pub(crate) struct Pieces {
    inner: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that hold data.
    filled: usize,
    /// Bytes of the last piece, to be dropped before the next.
    given: usize,
    ended: bool,
    /// Bytes handed on so far.
    pub(crate) bytes: u64,
    /// Lines that were longer than [`LONGEST_LINE`] and cut.
    pub(crate) cut_lines: u64,
    in_cut_line: bool,
}

/// One piece of a log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a> {
    /// Its bytes; they end with a newline, save at the end of the log or in a line that was cut.
    pub(crate) bytes: &'a [u8],
    /// Whether it goes on inside a line of which the head was already handed on.
    pub(crate) continues: bool,
}

impl Pieces {
    /// Reads from `inner`, seeing through gzip and UTF-16.
    pub(crate) fn new(mut inner: Box<dyn Read + Send>) -> io::Result<Self> {
        let mut head = [0_u8; 4];
        let mut have = 0;
        while have < head.len() {
            let got = inner.read(&mut head[have..])?;
            if got == 0 {
                break;
            }
            have += got;
        }
        let start = io::Cursor::new(head[..have].to_vec());
        let whole: Box<dyn Read + Send> = Box::new(start.chain(inner));
        let inner: Box<dyn Read + Send> = match head[..have] {
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(whole)),
            [0xff, 0xfe, ..] => Box::new(Utf16::new(whole, u16::from_le_bytes)),
            [0xfe, 0xff, ..] => Box::new(Utf16::new(whole, u16::from_be_bytes)),
            _ => whole,
        };
        Ok(Self {
            inner,
            buffer: vec![0; PIECE + LONGEST_LINE],
            filled: 0,
            given: 0,
            ended: false,
            bytes: 0,
            cut_lines: 0,
            in_cut_line: false,
        })
    }

    /// The next piece; `None` at the end.
    pub(crate) fn next_piece(&mut self) -> io::Result<Option<Piece<'_>>> {
        self.buffer.copy_within(self.given..self.filled, 0);
        self.filled -= self.given;
        self.given = 0;
        while !self.ended && self.filled < PIECE {
            let got = match self.inner.read(&mut self.buffer[self.filled..]) {
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if got == 0 {
                self.ended = true;
            }
            self.filled += got;
        }
        if self.filled == 0 {
            return Ok(None);
        }
        let continues = self.in_cut_line;
        let whole = if self.ended {
            Some(self.filled)
        } else {
            memchr::memrchr(b'\n', &self.buffer[..self.filled]).map(|at| at + 1)
        };
        // A tail that is too long to wait for its end goes out as it is.
        let length = match whole {
            Some(length) if self.filled - length <= LONGEST_LINE => length,
            _ => self.filled,
        };
        let ends_whole = self.ended || self.buffer[length - 1] == b'\n';
        let goes_on = continues && whole.is_none();
        if !(ends_whole || goes_on) {
            self.cut_lines += 1;
        }
        self.in_cut_line = !ends_whole;
        self.given = length;
        self.bytes += length as u64;
        Ok(Some(Piece {
            bytes: &self.buffer[..length],
            continues,
        }))
    }
}

/// UTF-16 to UTF-8, as Windows shells write redirected output.
struct Utf16 {
    inner: Box<dyn Read + Send>,
    unit: fn([u8; 2]) -> u16,
    /// A byte or a high surrogate that waits for what follows.
    odd: Option<u8>,
    high: Option<u16>,
    out: Vec<u8>,
    at: usize,
}

impl Utf16 {
    fn new(inner: Box<dyn Read + Send>, unit: fn([u8; 2]) -> u16) -> Self {
        Self {
            inner,
            unit,
            odd: None,
            high: None,
            out: Vec::new(),
            at: 0,
        }
    }

    fn push(&mut self, unit: u16) {
        let units = match self.high.take() {
            Some(high) => vec![high, unit],
            None if (0xd800..0xdc00).contains(&unit) => {
                self.high = Some(unit);
                return;
            }
            None => vec![unit],
        };
        for c in char::decode_utf16(units) {
            let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
            if c != '\u{feff}' {
                self.out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
}

impl Read for Utf16 {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.out.len() {
            self.out.clear();
            self.at = 0;
            let mut raw = [0_u8; 8192];
            let got = self.inner.read(&mut raw)?;
            if got == 0 {
                return Ok(0);
            }
            let mut bytes = self.odd.take().into_iter().chain(raw[..got].iter().copied());
            let mut units = Vec::with_capacity(got / 2 + 1);
            while let Some(first) = bytes.next() {
                match bytes.next() {
                    Some(second) => units.push((self.unit)([first, second])),
                    None => self.odd = Some(first),
                }
            }
            for unit in units {
                self.push(unit);
            }
        }
        let count = into.len().min(self.out.len() - self.at);
        into[..count].copy_from_slice(&self.out[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn all(data: Vec<u8>) -> Vec<u8> {
        let mut pieces = Pieces::new(Box::new(io::Cursor::new(data))).unwrap();
        let mut out = Vec::new();
        while let Some(piece) = pieces.next_piece().unwrap() {
            out.extend_from_slice(piece.bytes);
        }
        out
    }

    #[test]
    fn plain_and_gzip_and_utf16() {
        let text = "first line\nsecond ▄ line\nlast without end";
        assert_eq!(all(text.into()), text.as_bytes());
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(text.as_bytes()).unwrap();
        assert_eq!(all(gz.finish().unwrap()), text.as_bytes());
        let mut wide = vec![0xff, 0xfe];
        wide.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        assert_eq!(all(wide), text.as_bytes());
        assert!(all(Vec::new()).is_empty());
        assert_eq!(all(vec![0xff]), [0xff]);
    }

    #[test]
    fn pieces_end_with_lines() {
        let line = [b'x'; 99].iter().copied().chain([b'\n']);
        let data: Vec<u8> = line.cycle().take(3_000_000).collect();
        let mut pieces = Pieces::new(Box::new(io::Cursor::new(data))).unwrap();
        let mut total = 0;
        while let Some(piece) = pieces.next_piece().unwrap() {
            assert_eq!(piece.bytes.last(), Some(&b'\n'));
            assert!(!piece.continues);
            total += piece.bytes.len();
        }
        assert_eq!((total, pieces.cut_lines), (3_000_000, 0));
    }

    #[test]
    fn an_endless_line_is_cut() {
        let mut pieces =
            Pieces::new(Box::new(io::repeat(b'x').take(5_000_000).chain(&b"\nend\n"[..]))).unwrap();
        let (mut total, mut count) = (0, 0);
        while let Some(piece) = pieces.next_piece().unwrap() {
            assert!(piece.bytes.len() <= PIECE + LONGEST_LINE);
            assert_eq!(piece.continues, count > 0);
            total += piece.bytes.len();
            count += 1;
        }
        assert_eq!(total, 5_000_005);
        assert_eq!(pieces.cut_lines, 1);
    }
}
