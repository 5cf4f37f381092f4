//! Synthetic prompts: random common words, for speed only.
//!
//! Each word with its leading space is one token in most vocabularies; the server's own count is compared with
//! what was asked for and the difference reported.

use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};
use shakedown_model::PromptKind;

use super::{Content, Prompt};

const WORDS: [&str; 64] = [
    "time",
    "year",
    "people",
    "way",
    "day",
    "man",
    "thing",
    "woman",
    "life",
    "child",
    "world",
    "school",
    "state",
    "family",
    "student",
    "group",
    "country",
    "problem",
    "hand",
    "part",
    "place",
    "case",
    "week",
    "company",
    "system",
    "program",
    "question",
    "work",
    "government",
    "number",
    "night",
    "point",
    "home",
    "water",
    "room",
    "mother",
    "area",
    "money",
    "story",
    "fact",
    "month",
    "lot",
    "right",
    "study",
    "book",
    "eye",
    "job",
    "word",
    "business",
    "issue",
    "side",
    "kind",
    "head",
    "house",
    "service",
    "friend",
    "father",
    "power",
    "hour",
    "game",
    "line",
    "end",
    "member",
    "law",
];

/// A prompt of `tokens` words, decided by the seed, the salt and its place.
pub(super) fn prompt(seed: u64, salt: Option<&str>, trial: u32, index: u32, tokens: u32) -> Prompt {
    let mut hasher = Sha256::new();
    hasher.update(seed.to_le_bytes());
    hasher.update(salt.unwrap_or_default().as_bytes());
    hasher.update(trial.to_le_bytes());
    hasher.update(index.to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(hasher.finalize().into());
    let mut text = String::with_capacity(tokens as usize * 7);
    for place in 0..tokens {
        if place > 0 {
            text.push(' ');
        }
        text.push_str(WORDS.choose(&mut rng).copied().unwrap_or("time"));
    }
    Prompt {
        kind: PromptKind::Synthetic,
        content: Content::Text(text),
        max_tokens: None,
    }
}
