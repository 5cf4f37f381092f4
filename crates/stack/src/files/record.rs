//! RECORD: CSV of path, `sha256=` in URL-safe base64 without padding, size.

/// One line of a RECORD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordEntry {
    /// The path as written: relative to the site directory, `/` between parts.
    pub path: String,
    /// SHA-256 of the contents, where the line has one.
    pub sha256: Option<[u8; 32]>,
    /// Size in bytes, where the line has one.
    pub size: Option<u64>,
    /// The line has a hash of another kind, which is not checked.
    pub other_hash: bool,
}

/// A RECORD.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// Its lines.
    pub entries: Vec<RecordEntry>,
    /// Lines that are none.
    pub unreadable: u64,
}

fn base64_value(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'-' | b'+' => 62,
        b'_' | b'/' => 63,
        _ => return None,
    }))
}

fn decode(text: &[u8]) -> Option<[u8; 32]> {
    let text = text.strip_suffix(b"=").unwrap_or(text);
    if text.len() != 43 {
        return None;
    }
    let mut out = [0; 32];
    let (mut bits, mut held, mut at) = (0_u32, 0, 0);
    for byte in text {
        bits = bits << 6 | base64_value(*byte)?;
        held += 6;
        if held >= 8 {
            held -= 8;
            if let Some(slot) = out.get_mut(at) {
                *slot = (bits >> held) as u8;
            }
            at += 1;
        }
    }
    Some(out)
}

/// The first field of a CSV line and what follows its comma.
fn field(line: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    if line.first() != Some(&b'"') {
        let end = line.iter().position(|b| *b == b',').unwrap_or(line.len());
        return Some((line.get(..end)?.to_vec(), line.get(end + 1..).unwrap_or_default()));
    }
    let mut out = Vec::new();
    let mut at = 1;
    loop {
        match (line.get(at)?, line.get(at + 1)) {
            (b'"', Some(b'"')) => {
                out.push(b'"');
                at += 2;
            }
            (b'"', _) => return Some((out, line.get(at + 2..).unwrap_or_default())),
            (byte, _) => {
                out.push(*byte);
                at += 1;
            }
        }
    }
}

impl Record {
    /// Reads a RECORD; lines that are none are counted and left out.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut record = Self::default();
        for line in bytes.split(|b| *b == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            match Self::line(line) {
                Some(entry) => record.entries.push(entry),
                None => record.unreadable += 1,
            }
        }
        record
    }

    fn line(line: &[u8]) -> Option<RecordEntry> {
        let (path, rest) = field(line)?;
        let (hash, rest) = field(rest)?;
        let path = String::from_utf8(path)
            .ok()
            .filter(|p| !p.is_empty() && !p.contains('\0'))?;
        let sha256 = match hash.strip_prefix(b"sha256=".as_slice()) {
            Some(text) => Some(decode(text)?),
            None => None,
        };
        let size = std::str::from_utf8(rest).ok()?.trim_end_matches(',').trim();
        Some(RecordEntry {
            path,
            other_hash: sha256.is_none() && !hash.is_empty(),
            sha256,
            size: if size.is_empty() {
                None
            } else {
                Some(size.parse().ok()?)
            },
        })
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
            let _ = write!(out, "{byte:02x}");
            out
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        // SHA-256 of nothing, as published, in both spellings.
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let text = b"a/b.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\r\n\
            \"a,\"\"b\"\".py\",sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,7\n\
            x.dist-info/RECORD,,\nold.py,md5=abc,3\nbad,sha256=zzz,1\nbad2,,x\n";
        let record = Record::parse(text);
        assert_eq!(record.unreadable, 2);
        assert_eq!(hex(&record.entries[0].sha256.unwrap()), empty);
        assert_eq!(record.entries[0].size, Some(0));
        assert_eq!(record.entries[1].path, "a,\"b\".py");
        assert_eq!((record.entries[2].sha256, record.entries[2].size), (None, None));
        assert!(record.entries[3].other_hash);
    }

    proptest::proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            let _ = Record::parse(&bytes);
        }
    }
}
