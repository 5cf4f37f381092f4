//! `installed.json`: what the cache holds. Tests read it too, so it is kept plain.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::fetch::{LLAMA, MODEL, Package};
use super::llama;

const FILE: &str = "installed.json";

/// One thing in the cache.
pub(crate) struct Item {
    /// Where it lies, absolute.
    pub(crate) path: PathBuf,
    version: String,
    bytes: u64,
}

/// What the cache holds.
pub(crate) struct Installed {
    /// The server.
    pub(crate) llama_server: Item,
    /// The model.
    pub(crate) model: Item,
}

impl Installed {
    /// What lies at these paths, by the pins of this source.
    pub(super) fn new(cache: &Path, llama_server: &Path, model: &Path) -> Result<Self> {
        let item = |path: &Path, version: String| -> Result<Item> {
            let bytes = fs::metadata(path)
                .with_context(|| format!("failed to read {}", path.display()))?
                .len();
            Ok(Item {
                path: cache.join(path),
                version,
                bytes,
            })
        };
        Ok(Self {
            llama_server: item(llama_server, format!("b{}", llama::build_number()))?,
            model: item(model, MODEL.version.to_owned())?,
        })
    }

    /// What `cache` holds; `None` unless all of it is there, whole, by the pins of this source.
    pub(crate) fn read(cache: &Path) -> Option<Self> {
        let text = fs::read_to_string(cache.join(FILE)).ok()?;
        let document: Value = serde_json::from_str(&text).ok()?;
        let item = |name: &str, package: &Package| -> Option<Item> {
            let entry = document.get(name)?;
            let string = |key: &str| entry.get(key).and_then(Value::as_str);
            let path = cache.join(string("path")?);
            let bytes = entry.get("bytes")?.as_u64()?;
            let whole = fs::metadata(&path).ok()?.len() == bytes;
            let pinned = string("package")? == package.name
                && string("package_version")? == package.version
                && string("package_sha256")? == package.sha256;
            (whole && pinned).then(|| {
                Some(Item {
                    path,
                    version: string("version")?.to_owned(),
                    bytes,
                })
            })?
        };
        Some(Self {
            llama_server: item("llama_server", &LLAMA)?,
            model: item("model", &MODEL)?,
        })
    }

    /// Writes it down, paths relative to the cache.
    pub(super) fn write(&self, cache: &Path) -> Result<()> {
        let item = |item: &Item, package: &Package| {
            let path = item.path.strip_prefix(cache).unwrap_or(&item.path);
            json!({
                "path": path,
                "version": item.version,
                "bytes": item.bytes,
                "package": package.name,
                "package_version": package.version,
                "package_sha256": package.sha256,
            })
        };
        let document = json!({
            "llama_server": item(&self.llama_server, &LLAMA),
            "model": item(&self.model, &MODEL),
        });
        let path = cache.join(FILE);
        fs::write(&path, format!("{document:#}\n"))
            .with_context(|| format!("failed to write {}", path.display()))
    }
}

impl fmt::Display for Installed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = &self.llama_server;
        let model = &self.model;
        writeln!(f, "  llama-server {}: {}", server.version, server.path.display())?;
        write!(f, "  model {}: {}", model.version, model.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn a_cache_is_believed_only_whole_and_by_the_same_pins() {
        let cache = scratch("installed");
        let (server, model) = (cache.join("server"), cache.join("model"));
        fs::write(&server, "binary").unwrap();
        fs::write(&model, "weights").unwrap();
        assert!(Installed::read(&cache).is_none(), "nothing was written down yet");

        let installed = Installed::new(&cache, &server, &model).unwrap();
        installed.write(&cache).unwrap();
        let read = Installed::read(&cache).unwrap();
        assert_eq!(read.llama_server.path, server);
        assert_eq!(read.model.path, model);
        assert_eq!(read.llama_server.version, "b11434");

        let stamp = cache.join(FILE);
        let text = fs::read_to_string(&stamp).unwrap();
        assert!(
            !text.contains(cache.to_str().unwrap()),
            "paths must survive a move of the cache"
        );
        fs::write(&stamp, text.replace(LLAMA.sha256, MODEL.sha256)).unwrap();
        assert!(
            Installed::read(&cache).is_none(),
            "another checksum is another engine"
        );

        fs::write(&stamp, &text).unwrap();
        fs::write(&model, "weigh").unwrap();
        assert!(Installed::read(&cache).is_none(), "a cut model is no model");
        fs::remove_dir_all(&cache).unwrap();
    }
}
