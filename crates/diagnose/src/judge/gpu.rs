//! GPUs by name: which compute capability a name stands for.

use std::sync::LazyLock;

use regex::Regex;

/// Parts of product names and their compute capability (10 × major + minor), longest first where one holds
/// another. From NVIDIA's table of CUDA GPUs.
const NAMES: [(&str, u32); 82] = [
    ("gb10", 121),
    ("dgx spark", 121),
    ("gb300", 103),
    ("b300", 103),
    ("gb200", 100),
    ("b200", 100),
    ("b100", 100),
    ("thor", 110),
    ("rtx pro 6000", 120),
    ("rtx pro 5000", 120),
    ("rtx pro 4500", 120),
    ("rtx pro 4000", 120),
    ("rtx 5090", 120),
    ("rtx 5080", 120),
    ("rtx 5070", 120),
    ("rtx 5060", 120),
    ("rtx 5050", 120),
    ("rtx5090", 120),
    ("5090", 120),
    ("gh200", 90),
    ("h200", 90),
    ("h100", 90),
    ("h800", 90),
    ("h20", 90),
    ("rtx 6000 ada", 89),
    ("rtx 5000 ada", 89),
    ("rtx 4000 ada", 89),
    ("rtx 2000 ada", 89),
    ("rtx 4090", 89),
    ("rtx 4080", 89),
    ("rtx 4070", 89),
    ("rtx 4060", 89),
    ("rtx 4050", 89),
    ("4090", 89),
    ("l40s", 89),
    ("l40", 89),
    ("l20", 89),
    ("l4", 89),
    ("a100", 80),
    ("a800", 80),
    ("a30", 80),
    ("orin", 87),
    ("rtx a6000", 86),
    ("rtx a5000", 86),
    ("rtx a4000", 86),
    ("rtx a2000", 86),
    ("rtx 3090", 86),
    ("rtx 3080", 86),
    ("rtx 3070", 86),
    ("rtx 3060", 86),
    ("rtx 3050", 86),
    ("3090", 86),
    ("a6000", 86),
    ("a40", 86),
    ("a10g", 86),
    ("a10", 86),
    ("a16", 86),
    ("a2", 86),
    ("rtx 2080", 75),
    ("rtx 2070", 75),
    ("rtx 2060", 75),
    ("2080", 75),
    ("quadro rtx", 75),
    ("titan rtx", 75),
    ("gtx 1660", 75),
    ("gtx 1650", 75),
    ("tesla t4", 75),
    ("t4", 75),
    ("v100", 70),
    ("titan v", 70),
    ("p100", 60),
    ("p40", 61),
    ("p4", 61),
    ("gtx 1080", 61),
    ("gtx 1070", 61),
    ("gtx 1060", 61),
    ("1080 ti", 61),
    ("titan xp", 61),
    ("m60", 52),
    ("m40", 52),
    ("k80", 37),
    ("k40", 35),
];

static SM: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?i)\bsm[ _-]?(\d{2,3})[a-z]?\b").ok());
static CAPABILITY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:compute[ _]cap(?:ability)?|capability|\bcc)[^\d\n]{0,12}(\d{1,2})[., ]{1,2}(\d)\b")
        .ok()
});
static WHOLE_CAPABILITY: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)compute[ _]cap(?:ability)?[^\d\n]{0,4}(\d{2,3})\b").ok());

/// The compute capability that a text speaks of, as 10 × major + minor: by number, else by a product's name.
pub(super) fn capability(text: &str) -> Option<u32> {
    let number = |found: Option<regex::Match<'_>>| -> Option<u32> { found?.as_str().parse().ok() };
    if let Some(found) = CAPABILITY.as_ref().and_then(|regex| regex.captures(text)) {
        let whole = number(found.get(1))? * 10 + number(found.get(2))?;
        if (20..=140).contains(&whole) {
            return Some(whole);
        }
    }
    for regex in [&SM, &WHOLE_CAPABILITY] {
        if let Some(whole) = regex
            .as_ref()
            .and_then(|regex| regex.captures(text))
            .and_then(|found| number(found.get(1)))
            .filter(|whole| (20..=140).contains(whole))
        {
            return Some(whole);
        }
    }
    let text = text.to_ascii_lowercase();
    NAMES
        .iter()
        .find(|(name, _)| has_word(&text, name))
        .map(|(_, capability)| *capability)
}

/// Whether `name` stands in `text` by itself and not inside a longer word.
fn has_word(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_number_and_by_name() {
        for (text, expected) in [
            ("RTX 5090 SM120", Some(120)),
            ("2x RTX PRO 6000", Some(120)),
            ("GB10 SM121", Some(121)),
            ("A100 SM80", Some(80)),
            (
                "NVIDIA GeForce GTX 1080 Ti, compute capability 6.1, VMM: yes",
                Some(61),
            ),
            ("Compute capability: 121", Some(121)),
            ("GPU with CUDA capability 7 0 is not supported", Some(70)),
            ("NVIDIA H100 80GB HBM3", Some(90)),
            ("GB300", Some(103)),
            ("NVIDIA L4", Some(89)),
            ("H200 and SM120", Some(120)),
            ("no GPU", None),
            ("smoke 10", None),
        ] {
            assert_eq!(capability(text), expected, "{text}");
        }
    }
}
