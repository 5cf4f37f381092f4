//! Identities of runs: sortable by time, readable, safe as a directory's name.

use jiff::Timestamp;

/// Digits and lower-case letters without i, l, o and u, which are read as something else.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A run's id like `20261201-143012-k7q2`: UTC time to the second, then 20 bits of `entropy`.
///
/// `unix_micros` counts from the epoch; a time that no calendar holds gives the nearest one that it does.
pub fn new_run_id(unix_micros: u64, entropy: u64) -> String {
    let micros = i64::try_from(unix_micros).unwrap_or(i64::MAX);
    let time = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX);
    let mut id = time.strftime("%Y%m%d-%H%M%S-").to_string();
    // Fold all 64 bits: the caller's entropy may vary only in some of them.
    let mut bits = entropy.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
    for _ in 0..4 {
        id.push(char::from(ALPHABET[(bits & 31) as usize]));
        bits >>= 5;
    }
    id
}

/// Whether `name` can be the id of a run: letters, digits, `-` and `_`, not longer than 64, not led by `-`.
/// Nothing else ever becomes part of a path.
pub fn is_run_id(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && !name.starts_with('-')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_its_time() {
        // 2026-12-01T14:30:12Z by `date -u -d @1796135412`.
        let id = new_run_id(1_796_135_412_999_999, 7);
        assert!(id.starts_with("20261201-143012-"), "{id}");
        assert_eq!(id.len(), "20261201-143012-k7q2".len());
        assert!(is_run_id(&id));
        assert!(is_run_id(&new_run_id(u64::MAX, u64::MAX)));
    }

    #[test]
    fn later_sorts_later_and_entropy_separates() {
        let ids: Vec<String> = (0..200)
            .map(|second| new_run_id(second * 1_000_000, 99 - second % 100))
            .collect();
        assert!(ids.is_sorted());
        let mut same_second: Vec<String> = (0..1000).map(|entropy| new_run_id(0, entropy)).collect();
        same_second.sort();
        same_second.dedup();
        assert!(same_second.len() > 990, "{} of 1000 differ", same_second.len());
    }

    #[test]
    fn names_that_leave_the_store_are_no_ids() {
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "../x",
            "a\0",
            "-rf",
            "a b",
            "ä",
            &"x".repeat(65),
        ] {
            assert!(!is_run_id(name), "{name:?}");
        }
    }
}
