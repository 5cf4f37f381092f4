//! One installed distribution: what its `*.dist-info` (or `*.egg-info`) says.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use super::{Requirement, normalize};
use crate::root::{Root, RootError};

/// Bytes of metadata headers that anything real has fewer of; the description after them may be of any length.
const MAX_HEADERS: usize = 2 << 20;
/// Bytes of a METADATA file that is read at all.
const MAX_METADATA: u64 = 16 << 20;
const MAX_SMALL: u64 = 1 << 20;
/// Requirements of one distribution that anything real has fewer of.
const MAX_REQUIREMENTS: usize = 2000;

/// Why a distribution could not be read.
#[derive(Debug, Error)]
pub enum DistError {
    /// A file could not be read.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The metadata names no distribution.
    #[error("read {path}: no Name and Version among the headers", path = path.display())]
    Headers {
        /// The file.
        path: PathBuf,
    },
}

/// The headers of METADATA that matter here.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    /// Name as written.
    pub name: String,
    /// Version as written.
    pub version: String,
    /// `Requires-Python`.
    pub requires_python: Option<String>,
    /// What it requires.
    pub requires: Vec<Requirement>,
    /// Lines of `Requires-Dist` that could not be read.
    pub unreadable: Vec<String>,
    /// The headers were longer, or required more, than anything real: what follows was not read.
    pub cut: bool,
}

impl Metadata {
    /// Reads the headers: up to the first empty line, continuation lines left out.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut metadata = Self {
            cut: bytes.len() > MAX_HEADERS,
            ..Self::default()
        };
        for line in bytes
            .get(..bytes.len().min(MAX_HEADERS))
            .unwrap_or_default()
            .split(|b| *b == b'\n')
        {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                metadata.cut = false;
                break;
            }
            if line.starts_with(b" ") || line.starts_with(b"\t") {
                continue;
            }
            let Some(colon) = line.iter().position(|b| *b == b':') else {
                continue;
            };
            let (key, value) = line.split_at(colon);
            // Most headers of a real file are classifiers: they are not even decoded.
            let wanted = [
                b"name".as_slice(),
                b"version",
                b"requires-python",
                b"requires-dist",
            ];
            if !wanted.iter().any(|w| key.eq_ignore_ascii_case(w)) {
                continue;
            }
            let value = String::from_utf8_lossy(value.get(1..).unwrap_or_default())
                .trim()
                .to_owned();
            match key.len() {
                4 if metadata.name.is_empty() => metadata.name = value,
                7 if metadata.version.is_empty() => metadata.version = value,
                15 => metadata.requires_python = Some(value),
                13 if metadata.requires.len() >= MAX_REQUIREMENTS => {
                    metadata.cut = true;
                    break;
                }
                13 => match Requirement::parse(&value) {
                    Some(requirement) => metadata.requires.push(requirement),
                    None => metadata.unreadable.push(value),
                },
                _ => {}
            }
        }
        metadata
    }
}

/// Where a distribution that came from no index came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectKind {
    /// A directory whose sources are used in place.
    Editable,
    /// A directory that was built and installed.
    Directory,
    /// A version control checkout.
    Vcs {
        /// The commit that was installed.
        commit: String,
    },
    /// A file.
    Archive,
}

/// What `direct_url.json` says (PEP 610).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Direct {
    /// The URL, credentials masked.
    pub url: String,
    /// What it is.
    pub kind: DirectKind,
}

#[derive(Deserialize)]
struct RawDirect {
    url: String,
    dir_info: Option<RawDir>,
    vcs_info: Option<RawVcs>,
}

#[derive(Deserialize)]
struct RawDir {
    #[serde(default)]
    editable: bool,
}

#[derive(Deserialize)]
struct RawVcs {
    commit_id: String,
}

impl Direct {
    /// Reads `direct_url.json`.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let raw: RawDirect = serde_json::from_slice(bytes).ok()?;
        let kind = match (raw.dir_info, raw.vcs_info) {
            (_, Some(vcs)) => DirectKind::Vcs {
                commit: vcs.commit_id,
            },
            (Some(dir), _) if dir.editable => DirectKind::Editable,
            (Some(_), _) => DirectKind::Directory,
            _ => DirectKind::Archive,
        };
        Some(Self {
            url: crate::mask::url(&raw.url),
            kind,
        })
    }

    /// The directory that a `file:` URL names.
    pub fn directory(&self) -> Option<PathBuf> {
        let path = self.url.strip_prefix("file://")?;
        let bytes = path.as_bytes();
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let hex = path
                .get(at + 1..at + 3)
                .and_then(|h| u8::from_str_radix(h, 16).ok());
            match (byte, hex) {
                (b'%', Some(value)) => {
                    out.push(value);
                    at += 3;
                }
                _ => {
                    out.push(*byte);
                    at += 1;
                }
            }
        }
        let path = PathBuf::from(String::from_utf8(out).ok()?);
        path.is_absolute().then_some(path)
    }
}

/// An installed distribution.
#[derive(Debug, Clone)]
pub struct Distribution {
    /// Name, normalized.
    pub name: String,
    /// Version as written.
    pub version: String,
    /// The `*.dist-info` or `*.egg-info` directory.
    pub info: PathBuf,
    /// The directory of the search path that it lies in.
    pub site: PathBuf,
    /// What it requires.
    pub metadata: Metadata,
    /// Wheel tags, for example `cp311-cp311-manylinux_2_28_x86_64`.
    pub tags: Vec<String>,
    /// The program that installed it.
    pub installer: Option<String>,
    /// Where it came from, if not from an index.
    pub direct: Option<Direct>,
    /// Whether it has a RECORD.
    pub has_record: bool,
}

impl Distribution {
    /// Reads the distribution whose metadata directory is `info`.
    pub fn read(root: &Root, info: &Path) -> Result<Self, DistError> {
        let is_egg = info.extension().is_some_and(|e| e == "egg-info");
        let file = if !is_egg {
            info.join("METADATA")
        } else if root.is_dir(info) {
            info.join("PKG-INFO")
        } else {
            info.to_owned()
        };
        let metadata = Metadata::parse(&head_of(root, &file)?);
        if metadata.name.is_empty() || metadata.version.is_empty() {
            return Err(DistError::Headers { path: file });
        }
        let mut tags = Vec::new();
        if let Ok(wheel) = root.read_text(&info.join("WHEEL"), MAX_SMALL) {
            tags.extend(
                wheel
                    .lines()
                    .filter_map(|l| l.strip_prefix("Tag:"))
                    .map(|t| t.trim().to_owned()),
            );
        }
        Ok(Self {
            name: normalize(&metadata.name),
            version: metadata.version.clone(),
            site: info.parent().unwrap_or(Path::new("/")).to_owned(),
            tags,
            installer: root.line(info.join("INSTALLER")).filter(|i| !i.is_empty()),
            direct: root
                .read(&info.join("direct_url.json"), MAX_SMALL)
                .ok()
                .and_then(|b| Direct::parse(&b)),
            has_record: root.is_file(&info.join("RECORD")),
            info: info.to_owned(),
            metadata,
        })
    }
}

/// The first part of a metadata file: enough for any real one's headers.
fn head_of(root: &Root, file: &Path) -> Result<Vec<u8>, RootError> {
    use std::io::Read;
    let opened = root.open(file)?;
    let mut bytes = Vec::new();
    opened
        .take((MAX_HEADERS as u64 + 1).min(MAX_METADATA))
        .read_to_end(&mut bytes)
        .map_err(|source| RootError::Io {
            path: file.to_owned(),
            source,
        })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_end_at_the_first_empty_line() {
        let text = b"Metadata-Version: 2.1\r\nname: Foo.Bar\r\nVersion: 1.0+cu130\r\nRequires-Dist: torch==2.9.1\r\n\
            Requires-Dist: ???\r\nDescription: long\r\n  Version: 9\r\n\r\nVersion: 2\r\nRequires-Dist: x\r\n";
        let metadata = Metadata::parse(text);
        assert_eq!(
            (metadata.name.as_str(), metadata.version.as_str()),
            ("Foo.Bar", "1.0+cu130")
        );
        assert_eq!(metadata.requires.len(), 1);
        assert_eq!(metadata.unreadable, ["???"]);
    }

    #[test]
    fn endless_headers_are_cut() {
        let mut text = b"Name: a\nVersion: 1\n".to_vec();
        text.extend(b"Requires-Dist: b\n".repeat(200_000));
        let metadata = Metadata::parse(&text);
        assert!(metadata.cut && metadata.requires.len() == MAX_REQUIREMENTS);
    }

    #[test]
    fn direct_urls() {
        let editable =
            Direct::parse(br#"{"url": "file:///src/a%20b", "dir_info": {"editable": true}}"#).unwrap();
        assert_eq!(editable.kind, DirectKind::Editable);
        assert_eq!(editable.directory(), Some("/src/a b".into()));
        let git = br#"{"url": "https://user:tok@example.org/r.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}"#;
        let git = Direct::parse(git).unwrap();
        assert_eq!(git.kind, DirectKind::Vcs { commit: "abc".into() });
        assert_eq!(git.url, "https://***@example.org/r.git");
        assert_eq!(git.directory(), None);
        assert!(Direct::parse(b"{").is_none());
    }

    proptest::proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            let _ = Metadata::parse(&bytes);
            let _ = Direct::parse(&bytes);
        }
    }
}
