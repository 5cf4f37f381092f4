//! One line of a log taken apart: who wrote it, when, how loudly, and what it says.
//!
//! Every engine has its own prefix, several have changed it, and wrappers stack theirs in front. The parts are
//! peeled off one after the other until nothing more is recognised.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;
use shakedown_model::EngineKind;

use super::clean;
use super::time::{self, Time};

/// How loud a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Level {
    /// Debug and trace.
    Debug,
    /// Information.
    Info,
    /// Warnings.
    Warn,
    /// Errors.
    Error,
    /// Critical and fatal.
    Fatal,
}

impl Level {
    /// Reads the word of a logging library, in capitals.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "DEBUG" | "TRACE" | "D" | "V" => Self::Debug,
            "INFO" | "I" | "NOTICE" => Self::Info,
            "WARNING" | "WARN" | "W" => Self::Warn,
            "ERROR" | "ERR" | "E" => Self::Error,
            "CRITICAL" | "FATAL" | "F" | "C" => Self::Fatal,
            _ => return None,
        })
    }
}

/// The process that wrote a line.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Proc {
    /// Its name in the log's words, for example `TP3` or `Worker_TP0`.
    pub(crate) name: Option<String>,
    /// Its rank, where the prefix tells.
    pub(crate) rank: Option<u32>,
    /// Its process id, where the prefix tells.
    pub(crate) pid: Option<u32>,
}

impl Proc {
    /// A name to print.
    pub(crate) fn label(&self) -> Option<String> {
        match (&self.name, self.rank, self.pid) {
            (Some(name), _, _) => Some(name.clone()),
            (None, Some(rank), _) => Some(format!("rank {rank}")),
            (None, None, Some(pid)) => Some(format!("pid {pid}")),
            (None, None, None) => None,
        }
    }

    fn is_empty(&self) -> bool {
        self.name.is_none() && self.rank.is_none() && self.pid.is_none()
    }
}

/// A line taken apart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    /// The line without escapes and carriers.
    pub(crate) text: String,
    /// Byte offset in `text` at which the message starts; its indentation is kept.
    pub(crate) msg_at: usize,
    /// When.
    pub(crate) time: Option<Time>,
    /// When, in the log's own words.
    pub(crate) stamp: Option<String>,
    /// Who.
    pub(crate) proc: Option<Proc>,
    /// How loud.
    pub(crate) level: Option<Level>,
    /// The engine whose prefix this is, where the prefix is one engine's own.
    pub(crate) engine: Option<EngineKind>,
    /// Whether any prefix was recognised.
    pub(crate) prefixed: bool,
}

impl Line {
    /// What the line says, without its prefixes.
    pub(crate) fn msg(&self) -> &str {
        self.text.get(self.msg_at..).unwrap_or("")
    }
}

struct Prefixes {
    rank: Regex,
    named: Regex,
    vllm: Regex,
    sglang: Regex,
    ranks_only: Regex,
    llama: Regex,
    uvicorn: Regex,
    trt: Regex,
    nccl: Regex,
    torch: Regex,
    glog: Regex,
    dated: Regex,
    slog: Regex,
    tracing_target: Regex,
    dashed: Regex,
}

static PREFIXES: LazyLock<Option<Prefixes>> = LazyLock::new(|| prefixes().ok());

fn prefixes() -> Result<Prefixes, regex::Error> {
    Ok(Prefixes {
        rank: Regex::new(r"^\[(?:rank|default)(\d+)\]:? ?")?,
        named: Regex::new(
            r"^\(([A-Za-z][\w.:+-]*)(?: rank=(\d+))?(?:[ ,]+(?:pid=|PID: ?)(\d+))?(?:, ip=[\w.:]+)?(?:, actor_id=\w+)?(?:, repr=[^)]*)?\) ?",
        )?,
        vllm: Regex::new(
            r"^(DEBUG|INFO|WARNING|ERROR|CRITICAL)(?: (\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?))? \[?([\w./<>-]+(?::\d+)?)\] ?",
        )?,
        sglang: Regex::new(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?)((?: [A-Z][A-Z_]*\d+)*)\] ?")?,
        ranks_only: Regex::new(r"^\[((?:[A-Z][A-Z_]*\d+)(?: [A-Z][A-Z_]*\d+)*)\] ?")?,
        llama: Regex::new(r"^(\d+\.\d\d\.\d{3}\.\d{3}) ([A-Z]) ")?,
        uvicorn: Regex::new(r"^(INFO|WARNING|ERROR|CRITICAL|DEBUG|TRACE):( +|$)")?,
        trt: Regex::new(
            r"^(?:\[(\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d)\] ?)?\[(?:TRT-LLM|TensorRT-LLM|TRTLLM|TRT)\] ?\[(\w+)\] ?",
        )?,
        nccl: Regex::new(
            r"^(?:\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\] )?[\w.-]+:(\d+):\d+ \[(-?\d+)\] (?:(?:[\w/.-]+:\d+ )?NCCL (INFO|WARN|TRACE) ?)",
        )?,
        torch: Regex::new(r"^\[([WEIF])(\d{4} \d\d:\d\d:\d\d\.\d+)? ?(?:\d+ )?([\w./]+:\d+)\] ")?,
        glog: Regex::new(r"^([WEIF]\d{4} \d\d:\d\d:\d\d\.\d+) +(\d+) [\w./-]+:\d+\] ")?,
        dated: Regex::new(
            r"^\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?)(?:Z|[+-]\d\d:?\d\d)?\]?(?:[\s|,:-]+\[?(DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL|TRACE)\]?(?:[\s|:,-]+|$)|[\s|,-]+)",
        )?,
        slog: Regex::new(r"^(?:time=(\S+) )?level=(\w+) (?:source=\S+ )?")?,
        dashed: Regex::new(r"^[a-z][\w.]* - (DEBUG|INFO|WARNING|ERROR|CRITICAL) - ")?,
        tracing_target: Regex::new(r"^(?:[a-z][a-z_]*(?:::[a-z_]+)*(?:\{[^}]*\})?: )+")?,
    })
}

static NAME_RANK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:TP|Worker|worker|rank)[-_]?(\d+)").ok());

/// Names that a parenthesised prefix may carry without a process id.
const KNOWN_NAMES: [&str; 8] = [
    "raylet",
    "autoscaler",
    "EngineCore",
    "Worker",
    "APIServer",
    "VllmWorker",
    "RayWorker",
    "ApiServer",
];

/// Takes one line apart. `raw` may be any bytes.
pub(crate) fn parse(raw: &[u8]) -> Line {
    let lossy = String::from_utf8_lossy(raw);
    let clean = clean::strip_escapes(&lossy);
    let mut text: Cow<'_, str> = match clean::json_message(clean.trim_end()) {
        Some(message) => Cow::Owned(message),
        None => clean,
    };
    let mut stamp: Option<String> = None;
    // Two carriers at most: a compose line inside a journal, a container's stamp inside a pod's.
    for _ in 0..2 {
        let Some((len, said)) =
            clean::carrier(&text).map(|found| (found.len, found.stamp.map(str::to_owned)))
        else {
            break;
        };
        stamp = stamp.or(said);
        text = Cow::Owned(text[len..].to_owned());
    }
    let mut line = Line {
        text: text.into_owned(),
        msg_at: 0,
        time: None,
        stamp: None,
        proc: None,
        level: None,
        engine: None,
        prefixed: false,
    };
    let end = line.text.trim_end().len();
    line.text.truncate(end);
    if let Some(prefixes) = PREFIXES.as_ref() {
        for _ in 0..5 {
            if !peel(&mut line, prefixes) {
                break;
            }
            line.prefixed = true;
        }
    }
    if line.stamp.is_none() {
        line.stamp = stamp;
    }
    line.time = line.stamp.as_deref().and_then(time::parse);
    line
}

fn word(found: &regex::Captures<'_>, group: usize) -> Option<String> {
    found
        .get(group)
        .map(|m| m.as_str().to_owned())
        .filter(|text| !text.is_empty())
}

fn number(found: &regex::Captures<'_>, group: usize) -> Option<u32> {
    found.get(group)?.as_str().parse().ok()
}

/// Takes one prefix off, remembers what it says, and tells whether there was one.
fn peel(line: &mut Line, prefixes: &Prefixes) -> bool {
    let msg = line.text.get(line.msg_at..).unwrap_or("").to_owned();
    let Some(first) = msg.bytes().next() else {
        return false;
    };
    let mut proc = line.proc.take().unwrap_or_default();
    let mut taken = 0;
    match first {
        b'[' => {
            if let Some(found) = prefixes.sglang.captures(&msg) {
                taken = found.get(0).map_or(0, |m| m.end());
                line.stamp = word(&found, 1);
                if let Some(ranks) = word(&found, 2) {
                    name_ranks(&mut proc, ranks.trim());
                    line.engine = Some(EngineKind::Sglang);
                } else if line.engine.is_none() {
                    // The plain form is Python's common one; SGLang has no level word after it.
                    let rest = &msg[taken..];
                    if !rest.starts_with('[')
                        && Level::from_word(rest.split([' ', ':']).next().unwrap_or("")).is_none()
                    {
                        line.engine = Some(EngineKind::Sglang);
                    }
                }
            } else if let Some(found) = prefixes.rank.captures(&msg) {
                taken = found.get(0).map_or(0, |m| m.end());
                proc.rank = number(&found, 1);
                proc.name
                    .get_or_insert_with(|| format!("rank{}", found.get(1).map_or("", |m| m.as_str())));
            } else if let Some(found) = prefixes.trt.captures(&msg) {
                taken = found.get(0).map_or(0, |m| m.end());
                line.stamp = word(&found, 1).or(line.stamp.take());
                line.level = word(&found, 2)
                    .and_then(|word| Level::from_word(&word))
                    .or(line.level);
                line.engine = Some(EngineKind::TensorRtLlm);
            } else if let Some(found) = prefixes.torch.captures(&msg) {
                taken = found.get(0).map_or(0, |m| m.end());
                line.level = word(&found, 1).and_then(|word| Level::from_word(&word));
                line.stamp = word(&found, 2)
                    .map(|stamp| format!("W{stamp}"))
                    .or(line.stamp.take());
            } else if let Some(found) = prefixes.ranks_only.captures(&msg) {
                taken = found.get(0).map_or(0, |m| m.end());
                if let Some(ranks) = word(&found, 1) {
                    name_ranks(&mut proc, &ranks);
                    line.engine = Some(EngineKind::Sglang);
                }
            } else if let Some(found) = prefixes
                .nccl
                .captures(&msg)
                .or_else(|| prefixes.dated.captures(&msg))
            {
                taken = found.get(0).map_or(0, |m| m.end());
                line.stamp = word(&found, 1).or(line.stamp.take());
            }
        }
        b'(' => {
            if let Some(found) = prefixes.named.captures(&msg) {
                let name = word(&found, 1).unwrap_or_default();
                let with_id = found.get(2).is_some() || found.get(3).is_some();
                if with_id || KNOWN_NAMES.iter().any(|known| name.starts_with(known)) {
                    taken = found.get(0).map_or(0, |m| m.end());
                    proc.rank = number(&found, 2)
                        .or_else(|| number(&NAME_RANK.as_ref()?.captures(&name)?, 1))
                        .or(proc.rank);
                    proc.pid = number(&found, 3).or(proc.pid);
                    if name.starts_with("EngineCore")
                        || name.starts_with("APIServer")
                        || name.starts_with("VllmWorker")
                    {
                        line.engine = Some(EngineKind::Vllm);
                    }
                    proc.name = Some(name);
                }
            }
        }
        b'0'..=b'9' => {
            if let Some(found) = prefixes.llama.captures(&msg) {
                taken = found.get(0).map_or(0, |m| m.end());
                line.stamp = word(&found, 1);
                line.level = word(&found, 2).and_then(|word| Level::from_word(&word));
                line.engine = Some(EngineKind::LlamaCpp);
            } else if let Some(found) = prefixes.dated.captures(&msg) {
                taken = found.get(0).map_or(0, |m| m.end());
                line.stamp = word(&found, 1);
                line.level = word(&found, 2)
                    .and_then(|word| Level::from_word(&word))
                    .or(line.level);
            }
        }
        b'A'..=b'Z' => {
            if let Some(found) = prefixes.uvicorn.captures(&msg) {
                // uvicorn pads the level to ten columns; what is beyond is indentation of the message.
                let word = found.get(1).map_or("", |m| m.as_str());
                let padded = 10_usize.max(word.len() + 2);
                taken = found.get(0).map_or(0, |m| m.end()).min(padded);
                line.level = Level::from_word(word);
            } else if let Some(found) = prefixes.vllm.captures(&msg) {
                taken = found.get(0).map_or(0, |m| m.end());
                line.level = word(&found, 1).and_then(|word| Level::from_word(&word));
                line.stamp = word(&found, 2).or(line.stamp.take());
                if found.get(2).is_some() {
                    line.engine.get_or_insert(EngineKind::Vllm);
                }
            } else if let Some(found) = prefixes.glog.captures(&msg) {
                taken = found.get(0).map_or(0, |m| m.end());
                line.level = Level::from_word(&msg[..1]);
                line.stamp = word(&found, 1);
                proc.pid = proc.pid.or(number(&found, 2));
            }
        }
        b'a'..=b'z' => {
            if let Some(found) = prefixes.slog.captures(&msg) {
                // The message stays quoted: its attributes follow it and matter as much.
                line.level = word(&found, 2).and_then(|word| Level::from_word(&word.to_ascii_uppercase()));
                line.stamp = word(&found, 1).or(line.stamp.take());
                line.engine.get_or_insert(EngineKind::Ollama);
                taken = found.get(0).map_or(0, |m| m.end());
            } else if let Some(found) = prefixes.nccl.captures(&msg) {
                taken = found.get(0).map_or(0, |m| m.end());
                line.stamp = word(&found, 1).or(line.stamp.take());
                proc.pid = number(&found, 2);
                proc.rank = proc.rank.or(number(&found, 3));
                line.level = word(&found, 4).and_then(|word| Level::from_word(&word));
            } else if let Some(found) = prefixes.dashed.captures(&msg) {
                taken = found.get(0).map_or(0, |m| m.end());
                line.level = word(&found, 1).and_then(|word| Level::from_word(&word));
            } else if line
                .stamp
                .as_deref()
                .is_some_and(|stamp| stamp.get(10..11) == Some("T"))
                && let Some(found) = prefixes.tracing_target.find(&msg)
            {
                taken = found.end();
                if msg.starts_with("text_generation") {
                    line.engine = Some(EngineKind::Tgi);
                }
            }
        }
        _ => {}
    }
    line.proc = if proc.is_empty() { None } else { Some(proc) };
    line.msg_at += taken;
    taken > 0
}

fn name_ranks(proc: &mut Proc, ranks: &str) {
    proc.rank = ranks
        .split_whitespace()
        .rev()
        .find_map(|part| part.strip_prefix("TP").and_then(|digits| digits.parse().ok()))
        .or(proc.rank);
    proc.name = Some(ranks.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(raw: &str) -> (String, Option<String>, Option<u32>, Option<Level>, Option<String>) {
        let line = parse(raw.as_bytes());
        let proc = line.proc.clone().unwrap_or_default();
        (
            line.msg().to_owned(),
            proc.name.clone(),
            proc.rank,
            line.level,
            line.stamp.clone(),
        )
    }

    #[test]
    fn sglang() {
        let line = parse(b"[2026-11-30 23:41:41 DP1 TP3 EP3] Load weight begin. avail mem=1 GB");
        assert_eq!(line.msg(), "Load weight begin. avail mem=1 GB");
        assert_eq!(line.proc.clone().unwrap_or_default().rank, Some(3));
        assert_eq!(line.engine, Some(EngineKind::Sglang));
        assert_eq!(
            said("[2026-11-30 23:41:41] INFO:     Started server process [1]").3,
            Some(Level::Info)
        );
        assert_eq!(said("[TP0] Capture cuda graph begin.").1.as_deref(), Some("TP0"));
    }

    #[test]
    fn vllm_old_and_new() {
        let (msg, name, _, level, stamp) =
            said("(EngineCore pid=4660) ERROR 11-30 23:31:55 [core.py:1510]   File \"x.py\", line 1, in f");
        assert_eq!(msg, "  File \"x.py\", line 1, in f");
        assert_eq!(name.as_deref(), Some("EngineCore"));
        assert_eq!(level, Some(Level::Error));
        assert_eq!(stamp.as_deref(), Some("11-30 23:31:55"));
        assert_eq!(said("(Worker_TP3 pid=9) ValueError: x").2, Some(3));
        assert_eq!(
            said("(VllmWorker rank=1 pid=102) INFO [pynccl.py:63] x").2,
            Some(1)
        );
        assert_eq!(
            said("INFO 06-09 23:57:43 __init__.py:190] Automatically").0,
            "Automatically"
        );
        assert_eq!(
            said("\u{1b}[0;36m(APIServer pid=1)\u{1b}[0;0m INFO:     x").0,
            "x"
        );
        assert_eq!(said("(no prefix) at all").1, None);
    }

    #[test]
    fn others() {
        let line = parse(b"0.00.009.251 E gguf_init_from_reader: invalid magic");
        assert_eq!(
            (line.msg(), line.level),
            ("gguf_init_from_reader: invalid magic", Some(Level::Error))
        );
        assert_eq!(said("ERROR:      File \"x\", line 6").0, "  File \"x\", line 6");
        assert_eq!(
            said("2024-01-01T00:00:00.12Z ERROR text_generation_launcher: Shard 0 failed").0,
            "Shard 0 failed"
        );
        assert_eq!(said("[rank8]: RuntimeError: x").2, Some(8));
        assert_eq!(
            said("[rank0]:[E1130 23:36:16.456183159 ProcessGroupNCCL.cpp:629] Watchdog").0,
            "Watchdog"
        );
        assert_eq!(
            said("[01/15/2025-10:00:00] [TRT-LLM] [E] Failed").3,
            Some(Level::Error)
        );
        assert_eq!(
            said("host-1:77:99 [2] misc/shm.cc:12 NCCL WARN Call failed").2,
            Some(2)
        );
        assert_eq!(
            said("time=2025-01-01T00:00:00Z level=ERROR source=a.go:1 msg=\"x y\" error=z").0,
            "msg=\"x y\" error=z"
        );
        assert_eq!(
            said("2025-01-01 00:00:00,123 - lmdeploy - ERROR - a.py:1 - x")
                .4
                .as_deref(),
            Some("2025-01-01 00:00:00,123")
        );
        assert_eq!(said("plain words").0, "plain words");
        assert_eq!(said("").0, "");
    }
}
