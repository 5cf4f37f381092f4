//! The ELF header, the program headers and the dynamic section.

use std::fs::File;

use super::symbols::Symbols;
use super::versions::{VersionNeed, Versions};
use super::window::{Part, Source};
use super::{ElfError, Undefined};
use crate::elf::symbols::Asked;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;

const DT_NEEDED: u64 = 1;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_STRSZ: u64 = 10;
const DT_SONAME: u64 = 14;
const DT_RPATH: u64 = 15;
const DT_SYMBOLIC: u64 = 16;
const DT_PLTRELSZ: u64 = 2;
const DT_JMPREL: u64 = 23;
const DT_RUNPATH: u64 = 29;
const DT_FLAGS: u64 = 30;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const DT_VERSYM: u64 = 0x6fff_fff0;
const DT_RELACOUNT: u64 = 0x6fff_fff9;
const DT_FLAGS_1: u64 = 0x6fff_fffb;
const DT_VERDEF: u64 = 0x6fff_fffc;
const DT_VERDEFNUM: u64 = 0x6fff_fffd;
const DT_VERNEED: u64 = 0x6fff_fffe;
const DT_VERNEEDNUM: u64 = 0x6fff_ffff;
const DF_SYMBOLIC: u64 = 2;
const DF_1_NODEFLIB: u64 = 0x800;

/// Program headers that anything real has fewer of.
const MAX_HEADERS: u64 = 1024;
/// Bytes of a dynamic section that anything real has fewer of.
const MAX_DYNAMIC: u64 = 1 << 20;
/// Bytes of a name or a search path that anything real has fewer of.
const MAX_STRING: usize = 256 << 10;

/// What the first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// `e_machine`: 62 is x86-64, 183 is AArch64.
    pub machine: u16,
    /// 64-bit rather than 32-bit.
    pub is_64: bool,
    /// Little endian.
    pub is_little: bool,
}

impl Header {
    /// Reads the identification and the machine from the first 20 bytes of a file.
    pub fn parse(bytes: &[u8]) -> Result<Self, ElfError> {
        let head = bytes.get(..20).ok_or(ElfError::NotElf)?;
        let (Some(b"\x7fELF"), Some(class), Some(data)) = (head.get(..4), head.get(4), head.get(5)) else {
            return Err(ElfError::NotElf);
        };
        let is_little = *data == 1;
        let raw = [head[18], head[19]];
        Ok(Self {
            machine: if is_little {
                u16::from_le_bytes(raw)
            } else {
                u16::from_be_bytes(raw)
            },
            is_64: *class == 2,
            is_little,
        })
    }
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    vaddr: u64,
    offset: u64,
    filesz: u64,
}

/// One ELF file, as far as loading it is concerned.
#[derive(Debug)]
pub struct Image {
    /// What the first bytes say.
    pub header: Header,
    /// The dynamic loader that an executable names.
    pub interpreter: Option<String>,
    /// `DT_SONAME`.
    pub soname: Option<String>,
    /// `DT_NEEDED`, in order.
    pub needed: Vec<String>,
    /// `DT_RPATH`; empty where there is a `DT_RUNPATH`, as the loader has it.
    pub rpath: Option<String>,
    /// `DT_RUNPATH`.
    pub runpath: Option<String>,
    /// Its own definitions come before those of the scope.
    pub symbolic: bool,
    /// Default directories are not searched for its needs.
    pub no_default_dirs: bool,
    versions: Versions,
    symbols: Symbols,
    relocations: Vec<Part>,
}

fn string(strings: &Part, at: u64) -> Result<String, ElfError> {
    strings
        .string(at, MAX_STRING)
        .map(|b| String::from_utf8_lossy(&b).into_owned())
        .ok_or(ElfError::Malformed("a name lies outside the string table"))
}

impl Image {
    /// Reads the headers and the dynamic section of an open file.
    pub fn read(file: File) -> Result<Self, ElfError> {
        let source = Source::new(file).map_err(|_| ElfError::Malformed("its size cannot be read"))?;
        Self::from_source(&source)
    }

    pub(crate) fn from_source(source: &Source) -> Result<Self, ElfError> {
        let short = ElfError::Malformed("it ends within its headers");
        let head = source
            .read(0, 64, 64)
            .or_else(|| source.read(0, 20, 20))
            .ok_or(ElfError::NotElf)?;
        let header = Header::parse(&head)?;
        if !header.is_64 || !header.is_little {
            return Err(ElfError::Foreign(if header.is_64 {
                "big endian"
            } else {
                "32-bit"
            }));
        }
        let whole = source.part(0, source.len());
        let phoff = whole.u64(32).ok_or(short.clone())?;
        let phentsize = u64::from(whole.u16(54).ok_or(short.clone())?);
        let phnum = u64::from(whole.u16(56).ok_or(short.clone())?);
        if phnum > MAX_HEADERS || (phnum > 0 && phentsize < 56) {
            return Err(ElfError::Malformed("program headers of an impossible size"));
        }
        let mut segments = Vec::new();
        let (mut dynamic, mut interpreter) = (None, None);
        for index in 0..phnum {
            let at = phoff.checked_add(index * phentsize).ok_or(short.clone())?;
            let kind = whole.u32(at).ok_or(short.clone())?;
            let segment = Segment {
                offset: whole.u64(at.saturating_add(8)).ok_or(short.clone())?,
                vaddr: whole.u64(at.saturating_add(16)).ok_or(short.clone())?,
                filesz: whole.u64(at.saturating_add(32)).ok_or(short.clone())?,
            };
            match kind {
                PT_LOAD => segments.push(segment),
                PT_DYNAMIC => dynamic = Some(segment),
                PT_INTERP => {
                    let path = source.read(segment.offset, segment.filesz, 4096);
                    interpreter = path.map(|p| {
                        String::from_utf8_lossy(p.trim_ascii_end())
                            .trim_end_matches('\0')
                            .to_owned()
                    });
                }
                _ => {}
            }
        }
        let dynamic = dynamic.ok_or(ElfError::Static)?;
        if dynamic.filesz > MAX_DYNAMIC {
            return Err(ElfError::Malformed("dynamic section of an impossible size"));
        }
        let mut entries = Vec::new();
        for index in 0..dynamic.filesz / 16 {
            let at = dynamic.offset.checked_add(index * 16).ok_or(short.clone())?;
            let tag = whole.u64(at).ok_or(short.clone())?;
            if tag == 0 {
                break;
            }
            entries.push((tag, whole.u64(at + 8).ok_or(short.clone())?));
        }
        Self::assemble(source, header, interpreter, &segments, &entries)
    }

    fn assemble(
        source: &Source,
        header: Header,
        interpreter: Option<String>,
        segments: &[Segment],
        entries: &[(u64, u64)],
    ) -> Result<Self, ElfError> {
        let value = |tag: u64| entries.iter().find(|(t, _)| *t == tag).map(|(_, v)| *v);
        let offset = |vaddr: u64| {
            segments
                .iter()
                .find(|s| vaddr >= s.vaddr && vaddr - s.vaddr < s.filesz)
                .and_then(|s| s.offset.checked_add(vaddr - s.vaddr))
        };
        let at = |tag: u64| value(tag).and_then(offset);
        // A table without a size of its own reaches to the end of the file at most.
        let open = |tag: u64| at(tag).map(|o| source.part(o, source.len().saturating_sub(o)));

        let strings = match (at(DT_STRTAB), value(DT_STRSZ)) {
            (Some(offset), Some(size)) => source.part(offset, size),
            _ => source.part(0, 0),
        };
        let mut needed = Vec::new();
        for (_, name) in entries.iter().filter(|(t, _)| *t == DT_NEEDED) {
            needed.push(string(&strings, *name)?);
        }
        let named = |tag: u64| value(tag).map(|v| string(&strings, v)).transpose();
        let runpath = named(DT_RUNPATH)?;
        let rpath = if runpath.is_some() { None } else { named(DT_RPATH)? };
        let flags = value(DT_FLAGS).unwrap_or(0);
        let versions = Versions::read(
            &strings,
            open(DT_VERSYM),
            open(DT_VERDEF).map(|p| (p, value(DT_VERDEFNUM).unwrap_or(0))),
            open(DT_VERNEED).map(|p| (p, value(DT_VERNEEDNUM).unwrap_or(0))),
        )?;
        let mut relocations = Vec::new();
        if let (Some(offset), Some(size)) = (at(DT_RELA), value(DT_RELASZ)) {
            // The first DT_RELACOUNT entries are relative: they name no symbol.
            let skip = value(DT_RELACOUNT).unwrap_or(0).saturating_mul(24).min(size);
            relocations.push(source.part(offset.saturating_add(skip), size - skip));
        }
        if let (Some(offset), Some(size)) = (at(DT_JMPREL), value(DT_PLTRELSZ)) {
            relocations.push(source.part(offset, size));
        }
        Ok(Self {
            header,
            interpreter,
            soname: named(DT_SONAME)?,
            needed,
            rpath,
            runpath,
            symbolic: value(DT_SYMBOLIC).is_some() || flags & DF_SYMBOLIC != 0,
            no_default_dirs: value(DT_FLAGS_1).unwrap_or(0) & DF_1_NODEFLIB != 0,
            versions,
            symbols: Symbols::new(open(DT_SYMTAB), strings, open(DT_GNU_HASH), open(DT_HASH)),
            relocations,
        })
    }

    /// The symbols that it needs from elsewhere.
    pub fn undefined(&self) -> Vec<Undefined> {
        self.symbols.undefined(&self.versions)
    }

    /// Whether it defines what is asked for, by the loader's rules.
    pub fn defines(&self, asked: &Asked<'_>) -> bool {
        self.symbols.lookup(asked, &self.versions).is_some()
    }

    /// The version needs, by file.
    pub fn version_needs(&self) -> &[VersionNeed] {
        &self.versions.needs
    }

    /// Whether it defines versions at all.
    pub fn has_versions(&self) -> bool {
        !self.versions.defined.is_empty()
    }

    /// Whether it defines this version.
    pub fn defines_version(&self, name: &str) -> bool {
        self.versions.defined.iter().any(|(_, defined)| defined == name)
    }

    /// Versions that it defines.
    pub fn defined_versions(&self) -> impl Iterator<Item = &str> {
        self.versions.defined.iter().map(|(_, name)| name.as_str())
    }

    /// Symbol numbers that its relocations name: an undefined symbol that none of them names is never looked up.
    pub fn relocated(&self) -> std::collections::HashSet<u32> {
        let mut named = std::collections::HashSet::new();
        for part in &self.relocations {
            for index in 0..part.size() / 24 {
                let Some(info) = part.u64(index * 24 + 8) else {
                    break;
                };
                let symbol = (info >> 32) as u32;
                if symbol != 0 {
                    named.insert(symbol);
                }
            }
        }
        named
    }
}
