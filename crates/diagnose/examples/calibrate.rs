//! Leaves each family of failures out of the catalogue and judges all cases without it: how often is a finding that
//! is called certain wrong about a kind that the catalogue does not know?
//!
//! `cargo run -p shakedown-diagnose --example calibrate -- DIR…`
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a developer's tool")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use shakedown_diagnose::catalog::Role;
use shakedown_diagnose::{Case, CaseResult, Catalog, Diagnoser};
use shakedown_model::Confidence;

fn main() {
    let dirs: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    let cases: Vec<Case> = dirs.iter().flat_map(|dir| Case::all_in(dir).unwrap()).collect();
    let families: BTreeSet<String> = Catalog::built_in()
        .unwrap()
        .failures
        .iter()
        .map(|failure| failure.family.clone())
        .collect();
    let mut total = (0, 0, 0, 0);
    for family in &families {
        let catalog = Catalog::built_in()
            .unwrap()
            .without(|failure| failure.family == *family && failure.role != Role::Cascade);
        let diagnoser = Diagnoser::with(catalog).unwrap();
        let (mut own, mut certain, mut likely, mut possible, mut unknown) = (0, 0, 0, 0, 0);
        for case in cases
            .iter()
            .filter(|case| case.truth.family.first() == Some(family))
        {
            let diagnosis = diagnoser.diagnose(case.evidence().unwrap()).unwrap();
            let result = CaseResult::new(&case.name, &case.truth, &diagnosis);
            own += 1;
            let right = result.right && (result.undecided || !result.unknown);
            if result.unknown {
                unknown += 1;
            } else if !right {
                match result.confidence {
                    Confidence::Certain => {
                        certain += 1;
                        println!(
                            "  certain and wrong: {} {} {}",
                            result.name, result.code, diagnosis.verdict
                        );
                    }
                    Confidence::Likely => {
                        likely += 1;
                        println!("  likely and wrong: {} {}", result.name, result.code);
                    }
                    Confidence::Possible => possible += 1,
                }
            }
        }
        println!(
            "{family:24} cases {own:3}  unknown {unknown:3}  wrong: certain {certain} likely {likely} possible {possible}"
        );
        total = (
            total.0 + own,
            total.1 + certain,
            total.2 + likely,
            total.3 + possible,
        );
    }
    println!(
        "all: {} cases judged without their family: wrong and certain {}, wrong and likely {}, wrong and possible {}",
        total.0, total.1, total.2, total.3
    );
}
