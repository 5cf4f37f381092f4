//! Judges directories of cases, or one evidence directory or log, and prints what came of it.
//!
//! `cargo run -p shakedown-diagnose --example cases -- DIR` or `-- --one DIR-OR-LOG`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a developer's tool")]

use std::path::PathBuf;

use shakedown_diagnose::{Cases, Diagnoser, Evidence};

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let one = arguments.first().is_some_and(|first| first == "--one");
    if one {
        arguments.remove(0);
    }
    let diagnoser = Diagnoser::new().unwrap();
    for argument in arguments {
        let path = PathBuf::from(argument);
        if one {
            let evidence = if path.is_dir() {
                Evidence::from_dir(&path).unwrap()
            } else {
                Evidence::from_files(vec![path]).unwrap()
            };
            let diagnosis = diagnoser.diagnose(evidence).unwrap();
            println!("{}", serde_json::to_string_pretty(&diagnosis).unwrap());
            continue;
        }
        let cases = Cases::run(&diagnoser, &path).unwrap();
        for result in &cases.results {
            let mark = match (result.right, result.unknown, result.undecided) {
                (true, _, _) => "right  ",
                (_, true, true) => "unknown",
                (_, true, false) => "MISSED ",
                _ => "WRONG  ",
            };
            println!(
                "{mark} {:32} {:9} {:28} {:24} {} {}",
                result.name,
                format!("{:?}", result.confidence).to_lowercase(),
                result.code,
                result.class,
                result.state.as_str(),
                if result.quoted { "" } else { "(line not quoted)" }
            );
        }
        println!("{}", serde_json::to_string(&cases.summary).unwrap());
    }
}
