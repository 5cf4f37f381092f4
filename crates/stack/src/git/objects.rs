//! The object store: loose objects, packs with their indexes (version 2), deltas.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::read::ZlibDecoder;

use super::{Oid, parse_oid};
use crate::root::Root;

/// Bytes of one object, and links of a chain of deltas, that anything real here has fewer of.
const MAX_OBJECT: u64 = 64 << 20;
const MAX_CHAIN: u32 = 100;
const MAX_PACKS: usize = 512;

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Commit,
    Tree,
    Blob,
    Tag,
}

#[derive(Debug)]
struct Pack {
    index: File,
    data: File,
    count: u32,
}

#[derive(Debug)]
pub(crate) struct Objects<'a> {
    root: &'a Root,
    directories: Vec<PathBuf>,
    packs: Vec<Pack>,
    commits: RefCell<HashMap<Oid, Option<Rc<Commit>>>>,
}

/// A commit, as far as history needs it.
#[derive(Debug, Clone)]
pub(crate) struct Commit {
    pub(crate) tree: Oid,
    pub(crate) parents: Vec<Oid>,
    pub(crate) time: i64,
    pub(crate) subject: String,
}

struct At<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.file.read_at(buffer, self.offset)?;
        self.offset += n as u64;
        Ok(n)
    }
}

fn inflate(reader: impl Read, limit: u64) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    ZlibDecoder::new(reader)
        .take(limit + 1)
        .read_to_end(&mut out)
        .ok()?;
    (out.len() as u64 <= limit).then_some(out)
}

impl<'a> Objects<'a> {
    pub(crate) fn open(root: &'a Root, directory: &Path) -> Self {
        let mut directories = vec![directory.to_owned()];
        if let Ok(text) = root.read_text(&directory.join("info/alternates"), 1 << 16) {
            directories.extend(
                text.lines()
                    .filter(|l| l.starts_with('/'))
                    .take(16)
                    .map(PathBuf::from),
            );
        }
        let mut packs = Vec::new();
        for directory in &directories {
            for index in root.matching(&directory.join("pack"), "*.idx") {
                if packs.len() >= MAX_PACKS {
                    break;
                }
                packs.extend(Pack::open(root, &index));
            }
        }
        Self {
            root,
            directories,
            packs,
            commits: RefCell::default(),
        }
    }

    /// Kind and contents of an object.
    pub(crate) fn get(&self, oid: &Oid) -> Option<(Kind, Vec<u8>)> {
        self.get_bounded(oid, 0)
    }

    fn get_bounded(&self, oid: &Oid, depth: u32) -> Option<(Kind, Vec<u8>)> {
        let packed = self.packs.iter().find_map(|pack| Some((pack, pack.find(oid)?)));
        if let Some((pack, offset)) = packed {
            return self.unpack(pack, offset, depth);
        }
        let name = crate::files::hex(oid);
        self.directories.iter().find_map(|directory| {
            let file = self
                .root
                .open(&directory.join(name.get(..2)?).join(name.get(2..)?))
                .ok()?;
            let bytes = inflate(file, MAX_OBJECT + 64)?;
            let end = bytes.iter().position(|b| *b == 0)?;
            let kind = match bytes.get(..end)?.split(|b| *b == b' ').next()? {
                b"commit" => Kind::Commit,
                b"tree" => Kind::Tree,
                b"blob" => Kind::Blob,
                b"tag" => Kind::Tag,
                _ => return None,
            };
            Some((kind, bytes.get(end + 1..)?.to_vec()))
        })
    }

    fn unpack(&self, pack: &Pack, offset: u64, depth: u32) -> Option<(Kind, Vec<u8>)> {
        if depth > MAX_CHAIN {
            return None;
        }
        let mut head = [0; 64];
        let n = pack.data.read_at(&mut head, offset).ok()?;
        let head = head.get(..n)?;
        let first = *head.first()?;
        let (mut at, mut size, mut shift) = (1, u64::from(first & 15), 4);
        let mut byte = first;
        while byte & 0x80 != 0 {
            byte = *head.get(at)?;
            size |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            at += 1;
        }
        if size > MAX_OBJECT {
            return None;
        }
        let base = match (first >> 4) & 7 {
            kind @ 1..=4 => {
                let data = inflate(
                    At {
                        file: &pack.data,
                        offset: offset + at as u64,
                    },
                    size,
                )?;
                let kind = [Kind::Commit, Kind::Tree, Kind::Blob, Kind::Tag][usize::from(kind) - 1];
                return (data.len() as u64 == size).then_some((kind, data));
            }
            6 => {
                let mut byte = *head.get(at)?;
                let mut back = u64::from(byte & 0x7f);
                at += 1;
                while byte & 0x80 != 0 {
                    byte = *head.get(at)?;
                    back = back.checked_add(1)?.checked_mul(128)? | u64::from(byte & 0x7f);
                    at += 1;
                }
                self.unpack(pack, offset.checked_sub(back).filter(|o| *o < offset)?, depth + 1)?
            }
            7 => {
                let oid: Oid = head.get(at..at + 20)?.try_into().ok()?;
                at += 20;
                self.get_bounded(&oid, depth + 1)?
            }
            _ => return None,
        };
        let delta = inflate(
            At {
                file: &pack.data,
                offset: offset + at as u64,
            },
            size,
        )?;
        Some((base.0, apply(&base.1, &delta)?))
    }

    /// What an annotated tag stands for; other objects stand for themselves.
    pub(crate) fn peel(&self, oid: Oid) -> Option<Oid> {
        let mut at = oid;
        for _ in 0..8 {
            match self.get(&at)? {
                (Kind::Tag, data) => {
                    let text = String::from_utf8_lossy(&data).into_owned();
                    at = parse_oid(text.lines().next()?.strip_prefix("object ")?)?;
                }
                _ => return Some(at),
            }
        }
        None
    }

    pub(crate) fn commit(&self, oid: &Oid) -> Option<Rc<Commit>> {
        if let Some(known) = self.commits.borrow().get(oid) {
            return known.clone();
        }
        let commit = self.read_commit(oid).map(Rc::new);
        self.commits.borrow_mut().insert(*oid, commit.clone());
        commit
    }

    fn read_commit(&self, oid: &Oid) -> Option<Commit> {
        let (Kind::Commit, data) = self.get(oid)? else {
            return None;
        };
        let text = String::from_utf8_lossy(&data);
        let (head, message) = text.split_once("\n\n").unwrap_or((&text, ""));
        let mut commit = Commit {
            tree: parse_oid(head.lines().next()?.strip_prefix("tree ")?)?,
            parents: Vec::new(),
            time: 0,
            subject: message
                .lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(100)
                .collect(),
        };
        for line in head.lines() {
            if let Some(parent) = line.strip_prefix("parent ") {
                commit.parents.extend(parse_oid(parent));
            } else if let Some(committer) = line.strip_prefix("committer ") {
                commit.time = committer
                    .rsplit(' ')
                    .nth(1)
                    .and_then(|t| t.parse().ok())
                    .unwrap_or(0);
            }
        }
        Some(commit)
    }

    /// The entries of a tree: mode, name, object.
    pub(crate) fn tree(&self, oid: &Oid) -> Option<Vec<(u32, String, Oid)>> {
        let (Kind::Tree, data) = self.get(oid)? else {
            return None;
        };
        let mut entries = Vec::new();
        let mut rest = data.as_slice();
        while !rest.is_empty() {
            let end = rest.iter().position(|b| *b == 0)?;
            let (mode, name) = std::str::from_utf8(rest.get(..end)?).ok()?.split_once(' ')?;
            let oid: Oid = rest.get(end + 1..end + 21)?.try_into().ok()?;
            entries.push((u32::from_str_radix(mode, 8).ok()?, name.to_owned(), oid));
            rest = rest.get(end + 21..)?;
        }
        Some(entries)
    }
}

impl Pack {
    fn open(root: &Root, index_path: &Path) -> Option<Self> {
        let index = root.open(index_path).ok()?;
        let data = root.open(&index_path.with_extension("pack")).ok()?;
        let mut head = [0; 8];
        index.read_exact_at(&mut head, 0).ok()?;
        if head != [0xff, b't', b'O', b'c', 0, 0, 0, 2] {
            return None;
        }
        let mut pack = Self {
            index,
            data,
            count: 0,
        };
        pack.count = pack.fanout(255)?;
        Some(pack)
    }

    fn number(&self, offset: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.index.read_exact_at(&mut bytes, offset).ok()?;
        Some(u32::from_be_bytes(bytes))
    }

    fn fanout(&self, byte: u8) -> Option<u32> {
        self.number(8 + u64::from(byte) * 4)
    }

    fn find(&self, oid: &Oid) -> Option<u64> {
        let names = 8 + 256 * 4;
        let mut low = match oid[0] {
            0 => 0,
            byte => self.fanout(byte - 1)?,
        };
        let mut high = self.fanout(oid[0])?.min(self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut name = [0; 20];
            self.index
                .read_exact_at(&mut name, names + u64::from(middle) * 20)
                .ok()?;
            match name.cmp(oid) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.offset(middle),
            }
        }
        None
    }

    fn offset(&self, position: u32) -> Option<u64> {
        let count = u64::from(self.count);
        let offsets = 8 + 256 * 4 + count * 24;
        let short = self.number(offsets + u64::from(position) * 4)?;
        if short & 0x8000_0000 == 0 {
            return Some(u64::from(short));
        }
        let mut bytes = [0; 8];
        let long = offsets + count * 4 + u64::from(short & 0x7fff_ffff) * 8;
        self.index.read_exact_at(&mut bytes, long).ok()?;
        Some(u64::from_be_bytes(bytes))
    }
}

/// Applies a delta: copies from the base and insertions.
fn apply(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let mut at = 0;
    let mut varint = || {
        let (mut value, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = *delta.get(at)?;
            at += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    };
    if varint()? != base.len() as u64 {
        return None;
    }
    let size = varint()?;
    if size > MAX_OBJECT {
        return None;
    }
    let mut out = Vec::new();
    while let Some(op) = delta.get(at).copied() {
        at += 1;
        if op & 0x80 == 0 {
            let end = at + usize::from(op);
            out.extend_from_slice(delta.get(at..end).filter(|_| op != 0)?);
            at = end;
        } else {
            let mut part = |bits: std::ops::Range<u8>| {
                let mut value = 0_usize;
                for (place, bit) in bits.enumerate() {
                    if op & (1 << bit) != 0 {
                        value |= usize::from(*delta.get(at)?) << (8 * place);
                        at += 1;
                    }
                }
                Some(value)
            };
            let start = part(0..4)?;
            let length = match part(4..7)? {
                0 => 0x10000,
                length => length,
            };
            out.extend_from_slice(base.get(start..start.checked_add(length)?)?);
        }
        if out.len() as u64 > size {
            return None;
        }
    }
    (out.len() as u64 == size).then_some(out)
}
