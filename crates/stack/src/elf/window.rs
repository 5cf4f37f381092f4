//! Reading parts of a large file: whole blocks, each read once and only when asked for.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

/// Bytes read at a time.
const BLOCK: u64 = 16 << 10;

/// An open file and its length when it was opened.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    file: Rc<File>,
    len: u64,
}

impl Source {
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self {
            file: Rc::new(file),
            len,
        })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// `size` bytes at `offset`; `None` where the file is shorter or `size` is above `limit`.
    pub(crate) fn read(&self, offset: u64, size: u64, limit: u64) -> Option<Vec<u8>> {
        if size > limit || offset.checked_add(size)? > self.len {
            return None;
        }
        let mut bytes = vec![0; size as usize];
        self.file.read_exact_at(&mut bytes, offset).ok()?;
        Some(bytes)
    }

    /// The part of the file at `offset`, at most `size` bytes long and never beyond its end.
    pub(crate) fn part(&self, offset: u64, size: u64) -> Part {
        let size = size.min(self.len.saturating_sub(offset));
        Part {
            source: self.clone(),
            offset,
            size,
            blocks: RefCell::new(vec![None; size.div_ceil(BLOCK) as usize]),
        }
    }
}

/// A part of a file, read block by block on demand.
#[derive(Debug)]
pub(crate) struct Part {
    source: Source,
    offset: u64,
    size: u64,
    blocks: RefCell<Vec<Option<Rc<[u8]>>>>,
}

impl Part {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    fn block(&self, index: u64) -> Option<Rc<[u8]>> {
        if let Some(block) = self.blocks.borrow().get(index as usize)? {
            return Some(Rc::clone(block));
        }
        let start = index * BLOCK;
        let bytes = self.source.read(
            self.offset.checked_add(start)?,
            BLOCK.min(self.size - start),
            BLOCK,
        )?;
        let block: Rc<[u8]> = bytes.into();
        if let Some(slot) = self.blocks.borrow_mut().get_mut(index as usize) {
            *slot = Some(Rc::clone(&block));
        }
        Some(block)
    }

    /// `N` bytes at `at`.
    pub(crate) fn bytes<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        if at.checked_add(N as u64)? > self.size {
            return None;
        }
        let block = self.block(at / BLOCK)?;
        let start = (at % BLOCK) as usize;
        let mut out = [0; N];
        let head = (block.len() - start).min(N);
        out.get_mut(..head)?
            .copy_from_slice(block.get(start..start + head)?);
        if head < N {
            let next = self.block(at / BLOCK + 1)?;
            out.get_mut(head..)?.copy_from_slice(next.get(..N - head)?);
        }
        Some(out)
    }

    pub(crate) fn u16(&self, at: u64) -> Option<u16> {
        self.bytes(at).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&self, at: u64) -> Option<u32> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&self, at: u64) -> Option<u64> {
        self.bytes(at).map(u64::from_le_bytes)
    }

    /// The bytes at `at` up to the next zero byte, at most `limit` of them.
    pub(crate) fn string(&self, at: u64, limit: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut at = at;
        while at < self.size {
            let block = self.block(at / BLOCK)?;
            let rest = block.get((at % BLOCK) as usize..)?;
            if let Some(end) = rest.iter().position(|b| *b == 0) {
                out.extend_from_slice(rest.get(..end)?);
                return (out.len() <= limit).then_some(out);
            }
            out.extend_from_slice(rest);
            if out.len() > limit {
                return None;
            }
            at += rest.len() as u64;
        }
        None
    }

    /// Whether the string at `at` is `expected`.
    pub(crate) fn is_string(&self, at: u64, expected: &[u8]) -> bool {
        let mut at = at;
        let mut rest = expected;
        loop {
            if at >= self.size {
                return false;
            }
            let Some(block) = self.block(at / BLOCK) else {
                return false;
            };
            let Some(here) = block.get((at % BLOCK) as usize..) else {
                return false;
            };
            let take = here.len().min(rest.len());
            if here.get(..take) != rest.get(..take) {
                return false;
            }
            rest = rest.get(take..).unwrap_or_default();
            if take < here.len() {
                return rest.is_empty() && here.get(take) == Some(&0);
            }
            at += take as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn blocks_join() {
        let mut file = tempfile::tempfile().unwrap();
        let mut bytes = vec![b'a'; 3 * BLOCK as usize];
        bytes[2 * BLOCK as usize + 5] = 0;
        bytes[BLOCK as usize - 2..BLOCK as usize + 2].copy_from_slice(&[1, 2, 3, 4]);
        file.write_all(&bytes).unwrap();
        let source = Source::new(file).unwrap();
        let part = source.part(0, u64::MAX);
        assert_eq!(part.u32(BLOCK - 2), Some(0x0403_0201));
        assert_eq!(part.u32(3 * BLOCK - 3), None);
        let long = part.string(BLOCK + 2, 1 << 20).unwrap();
        assert_eq!(long.len() as u64, BLOCK + 3);
        assert!(part.is_string(BLOCK + 2, &long));
        assert!(!part.is_string(BLOCK + 2, &long[1..]));
        assert!(part.string(BLOCK + 2, 100).is_none());
        assert!(part.string(2 * BLOCK + 6, 1 << 20).is_none(), "no end");
    }
}
