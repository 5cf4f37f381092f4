//! Python tracebacks put together from lines: frames, chained exceptions, multi-line messages, and the ones that
//! arrive without their head.
//!
//! Lines of several processes may be interleaved. Where every line carries its process (vLLM, Ray), each process
//! has its own open traceback; where only the head does (SGLang), lines without prefix belong to the last head.

use std::collections::VecDeque;
use std::sync::LazyLock;

use regex::Regex;

use super::line::{Line, Proc};

/// Frames kept for each exception, counted from the innermost.
const FRAMES: usize = 16;
/// Lines after which an open traceback is given up.
const LINES: u32 = 600;
/// Lines of an exception's message that are kept.
const MESSAGE_LINES: u32 = 60;
/// Bytes of an exception's message that are kept.
const MESSAGE_BYTES: usize = 4096;

/// One frame of a traceback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// File as printed.
    pub(crate) file: String,
    /// Function as printed.
    pub(crate) function: String,
}

/// How an exception follows the one before it in its traceback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// It is the first.
    First,
    /// Raised from the one before.
    DirectCause,
    /// Raised while the one before was being handled.
    During,
}

/// One exception of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Raised {
    /// Line on which its type and message stand.
    pub(crate) line: u64,
    /// Type, with its module where printed.
    pub(crate) kind: String,
    /// Message, several lines joined by newlines.
    pub(crate) message: String,
    /// The innermost frames, outermost first.
    pub(crate) frames: VecDeque<Frame>,
    /// How it follows the one before.
    pub(crate) how: How,
}

impl Raised {
    /// The type without its module.
    pub(crate) fn name(&self) -> &str {
        short_name(&self.kind)
    }
}

/// The type's last part, arguments in parentheses dropped.
pub(crate) fn short_name(kind: &str) -> &str {
    let kind = kind.split('(').next().unwrap_or(kind);
    kind.rsplit('.').next().unwrap_or(kind)
}

/// One traceback: a chain of exceptions, the original first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trace {
    /// First line.
    pub(crate) line: u64,
    /// Last line that belongs to it.
    pub(crate) last_line: u64,
    /// Who raised it.
    pub(crate) proc: Option<Proc>,
    /// The chain.
    pub(crate) chain: Vec<Raised>,
    /// Whether the traceback came without its head, so that the chain may be incomplete.
    pub(crate) headless: bool,
}

/// What a line is to the tracebacks around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Nothing.
    Outside,
    /// A head, a frame, source text or a marker line.
    Inside,
    /// The line with an exception's type, or a further line of its message: index into the finished traces and
    /// into the chain.
    Said {
        /// Which trace.
        trace: usize,
        /// Which exception of it.
        link: usize,
    },
}

#[derive(Debug)]
struct Open {
    key: Option<String>,
    trace: usize,
    state: State,
    frames: VecDeque<Frame>,
    how: How,
    lines: u32,
    message_lines: u32,
    /// Whether the lines after the head carry the process too.
    prefixed: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Frames,
    Message,
    Between,
}

/// Puts tracebacks together; one per launch.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    /// The tracebacks so far.
    pub(crate) all: Vec<Trace>,
    open: Vec<Open>,
    pending: Option<How>,
}

static FRAME: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"^\s*File "([^"]+)", line \d+(?:, in (.+))?$"#).ok());
static EXCEPTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^(?:- )?((?:[A-Za-z_]\w*\.)*(?:Exception|_?[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Timeout|Expired|Failure|Failed|NotFound|Abort|Unavailable|Disconnected|StopIteration)\w*)(?:\(\w+\))?)(?::\s?(.*)|\((.+)\)|)$",
    )
    .ok()
});
static WRAPPED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:hit an exception|Caught exception|Exception caught|raised|[Ee]rror|exception)[^:]{0,40}: ((?:[A-Za-z_]\w*\.)*_?[A-Z]\w*(?:Error|Exception)(?:: .*|\(.*\)|)$)").ok()
});

/// The exception that a line states by itself: type and first line of the message.
pub(crate) fn exception_in(msg: &str) -> Option<(String, String)> {
    let find = |text: &str| {
        let found = EXCEPTION.as_ref()?.captures(text)?;
        let kind = found.get(1)?.as_str().to_owned();
        let message = found
            .get(2)
            .or_else(|| found.get(3))
            .map_or("", |m| m.as_str())
            .to_owned();
        Some((kind, message))
    };
    if msg.starts_with(' ') {
        return None;
    }
    if let Some(found) = find(msg) {
        return (!short_name(&found.0).ends_with("Warning")).then_some(found);
    }
    let inner = WRAPPED.as_ref()?.captures(msg)?.get(1)?.as_str();
    find(inner)
}

fn frame_in(msg: &str) -> Option<Frame> {
    let found = FRAME.as_ref()?.captures(msg)?;
    Some(Frame {
        file: found.get(1)?.as_str().to_owned(),
        function: found.get(2).map_or("", |m| m.as_str()).to_owned(),
    })
}

/// The frames among the lines just before a headless exception, outermost first.
pub(crate) fn frames_before<'a>(lines: impl Iterator<Item = &'a str>) -> VecDeque<Frame> {
    let mut frames = VecDeque::new();
    for msg in lines.take(40) {
        if let Some(frame) = frame_in(msg) {
            frames.push_front(frame);
            if frames.len() == FRAMES {
                break;
            }
        } else if !(msg.starts_with("  ") || msg.trim().is_empty()) {
            break;
        }
    }
    frames
}

const HEAD: &str = "Traceback (most recent call last)";

/// Whether the line joins two exceptions, and how.
pub(crate) fn joins(msg: &str) -> Option<How> {
    if msg.contains("The above exception was the direct cause of the following exception") {
        Some(How::DirectCause)
    } else if msg.contains("During handling of the above exception, another exception occurred") {
        Some(How::During)
    } else {
        None
    }
}

fn key_of(line: &Line) -> Option<String> {
    line.proc.as_ref().and_then(Proc::label)
}

impl Traces {
    /// Whether the following lines are needed.
    pub(crate) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Takes the next line and tells what it is.
    pub(crate) fn feed(&mut self, number: u64, line: &Line, limit: usize) -> Part {
        let msg = line.msg();
        // Exception groups draw bars in front.
        let bare = {
            let trimmed = msg.trim_start();
            if trimmed.starts_with("| ") || trimmed.starts_with("+-") || trimmed.starts_with("+ ") {
                trimmed
                    .trim_start_matches(['|', '+', '-'])
                    .strip_prefix(' ')
                    .unwrap_or("")
            } else {
                msg
            }
        };
        if bare.contains(HEAD) {
            return self.head(number, line, limit);
        }
        if self.open.is_empty() {
            if let Some(how) = joins(bare) {
                self.pending = Some(how);
                return Part::Inside;
            }
            return Part::Outside;
        }
        let Some(at) = self.belongs(line) else {
            return Part::Outside;
        };
        let part = self.step(at, number, bare);
        if let Some(open) = self.open.get_mut(at) {
            open.lines += 1;
            if part != Part::Outside
                && let Some(trace) = self.all.get_mut(open.trace)
            {
                trace.last_line = number;
            }
            if open.lines > LINES || part == Part::Outside {
                self.open.remove(at);
            }
        }
        part
    }

    /// An exception that came without a head: `frames` are those just before it.
    pub(crate) fn headless(
        &mut self,
        number: u64,
        line: &Line,
        (kind, message): (String, String),
        frames: VecDeque<Frame>,
        limit: usize,
    ) -> Part {
        let how = self.pending.take();
        let raised = Raised {
            line: number,
            kind,
            message,
            frames,
            how: how.unwrap_or(How::First),
        };
        if how.is_some()
            && let Some(trace) = self.all.last_mut()
            && number.saturating_sub(trace.last_line) < 60
        {
            trace.chain.push(raised);
            trace.last_line = number;
            return Part::Said {
                trace: self.all.len() - 1,
                link: self.all.last().map_or(0, |trace| trace.chain.len() - 1),
            };
        }
        if self.all.len() >= limit {
            return Part::Outside;
        }
        self.all.push(Trace {
            line: number,
            last_line: number,
            proc: line.proc.clone(),
            chain: vec![raised],
            headless: true,
        });
        Part::Said {
            trace: self.all.len() - 1,
            link: 0,
        }
    }

    fn head(&mut self, number: u64, line: &Line, limit: usize) -> Part {
        let key = key_of(line);
        if let Some(open) = self
            .open
            .iter_mut()
            .find(|open| open.key == key || (key.is_none() && open.prefixed != Some(true)))
            && open.state == State::Between
        {
            open.state = State::Frames;
            return Part::Inside;
        }
        // A doubled head, or a head inside a message (remote tracebacks): the one before is done.
        self.open
            .retain(|open| !(open.key == key || (key.is_none() && open.prefixed != Some(true))));
        if self.all.len() >= limit {
            return Part::Inside;
        }
        let joined = self.pending.take();
        let trace = if joined.is_some() && !self.all.is_empty() {
            self.all.len() - 1
        } else {
            self.all.push(Trace {
                line: number,
                last_line: number,
                proc: line.proc.clone(),
                chain: Vec::new(),
                headless: false,
            });
            self.all.len() - 1
        };
        self.open.push(Open {
            key,
            trace,
            state: State::Frames,
            frames: VecDeque::new(),
            how: joined.unwrap_or(How::First),
            lines: 0,
            message_lines: 0,
            prefixed: None,
        });
        Part::Inside
    }

    /// The open traceback that a line belongs to.
    fn belongs(&mut self, line: &Line) -> Option<usize> {
        let key = key_of(line);
        if key.is_some() || line.prefixed {
            let at = self.open.iter().position(|open| open.key == key)?;
            let open = self.open.get_mut(at)?;
            match open.prefixed {
                None => {
                    // The first line after the head decides; a stamped line of the same process that is no frame
                    // ends the traceback.
                    if frame_in(line.msg()).is_some() || line.msg().trim().is_empty() {
                        open.prefixed = Some(true);
                    } else {
                        self.open.remove(at);
                        return None;
                    }
                }
                Some(false) => {
                    self.open.remove(at);
                    return None;
                }
                Some(true) => {}
            }
            return Some(at);
        }
        // No prefix: the newest traceback whose lines have none.
        let at = self
            .open
            .iter()
            .rposition(|open| open.prefixed != Some(true) || open.key.is_none())?;
        if let Some(open) = self.open.get_mut(at)
            && open.prefixed.is_none()
        {
            open.prefixed = Some(false);
        }
        Some(at)
    }

    fn step(&mut self, at: usize, number: u64, msg: &str) -> Part {
        let Some(open) = self.open.get_mut(at) else {
            return Part::Outside;
        };
        let Some(trace) = self.all.get_mut(open.trace) else {
            return Part::Outside;
        };
        if let Some(how) = joins(msg) {
            open.state = State::Between;
            open.how = how;
            open.frames.clear();
            return Part::Inside;
        }
        if msg.trim().is_empty() {
            return Part::Inside;
        }
        match open.state {
            State::Frames => {
                if let Some(frame) = frame_in(msg) {
                    if open.frames.len() == FRAMES {
                        open.frames.pop_front();
                    }
                    open.frames.push_back(frame);
                    return Part::Inside;
                }
                if msg.starts_with(' ') || msg.starts_with('\t') || msg.starts_with("[Previous line repeated")
                {
                    return Part::Inside;
                }
                let (kind, message) = exception_in(msg).unwrap_or_else(|| match msg.split_once(": ") {
                    Some((kind, message)) if !kind.contains(' ') => (kind.to_owned(), message.to_owned()),
                    _ => (msg.trim_end_matches(':').to_owned(), String::new()),
                });
                trace.chain.push(Raised {
                    line: number,
                    kind,
                    message,
                    frames: std::mem::take(&mut open.frames),
                    how: open.how,
                });
                open.how = How::First;
                open.state = State::Message;
                open.message_lines = 0;
                Part::Said {
                    trace: open.trace,
                    link: trace.chain.len() - 1,
                }
            }
            State::Message => {
                open.message_lines += 1;
                if open.message_lines > MESSAGE_LINES {
                    return Part::Outside;
                }
                let link = trace.chain.len().saturating_sub(1);
                if let Some(raised) = trace.chain.last_mut()
                    && raised.message.len() + msg.len() < MESSAGE_BYTES
                {
                    raised.message.push('\n');
                    raised.message.push_str(msg);
                }
                Part::Said {
                    trace: open.trace,
                    link,
                }
            }
            State::Between => {
                // The head of the next exception is missing: it was cut or the lines are out of order.
                if let Some((kind, message)) = exception_in(msg) {
                    trace.chain.push(Raised {
                        line: number,
                        kind,
                        message,
                        frames: std::mem::take(&mut open.frames),
                        how: open.how,
                    });
                    open.state = State::Message;
                    return Part::Said {
                        trace: open.trace,
                        link: trace.chain.len() - 1,
                    };
                }
                if frame_in(msg).is_some() || msg.starts_with(' ') {
                    return Part::Inside;
                }
                Part::Outside
            }
        }
    }

    /// Ends what is open: the launch is over.
    pub(crate) fn finish(&mut self) {
        self.open.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::line;
    use super::*;

    fn read(text: &str) -> Vec<Trace> {
        let mut traces = Traces::default();
        for (number, raw) in text.lines().enumerate() {
            let line = line::parse(raw.as_bytes());
            let number = number as u64 + 1;
            if traces.feed(number, &line, 100) == Part::Outside
                && let Some(found) = exception_in(line.msg())
            {
                traces.headless(number, &line, found, VecDeque::new(), 100);
            }
        }
        traces.finish();
        traces.all.retain(|trace| !trace.chain.is_empty());
        traces.all
    }

    #[test]
    fn chains_are_kept_in_order() {
        let text = "Traceback (most recent call last):\n  File \"/a.py\", line 1, in f\n    x()\n    ^^^\nStopIteration\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"/b.py\", line 2, in g\nimportlib.metadata.PackageNotFoundError: No package metadata was found for vllm\n";
        let traces = read(text);
        assert_eq!(traces.len(), 1);
        let chain = &traces[0].chain;
        assert_eq!(chain[0].kind, "StopIteration");
        assert_eq!(chain[0].frames[0].function, "f");
        assert_eq!(chain[1].name(), "PackageNotFoundError");
        assert_eq!(chain[1].how, How::During);
        assert_eq!((chain[0].line, chain[1].line), (5, 11));
    }

    #[test]
    fn interleaved_processes_are_told_apart() {
        let text = "(Worker_TP0 pid=1) ERROR 11-30 23:31:55 [a.py:1] Traceback (most recent call last):\n(Worker_TP1 pid=2) ERROR 11-30 23:31:55 [a.py:1] Traceback (most recent call last):\n(Worker_TP0 pid=1) ERROR 11-30 23:31:55 [a.py:1]   File \"/a.py\", line 1, in zero\n(Worker_TP1 pid=2) ERROR 11-30 23:31:55 [a.py:1]   File \"/a.py\", line 1, in one\n(Worker_TP0 pid=1) ERROR 11-30 23:31:55 [a.py:1] ValueError: zero\n(Worker_TP1 pid=2) ERROR 11-30 23:31:55 [a.py:1] KeyError: 'one'\n";
        let traces = read(text);
        assert_eq!(traces.len(), 2);
        assert_eq!(traces[0].chain[0].frames[0].function, "zero");
        assert_eq!(traces[1].chain[0].kind, "KeyError");
        assert_eq!(traces[1].proc.clone().unwrap().rank, Some(1));
    }

    #[test]
    fn only_the_head_carries_the_rank() {
        let text = "[2026-11-30 23:43:40 TP3] Scheduler hit an exception: Traceback (most recent call last):\n  File \"/a.py\", line 1, in f\n    x\nImportError: \n[sgl_kernel] CRITICAL: Could not load any common_ops library!\n\nError details\n- ImportError: libnvrtc.so.12: cannot open\n\n[2026-11-30 23:43:40] Received sigquit from a child process.\n";
        let traces = read(text);
        assert_eq!(traces.len(), 1);
        assert_eq!(traces[0].proc.clone().unwrap().rank, Some(3));
        assert!(traces[0].chain[0].message.contains("libnvrtc.so.12"));
        assert_eq!(traces[0].chain.len(), 1);
    }

    #[test]
    fn headless_exceptions_are_found_and_joined() {
        let traces = read(
            "RuntimeError: RMSNorm failed\nDuring handling of the above exception, another exception occurred:\nException: Capture cuda graph failed: RMSNorm failed\n",
        );
        assert_eq!(traces.len(), 1);
        assert_eq!(traces[0].chain.len(), 2);
        assert!(traces[0].headless);
    }

    #[test]
    fn exceptions_by_themselves() {
        let kind = |text: &str| exception_in(text).map(|(kind, _)| kind);
        assert_eq!(
            kind("torch.OutOfMemoryError: CUDA out of memory.").as_deref(),
            Some("torch.OutOfMemoryError")
        );
        assert_eq!(kind("MemoryError").as_deref(), Some("MemoryError"));
        assert_eq!(
            kind("Scheduler hit an exception: RuntimeError: DeepEP error").as_deref(),
            Some("RuntimeError")
        );
        assert_eq!(
            kind("ValueError(\"type fp8e4nv not supported\")").as_deref(),
            Some("ValueError")
        );
        assert_eq!(kind("FutureWarning: x is deprecated"), None);
        assert_eq!(kind("Error in the function"), None);
        assert_eq!(kind("  indented ValueError: x"), None);
    }
}
