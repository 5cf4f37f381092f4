//! `/etc/ld.so.cache`, format `glibc-ld.so.cache1.1` (alone, or after one of the old format).

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const OLD_MAGIC: &[u8] = b"ld.so-1.7.0";
const HEADER: usize = 48;
const ENTRY: usize = 24;
const EXTENSION_MAGIC: u32 = 0xeaa4_2174;
/// The bit of an entry's `hwcap` that says: the low half is an index into the subdirectory names.
const HWCAP_EXTENSION: u64 = 1 << 62;
/// `FLAG_ELF_LIBC6` with the bits of 64-bit x86-64 and AArch64.
const FLAGS_X86_64: u32 = 0x0303;
const FLAGS_AARCH64: u32 = 0x0a03;

/// One line of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheEntry {
    /// SONAME.
    pub name: String,
    /// Absolute path.
    pub path: String,
    /// Subdirectory of `glibc-hwcaps` that it needs the CPU to support.
    pub hwcaps: Option<String>,
    flags: u32,
}

/// The cache's entries, in its own order.
#[derive(Debug, Clone, Default)]
pub struct Cache {
    entries: Vec<CacheEntry>,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(
        bytes.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(
        bytes.get(at..at.checked_add(8)?)?.try_into().ok()?,
    ))
}

fn text_at(bytes: &[u8], at: usize) -> Option<String> {
    let rest = bytes.get(at..)?;
    let end = rest.iter().position(|b| *b == 0)?;
    String::from_utf8(rest.get(..end)?.to_vec()).ok()
}

impl Cache {
    /// Reads the cache; `None` if it is of no known format.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let start = if bytes.starts_with(MAGIC) {
            0
        } else if bytes.starts_with(OLD_MAGIC) {
            let old = u32_at(bytes, 12)? as usize;
            // Entries of the old format are three 32-bit numbers; the new part begins at a multiple of eight.
            let end = 16_usize.checked_add(old.checked_mul(12)?)?;
            end.checked_next_multiple_of(8)?
        } else {
            return None;
        };
        let new = bytes.get(start..)?;
        if !new.starts_with(MAGIC) {
            return None;
        }
        let count = u32_at(new, 20)? as usize;
        let names = Self::hwcap_names(new).unwrap_or_default();
        let mut entries = Vec::new();
        for index in 0..count.min(new.len() / ENTRY) {
            let at = HEADER + index * ENTRY;
            let (Some(flags), Some(key), Some(value), Some(hwcap)) = (
                u32_at(new, at),
                u32_at(new, at + 4),
                u32_at(new, at + 8),
                u64_at(new, at + 16),
            ) else {
                break;
            };
            let (Some(name), Some(path)) = (text_at(new, key as usize), text_at(new, value as usize)) else {
                continue;
            };
            let hwcaps = if hwcap & HWCAP_EXTENSION != 0 {
                match names.get((hwcap & 0xffff_ffff) as usize) {
                    Some(name) => Some(name.clone()),
                    None => continue,
                }
            } else if hwcap == 0 {
                None
            } else {
                // The subdirectories of before glibc 2.33; no current loader takes them.
                continue;
            };
            entries.push(CacheEntry {
                name,
                path,
                hwcaps,
                flags,
            });
        }
        Some(Self { entries })
    }

    fn hwcap_names(new: &[u8]) -> Option<Vec<String>> {
        let extension = u32_at(new, 32)? as usize;
        if extension == 0 || u32_at(new, extension)? != EXTENSION_MAGIC {
            return None;
        }
        let sections = u32_at(new, extension + 4)?.min(64) as usize;
        for index in 0..sections {
            let at = extension + 8 + index * 16;
            if u32_at(new, at)? != 1 {
                continue;
            }
            let (offset, size) = (u32_at(new, at + 8)? as usize, u32_at(new, at + 12)? as usize);
            return (0..size / 4)
                .map(|i| text_at(new, u32_at(new, offset + i * 4)? as usize))
                .collect();
        }
        None
    }

    /// Paths for a SONAME on a machine (`e_machine`), best first, given the supported hwcaps, best first.
    pub fn find(&self, name: &str, machine: u16, hwcaps: &[String]) -> Vec<&str> {
        let flags = match machine {
            62 => FLAGS_X86_64,
            183 => FLAGS_AARCH64,
            _ => return Vec::new(),
        };
        let mut found: Vec<(usize, &str)> = self
            .entries
            .iter()
            .filter(|e| e.name == name && e.flags == flags)
            .filter_map(|e| match &e.hwcaps {
                None => Some((hwcaps.len(), e.path.as_str())),
                Some(need) => hwcaps
                    .iter()
                    .position(|h| h == need)
                    .map(|rank| (rank, e.path.as_str())),
            })
            .collect();
        found.sort_by_key(|(rank, _)| *rank);
        found.into_iter().map(|(_, path)| path).collect()
    }

    /// All entries.
    pub fn entries(&self) -> &[CacheEntry] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_machine_like_ldconfig() {
        let Ok(bytes) = std::fs::read("/etc/ld.so.cache") else {
            return;
        };
        let cache = Cache::parse(&bytes).expect("a cache");
        let found = cache.find(
            "libc.so.6",
            if cfg!(target_arch = "x86_64") { 62 } else { 183 },
            &[],
        );
        assert!(found[0].ends_with("/libc.so.6"), "{found:?}");
        assert!(std::path::Path::new(found[0]).exists());
    }

    #[test]
    fn hostile() {
        assert!(Cache::parse(b"").is_none());
        assert!(Cache::parse(b"ld.so-1.7.0\0\xff\xff\xff\xff").is_none());
        let mut lying = MAGIC.to_vec();
        lying.extend_from_slice(&[0xff; 60]);
        assert_eq!(Cache::parse(&lying).unwrap().entries().len(), 0);
    }

    proptest::proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400), old: bool) {
            let mut all = if old { b"ld.so-1.7.0\0\x01\0\0\0".to_vec() } else { MAGIC.to_vec() };
            all.extend(bytes);
            let _ = Cache::parse(&all);
        }
    }
}
