//! A model of a prefix cache: which prompt tokens were seen before. It never changes timing.

use std::collections::{HashSet, VecDeque};

use crate::random::{fnv, mix};

/// Tokens in one block: prefixes are shared by whole blocks, as in the engines.
const BLOCK: u32 = 16;
/// Blocks and whole prompts remembered.
const CAP: usize = 65_536;

/// Hashes of the prefixes seen, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct PrefixCache {
    seen: HashSet<u64>,
    order: VecDeque<u64>,
}

impl PrefixCache {
    /// Takes a prompt in and gives how many of its `tokens` were cached: all but one of a prompt seen before,
    /// else the whole blocks of the longest prefix seen before.
    pub(crate) fn take(&mut self, prompt: &str, tokens: u32) -> u32 {
        let most = tokens.saturating_sub(1);
        let whole = mix(fnv(prompt.as_bytes()) ^ 0x5eed);
        if self.seen.contains(&whole) {
            return most;
        }
        self.insert(whole);
        let mut hash = 0;
        let mut cached = 0;
        let mut known = true;
        for (index, word) in prompt.split_whitespace().enumerate() {
            hash = mix(hash ^ fnv(word.as_bytes()));
            let count = index as u32 + 1;
            if count.is_multiple_of(BLOCK) {
                known = known && self.seen.contains(&hash);
                if known {
                    cached = count;
                } else {
                    self.insert(hash);
                }
            }
        }
        cached.min(most)
    }

    fn insert(&mut self, hash: u64) {
        if self.order.len() >= CAP
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        if self.seen.insert(hash) {
            self.order.push_back(hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(words: u32, last: &str) -> String {
        (0..words)
            .map(|index| format!("w{index} "))
            .collect::<Vec<_>>()
            .concat()
            + last
    }

    #[test]
    fn identical_prompts_hit_and_prefixes_hit_by_blocks() {
        let mut cache = PrefixCache::default();
        assert_eq!(cache.take(&prompt(40, "x"), 41), 0);
        assert_eq!(cache.take(&prompt(40, "x"), 41), 40);
        assert_eq!(cache.take(&prompt(40, "y"), 41), 32);
        assert_eq!(cache.take("other words", 2), 0);
    }

    #[test]
    fn memory_is_bounded() {
        let mut cache = PrefixCache::default();
        for index in 0..CAP + 100 {
            cache.take(&format!("p{index}"), 1);
        }
        assert_eq!(cache.order.len(), CAP);
        assert_eq!(cache.seen.len(), CAP);
    }
}
