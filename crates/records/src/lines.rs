//! Reading JSON lines that somebody else may have written, and that a kill may have cut.

use std::io::{self, BufRead, Read};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use shakedown_model::RequestRecord;

use crate::{LineFault, ReadError, line};

/// Longest line that is read, in bytes: far above a real one (an answer of a million tokens takes 8 MB), far
/// below what would exhaust the memory.
pub const LINE_CAP: usize = 64 << 20;

/// How one kind of line is read.
pub(crate) trait Decode {
    /// What it holds.
    type Item;

    /// Reads one line.
    fn decode(line: &[u8]) -> Result<Self::Item, LineFault>;
}

/// Lines that are one JSON value each.
#[derive(Debug)]
pub(crate) struct Json<T>(PhantomData<T>);

impl<T: DeserializeOwned> Decode for Json<T> {
    type Item = T;

    fn decode(line: &[u8]) -> Result<T, LineFault> {
        Ok(serde_json::from_slice(line)?)
    }
}

/// Lines of `requests.jsonl`.
#[derive(Debug)]
pub(crate) struct Request;

impl Decode for Request {
    type Item = RequestRecord;

    fn decode(bytes: &[u8]) -> Result<RequestRecord, LineFault> {
        line::decode(bytes)
    }
}

/// What one step of the reader met.
enum Step {
    Line,
    Torn,
    TooLong,
    End,
}

/// The mechanism below [`Lines`] and [`Requests`].
#[derive(Debug)]
struct Reader<R> {
    source: R,
    path: PathBuf,
    line: u64,
    buffer: Vec<u8>,
    torn: bool,
    done: bool,
}

impl<R: BufRead> Reader<R> {
    fn new(source: R, path: &Path) -> Self {
        Self {
            source,
            path: path.to_owned(),
            line: 0,
            buffer: Vec::new(),
            torn: false,
            done: false,
        }
    }

    /// Brings the next line into the buffer, without its newline.
    fn step(&mut self) -> io::Result<Step> {
        self.buffer.clear();
        let read = (&mut self.source)
            .take(LINE_CAP as u64 + 1)
            .read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(Step::End);
        }
        self.line += 1;
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
            return Ok(Step::Line);
        }
        if read <= LINE_CAP {
            return Ok(Step::Torn);
        }
        self.buffer = Vec::new();
        self.source.skip_until(b'\n')?;
        Ok(Step::TooLong)
    }

    fn next<D: Decode>(&mut self) -> Option<Result<D::Item, ReadError>> {
        while !self.done {
            let fault = match self.step() {
                Ok(Step::End) => break,
                Ok(Step::Line) if self.buffer.trim_ascii().is_empty() => continue,
                Ok(Step::Line) => match D::decode(&self.buffer) {
                    Ok(item) => return Some(Ok(item)),
                    Err(fault) => fault,
                },
                // The write that brought it was cut. Where only the newline is missing nothing is lost.
                Ok(Step::Torn) => {
                    self.done = true;
                    match D::decode(&self.buffer) {
                        Ok(item) => return Some(Ok(item)),
                        Err(_) => self.torn = true,
                    }
                    break;
                }
                Ok(Step::TooLong) => LineFault::TooLong { cap: LINE_CAP },
                Err(source) => {
                    self.done = true;
                    return Some(Err(ReadError::Io {
                        path: self.path.clone(),
                        source,
                    }));
                }
            };
            return Some(Err(ReadError::Line {
                path: self.path.clone(),
                line: self.line,
                source: fault,
            }));
        }
        self.done = true;
        None
    }
}

/// Reads lines that are one `T` each. A bad line is an error with its number, and reading goes on after it.
#[derive(Debug)]
pub struct Lines<R, T> {
    reader: Reader<R>,
    item: PhantomData<T>,
}

impl<R: BufRead, T: DeserializeOwned> Lines<R, T> {
    pub(crate) fn new(source: R, path: &Path) -> Self {
        Self {
            reader: Reader::new(source, path),
            item: PhantomData,
        }
    }

    /// Whether the last line was cut, known once the iterator has ended.
    pub const fn torn(&self) -> bool {
        self.reader.torn
    }
}

impl<R: BufRead, T: DeserializeOwned> Iterator for Lines<R, T> {
    type Item = Result<T, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.reader.next::<Json<T>>()
    }
}

/// Reads the lines of `requests.jsonl`. A bad line is an error with its number, and reading goes on after it.
#[derive(Debug)]
pub struct Requests<R> {
    reader: Reader<R>,
}

impl<R: BufRead> Requests<R> {
    /// Whether the last line was cut, known once the iterator has ended.
    pub const fn torn(&self) -> bool {
        self.reader.torn
    }
}

impl<R: BufRead> Iterator for Requests<R> {
    type Item = Result<RequestRecord, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.reader.next::<Request>()
    }
}

/// Reads the lines of a `requests.jsonl` from `source`; `path` names it in errors.
pub fn read_requests<R: BufRead>(source: R, path: &Path) -> Requests<R> {
    Requests {
        reader: Reader::new(source, path),
    }
}
