//! What was true of the machine besides the log: read from `facts.json`, or filled in by who can see the machine.
//!
//! Keys are free, values are text, lists or tables of text; the keys that are understood have constants here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shakedown_engines::mask::is_secret_variable;
use shakedown_model::MASK;
use thiserror::Error;

use crate::mask::mask;

/// Largest `facts.json` that is read.
pub(crate) const LARGEST: u64 = 8 * 1024 * 1024;
/// Longest value that is kept, in bytes.
const LONGEST: usize = 64 * 1024;
/// Most values that are kept.
const MOST: usize = 20_000;

/// Keys that are understood.
pub mod key {
    /// The server's command line, or the container's.
    pub const ARGV: &str = "argv";
    /// Its environment.
    pub const ENV: &str = "env";
    /// Processes of interest, one a line.
    pub const PROCESSES: &str = "processes";
    /// What the server's process does: state, what it waits for, how busy it is.
    pub const PROC: &str = "proc";
    /// Listening sockets, one a line.
    pub const SOCKETS: &str = "sockets";
    /// Probes of the server's endpoints and what came back.
    pub const HTTP: &str = "http";
    /// GPUs: names, memory, what runs on them.
    pub const GPU: &str = "gpu";
    /// How the GPUs are connected.
    pub const TOPO: &str = "topo";
    /// Version of the kernel driver.
    pub const DRIVER: &str = "driver";
    /// What the loader would find.
    pub const LDCONFIG: &str = "ldconfig";
    /// The CUDA compiler.
    pub const NVCC: &str = "nvcc";
    /// Installed packages and their versions.
    pub const PACKAGES: &str = "packages";
    /// Files that matter: size, mode, content.
    pub const FILES: &str = "files";
    /// The shared memory file system.
    pub const SHM: &str = "/dev/shm";
    /// Disks.
    pub const DISK: &str = "disk";
    /// Host memory.
    pub const MEMORY: &str = "memory";
    /// Kernel messages.
    pub const KERNEL: &str = "kernel";
    /// Control group: limits and events.
    pub const CGROUP: &str = "cgroup";
    /// Limits of the process.
    pub const LIMITS: &str = "limits";
    /// How the process ended: an exit code or a signal.
    pub const EXIT: &str = "exit";
    /// About the server.
    pub const SERVER: &str = "server";
    /// About the client.
    pub const CLIENT: &str = "client";
    /// About the container.
    pub const CONTAINER: &str = "container";
    /// Seconds since the log's last write.
    pub const LOG_AGE: &str = "log_age_s";
    /// The network's names and routes.
    pub const NETWORK: &str = "network";
}

/// Other names under which the keys come.
const ALIASES: [(&str, &str); 45] = [
    ("cmd", key::ARGV),
    ("cmdline", key::ARGV),
    ("command", key::ARGV),
    ("args", key::ARGV),
    ("environment", key::ENV),
    ("process", key::PROCESSES),
    ("ps", key::PROCESSES),
    ("listening", key::SOCKETS),
    ("listen", key::SOCKETS),
    ("ports", key::SOCKETS),
    ("ss", key::SOCKETS),
    ("netstat", key::SOCKETS),
    ("health", key::HTTP),
    ("probe", key::HTTP),
    ("gpus", key::GPU),
    ("nvidia-smi", key::GPU),
    ("nvidia_smi", key::GPU),
    ("compute_apps", key::GPU),
    ("topology", key::TOPO),
    ("nvidia_driver", key::DRIVER),
    ("pip", key::PACKAGES),
    ("versions", key::PACKAGES),
    ("pip_list", key::PACKAGES),
    ("file", key::FILES),
    ("shm", key::SHM),
    ("dev_shm", key::SHM),
    ("df", key::DISK),
    ("mem", key::MEMORY),
    ("ram", key::MEMORY),
    ("meminfo", key::MEMORY),
    ("dmesg", key::KERNEL),
    ("kmsg", key::KERNEL),
    ("kernel_log", key::KERNEL),
    ("journal", key::KERNEL),
    ("memory.events", key::CGROUP),
    ("memory_events", key::CGROUP),
    ("ulimit", key::LIMITS),
    ("rlimits", key::LIMITS),
    ("exit_code", key::EXIT),
    ("exit_status", key::EXIT),
    ("exitcode", key::EXIT),
    ("returncode", key::EXIT),
    ("rc", key::EXIT),
    ("signal", key::EXIT),
    ("status", key::EXIT),
];

/// The facts could not be read.
#[derive(Debug, Error)]
pub enum FactsError {
    /// Not JSON.
    #[error("read the facts as JSON")]
    Json(#[from] serde_json::Error),
    /// JSON, but no object.
    #[error("read the facts: the document must be an object of keys and values, and is {0}")]
    NoObject(&'static str),
}

/// One fact: a key, the name inside it where it is a table, and the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Key, lower case, aliases resolved.
    pub key: String,
    /// Name inside the key, for example a package's.
    pub name: Option<String>,
    /// The value.
    pub text: String,
}

impl Fact {
    /// Where it is to be quoted from.
    pub fn place(&self) -> String {
        match &self.name {
            Some(name) => format!("facts: {}.{name}", self.key),
            None => format!("facts: {}", self.key),
        }
    }
}

/// The facts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    all: Vec<Fact>,
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => serde_json::to_string(value).ok(),
    }
}

/// How `facts.json` writes one key.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Saved {
    One(String),
    Many(Vec<String>),
    Table(BTreeMap<String, String>),
}

impl Facts {
    /// No facts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the document of `facts.json`.
    pub fn from_json(bytes: &[u8]) -> Result<Self, FactsError> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let value: Value = serde_json::from_slice(bytes)?;
        Self::from_value(&value)
    }

    /// Takes the facts out of a JSON object.
    pub fn from_value(value: &Value) -> Result<Self, FactsError> {
        let object = match value {
            Value::Object(object) => object,
            Value::Array(_) => return Err(FactsError::NoObject("a list")),
            Value::String(_) => return Err(FactsError::NoObject("a text")),
            Value::Null => return Err(FactsError::NoObject("null")),
            Value::Bool(_) | Value::Number(_) => return Err(FactsError::NoObject("a single value")),
        };
        let mut facts = Self::new();
        for (key, value) in object {
            match value {
                Value::Array(items) => {
                    for item in items {
                        match item {
                            Value::Object(table) => facts.add_table(key, table),
                            _ => facts.add_value(key, None, item),
                        }
                    }
                }
                Value::Object(table) => facts.add_table(key, table),
                _ => facts.add_value(key, None, value),
            }
        }
        Ok(facts)
    }

    fn add_table(&mut self, key: &str, table: &serde_json::Map<String, Value>) {
        for (name, value) in table {
            match value {
                Value::Array(items) => {
                    for item in items {
                        self.add_value(key, Some(name), item);
                    }
                }
                _ => self.add_value(key, Some(name), value),
            }
        }
    }

    fn add_value(&mut self, key: &str, name: Option<&str>, value: &Value) {
        if let Some(text) = text_of(value) {
            self.add(key, name, text);
        }
    }

    /// Adds one fact.
    pub fn add(&mut self, key: &str, name: Option<&str>, text: impl Into<String>) {
        if self.all.len() >= MOST {
            return;
        }
        let lower = key.trim().to_ascii_lowercase();
        let key = ALIASES
            .iter()
            .find(|(alias, _)| *alias == lower)
            .map_or(lower.clone(), |(_, key)| (*key).to_owned());
        let mut text = text.into();
        if key == key::EXIT && lower == "signal" {
            text = format!("signal {text}");
        }
        let text = crate::log::bounded(&text, LONGEST).to_owned();
        self.all.push(Fact {
            key,
            name: name.map(str::to_owned),
            text,
        });
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All facts.
    pub fn all(&self) -> &[Fact] {
        &self.all
    }

    /// The facts under `key`, which may be `key.name`.
    pub fn get<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Fact> + 'a {
        self.all.iter().filter(move |fact| {
            fact.key == path
                || fact.name.as_deref().is_some_and(|name| {
                    path.strip_prefix(&fact.key)
                        .and_then(|rest| rest.strip_prefix('.'))
                        .is_some_and(|wanted| wanted.eq_ignore_ascii_case(name))
                })
        })
    }

    /// Whether anything was given under `key`.
    pub fn has(&self, key: &str) -> bool {
        self.get(key).next().is_some()
    }

    /// The fact that gives the version of an installed package, and the version.
    pub fn package(&self, package: &str) -> Option<(&Fact, String)> {
        let alike = |name: &str| {
            name.trim().to_ascii_lowercase().replace(['_', '.'], "-") == package.replace(['_', '.'], "-")
        };
        for fact in self.get(key::PACKAGES) {
            if fact
                .name
                .as_deref()
                .is_some_and(|name| alike(name) || name.split_whitespace().any(alike))
            {
                return Some((fact, fact.text.trim().to_owned()));
            }
            for piece in fact.text.split([',', ';', '\n']) {
                let mut words = piece
                    .split(['=', ' ', '\t', '(', ')', '@'])
                    .filter(|word| !word.is_empty());
                if let (Some(name), Some(version)) = (words.next(), words.next())
                    && alike(name)
                    && version.starts_with(|c: char| c.is_ascii_digit())
                {
                    return Some((fact, version.to_owned()));
                }
            }
        }
        None
    }

    /// A variable of the server's environment.
    pub fn env(&self, name: &str) -> Option<(&Fact, String)> {
        for fact in self.get(key::ENV) {
            if fact
                .name
                .as_deref()
                .is_some_and(|known| known.eq_ignore_ascii_case(name))
            {
                return Some((fact, fact.text.clone()));
            }
            if fact.name.is_none() {
                for piece in fact.text.split([' ', '\n', ',', ';']) {
                    if let Some((known, value)) = piece.split_once('=')
                        && known.eq_ignore_ascii_case(name)
                    {
                        return Some((fact, value.to_owned()));
                    }
                }
            }
        }
        None
    }

    /// The document for `facts.json`, secrets masked.
    pub fn to_json(&self) -> Value {
        let mut document: BTreeMap<&str, Saved> = BTreeMap::new();
        for fact in &self.all {
            let secret = fact.name.as_deref().is_some_and(is_secret_variable);
            let text = if secret {
                MASK.to_owned()
            } else {
                mask(&fact.text).into_owned()
            };
            match (&fact.name, document.get_mut(fact.key.as_str())) {
                (Some(name), Some(Saved::Table(table))) => {
                    table.insert(name.clone(), text);
                }
                (Some(name), None) => {
                    document.insert(&fact.key, Saved::Table(BTreeMap::from([(name.clone(), text)])));
                }
                (Some(name), Some(Saved::Many(list))) => list.push(format!("{name}: {text}")),
                (None, Some(Saved::Many(list))) => list.push(text),
                (None, None) => {
                    document.insert(&fact.key, Saved::One(text));
                }
                (name, Some(place)) => {
                    let first = match place {
                        Saved::One(first) => vec![std::mem::take(first)],
                        Saved::Table(table) => table
                            .iter()
                            .map(|(name, text)| format!("{name}: {text}"))
                            .collect(),
                        Saved::Many(_) => Vec::new(),
                    };
                    let mut list = first;
                    list.push(match name {
                        Some(name) => format!("{name}: {text}"),
                        None => text,
                    });
                    *place = Saved::Many(list);
                }
            }
        }
        serde_json::to_value(document).unwrap_or(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loose_documents_are_understood() {
        let facts = Facts::from_json(
            br#"{"ARGV": "x --port 1", "env": {"http_proxy": "http://p:1"}, "packages": ["torch 2.9.1+cu130", "vllm==0.11.0"],
                 "exit_code": 137, "dmesg": ["a", "b"], "files": {"m.safetensors": "135 bytes"}, "nothing": null}"#,
        )
        .unwrap();
        assert_eq!(facts.get("argv").next().unwrap().text, "x --port 1");
        assert_eq!(facts.env("HTTP_PROXY").unwrap().1, "http://p:1");
        assert_eq!(facts.package("torch").unwrap().1, "2.9.1+cu130");
        assert_eq!(facts.package("vllm").unwrap().1, "0.11.0");
        assert_eq!(facts.get("exit").next().unwrap().text, "137");
        assert_eq!(facts.get("kernel").count(), 2);
        assert_eq!(facts.get("files.m.safetensors").count(), 1);
        assert!(!facts.has("nothing"));
    }

    #[test]
    fn bad_documents_are_errors() {
        assert!(matches!(Facts::from_json(b"{"), Err(FactsError::Json(_))));
        assert!(matches!(
            Facts::from_json(b"[1]"),
            Err(FactsError::NoObject("a list"))
        ));
        assert!(matches!(Facts::from_json(b""), Err(FactsError::Json(_))));
    }

    #[test]
    fn saving_masks() {
        let facts = Facts::from_json(
            br#"{"env": {"HF_TOKEN": "abcdefgh", "PATH": "/bin"}, "argv": "serve --api-key qqqqqq"}"#,
        )
        .unwrap();
        let saved = facts.to_json().to_string();
        assert!(
            !saved.contains("abcdefgh") && !saved.contains("qqqqqq"),
            "{saved}"
        );
        assert!(saved.contains("/bin"));
        assert_eq!(
            Facts::from_json(saved.as_bytes()).unwrap().env("PATH").unwrap().1,
            "/bin"
        );
    }
}
