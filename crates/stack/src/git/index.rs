//! The index (versions 2 to 4): what is tracked, with the stat data of when it was last looked at.

use super::Oid;

/// Entries that anything real has fewer of.
const MAX_ENTRIES: u32 = 4 << 20;

/// One tracked file.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) mode: u32,
    pub(crate) size: u32,
    pub(crate) mtime: (u32, u32),
    pub(crate) oid: Oid,
    /// 0, or a side of an unresolved merge.
    pub(crate) stage: u8,
    /// Not meant to be in the working tree.
    pub(crate) skipped: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) entries: Vec<Entry>,
    /// The tree that the index as a whole stands for, where it is known.
    pub(crate) tree: Option<Oid>,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(
        bytes.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(
        bytes.get(at..at.checked_add(2)?)?.try_into().ok()?,
    ))
}

impl Index {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let version = u32_at(bytes, 4)?;
        if bytes.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
            return None;
        }
        let count = u32_at(bytes, 8)?;
        if count > MAX_ENTRIES {
            return None;
        }
        let mut index = Self::default();
        let mut at = 12;
        let mut last: Vec<u8> = Vec::new();
        for _ in 0..count {
            let start = at;
            let flags = u16_at(bytes, at + 60)?;
            let mut name_at = at + 62;
            let mut skipped = false;
            if version >= 3 && flags & 0x4000 != 0 {
                skipped = u16_at(bytes, name_at)? & 0x4000 != 0;
                name_at += 2;
            }
            let path = if version == 4 {
                let mut byte = *bytes.get(name_at)?;
                let mut strip = usize::from(byte & 0x7f);
                name_at += 1;
                while byte & 0x80 != 0 {
                    byte = *bytes.get(name_at)?;
                    strip = strip.checked_add(1)?.checked_mul(128)? | usize::from(byte & 0x7f);
                    name_at += 1;
                }
                last.truncate(last.len().checked_sub(strip)?);
                let end = name_at + bytes.get(name_at..)?.iter().position(|b| *b == 0)?;
                last.extend_from_slice(bytes.get(name_at..end)?);
                at = end + 1;
                last.clone()
            } else {
                let end = name_at + bytes.get(name_at..)?.iter().position(|b| *b == 0)?;
                // Entries are padded with one to eight zeroes to a multiple of eight.
                at = start + (end - start + 8) / 8 * 8;
                bytes.get(name_at..end)?.to_vec()
            };
            index.entries.push(Entry {
                path: String::from_utf8_lossy(&path).into_owned(),
                mtime: (u32_at(bytes, start + 8)?, u32_at(bytes, start + 12)?),
                mode: u32_at(bytes, start + 24)?,
                size: u32_at(bytes, start + 36)?,
                oid: bytes.get(start + 40..start + 60)?.try_into().ok()?,
                stage: ((flags >> 12) & 3) as u8,
                skipped,
            });
        }
        index.tree = cached_tree(bytes.get(at..).unwrap_or_default());
        Some(index)
    }
}

/// The root of the `TREE` extension, unless something was staged since it was written.
fn cached_tree(mut rest: &[u8]) -> Option<Oid> {
    while rest.len() > 28 {
        let size = u32_at(rest, 4)? as usize;
        if rest.starts_with(b"TREE") {
            // The root's name is empty; a count of -1 means that it is not valid.
            let body = rest.get(9..8 + size)?;
            let line = body.iter().position(|b| *b == b'\n')?;
            let count = std::str::from_utf8(body.get(..line)?)
                .ok()?
                .split(' ')
                .next()?
                .parse::<i64>()
                .ok()?;
            return if count < 0 {
                None
            } else {
                body.get(line + 1..line + 21)?.try_into().ok()
            };
        }
        rest = rest.get(8 + size..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300), version in 2_u8..5) {
            let mut all = b"DIRC\0\0\0".to_vec();
            all.push(version);
            all.extend([0, 0, 0, 3]);
            all.extend(bytes);
            let _ = Index::parse(&all);
        }
    }
}
