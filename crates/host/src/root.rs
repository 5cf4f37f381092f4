//! The root that everything is read below.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::HostError;

/// First size of the buffer of one read: most files of `/proc/PID` are shorter.
const FIRST_READ: usize = 4096;

/// A machine, seen from a root.
#[derive(Debug, Clone)]
pub struct Host {
    root: PathBuf,
}

impl Host {
    /// This machine.
    pub fn local() -> Self {
        Self::at("/")
    }

    /// The machine whose `/` is at `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where `path` of the machine is for us.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The bytes of a file, at most `cap` of them: what is longer is cut.
    ///
    /// # Errors
    /// [`HostError`] where it cannot be opened or read.
    pub fn read(&self, path: &str, cap: usize) -> Result<Vec<u8>, HostError> {
        let mut bytes = Vec::new();
        self.read_into(path, cap, &mut bytes)?;
        Ok(bytes)
    }

    /// As [`Self::read`], into a buffer that is used again.
    pub(crate) fn read_into(&self, path: &str, cap: usize, bytes: &mut Vec<u8>) -> Result<(), HostError> {
        bytes.clear();
        let mut file = File::open(self.path(path)).map_err(|error| HostError::new(path, &error))?;
        let mut filled = 0;
        while filled < cap {
            // Files of /proc have no size: read until there is nothing more.
            if filled == bytes.len() {
                bytes.resize((filled * 2).clamp(FIRST_READ.min(cap), cap), 0);
            }
            match file.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(HostError::new(path, &error)),
            }
        }
        bytes.truncate(filled);
        Ok(())
    }

    /// The text of a file, at most `cap` bytes, what is not UTF-8 replaced.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_text(&self, path: &str, cap: usize) -> Result<String, HostError> {
        Ok(String::from_utf8_lossy(&self.read(path, cap)?).into_owned())
    }

    /// Where a symbolic link points, as it is written.
    ///
    /// # Errors
    /// [`HostError`] where it is no link or cannot be read.
    pub fn read_link(&self, path: &str) -> Result<String, HostError> {
        let target = fs::read_link(self.path(path)).map_err(|error| HostError::new(path, &error))?;
        Ok(target.to_string_lossy().into_owned())
    }

    /// The names in a directory, in no order.
    ///
    /// # Errors
    /// [`HostError`] where it cannot be listed.
    pub fn list(&self, path: &str) -> Result<Vec<String>, HostError> {
        let listing = fs::read_dir(self.path(path)).map_err(|error| HostError::new(path, &error))?;
        Ok(listing
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect())
    }

    /// Whether `path` is there, links followed.
    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The root itself.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::local()
    }
}
