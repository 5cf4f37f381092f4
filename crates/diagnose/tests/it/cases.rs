//! Cases with known truth: the handed ones, logs of real runs, and cases from public threads.

use shakedown_diagnose::{Cases, Summary};
use shakedown_model::Confidence;

use crate::{DIAGNOSER, cases_dir};

fn run(name: &str) -> Cases {
    Cases::run(&DIAGNOSER, &cases_dir(name)).unwrap()
}

/// What is not right, for a message.
fn faults(cases: &Cases) -> Vec<String> {
    cases
        .results
        .iter()
        .filter(|result| !(result.right || result.unknown && result.undecided))
        .map(|result| {
            format!(
                "{}: {} {} {:?} {}",
                result.name,
                result.code,
                result.class,
                result.confidence,
                result.state.as_str()
            )
        })
        .collect()
}

fn share(part: u32, whole: u32) -> f64 {
    f64::from(part) / f64::from(whole.max(1))
}

#[test]
fn handed_cases() {
    let cases = run("handed");
    let summary = cases.summary;
    assert_eq!((summary.cases, summary.decidable), (60, 51));
    assert_eq!(faults(&cases), Vec::<String>::new());
    assert_eq!(summary.right, 51, "every case that the evidence decides");
    assert_eq!(summary.wrong, 0, "none of the sixty is told a wrong cause");
    assert!(share(summary.certain, summary.cases) >= 0.6);
    assert_eq!(summary.certain, summary.certain_right);
    let unquoted: Vec<&str> = cases
        .results
        .iter()
        .filter(|result| !result.quoted && !result.undecided)
        .map(|result| result.name.as_str())
        .collect();
    assert_eq!(
        unquoted,
        Vec::<&str>::new(),
        "the line that shows the cause is quoted"
    );
}

#[test]
fn real_logs() {
    let cases = run("real");
    assert_eq!(faults(&cases), Vec::<String>::new());
    assert_eq!(cases.summary.cases, 13);
    assert!(cases.results.iter().all(|result| result.right && result.quoted));
}

#[test]
fn cases_from_threads() {
    let cases = run("threads");
    let Summary {
        certain,
        certain_right,
        right,
        decidable,
        ..
    } = cases.summary;
    assert!(share(certain_right, certain) >= 0.98, "{:?}", faults(&cases));
    assert!(share(right, decidable) >= 0.95, "{:?}", faults(&cases));
}

#[test]
fn unverified_entries_are_never_certain() {
    let unverified: Vec<&str> = DIAGNOSER
        .catalog()
        .failures
        .iter()
        .filter(|failure| failure.known == shakedown_model::Provenance::Unverified)
        .map(|failure| failure.code.as_str())
        .collect();
    for name in ["handed", "threads", "real"] {
        for result in run(name).results {
            assert!(
                result.confidence != Confidence::Certain || !unverified.contains(&result.code.as_str()),
                "{}",
                result.name
            );
        }
    }
}
