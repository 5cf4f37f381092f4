//! What we know of engines: `catalog/engines/*.toml`, compiled in, parsed when an engine is first asked for, and
//! joined with the user's own files.

mod check;
mod entry;
mod merge;
mod pattern;
mod reply;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use shakedown_model::EngineKind;

pub use entry::{
    Entry, Flag, Fold, IdentityRule, Listen, MetricRule, Metrics, Probes, ProcessField, ProcessRule,
    Provenance, Report, SampleReply, SettingRule, Settings, StateRule, StateWord, VersionSource,
};
pub use pattern::Pattern;
pub use reply::{HeaderRule, JsonRule, JsonType, ReplyRule, ReplyView};

/// Largest file of a user's catalogue that is read.
const USER_FILE_CAP: u64 = 1024 * 1024;

/// The directory of a user's own catalogue; the engines are in `engines/` below it.
pub const CATALOG_VARIABLE: &str = "SHAKEDOWN_CATALOG";

/// Why a part of the catalogue cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// A file that cannot be read.
    #[error("read {path}: {error}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        error: String,
    },
    /// A file that is not an engine's entry.
    #[error("parse {path}: {error}")]
    Parse {
        /// The file.
        path: String,
        /// What is wrong with it.
        error: String,
    },
    /// A pattern that is no regular expression.
    #[error("compile the pattern {pattern}: {error}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        error: String,
    },
    /// A pattern without a literal would be compiled and tried on every process.
    #[error("use the pattern {pattern}: it needs a literal that must be in the text")]
    NoLiteral {
        /// The pattern.
        pattern: String,
    },
    /// An entry that contradicts itself.
    #[error("use the entry of {engine}: {fault}")]
    Entry {
        /// The engine.
        engine: &'static str,
        /// What is wrong with it.
        fault: String,
    },
}

macro_rules! built_in {
    ($($kind:ident => $file:literal),* $(,)?) => {
        /// Every engine with an entry, in the order of the files.
        pub const KINDS: [EngineKind; [$($file),*].len()] = [$(EngineKind::$kind),*];

        const fn text_of(kind: EngineKind) -> &'static str {
            match kind {
                $(EngineKind::$kind => {
                    include_str!(concat!("../../../../catalog/engines/", $file, ".toml"))
                })*
            }
        }
    };
}

built_in! {
    Dynamo => "dynamo",
    LlamaCpp => "llama.cpp",
    LmDeploy => "lmdeploy",
    MistralRs => "mistral.rs",
    Nim => "nim",
    Ollama => "ollama",
    Practice => "practice",
    Sglang => "sglang",
    SglangRouter => "sglang-router",
    TensorRtLlm => "tensorrt-llm",
    Tgi => "tgi",
    Transformers => "transformers",
    Vllm => "vllm",
}

/// The catalogue: the built-in entries and the user's.
#[derive(Debug, Default)]
pub struct Catalog {
    entries: [OnceLock<Entry>; KINDS.len()],
    user: Vec<Entry>,
    problems: Vec<CatalogError>,
}

impl Catalog {
    /// The built-in entries alone.
    pub fn built_in() -> Self {
        Self::default()
    }

    /// The built-in entries and those of the user's `directory` (`engines/*.toml` below it).
    ///
    /// A file that cannot be used is left out and reported by [`Self::problems`]: one bad file must not take the
    /// whole tool away.
    pub fn with_user(directory: &Path) -> Self {
        let mut catalog = Self::default();
        for path in user_files(&directory.join("engines")) {
            match read_user_file(&path) {
                Ok(entry) => catalog.user.push(entry),
                Err(problem) => catalog.problems.push(problem),
            }
        }
        catalog
    }

    /// The catalogue of this process: the user's directory is `SHAKEDOWN_CATALOG`, else
    /// `shakedown/catalog` in the XDG configuration directory. Read once.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Catalog> = OnceLock::new();
        SHARED.get_or_init(|| {
            user_directory().map_or_else(Self::built_in, |directory| Self::with_user(&directory))
        })
    }

    /// The entry of `kind`.
    pub fn entry(&self, kind: EngineKind) -> &Entry {
        let at = KINDS.iter().position(|known| *known == kind).unwrap_or_default();
        self.entries[at].get_or_init(|| {
            let mut entry = parse_built_in(kind);
            for user in self.user.iter().filter(|user| user.kind == kind) {
                entry = merge::joined(entry, user.clone());
            }
            entry
        })
    }

    /// All entries.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        KINDS.iter().map(|kind| self.entry(*kind))
    }

    /// What of the user's files could not be used.
    pub fn problems(&self) -> &[CatalogError] {
        &self.problems
    }

    /// Whether `path` may be asked for by GET: some engine allows it and none forbids it.
    ///
    /// The rule is the same for every server, for what answers at an address is not known before it is asked.
    pub fn allows(&self, path: &str) -> bool {
        let listed = |pick: fn(&Probes) -> &Vec<String>| {
            self.entries()
                .any(|entry| pick(&entry.probes).iter().any(|known| known == path))
        };
        listed(|probes| &probes.allow) && !listed(|probes| &probes.never)
    }

    /// Ports where some engine listens by default, without repeats, in the order of the entries.
    pub fn default_ports(&self) -> Vec<u16> {
        let mut ports = Vec::new();
        for entry in self.entries() {
            for port in entry.listen.iter().map(|listen| listen.port) {
                if !ports.contains(&port) {
                    ports.push(port);
                }
            }
        }
        ports
    }
}

/// The entry as built in. The catalogue's test parses every file, so the fallback is never seen.
fn parse_built_in(kind: EngineKind) -> Entry {
    parse(text_of(kind), kind.as_str()).unwrap_or_else(|_| Entry::empty(kind))
}

fn parse(text: &str, path: &str) -> Result<Entry, CatalogError> {
    toml::from_str(text).map_err(|error| CatalogError::Parse {
        path: path.to_owned(),
        error: error.message().to_owned(),
    })
}

fn user_directory() -> Option<PathBuf> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    variable(CATALOG_VARIABLE).or_else(|| {
        let configuration =
            variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|home| home.join(".config")))?;
        Some(configuration.join("shakedown").join("catalog"))
    })
}

fn user_files(directory: &Path) -> Vec<PathBuf> {
    let Ok(listing) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = listing
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}

fn read_user_file(path: &Path) -> Result<Entry, CatalogError> {
    let shown = path.display().to_string();
    let failed = |error: String| CatalogError::Read {
        path: shown.clone(),
        error,
    };
    let size = std::fs::metadata(path)
        .map_err(|error| failed(error.to_string()))?
        .len();
    if size > USER_FILE_CAP {
        return Err(failed(format!("{size} bytes are more than {USER_FILE_CAP}")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let entry = parse(&text, &shown)?;
    check::check(&entry)?;
    Ok(entry)
}

/// Checks every built-in entry: it parses, its patterns compile, its samples match and differ as they say, and it
/// asks for nothing that is not on its allow-list.
pub fn check_built_in() -> Vec<CatalogError> {
    let mut faults = Vec::new();
    for kind in KINDS {
        let checked = parse(text_of(kind), kind.as_str()).and_then(|entry| {
            if entry.kind == kind {
                check::check_whole(&entry)
            } else {
                Err(CatalogError::Entry {
                    engine: kind.as_str(),
                    fault: format!("its file is of {}", entry.kind.as_str()),
                })
            }
        });
        faults.extend(checked.err());
    }
    faults
}
