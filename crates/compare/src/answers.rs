//! Do both sides give the same answers to the same seeded greedy prompts? Fast and wrong is not fast.

use std::collections::BTreeMap;

use shakedown_model::{AnswerComparison, AnswersVerdict, Divergence, RunDocument};

use crate::Side;

/// Below this share of the agreement that A has with itself the answers are not the same answers.
const WRONG_AGREEMENT: f64 = 0.5;
/// Another kernel or another batch size moves a greedy answer off its path somewhere along the way; answers that part
/// before this share of their length are something else.
const WRONG_COMMON: f64 = 0.2;
/// An A that is not the same to itself is a yardstick with this much slack.
const SLACK: f64 = 0.1;
/// An A that agrees with itself less than this is no yardstick.
const STEADY: f64 = 0.3;
/// Bytes of an answer shown around a divergence.
const SHOWN_BEFORE: usize = 24;
const SHOWN: usize = 72;

/// Compares the answers to the canary prompts.
pub(crate) fn answers(a: &Side<'_>, b: &Side<'_>) -> AnswerComparison {
    let (given_a, given_b) = (by_prompt(&a.runs), by_prompt(&b.runs));
    let mut agreement = Vec::new();
    let (mut within_a, mut within_b, mut common) = (Vec::new(), Vec::new(), Vec::new());
    let mut first = None;
    for (prompt, of_a) in &given_a {
        let Some(of_b) = given_b.get(prompt) else {
            continue;
        };
        agreement.push(of_a.agreement(of_b));
        within_a.extend(of_a.steadiness());
        within_b.extend(of_b.steadiness());
        let (one, other) = (of_a.usual(), of_b.usual());
        if one == other {
            continue;
        }
        let texts = a.texts.get(one).zip(b.texts.get(other));
        if let Some((one, other)) = texts {
            let longer = one.len().max(other.len()).max(1);
            common.push(common_bytes(one, other) as f64 / longer as f64);
        }
        first.get_or_insert_with(|| divergence(*prompt, one, other, texts));
    }
    if agreement.is_empty() {
        return AnswerComparison {
            verdict: AnswersVerdict::Unknown,
            prompts: 0,
            agreement: None,
            within_a: None,
            within_b: None,
            common_share: None,
            first: None,
        };
    }
    let mean = |values: &[f64]| (!values.is_empty()).then(|| shakedown_stats::mean(values));
    let rate = mean(&agreement);
    let (within_a, within_b, common_share) = (mean(&within_a), mean(&within_b), mean(&common));
    AnswerComparison {
        verdict: verdict(rate.unwrap_or(0.0), within_a, common_share),
        prompts: agreement.len() as u32,
        agreement: rate,
        within_a,
        within_b,
        common_share,
        first,
    }
}

/// A is the yardstick: B is held to agree with A as often as A agrees with itself.
fn verdict(agreement: f64, within_a: Option<f64>, common: Option<f64>) -> AnswersVerdict {
    let own = within_a.unwrap_or(1.0);
    let expected = if own < 1.0 { own - SLACK } else { 1.0 };
    if own < STEADY {
        AnswersVerdict::Unknown
    } else if agreement >= expected {
        AnswersVerdict::Agree
    } else if agreement < WRONG_AGREEMENT * own && common.is_none_or(|common| common < WRONG_COMMON) {
        AnswersVerdict::Wrong
    } else {
        AnswersVerdict::Differ
    }
}

/// The answers to one prompt by hash, with how often each was given.
#[derive(Default)]
struct Given<'a> {
    counts: BTreeMap<&'a str, u64>,
    all: u64,
}

impl<'a> Given<'a> {
    fn count(&mut self, hash: &'a str) {
        *self.counts.entry(hash).or_default() += 1;
        self.all += 1;
    }

    /// Chance that one of each side is equal.
    fn agreement(&self, other: &Given<'_>) -> f64 {
        let equal: u64 = self
            .counts
            .iter()
            .map(|(hash, count)| count * other.counts.get(hash).unwrap_or(&0))
            .sum();
        equal as f64 / (self.all as f64 * other.all as f64)
    }

    /// Chance that two of one side are equal; absent for one.
    fn steadiness(&self) -> Option<f64> {
        let equal: u64 = self.counts.values().map(|count| count * (count - 1)).sum();
        let n = self.all as f64;
        (self.all > 1).then(|| equal as f64 / (n * (n - 1.0)))
    }

    /// The most frequent answer, the first by hash of equals.
    fn usual(&self) -> &'a str {
        self.counts
            .iter()
            .rev()
            .max_by_key(|(_, count)| **count)
            .map_or("", |(hash, _)| hash)
    }
}

/// The answers to each prompt (from 1), over all trials.
fn by_prompt<'a>(runs: &[&'a RunDocument]) -> BTreeMap<u32, Given<'a>> {
    let mut given: BTreeMap<u32, Given<'_>> = BTreeMap::new();
    for trial in runs.iter().flat_map(|run| &run.trials) {
        for (prompt, hash) in (1..).zip(&trial.canaries) {
            // An empty hash holds the place of a prompt that got no answer.
            if !hash.is_empty() {
                given.entry(prompt).or_default().count(hash);
            }
        }
    }
    given
}

fn common_bytes(a: &str, b: &str) -> usize {
    a.chars()
        .zip(b.chars())
        .take_while(|(one, other)| one == other)
        .map(|(one, _)| one.len_utf8())
        .sum()
}

fn divergence(prompt: u32, a: &str, b: &str, texts: Option<(&String, &String)>) -> Divergence {
    match texts {
        Some((a, b)) => {
            let common = common_bytes(a, b);
            Divergence {
                prompt,
                common_bytes: Some(common as u64),
                a: around(a, common),
                b: around(b, common),
            }
        }
        None => Divergence {
            prompt,
            common_bytes: None,
            a: a.to_owned(),
            b: b.to_owned(),
        },
    }
}

/// A piece of `text` from a little before `at` on.
fn around(text: &str, at: usize) -> String {
    let from = text.floor_char_boundary(at.saturating_sub(SHOWN_BEFORE));
    let to = text.floor_char_boundary(text.len().min(from + SHOWN));
    let mut piece = String::new();
    if from > 0 {
        piece.push('…');
    }
    piece.push_str(&text[from..to]);
    if to < text.len() {
        piece.push('…');
    }
    piece
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_to_whole_characters() {
        let text = "ä".repeat(100);
        let piece = around(&text, 101);
        assert!(piece.starts_with('…') && piece.ends_with('…') && piece.contains('ä'));
        assert_eq!(around("short", 3), "short");
    }

    #[test]
    fn a_yardstick_that_wavers_has_slack_or_is_none() {
        assert_eq!(verdict(1.0, Some(1.0), None), AnswersVerdict::Agree);
        assert_eq!(verdict(0.9, Some(1.0), Some(0.8)), AnswersVerdict::Differ);
        assert_eq!(verdict(0.0, None, None), AnswersVerdict::Wrong);
        assert_eq!(verdict(0.0, Some(1.0), Some(0.6)), AnswersVerdict::Differ);
        assert_eq!(verdict(0.55, Some(0.6), None), AnswersVerdict::Agree);
        assert_eq!(verdict(0.1, Some(0.6), None), AnswersVerdict::Wrong);
        assert_eq!(verdict(0.0, Some(0.1), None), AnswersVerdict::Unknown);
    }
}
