//! ELF files as the dynamic loader sees them: the program headers and what `PT_DYNAMIC` points to.
//!
//! Sections are not needed (they may be stripped); symbols are looked up in the hash tables in place.

mod dynamic;
mod symbols;
mod versions;
mod window;

pub use dynamic::{Header, Image};
pub use symbols::{Asked, Undefined};
pub use versions::{VersionNeed, VersionNeeds};
pub(crate) use window::Source;

use thiserror::Error;

/// Why a file is not an ELF image that can be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ElfError {
    /// It does not begin like one.
    #[error("not an ELF file")]
    NotElf,
    /// One for another kind of machine.
    #[error("ELF of another class or byte order ({0})")]
    Foreign(&'static str),
    /// It ends before what its headers promise.
    #[error("truncated or malformed ELF: {0}")]
    Malformed(&'static str),
    /// It has no dynamic part: nothing to load.
    #[error("no dynamic section")]
    Static,
}

/// Symbol hash of the System V ABI, used for version names too.
pub(crate) fn sysv_hash(name: &[u8]) -> u32 {
    let mut hash: u32 = 0;
    for byte in name {
        hash = (hash << 4).wrapping_add(u32::from(*byte));
        let high = hash & 0xf000_0000;
        hash ^= high >> 24;
        hash &= !high;
    }
    hash
}

/// Symbol hash of `DT_GNU_HASH`: Bernstein's, times 33 from 5381.
pub(crate) fn gnu_hash(name: &[u8]) -> u32 {
    name.iter().fold(5381_u32, |hash, byte| {
        hash.wrapping_mul(33).wrapping_add(u32::from(*byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_the_specifications() {
        // Values published with the two formats.
        assert_eq!(sysv_hash(b"printf"), 0x0779_05a6);
        assert_eq!(sysv_hash(b"GLIBC_2.2.5"), 0x0969_1a75);
        assert_eq!(gnu_hash(b"printf"), 0x156b_2bb8);
        assert_eq!(gnu_hash(b""), 5381);
    }
}
