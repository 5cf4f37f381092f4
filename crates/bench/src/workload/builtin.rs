//! The built-in prompts: our own texts, in kinds.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;
use shakedown_model::PromptKind;

use super::{Content, Prompt};

#[derive(Deserialize)]
struct File {
    prompts: Vec<String>,
}

const FILES: [(PromptKind, &str); 4] = [
    (PromptKind::Chat, include_str!("../../prompts/chat.toml")),
    (PromptKind::Code, include_str!("../../prompts/code.toml")),
    (
        PromptKind::Reasoning,
        include_str!("../../prompts/reasoning.toml"),
    ),
    (
        PromptKind::Extraction,
        include_str!("../../prompts/extraction.toml"),
    ),
];

/// The prompts of `kinds` (all, when empty): shuffled within each kind, the kinds taking turns, so that any
/// stretch of the order is a fair mix.
pub(super) fn prompts(kinds: &[PromptKind], rng: &mut ChaCha8Rng) -> Result<Vec<Prompt>, toml::de::Error> {
    let mut columns = Vec::new();
    for (kind, text) in FILES {
        if kinds.is_empty() || kinds.contains(&kind) {
            let mut column = read(kind, text)?;
            column.shuffle(rng);
            columns.push(column.into_iter());
        }
    }
    let mut mixed = Vec::new();
    loop {
        let before = mixed.len();
        mixed.extend(columns.iter_mut().filter_map(Iterator::next));
        if mixed.len() == before {
            return Ok(mixed);
        }
    }
}

/// The prompts that are used for warm-up only.
pub(super) fn warmup() -> Result<Vec<Prompt>, toml::de::Error> {
    read(PromptKind::Chat, include_str!("../../prompts/warmup.toml"))
}

fn read(kind: PromptKind, text: &str) -> Result<Vec<Prompt>, toml::de::Error> {
    let file: File = toml::from_str(text)?;
    let prompt = |text| Prompt {
        kind,
        content: Content::Text(text),
        max_tokens: None,
    };
    Ok(file.prompts.into_iter().map(prompt).collect())
}
