//! Reading single files out of a wheel (a ZIP archive), to compare an installed file with its original.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

use flate2::read::DeflateDecoder;
use thiserror::Error;

/// Bytes of a central directory and of one text file that anything real has fewer of.
const MAX_DIRECTORY: u64 = 64 << 20;
const MAX_FILE: u64 = 8 << 20;

/// Why a wheel could not be read.
#[derive(Debug, Error)]
pub enum WheelError {
    /// The system refused.
    #[error("read {path}: {source}")]
    Io {
        /// The wheel.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is no ZIP archive, or one of a kind that wheels are not.
    #[error("read {path}: not a wheel ({why})")]
    Format {
        /// The wheel.
        path: String,
        /// What is wrong.
        why: &'static str,
    },
}

#[derive(Debug)]
struct Member {
    name: String,
    method: u16,
    compressed: u64,
    size: u64,
    offset: u64,
}

/// An open wheel.
#[derive(Debug)]
pub struct Wheel {
    path: String,
    file: File,
    members: Vec<Member>,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

impl Wheel {
    /// Opens a wheel and reads its directory.
    pub fn open(path: &Path) -> Result<Self, WheelError> {
        let name = path.display().to_string();
        let io = |source| WheelError::Io {
            path: name.clone(),
            source,
        };
        let bad = |why| WheelError::Format {
            path: name.clone(),
            why,
        };
        let file = File::open(path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        let tail_size = len.min(66_000);
        let mut tail = vec![0; tail_size as usize];
        file.read_exact_at(&mut tail, len - tail_size).map_err(io)?;
        let end = tail
            .windows(4)
            .rposition(|w| w == b"PK\x05\x06")
            .ok_or_else(|| bad("no end record"))?;
        let mut size = u64::from(u32_at(&tail, end + 12).ok_or_else(|| bad("end record cut"))?);
        let mut start = u64::from(u32_at(&tail, end + 16).ok_or_else(|| bad("end record cut"))?);
        if start == 0xffff_ffff || size == 0xffff_ffff {
            // ZIP64: its own end record is found through a locator just before the old one.
            let locator = end
                .checked_sub(20)
                .filter(|l| tail.get(*l..*l + 4) == Some(b"PK\x06\x07"));
            let at = locator
                .and_then(|l| u64_at(&tail, l + 8))
                .ok_or_else(|| bad("no ZIP64 locator"))?;
            let mut record = [0; 56];
            file.read_exact_at(&mut record, at).map_err(io)?;
            size = u64_at(&record, 40).ok_or_else(|| bad("ZIP64 record cut"))?;
            start = u64_at(&record, 48).ok_or_else(|| bad("ZIP64 record cut"))?;
        }
        if size > MAX_DIRECTORY || start.checked_add(size).is_none_or(|e| e > len) {
            return Err(bad("directory of an impossible size"));
        }
        let mut directory = vec![0; size as usize];
        file.read_exact_at(&mut directory, start).map_err(io)?;
        let members = members(&directory).ok_or_else(|| bad("directory cut"))?;
        Ok(Self {
            path: name,
            file,
            members,
        })
    }

    /// Names of its files.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|m| m.name.as_str())
    }

    /// The contents of one file; `None` if it is not there, too large, or damaged.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        let member = self.members.iter().find(|m| m.name == name)?;
        if member.size > MAX_FILE || member.compressed > MAX_FILE {
            return None;
        }
        let mut head = [0; 30];
        self.file.read_exact_at(&mut head, member.offset).ok()?;
        if !head.starts_with(b"PK\x03\x04") {
            return None;
        }
        let skip = 30 + u64::from(u16_at(&head, 26)?) + u64::from(u16_at(&head, 28)?);
        let mut packed = vec![0; member.compressed as usize];
        self.file
            .read_exact_at(&mut packed, member.offset.checked_add(skip)?)
            .ok()?;
        match member.method {
            0 => Some(packed),
            8 => {
                let mut out = Vec::new();
                DeflateDecoder::new(packed.as_slice())
                    .take(MAX_FILE + 1)
                    .read_to_end(&mut out)
                    .ok()?;
                (out.len() as u64 == member.size).then_some(out)
            }
            _ => None,
        }
    }

    /// Name and version from the wheel's file name, the name normalized.
    pub fn name_and_version(&self) -> Option<(String, String)> {
        let file = self.path.rsplit('/').next()?.strip_suffix(".whl")?;
        let mut parts = file.split('-');
        Some((crate::python::normalize(parts.next()?), parts.next()?.to_owned()))
    }
}

fn members(directory: &[u8]) -> Option<Vec<Member>> {
    let mut found = Vec::new();
    let mut at = 0;
    while directory.get(at..at + 4) == Some(b"PK\x01\x02") {
        let (name, extra, comment) = (
            u16_at(directory, at + 28)? as usize,
            u16_at(directory, at + 30)? as usize,
            u16_at(directory, at + 32)? as usize,
        );
        let mut member = Member {
            name: String::from_utf8_lossy(directory.get(at + 46..at + 46 + name)?).into_owned(),
            method: u16_at(directory, at + 10)?,
            compressed: u64::from(u32_at(directory, at + 20)?),
            size: u64::from(u32_at(directory, at + 24)?),
            offset: u64::from(u32_at(directory, at + 42)?),
        };
        let fields = directory.get(at + 46 + name..at + 46 + name + extra)?;
        widen(&mut member, fields);
        found.push(member);
        at += 46 + name + extra + comment;
    }
    Some(found)
}

/// Takes the 64-bit sizes of the extra field where the short ones are full.
fn widen(member: &mut Member, fields: &[u8]) {
    let mut at = 0;
    while let (Some(kind), Some(size)) = (u16_at(fields, at), u16_at(fields, at + 2)) {
        if kind == 1 {
            let mut value = at + 4;
            for slot in [&mut member.size, &mut member.compressed, &mut member.offset] {
                if *slot == 0xffff_ffff
                    && let Some(wide) = u64_at(fields, value)
                {
                    *slot = wide;
                    value += 8;
                }
            }
        }
        at += 4 + size as usize;
    }
}
