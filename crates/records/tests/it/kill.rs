//! A process that dies at any moment loses only what had not ended.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use shakedown_records::{Bundle, BundleState, Store};

use crate::{child, sample};

const ID: &str = "20261201-143012-k7q2";
const ACK: &str = "appended ";

/// Appends from several threads for ever, and says after each append that it returned.
#[test]
#[ignore = "the child of dies_at_random_moments"]
fn appends_until_killed() {
    let Some(dir) = child::dir() else { return };
    let writer = Store::at(dir).create(&sample::document(ID)).unwrap();
    thread::scope(|scope| {
        for stream in 0..3_u64 {
            let mut appender = writer.appender();
            scope.spawn(move || {
                for number in 0.. {
                    let number = number * 3 + stream;
                    let tokens = 1 + usize::try_from(number * 37 % 2000).unwrap();
                    appender
                        .append(&sample::answer(
                            number,
                            sample::steady_gaps(tokens, 10_000, number),
                        ))
                        .unwrap();
                    let line = format!("{ACK}{number}\n");
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

fn one_death(dir: &Path, delay: Duration) -> usize {
    let mut process = child::command("kill::appends_until_killed", dir).spawn().unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    // It is killed some time after its first append, while this reads on, so that the pipe never fills.
    let mut said = String::new();
    while !said.contains(ACK) {
        assert!(
            output.read_line(&mut said).unwrap() > 0,
            "the child ended by itself: {said}"
        );
    }
    let killer = thread::spawn(move || {
        thread::sleep(delay);
        process.kill().unwrap();
        process.wait().unwrap()
    });
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).unwrap();
    assert!(!killer.join().unwrap().success());
    said.push_str(&String::from_utf8_lossy(&rest));

    // Only whole lines of it count: the last one may have been cut.
    let acknowledged: BTreeSet<String> = said
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n')?.strip_prefix(ACK))
        .map(|number| format!("k7q2-1-{number}"))
        .collect();

    let bundle = Bundle::open(dir.join("runs").join(ID)).unwrap();
    assert_eq!(bundle.state(), BundleState::Cut);
    let set = bundle.read_requests().unwrap();
    let kept: BTreeSet<String> = set.records.iter().map(|record| record.id.clone()).collect();
    assert_eq!(kept.len(), set.records.len(), "a record was kept twice");
    let lost: Vec<_> = acknowledged.difference(&kept).collect();
    assert!(lost.is_empty(), "lost {lost:?} of {}", acknowledged.len());
    // At most one record for each thread can have been written and not yet said.
    assert!(
        kept.len() <= acknowledged.len() + 3,
        "{} kept, {} said",
        kept.len(),
        acknowledged.len()
    );
    for record in &set.records {
        let number = record.id.rsplit('-').next().unwrap().parse().unwrap();
        assert_eq!(record, &sample::answer(number, record.gaps_us.clone()));
    }
    acknowledged.len()
}

#[test]
fn dies_at_random_moments() {
    let mut seed = u64::from(std::process::id());
    let mut records = Vec::new();
    for _ in 0..20 {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let dir = tempfile::tempdir().unwrap();
        records.push(one_death(
            dir.path(),
            Duration::from_micros((seed >> 33) % 30_000),
        ));
    }
    println!("records at each death: {records:?}");
}
