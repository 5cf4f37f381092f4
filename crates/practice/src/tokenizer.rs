//! The practice model's tokens: one token is one word with the blanks before it.
//!
//! A prompt of messages is rendered with [`TEMPLATE`]'s marks and counted like any text, so that `/tokenize`,
//! usage and a client that renders the template itself agree.

use crate::random::fnv;

/// Size of the vocabulary: ids are below it.
pub(crate) const VOCABULARY: u64 = 49_152;

/// The chat template in the notation of model files. Its marks stand alone, so each is one token.
pub(crate) const TEMPLATE: &str = "{% for message in messages %}{{ '<|turn|> ' + message['role'] + ' ' + \
    message['content'] + ' <|end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|turn|> assistant ' }}{% endif %}";

/// Tokens in `text`.
pub(crate) fn count(text: &str) -> u32 {
    u32::try_from(text.split_whitespace().count()).unwrap_or(u32::MAX)
}

/// Their ids.
pub(crate) fn ids(text: &str) -> Vec<u32> {
    text.split_whitespace().map(id).collect()
}

/// The id of one word.
pub(crate) fn id(word: &str) -> u32 {
    (fnv(word.as_bytes()) % VOCABULARY) as u32
}

/// The prompt that messages make: what [`TEMPLATE`] gives with a generation prompt.
pub(crate) fn render<'a>(messages: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    for (role, content) in messages {
        text.push_str("<|turn|> ");
        text.push_str(role);
        text.push(' ');
        text.push_str(content);
        text.push_str(" <|end|>\n");
    }
    text.push_str("<|turn|> assistant ");
    text
}

/// The words that the practice model says.
const WORDS: [&str; 128] = [
    "the",
    "a",
    "slow",
    "river",
    "runs",
    "past",
    "old",
    "stone",
    "walls",
    "and",
    "under",
    "small",
    "bridges",
    "where",
    "birds",
    "wait",
    "for",
    "evening",
    "light",
    "to",
    "fall",
    "on",
    "quiet",
    "water",
    "while",
    "people",
    "walk",
    "home",
    "from",
    "work",
    "with",
    "bread",
    "in",
    "their",
    "bags",
    "some",
    "stop",
    "talk",
    "about",
    "rain",
    "or",
    "price",
    "of",
    "apples",
    "others",
    "hurry",
    "because",
    "trains",
    "leave",
    "early",
    "at",
    "this",
    "time",
    "year",
    "each",
    "house",
    "keeps",
    "one",
    "lamp",
    "near",
    "door",
    "so",
    "that",
    "late",
    "guests",
    "can",
    "find",
    "way",
    "children",
    "count",
    "boats",
    "by",
    "colour",
    "red",
    "green",
    "white",
    "then",
    "argue",
    "which",
    "was",
    "fastest",
    "an",
    "hour",
    "later",
    "wind",
    "turns",
    "north",
    "clouds",
    "move",
    "over",
    "hills",
    "like",
    "sheep",
    "being",
    "led",
    "new",
    "grass",
    "nobody",
    "knows",
    "why",
    "market",
    "bell",
    "rings",
    "twice",
    "but",
    "everybody",
    "sets",
    "watch",
    "after",
    "it",
    "before",
    "night",
    "baker",
    "writes",
    "down",
    "what",
    "sold",
    "left",
    "tomorrow",
    "begins",
    "again",
    "much",
    "same",
    "yet",
    "never",
    "quite",
    "alike",
    "still",
];

/// The words of one answer, each decided by its place alone.
#[derive(Debug, Clone)]
pub(crate) struct Words(u64);

impl Words {
    /// The answer that `seed` stands for.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The word at place `index`.
    pub(crate) const fn at(&self, index: u32) -> &'static str {
        let hash = crate::random::mix(
            self.0
                .wrapping_add((index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        );
        WORDS[(hash % WORDS.len() as u64) as usize]
    }

    /// Appends the tokens `from..to` to `out`: every word but the very first has a blank before it.
    pub(crate) fn write(&self, from: u32, to: u32, out: &mut Vec<u8>) {
        for index in from..to {
            if index > 0 {
                out.push(b' ');
            }
            out.extend_from_slice(self.at(index).as_bytes());
        }
    }

    /// The text of the tokens `from..to`.
    pub(crate) fn text(&self, from: u32, to: u32) -> String {
        let mut out = Vec::new();
        self.write(from, to, &mut out);
        String::from_utf8(out).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_text_tokenizes_to_its_length_however_it_is_cut() {
        let words = Words::new(99);
        for length in [0, 1, 2, 50, 2048] {
            assert_eq!(count(&words.text(0, length)), length);
        }
        let whole = words.text(0, 40);
        let parts: String = (0..8).map(|part| words.text(part * 5, part * 5 + 5)).collect();
        assert_eq!(whole, parts);
        assert_eq!(ids(&whole).len(), 40);
    }

    #[test]
    fn words_need_no_escape_and_do_not_repeat() {
        let mut seen = std::collections::HashSet::new();
        for word in WORDS {
            assert!(word.bytes().all(|byte| byte.is_ascii_lowercase()), "{word}");
            assert!(seen.insert(word), "{word} twice");
        }
    }

    #[test]
    fn the_template_adds_three_tokens_a_message_and_two() {
        let prompt = render([("system", "be brief"), ("user", "hello there  you")].into_iter());
        assert_eq!(count(&prompt), (3 + 2) + (3 + 3) + 2);
    }
}
