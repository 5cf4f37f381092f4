//! Versions as engines write them, and ranges over them.

use std::cmp::Ordering;

/// The numbers of a version, in order: `0.5.10.post1` is 0, 5, 10, 1 and `b10240` is 10240.
///
/// Pre-release and post-release words are not ranked: catalogue ranges name releases.
fn numbers(version: &str) -> Vec<u64> {
    let release = version.split(['+', '-']).next().unwrap_or_default();
    release
        .split(|c: char| !c.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().unwrap_or(u64::MAX))
        .collect()
}

/// Compares two versions number by number, missing numbers counting as 0.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (numbers(a), numbers(b));
    let length = a.len().max(b.len());
    (0..length)
        .map(|at| {
            let of = |list: &[u64]| list.get(at).copied().unwrap_or(0);
            of(&a).cmp(&of(&b))
        })
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Whether `version` is in `range`: comparisons joined by commas, for example `>=0.2,<0.5.10`.
///
/// The empty range holds for all. A version without a number is in no other range. A comparison that cannot be
/// read holds for nothing; [`check`] tells.
pub(crate) fn within(range: &str, version: &str) -> bool {
    if range.trim().is_empty() {
        return true;
    }
    if numbers(version).is_empty() {
        return false;
    }
    range
        .split(',')
        .all(|part| comparison(part).is_some_and(|(holds, bound)| holds(compare(version, bound))))
}

/// Whether `range` can be read.
pub(crate) fn check(range: &str) -> bool {
    range.trim().is_empty() || range.split(',').all(|part| comparison(part).is_some())
}

type Holds = fn(Ordering) -> bool;

fn comparison(part: &str) -> Option<(Holds, &str)> {
    let part = part.trim();
    let (holds, bound): (Holds, &str) = if let Some(bound) = part.strip_prefix(">=") {
        (Ordering::is_ge, bound)
    } else if let Some(bound) = part.strip_prefix("<=") {
        (Ordering::is_le, bound)
    } else if let Some(bound) = part.strip_prefix('>') {
        (Ordering::is_gt, bound)
    } else if let Some(bound) = part.strip_prefix('<') {
        (Ordering::is_lt, bound)
    } else if let Some(bound) = part.strip_prefix('=') {
        (Ordering::is_eq, bound)
    } else {
        return None;
    };
    (!numbers(bound).is_empty()).then_some((holds, bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders() {
        assert_eq!(compare("0.5.9", "0.5.10"), Ordering::Less);
        assert_eq!(compare("0.5.9.post1", "0.5.9"), Ordering::Greater);
        assert_eq!(compare("0.32.0+cpu", "0.32"), Ordering::Equal);
        assert_eq!(compare("b10240", "10239"), Ordering::Greater);
    }

    #[test]
    fn ranges() {
        assert!(within("", "anything"));
        assert!(within(">=0.2,<0.5.11", "0.5.10"));
        assert!(!within(">=0.2,<0.5.11", "0.5.11"));
        assert!(!within(">=0.2", "unknown"));
        assert!(!within("0.2", "0.2"));
        assert!(check(">=0.2, <1") && check("") && !check("0.2") && !check(">=x"));
    }
}
