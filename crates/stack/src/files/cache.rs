//! What was found about each file of a RECORD, valid while size, modification time and inode stay the same.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::record::hex;

const MAGIC: &[u8; 8] = b"sdhash3\n";
/// Bytes of a cache that anything real has fewer of.
const MAX_CACHE: u64 = 256 << 20;

/// What identifies a file's contents without reading them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    pub(crate) mtime_ns: i64,
    pub(crate) inode: u64,
}

/// What is known of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Not looked at, or not to be kept.
    Unknown,
    /// As in the RECORD.
    Same,
    /// Not as in the RECORD: its own hash.
    Other([u8; 32]),
}

/// The files of one distribution, in the order of its RECORD.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remembered {
    pub(crate) record: Stamp,
    pub(crate) files: Vec<(Stamp, State)>,
}

/// The cache of one environment.
#[derive(Debug, Default)]
pub struct HashCache {
    path: Option<PathBuf>,
    known: HashMap<String, Remembered>,
    /// GPU code of files, as kept by the caller: stamp and an opaque text.
    notes: HashMap<String, (Stamp, String)>,
    changed: bool,
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<String> {
        let len = self.number()?;
        String::from_utf8(self.take(usize::try_from(len).ok()?)?.to_vec()).ok()
    }

    fn stamp(&mut self) -> Option<Stamp> {
        Some(Stamp {
            size: self.number()?,
            mtime_ns: self.number()? as i64,
            inode: self.number()?,
        })
    }
}

fn put_stamp(out: &mut Vec<u8>, stamp: Stamp) {
    out.extend(stamp.size.to_le_bytes());
    out.extend(stamp.mtime_ns.to_le_bytes());
    out.extend(stamp.inode.to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

impl HashCache {
    /// A cache that forgets.
    pub fn none() -> Self {
        Self::default()
    }

    /// The cache in `directory` of the environment at `place`. One that cannot be read counts as empty.
    pub fn open(directory: &Path, place: &Path) -> Self {
        let name = hex(&Sha256::digest(place.as_os_str().as_encoded_bytes())[..16]);
        let path = directory.join(format!("stack-{name}"));
        let mut cache = Self::default();
        if let Ok(file) = std::fs::File::open(&path) {
            let mut bytes = Vec::new();
            let read = file.take(MAX_CACHE).read_to_end(&mut bytes);
            if read.is_err() || cache.parse(&bytes).is_none() {
                cache = Self::default();
            }
        }
        cache.path = Some(path);
        cache
    }

    fn parse(&mut self, bytes: &[u8]) -> Option<()> {
        let mut reader = Reader(bytes);
        if reader.take(8)? != MAGIC {
            return None;
        }
        for _ in 0..reader.number()? {
            let key = reader.text()?;
            let record = reader.stamp()?;
            let count = usize::try_from(reader.number()?).ok()?;
            // One file takes 25 bytes at least: a count that lies reserves nothing.
            let mut files = Vec::with_capacity(count.min(reader.0.len() / 25));
            for _ in 0..count {
                let stamp = reader.stamp()?;
                let state = match reader.take(1)? {
                    [1] => State::Same,
                    [2] => State::Other(reader.take(32)?.try_into().ok()?),
                    _ => State::Unknown,
                };
                files.push((stamp, state));
            }
            self.known.insert(key, Remembered { record, files });
        }
        for _ in 0..reader.number()? {
            let key = reader.text()?;
            let stamp = reader.stamp()?;
            self.notes.insert(key, (stamp, reader.text()?));
        }
        Some(())
    }

    pub(crate) fn get(&self, key: &str, record: Stamp, files: usize) -> Option<&Remembered> {
        self.known
            .get(key)
            .filter(|r| r.record == record && r.files.len() == files)
    }

    pub(crate) fn put(&mut self, key: String, value: Remembered) {
        let same = self
            .known
            .get(&key)
            .is_some_and(|old| old.record == value.record && old.files == value.files);
        if !same {
            self.changed = true;
            self.known.insert(key, value);
        }
    }

    pub(crate) fn note(&self, key: &str, stamp: Stamp) -> Option<&str> {
        self.notes
            .get(key)
            .filter(|(s, _)| *s == stamp)
            .map(|(_, text)| text.as_str())
    }

    pub(crate) fn set_note(&mut self, key: String, stamp: Stamp, text: String) {
        self.changed = true;
        self.notes.insert(key, (stamp, text));
    }

    /// Writes the cache, whole or not at all. Without it the next run only takes longer.
    pub fn save(&mut self) -> std::io::Result<()> {
        let Some(path) = self.path.clone().filter(|_| self.changed) else {
            return Ok(());
        };
        let mut out = MAGIC.to_vec();
        out.extend((self.known.len() as u64).to_le_bytes());
        for (key, remembered) in &self.known {
            put_text(&mut out, key);
            put_stamp(&mut out, remembered.record);
            out.extend((remembered.files.len() as u64).to_le_bytes());
            for (stamp, state) in &remembered.files {
                put_stamp(&mut out, *stamp);
                match state {
                    State::Unknown => out.push(0),
                    State::Same => out.push(1),
                    State::Other(hash) => {
                        out.push(2);
                        out.extend(hash);
                    }
                }
            }
        }
        out.extend((self.notes.len() as u64).to_le_bytes());
        for (key, (stamp, text)) in &self.notes {
            put_text(&mut out, key);
            put_stamp(&mut out, *stamp);
            put_text(&mut out, text);
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let partial = path.with_extension(format!("tmp{}", std::process::id()));
        let mut file = std::fs::File::create(&partial)?;
        file.write_all(&out)?;
        drop(file);
        std::fs::rename(&partial, &path)?;
        self.changed = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_it_was_told() {
        let dir = tempfile::tempdir().unwrap();
        let stamp = Stamp {
            size: 1,
            mtime_ns: -2,
            inode: 3,
        };
        let mut cache = HashCache::open(dir.path(), Path::new("/env"));
        let files = vec![
            (stamp, State::Same),
            (stamp, State::Other([7; 32])),
            (stamp, State::Unknown),
        ];
        let value = Remembered {
            record: stamp,
            files: files.clone(),
        };
        cache.put("a".into(), value);
        cache.set_note("lib.so".into(), stamp, "90".into());
        cache.save().unwrap();
        let again = HashCache::open(dir.path(), Path::new("/env"));
        assert_eq!(again.get("a", stamp, 3).unwrap().files, files);
        assert_eq!(again.note("lib.so", stamp), Some("90"));
        assert!(again.get("a", stamp, 2).is_none() && again.get("a", Stamp::default(), 3).is_none());
        assert!(
            HashCache::open(dir.path(), Path::new("/other"))
                .get("a", stamp, 3)
                .is_none()
        );
    }

    proptest::proptest! {
        #[test]
        fn damaged_caches_are_empty(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let mut all = MAGIC.to_vec();
            all.extend(bytes);
            let _ = HashCache::default().parse(&all);
        }
    }
}
