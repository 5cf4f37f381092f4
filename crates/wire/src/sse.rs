//! Server-sent events without I/O, as the HTML standard reads them: LF, CRLF and CR line ends, comments, several
//! data lines an event, a byte order mark.
//!
//! An event that lies whole in one read is handed on as a slice of that read; only what a read leaves unfinished
//! is copied and kept, within a cap.

use std::ops::ControlFlow;

/// The cap that measuring uses: 8 MiB for one line, and for the data of one event.
pub const DEFAULT_CAP: usize = 8 * 1024 * 1024;

/// One thing that a stream brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SseEvent<'a> {
    /// An event with data.
    Data {
        /// The data; several data lines are joined by LF.
        data: &'a [u8],
        /// The event's type, where it names one that is not empty. A line `error: …`, which older llama.cpp servers
        /// send, comes as an event of the type `error`.
        event: Option<&'a [u8]>,
    },
    /// A comment, mostly a keep-alive.
    Comment,
}

/// Why a stream cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line, or the data lines of one event together, are longer than the cap.
    #[error("read the event stream: a line is longer than {cap} bytes")]
    LineTooLong {
        /// The cap in bytes.
        cap: usize,
    },
}

/// Reads the events of one stream.
#[derive(Debug)]
pub struct SseReader {
    cap: usize,
    /// The line that the last push left unfinished.
    partial: Vec<u8>,
    /// Data lines of the unfinished event that came with earlier pushes or are more than one.
    data: Vec<u8>,
    has_data: bool,
    /// Type of the unfinished event.
    event: Vec<u8>,
    /// The last line ended with CR: a LF that follows belongs to it.
    after_cr: bool,
    /// No line has been read yet: a byte order mark may stand here.
    at_start: bool,
    stopped: bool,
}

/// A line's meaning.
enum Field<'a> {
    Blank,
    Comment,
    Data(&'a [u8]),
    Event(&'a [u8]),
    /// The data of an event of the type `error`.
    Error(&'a [u8]),
    Other,
}

impl SseReader {
    /// A reader that keeps at most `cap_bytes` of an unfinished line, and as much of an unfinished event.
    pub const fn new(cap_bytes: usize) -> Self {
        Self {
            cap: cap_bytes,
            partial: Vec::new(),
            data: Vec::new(),
            has_data: false,
            event: Vec::new(),
            after_cr: false,
            at_start: true,
            stopped: false,
        }
    }

    /// Reads on, and calls `on` for every event as it ends. When `on` breaks, the rest of `bytes` and all that
    /// comes later is ignored, until [`Self::reset`].
    ///
    /// # Errors
    /// [`SseError::LineTooLong`]; events before the long line have been handed on.
    pub fn push(
        &mut self,
        bytes: &[u8],
        mut on: impl FnMut(SseEvent<'_>) -> ControlFlow<()>,
    ) -> Result<(), SseError> {
        if self.stopped {
            return Ok(());
        }
        let mut rest = bytes;
        // The only data line so far of the current event, when it lies in `bytes`.
        let mut borrowed: Option<&[u8]> = None;
        loop {
            if self.after_cr && !rest.is_empty() {
                self.after_cr = false;
                if rest[0] == b'\n' {
                    rest = &rest[1..];
                }
            }
            let Some(at) = memchr::memchr2(b'\n', b'\r', rest) else {
                break;
            };
            let line = &rest[..at];
            self.after_cr = rest[at] == b'\r';
            rest = &rest[at + 1..];
            let flow = if self.partial.is_empty() {
                self.check(line.len())?;
                self.line(line, &mut borrowed, &mut on)?
            } else {
                self.check(self.partial.len() + line.len())?;
                self.partial.extend_from_slice(line);
                let whole = std::mem::take(&mut self.partial);
                // The line lives in our buffer, so that its data cannot stay borrowed beyond this call.
                let mut own = None;
                self.keep_borrowed(&mut borrowed)?;
                let flow = self.line(&whole, &mut own, &mut on)?;
                self.keep_borrowed(&mut own)?;
                self.partial = whole;
                self.partial.clear();
                flow
            };
            if flow.is_break() {
                self.stop();
                return Ok(());
            }
        }
        self.check(self.partial.len() + rest.len())?;
        self.partial.extend_from_slice(rest);
        self.keep_borrowed(&mut borrowed)
    }

    /// Ends the stream: an unfinished line and event are taken for finished. Call it only when the body has ended
    /// by its own framing; of a body that was cut the rest is no event. [`Self::has_unfinished_line`] tells before
    /// whether the last line lacks its end, as it does when an unframed body was cut.
    ///
    /// # Errors
    /// [`SseError::LineTooLong`] when the last data line makes its event too long.
    pub fn finish(&mut self, mut on: impl FnMut(SseEvent<'_>) -> ControlFlow<()>) -> Result<(), SseError> {
        if self.stopped {
            return Ok(());
        }
        if !self.partial.is_empty() {
            let whole = std::mem::take(&mut self.partial);
            let mut own = None;
            let flow = self.line(&whole, &mut own, &mut on)?;
            self.keep_borrowed(&mut own)?;
            if flow.is_break() {
                self.stop();
                return Ok(());
            }
        }
        // Nothing can follow, so that it does not matter whether `on` breaks.
        let _flow = self.line(b"", &mut None, &mut on)?;
        self.stop();
        Ok(())
    }

    /// Whether bytes have come after the last line end.
    pub fn has_unfinished_line(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Whether an event or a line has begun and not ended.
    pub fn has_unfinished_event(&self) -> bool {
        self.has_data || !self.partial.is_empty()
    }

    /// Makes ready for another stream. Small buffers are kept.
    pub fn reset(&mut self) {
        self.stop();
        self.after_cr = false;
        self.at_start = true;
        self.stopped = false;
    }

    fn stop(&mut self) {
        const KEEP: usize = 64 * 1024;
        for buffer in [&mut self.partial, &mut self.data, &mut self.event] {
            buffer.clear();
            buffer.shrink_to(KEEP);
        }
        self.has_data = false;
        self.stopped = true;
    }

    /// Takes one line without its end.
    #[inline]
    fn line<'a>(
        &mut self,
        line: &'a [u8],
        borrowed: &mut Option<&'a [u8]>,
        on: &mut impl FnMut(SseEvent<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, SseError> {
        let line = if self.at_start {
            self.at_start = false;
            line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
        } else {
            line
        };
        match field(line) {
            Field::Data(value) => self.add_data(value, borrowed)?,
            Field::Blank => {
                let flow = match (borrowed.take(), self.has_data) {
                    (Some(data), _) => on(SseEvent::Data {
                        data,
                        event: name(&self.event),
                    }),
                    (None, true) => on(SseEvent::Data {
                        data: &self.data,
                        event: name(&self.event),
                    }),
                    (None, false) => ControlFlow::Continue(()),
                };
                self.data.clear();
                self.has_data = false;
                self.event.clear();
                return Ok(flow);
            }
            Field::Comment => return Ok(on(SseEvent::Comment)),
            Field::Event(value) => {
                self.event.clear();
                self.event.extend_from_slice(value);
            }
            Field::Error(value) => {
                self.event.clear();
                self.event.extend_from_slice(b"error");
                self.add_data(value, borrowed)?;
            }
            Field::Other => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    #[inline]
    fn add_data<'a>(&mut self, value: &'a [u8], borrowed: &mut Option<&'a [u8]>) -> Result<(), SseError> {
        if !self.has_data && borrowed.is_none() {
            *borrowed = Some(value);
            return Ok(());
        }
        self.keep_borrowed(borrowed)?;
        self.keep(value)
    }

    fn keep_borrowed(&mut self, borrowed: &mut Option<&[u8]>) -> Result<(), SseError> {
        match borrowed.take() {
            Some(data) => self.keep(data),
            None => Ok(()),
        }
    }

    /// Copies a data line into the unfinished event.
    fn keep(&mut self, value: &[u8]) -> Result<(), SseError> {
        let join = usize::from(self.has_data);
        self.check(self.data.len() + join + value.len())?;
        if self.has_data {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        self.has_data = true;
        Ok(())
    }

    #[inline]
    fn check(&mut self, length: usize) -> Result<(), SseError> {
        if length > self.cap {
            self.stop();
            return Err(SseError::LineTooLong { cap: self.cap });
        }
        Ok(())
    }
}

/// The type of an event, where it has one.
fn name(event: &[u8]) -> Option<&[u8]> {
    (!event.is_empty()).then_some(event)
}

#[inline]
fn field(line: &[u8]) -> Field<'_> {
    if let Some(value) = line.strip_prefix(b"data:") {
        return Field::Data(value.strip_prefix(b" ").unwrap_or(value));
    }
    match line {
        [] => return Field::Blank,
        [b':', ..] => return Field::Comment,
        b"data" => return Field::Data(b""),
        _ => {}
    }
    let value_after = |name: &[u8]| {
        let value = line.strip_prefix(name)?.strip_prefix(b":")?;
        Some(value.strip_prefix(b" ").unwrap_or(value))
    };
    if line == b"event" {
        Field::Event(b"")
    } else if let Some(value) = value_after(b"event") {
        Field::Event(value)
    } else if let Some(value) = value_after(b"error") {
        Field::Error(value)
    } else {
        Field::Other
    }
}

#[cfg(test)]
mod tests;
