//! Symbol versions: what a file defines, and what it needs from which file.

use super::window::Part;
use super::{ElfError, sysv_hash};

/// Entries that anything real has fewer of.
const MAX_ENTRIES: u64 = 65_536;

/// One version that is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionNeeds {
    /// Its name, for example `GLIBC_2.34`.
    pub name: String,
    /// Missing is no fault.
    pub weak: bool,
    /// Number by which symbols refer to it.
    pub(crate) index: u16,
    /// Only an exact match will do.
    pub(crate) hidden: bool,
}

/// The versions that are needed from one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionNeed {
    /// Name of the file, as in `DT_NEEDED`.
    pub file: String,
    /// The versions.
    pub versions: Vec<VersionNeeds>,
}

#[derive(Debug)]
pub(crate) struct Versions {
    /// Version number of each symbol; absent where symbols carry none.
    pub(crate) of_symbol: Option<Part>,
    /// Versions defined here: number and name.
    pub(crate) defined: Vec<(u16, String)>,
    pub(crate) needs: Vec<VersionNeed>,
    /// By number: hash and name, defined and needed alike, as the loader keeps them.
    by_index: Vec<Option<(u32, String)>>,
}

fn name_at(strings: &Part, at: u32) -> Result<String, ElfError> {
    strings
        .string(u64::from(at), 4096)
        .map(|b| String::from_utf8_lossy(&b).into_owned())
        .ok_or(ElfError::Malformed(
            "a version name lies outside the string table",
        ))
}

impl Versions {
    pub(crate) fn read(
        strings: &Part,
        of_symbol: Option<Part>,
        definitions: Option<(Part, u64)>,
        needs: Option<(Part, u64)>,
    ) -> Result<Self, ElfError> {
        let mut versions = Self {
            of_symbol,
            defined: Vec::new(),
            needs: Vec::new(),
            by_index: Vec::new(),
        };
        if let Some((part, count)) = definitions {
            versions.read_definitions(&part, count, strings)?;
        }
        if let Some((part, count)) = needs {
            versions.read_needs(&part, count, strings)?;
        }
        Ok(versions)
    }

    fn read_definitions(&mut self, part: &Part, count: u64, strings: &Part) -> Result<(), ElfError> {
        let short = ElfError::Malformed("version definitions end early");
        let mut at = 0_u64;
        for _ in 0..count.min(MAX_ENTRIES) {
            let flags = part.u16(at + 2).ok_or(short.clone())?;
            let index = part.u16(at + 4).ok_or(short.clone())?;
            let aux = u64::from(part.u32(at + 12).ok_or(short.clone())?);
            let next = u64::from(part.u32(at + 16).ok_or(short.clone())?);
            let name = name_at(strings, part.u32(at + aux).ok_or(short.clone())?)?;
            // The base definition (flag 1) names the file, not a version of a symbol; files do ask for it by name.
            if flags & 1 == 0 {
                self.set(index & 0x7fff, &name);
            }
            self.defined.push((index & 0x7fff, name));
            if next == 0 {
                break;
            }
            at += next;
        }
        Ok(())
    }

    fn read_needs(&mut self, part: &Part, count: u64, strings: &Part) -> Result<(), ElfError> {
        let short = ElfError::Malformed("version needs end early");
        let mut at = 0_u64;
        let mut entries = 0;
        for _ in 0..count.min(MAX_ENTRIES) {
            let many = u64::from(part.u16(at + 2).ok_or(short.clone())?);
            let file = name_at(strings, part.u32(at + 4).ok_or(short.clone())?)?;
            let mut aux = at + u64::from(part.u32(at + 8).ok_or(short.clone())?);
            let next = u64::from(part.u32(at + 12).ok_or(short.clone())?);
            let mut wanted = Vec::new();
            for _ in 0..many {
                entries += 1;
                if entries > MAX_ENTRIES {
                    return Err(ElfError::Malformed("too many version needs"));
                }
                let flags = part.u16(aux + 4).ok_or(short.clone())?;
                let other = part.u16(aux + 6).ok_or(short.clone())?;
                let name = name_at(strings, part.u32(aux + 8).ok_or(short.clone())?)?;
                self.set(other & 0x7fff, &name);
                wanted.push(VersionNeeds {
                    name,
                    weak: flags & 2 != 0,
                    index: other & 0x7fff,
                    hidden: other & 0x8000 != 0,
                });
                let step = u64::from(part.u32(aux + 12).ok_or(short.clone())?);
                if step == 0 {
                    break;
                }
                aux += step;
            }
            self.needs.push(VersionNeed {
                file,
                versions: wanted,
            });
            if next == 0 {
                break;
            }
            at += next;
        }
        Ok(())
    }

    fn set(&mut self, index: u16, name: &str) {
        let at = usize::from(index);
        if self.by_index.len() <= at {
            self.by_index.resize(at + 1, None);
        }
        if let Some(slot) = self.by_index.get_mut(at) {
            *slot = Some((sysv_hash(name.as_bytes()), name.to_owned()));
        }
    }

    /// Hash and name of the version with this number.
    pub(crate) fn named(&self, index: u16) -> Option<&(u32, String)> {
        self.by_index.get(usize::from(index))?.as_ref()
    }

    /// The need behind a version number: the file it must come from, and the version.
    pub(crate) fn need(&self, index: u16) -> Option<(&str, &VersionNeeds)> {
        self.needs.iter().find_map(|need| {
            let version = need.versions.iter().find(|v| v.index == index)?;
            Some((need.file.as_str(), version))
        })
    }
}
