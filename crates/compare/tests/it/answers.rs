//! Fast and wrong is not fast.

use std::collections::BTreeMap;

use shakedown_compare::{Options, compare};
use shakedown_model::{AnswersVerdict, Conclusion, Exit, RunDocument};

use crate::sample::{codes, side, side_of};

fn with_answers(mut runs: Vec<RunDocument>, answers: &[&str]) -> Vec<RunDocument> {
    for trial in runs.iter_mut().flat_map(|run| &mut run.trials) {
        trial.canaries = answers.iter().map(|&answer| answer.to_owned()).collect();
    }
    runs
}

fn slow(answers: &[&str]) -> Vec<RunDocument> {
    with_answers(side_of("a", 54.1, 4, 0.005, 0.005), answers)
}

fn fast(answers: &[&str]) -> Vec<RunDocument> {
    with_answers(side_of("b", 96.1, 4, 0.005, 0.005), answers)
}

#[test]
fn garbage_faster_is_wrong_not_faster() {
    let (a, b) = (slow(&["h1", "h2", "h3", "h4"]), fast(&["x1", "x2", "x3", "x4"]));
    let comparison = compare(&side("A", &a), &side("B", &b), &[], &Options::default()).unwrap();
    assert_eq!(comparison.conclusion, Conclusion::WrongAnswers);
    assert_eq!(comparison.conclusion.exit(), Exit::No);
    assert_eq!(comparison.answers.agreement, Some(0.0));
    assert_eq!(codes(&comparison)[0], "answers-wrong");
    // Its speed is still told.
    assert!(comparison.primary().unwrap().ratio > 1.7);
}

#[test]
fn garbage_that_differs_each_time_is_wrong_too() {
    let a = slow(&["h1", "h2", "h3", "h4"]);
    let mut b = fast(&[]);
    for (number, trial) in b.iter_mut().flat_map(|run| &mut run.trials).enumerate() {
        trial.canaries = (0..4).map(|prompt| format!("x{prompt}-{number}")).collect();
    }
    let comparison = compare(&side("A", &a), &side("B", &b), &[], &Options::default()).unwrap();
    assert_eq!(comparison.conclusion, Conclusion::WrongAnswers);
    assert_eq!(
        (comparison.answers.within_a, comparison.answers.within_b),
        (Some(1.0), Some(0.0))
    );
}

#[test]
fn the_same_answers_agree() {
    let (a, b) = (slow(&["h1", "h2"]), fast(&["h1", "h2"]));
    let comparison = compare(&side("A", &a), &side("B", &b), &[], &Options::default()).unwrap();
    assert_eq!(comparison.conclusion, Conclusion::Faster);
    assert_eq!(
        (comparison.answers.verdict, comparison.answers.first),
        (AnswersVerdict::Agree, None)
    );
}

#[test]
fn answers_that_part_late_differ_and_are_shown_where() {
    let (a, b) = (slow(&["h1", "h2", "h3"]), fast(&["h1", "k2", "k3"]));
    let text = |hash: &str, text: &str| (hash.to_owned(), text.to_owned());
    let common = "The capital of France is Paris, which lies on the river Seine, ";
    let mut first = side("A", &a);
    first.texts = BTreeMap::from([
        text("h2", &format!("{common}in the north of the country.")),
        text("h3", "One, two, three, four, five"),
    ]);
    let mut second = side("B", &b);
    second.texts = BTreeMap::from([
        text("k2", &format!("{common}and has two million inhabitants.")),
        text("k3", "One, two, three, four, 5"),
    ]);
    let comparison = compare(&first, &second, &[], &Options::default()).unwrap();
    let answers = &comparison.answers;
    assert_eq!(
        (comparison.conclusion, answers.verdict),
        (Conclusion::Faster, AnswersVerdict::Differ)
    );
    assert!((answers.agreement.unwrap() - 1.0 / 3.0).abs() < 1e-12 && answers.common_share.unwrap() > 0.6);
    let divergence = answers.first.as_ref().unwrap();
    assert_eq!(
        (divergence.prompt, divergence.common_bytes),
        (2, Some(common.len() as u64))
    );
    assert!(
        divergence.a.contains("in the north") && divergence.b.contains("and has two"),
        "{divergence:?}"
    );
    assert!(codes(&comparison).contains(&"answers-differ"));
}

#[test]
fn without_answers_nothing_is_claimed() {
    let (a, b) = (slow(&[]), fast(&["h1"]));
    let comparison = compare(&side("A", &a), &side("B", &b), &[], &Options::default()).unwrap();
    assert_eq!(comparison.answers.verdict, AnswersVerdict::Unknown);
    assert!(codes(&comparison).contains(&"answers-not-compared"));
}

#[test]
fn answers_half_as_long_are_said() {
    let (a, mut b) = (slow(&["h1"]), fast(&["h1"]));
    for trial in b.iter_mut().flat_map(|run| &mut run.trials) {
        trial.metrics.output_tokens.as_mut().unwrap().mean = 128.0;
    }
    let comparison = compare(&side("A", &a), &side("B", &b), &[], &Options::default()).unwrap();
    assert!(codes(&comparison).contains(&"answer-lengths-differ"));
}
