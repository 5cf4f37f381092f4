//! GPU code in an ELF file: for which architectures there is machine code (cubin) and intermediate code (PTX).
//!
//! The sections `.nv_fatbin` and `__nv_relfatbin` hold regions of entries. The suffixes `a` and `f` of an
//! architecture do not show, and a cubin for one kernel does not prove that all kernels are covered.

use std::collections::BTreeMap;
use std::fs::File;

use crate::elf::{ElfError, Header, Source};

const REGION_MAGIC: u32 = 0xba55_ed50;
const KIND_PTX: u16 = 1;
const KIND_CUBIN: u16 = 2;
/// Section headers and entries that anything real has fewer of.
const MAX_SECTIONS: u64 = 65_536;
const MAX_ENTRIES: u64 = 4 << 20;

/// GPU code of one file. The architectures are numbers as in `sm_120`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GpuCode {
    /// Machine code: architecture and number of pieces.
    pub cubins: BTreeMap<u32, u64>,
    /// Intermediate code, which the driver compiles for newer GPUs.
    pub ptx: BTreeMap<u32, u64>,
    /// Some of it could not be read: its sizes contradict each other.
    pub damaged: bool,
}

/// How a file serves a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// Machine code for it.
    Native,
    /// Only intermediate code, which the driver compiles at first use.
    Jit,
    /// Nothing that could run.
    None,
}

impl GpuCode {
    /// Whether there is any GPU code.
    pub fn is_empty(&self) -> bool {
        self.cubins.is_empty() && self.ptx.is_empty()
    }

    /// Machine code of the same major and at most the same minor number runs; PTX of at most the same number can be
    /// compiled (CUDA C++ Programming Guide, binary and PTX compatibility).
    pub fn coverage(&self, sm: u32) -> Coverage {
        if self.cubins.keys().any(|c| c / 10 == sm / 10 && *c <= sm) {
            Coverage::Native
        } else if self.ptx.keys().any(|p| *p <= sm) {
            Coverage::Jit
        } else {
            Coverage::None
        }
    }

    /// Reads the GPU code of an open ELF file, seeking over the code itself.
    pub fn read(file: File) -> Result<Self, ElfError> {
        let source = Source::new(file).map_err(|_| ElfError::Malformed("its size cannot be read"))?;
        Self::from_source(&source)
    }

    fn from_source(source: &Source) -> Result<Self, ElfError> {
        let mut code = Self::default();
        for (offset, size) in sections(source)? {
            code.scan(source, offset, size);
        }
        Ok(code)
    }

    fn scan(&mut self, source: &Source, offset: u64, size: u64) {
        let Some(end) = offset.checked_add(size).filter(|e| *e <= source.len()) else {
            self.damaged = true;
            return;
        };
        let mut at = offset;
        let mut seen = 0;
        while at + 16 <= end {
            let Some(head) = source.read(at, 16, 16) else {
                self.damaged = true;
                return;
            };
            if u32_at(&head, 0) != REGION_MAGIC {
                // Regions are aligned; zeroes lie between them.
                if head.iter().take(8).all(|b| *b == 0) {
                    at += 8;
                    continue;
                }
                self.damaged = true;
                return;
            }
            let header = u64::from(u16_at(&head, 6));
            let payload = u64_at(&head, 8);
            let Some(next) = at.checked_add(header).and_then(|a| a.checked_add(payload)) else {
                self.damaged = true;
                return;
            };
            if next > end || header < 16 {
                self.damaged = true;
                return;
            }
            let mut entry = at + header;
            while entry + 64 <= next {
                seen += 1;
                let Some(bytes) = source.read(entry, 32, 32).filter(|_| seen < MAX_ENTRIES) else {
                    self.damaged = true;
                    return;
                };
                let kind = u16_at(&bytes, 0);
                let skip = u64::from(u32_at(&bytes, 4)).checked_add(u64_at(&bytes, 8));
                let sm = u32_at(&bytes, 28);
                match kind {
                    KIND_PTX => *self.ptx.entry(sm).or_default() += 1,
                    KIND_CUBIN => *self.cubins.entry(sm).or_default() += 1,
                    _ => {}
                }
                match skip
                    .and_then(|s| entry.checked_add(s))
                    .filter(|e| *e > entry && *e <= next)
                {
                    Some(following) => entry = following,
                    None => {
                        self.damaged = true;
                        return;
                    }
                }
            }
            at = next.next_multiple_of(8);
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// Offset and size of the sections that hold GPU code.
fn sections(source: &Source) -> Result<Vec<(u64, u64)>, ElfError> {
    let short = ElfError::Malformed("it ends within its section headers");
    let head = source.read(0, 64, 64).ok_or(ElfError::NotElf)?;
    let header = Header::parse(&head)?;
    if !header.is_64 || !header.is_little {
        return Err(ElfError::Foreign("32-bit or big endian"));
    }
    let (table, size, mut count, mut names) = (
        u64_at(&head, 40),
        u64::from(u16_at(&head, 58)),
        u64::from(u16_at(&head, 60)),
        u64::from(u16_at(&head, 62)),
    );
    if table == 0 || size < 64 {
        return Ok(Vec::new());
    }
    let section = |index: u64| {
        let at = table.checked_add(index.checked_mul(size)?)?;
        source.read(at, 64, 64)
    };
    // Numbers that do not fit stand in the first section header.
    let first = section(0).ok_or(short.clone())?;
    if count == 0 {
        count = u64_at(&first, 32);
    }
    if names == 0xffff {
        names = u64::from(u32_at(&first, 40));
    }
    if count > MAX_SECTIONS {
        return Err(ElfError::Malformed("section headers of an impossible number"));
    }
    let strings = section(names).ok_or(short.clone())?;
    let strings = source.part(u64_at(&strings, 24), u64_at(&strings, 32));
    let mut found = Vec::new();
    for index in 0..count {
        let bytes = section(index).ok_or(short.clone())?;
        let name = u64::from(u32_at(&bytes, 0));
        // A section without contents (kind 8) has no bytes in the file.
        let has_bytes = u32_at(&bytes, 4) != 8;
        if has_bytes && (strings.is_string(name, b".nv_fatbin") || strings.is_string(name, b"__nv_relfatbin"))
        {
            found.push((u64_at(&bytes, 24), u64_at(&bytes, 32)));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(cubins: &[u32], ptx: &[u32]) -> GpuCode {
        GpuCode {
            cubins: cubins.iter().map(|c| (*c, 1)).collect(),
            ptx: ptx.iter().map(|c| (*c, 1)).collect(),
            damaged: false,
        }
    }

    #[test]
    fn same_major_and_newer_ptx() {
        let flash = code(&[80, 86, 90], &[]);
        assert_eq!(flash.coverage(89), Coverage::Native, "86 runs on 89");
        assert_eq!(flash.coverage(120), Coverage::None);
        assert_eq!(flash.coverage(75), Coverage::None);
        assert_eq!(code(&[80], &[80]).coverage(120), Coverage::Jit);
        assert_eq!(
            code(&[89], &[90]).coverage(86),
            Coverage::None,
            "neither newer cubin nor newer PTX"
        );
        assert_eq!(code(&[120], &[]).coverage(121), Coverage::Native);
        assert_eq!(code(&[100], &[]).coverage(103), Coverage::Native);
    }
}
