//! Blocks of A B B A.

use shakedown_model::{Basis, Conclusion, RunDocument};

use crate::sample::{NOISE, STEP_US, codes, compared, run, trial};

/// Trials of both sides at the places of `pattern`, with a drift of `drift` (of ln) from one to the next.
fn sides(pattern: &str, centres: (f64, f64), drift: f64, sd: f64) -> (RunDocument, RunDocument) {
    let (mut a, mut b) = (run("a", "la", &[]), run("b", "lb", &[]));
    for (place, side) in (0u32..).zip(pattern.chars()) {
        let (of, centre) = if side == 'A' {
            (&mut a, centres.0)
        } else {
            (&mut b, centres.1)
        };
        let noise = sd * NOISE[place as usize * 3 % 5] + drift * f64::from(place);
        let number = of.trials.len() as u32 + 1;
        of.trials
            .push(trial(number, centre * noise.exp(), u64::from(place) * STEP_US));
    }
    (a, b)
}

#[test]
fn interleaving_removes_a_drift_that_a_then_b_reports_as_a_change() {
    // The same server, getting slower by 1% with every trial.
    let (a, b) = sides("AAAAAAAAAABBBBBBBBBB", (89.5, 89.5), -0.01, 0.001);
    let plain = compared(&[a], &[b]);
    assert_eq!(
        (plain.conclusion, plain.basis),
        (Conclusion::Slower, Basis::TwoLaunches)
    );
    assert!(codes(&plain).contains(&"drift"));
    let (a, b) = sides("ABBABAABABBABAABABBA", (89.5, 89.5), -0.01, 0.001);
    let interleaved = compared(&[a], &[b]);
    assert_eq!((interleaved.basis, interleaved.units_a), (Basis::Blocks, 5));
    assert_eq!(
        interleaved.conclusion,
        Conclusion::CannotTell,
        "two launches, within what restarts do"
    );
    let primary = interleaved.primary().unwrap();
    assert!(
        (primary.ratio - 1.0).abs() < 0.003 && primary.capped,
        "{primary:?}"
    );

    // One launch on both sides: nothing is left but sameness.
    let (a, mut b) = sides("ABBABAABABBABAABABBA", (89.5, 89.5), -0.01, 0.001);
    b.launch.id.clone_from(&a.launch.id);
    let same = compared(&[a], &[b]);
    assert_eq!(
        (same.conclusion, same.basis),
        (Conclusion::Same, Basis::SameLaunchBlocks)
    );
}

#[test]
fn a_change_is_seen_through_the_drift() {
    let (a, b) = sides("ABBABAABABBABAABABBA", (89.5, 96.1), -0.01, 0.001);
    let comparison = compared(&[a], &[b]);
    assert_eq!(comparison.conclusion, Conclusion::Faster);
    assert!((comparison.primary().unwrap().ratio - 96.1 / 89.5).abs() < 0.003);
}

#[test]
fn an_interrupted_last_block_is_left_out_and_disorder_is_no_interleaving() {
    let (a, b) = sides("ABBABAABAB", (89.5, 83.9), 0.0, 0.002);
    let comparison = compared(&[a], &[b]);
    assert_eq!((comparison.basis, comparison.units_a), (Basis::Blocks, 2));
    let (a, b) = sides("AABBABBAABAB", (89.5, 83.9), 0.0, 0.002);
    assert_eq!(compared(&[a], &[b]).basis, Basis::TwoLaunches);
}

/// A run a trial, each carrying its block, as an interleaved measurement of fresh launches writes them.
fn numbered(fresh: bool) -> (Vec<RunDocument>, Vec<RunDocument>) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for block in 1..=5u32 {
        for order in 1..=2u32 {
            let place = block * 2 + order;
            let is_b = (order == 1) == (block % 2 == 0);
            let centre = if is_b { 83.9 } else { 89.5 };
            let rate = centre * (0.003 * NOISE[(block - 1) as usize]).exp();
            let launch = if fresh {
                format!("{is_b}-{block}")
            } else {
                is_b.to_string()
            };
            let mut one = run(&format!("{is_b}-{block}"), &launch, &[rate]);
            one.origin_unix_us += u64::from(place) * STEP_US;
            one.launch.block = Some(block);
            one.launch.order = Some(order);
            if is_b { &mut b } else { &mut a }.push(one);
        }
    }
    (a, b)
}

#[test]
fn blocks_that_runs_carry_are_used() {
    let (a, b) = numbered(false);
    let comparison = compared(&a, &b);
    assert_eq!((comparison.basis, comparison.units_b), (Basis::Blocks, 5));
    assert_eq!(comparison.conclusion, Conclusion::Slower);
    let (a, b) = numbered(true);
    let comparison = compared(&a, &b);
    assert_eq!((comparison.basis, comparison.units_b), (Basis::FreshBlocks, 5));
    assert_eq!(comparison.primary().unwrap().restart_spread, None);
    // Numbers of another measurement, hours later, are no blocks with these.
    let (a, mut b) = numbered(true);
    for run in &mut b {
        run.origin_unix_us += 1000 * STEP_US;
    }
    assert_eq!(compared(&a, &b).basis, Basis::Launches);
}
