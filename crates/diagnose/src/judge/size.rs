//! Amounts in free text: bytes with their units, and numbers.

use std::sync::LazyLock;

use regex::Regex;

static SIZE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(\d+(?:[.,]\d+)?)\s*(bytes?|[kmgt]i?b?|b)\b").ok());
static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"-?\d+(?:\.\d+)?").ok());

/// The first amount of bytes in `text`; units count in powers of 1024.
pub(super) fn bytes(text: &str) -> Option<f64> {
    let found = SIZE.as_ref()?.captures(text)?;
    let number: f64 = found.get(1)?.as_str().replace(',', ".").parse().ok()?;
    let unit = found.get(2)?.as_str().to_ascii_lowercase();
    let power = match unit.bytes().next()? {
        b'k' => 1,
        b'm' => 2,
        b'g' => 3,
        b't' => 4,
        _ => 0,
    };
    Some(number * 1024_f64.powi(power))
}

/// The first number in `text`.
pub(super) fn number(text: &str) -> Option<f64> {
    NUMBER.as_ref()?.find(text)?.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts() {
        assert_eq!(bytes("64M"), Some(67_108_864.0));
        assert_eq!(bytes("135 bytes"), Some(135.0));
        assert_eq!(bytes("1.5 GiB free"), Some(1_610_612_736.0));
        assert_eq!(bytes("tmpfs 64m used"), Some(67_108_864.0));
        assert_eq!(bytes("none"), None);
        assert_eq!(number("exit code -9"), Some(-9.0));
        assert_eq!(number("535.129.03"), Some(535.129));
    }
}
