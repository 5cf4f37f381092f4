//! Prints how often the verdicts are right, for every cell of the calibration.
//!
//!     cargo run -p shakedown-stats --release --example calibration -- [--reps 20000] [--seed 1]
//!         [--launch-sd 0,0.5,1] [--trial-sd 0.5,1,3] [--rho 0,0.3] [--launches 2,3,4] [--trials 3,5,10] [--quiet]
//!
//! Standard deviations are in per cent. Ends with status 1 when a cell breaks its promise.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers"
)]

use std::process::ExitCode;

#[path = "../simulation/mod.rs"]
mod simulation;

use simulation::{Cell, Design, GateCell, NoiseOf, run, run_gate};

struct Options {
    reps: u32,
    seed: u64,
    launch_sd: Vec<f64>,
    trial_sd: Vec<f64>,
    rho: Vec<f64>,
    launches: Vec<usize>,
    trials: Vec<usize>,
    quiet: bool,
}

fn list<T: std::str::FromStr>(text: &str) -> Option<Vec<T>> {
    text.split(',').map(|part| part.trim().parse().ok()).collect()
}

fn options() -> Option<Options> {
    let mut options = Options {
        reps: 20_000,
        seed: 1,
        launch_sd: vec![0.0, 0.5, 1.0],
        trial_sd: vec![0.5, 1.0, 3.0],
        rho: vec![0.0, 0.3],
        launches: vec![2, 3, 4],
        trials: vec![3, 5, 10],
        quiet: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        if name == "--quiet" {
            options.quiet = true;
            continue;
        }
        let value = arguments.next()?;
        match name.as_str() {
            "--reps" => options.reps = value.parse().ok()?,
            "--seed" => options.seed = value.parse().ok()?,
            "--launch-sd" => options.launch_sd = list(&value)?,
            "--trial-sd" => options.trial_sd = list(&value)?,
            "--rho" => options.rho = list(&value)?,
            "--launches" => options.launches = list(&value)?,
            "--trials" => options.trials = list(&value)?,
            _ => return None,
        }
    }
    Some(options)
}

/// What a cell promises.
#[derive(Clone, Copy)]
enum Promise {
    /// No difference: "faster" or "slower" in at most 5% plus two Monte Carlo errors, coverage at least 93%.
    NoFalseWins,
    /// A true difference: found in at least this share. One trial in 7,000 of Student t with 4 degrees is 10 standard
    /// deviations off, and hides anything from a mean of three.
    Found(f64),
}

struct Table {
    reps: u32,
    seed: u64,
    quiet: bool,
    place: u64,
    cells: u32,
    broken: u32,
    worst_wins: f64,
    worst_coverage: f64,
}

impl Table {
    fn section(&mut self, title: &str) {
        self.worst_wins = 0.0;
        self.worst_coverage = 1.0;
        println!("\n{title}");
        if !self.quiet {
            println!(
                "{:>9} {:>8} {:>4} {:>24}  {:>7} {:>6} {:>7} {:>8} {:>6} {:>6}",
                "launch sd",
                "trial sd",
                "rho",
                "design",
                "wins %",
                "same %",
                "uncap %",
                "cover %",
                "error",
                "units"
            );
        }
    }

    fn cell(&mut self, cell: &Cell, name: &str, promise: Promise) {
        self.place += 1;
        self.cells += 1;
        let tally = run(cell, self.reps, self.seed, self.place);
        let coverage = tally.share(tally.covered);
        let kept = match promise {
            Promise::NoFalseWins => tally.wins() <= 0.05 + 2.0 * tally.error(0.05) && coverage >= 0.93,
            Promise::Found(share) => tally.share(tally.higher) >= share,
        };
        self.worst_wins = self.worst_wins.max(tally.wins());
        self.worst_coverage = self.worst_coverage.min(coverage);
        self.broken += u32::from(!kept);
        if !self.quiet || !kept {
            println!(
                "{:>9} {:>8} {:>4} {:>24}  {:>7.2} {:>6.1} {:>7.2} {:>8.2} {:>6.2} {:>6.1}{}",
                100.0 * cell.launch_sd,
                100.0 * cell.trial_sd,
                cell.rho,
                name,
                100.0 * tally.wins(),
                100.0 * tally.share(tally.same),
                100.0 * tally.share(tally.uncapped),
                100.0 * coverage,
                100.0 * tally.error(tally.wins().clamp(0.001, 0.999)),
                tally.units as f64 / f64::from(tally.reps),
                if kept { "" } else { "  <- broken" }
            );
        }
    }

    fn close(&self) {
        println!(
            "worst: wins {:.2}%, coverage {:.2}% (Monte Carlo error of 5%: {:.2})",
            100.0 * self.worst_wins,
            100.0 * self.worst_coverage,
            100.0 * (0.05f64 * 0.95 / f64::from(self.reps)).sqrt()
        );
    }
}

fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!(
            "usage: calibration [--reps N] [--seed N] [--launch-sd LIST] [--trial-sd LIST] [--rho LIST] [--launches LIST] [--trials LIST] [--quiet]"
        );
        return ExitCode::from(2);
    };
    let mut table = Table {
        reps: options.reps,
        seed: options.seed,
        quiet: options.quiet,
        place: 0,
        cells: 0,
        broken: 0,
        worst_wins: 0.0,
        worst_coverage: 1.0,
    };
    let mut noises = Vec::new();
    for &launch_sd in &options.launch_sd {
        for &trial_sd in &options.trial_sd {
            for &rho in &options.rho {
                noises.push((launch_sd / 100.0, trial_sd / 100.0, rho));
            }
        }
    }
    let same = |design| {
        noises.iter().map(move |&(launch_sd, trial_sd, rho)| Cell {
            design,
            launch_sd,
            trial_sd,
            rho,
            truth: 0.0,
        })
    };

    table.section("A/A, launches: the claim is on the population of launches");
    for &launches in &options.launches {
        for &trials in &options.trials {
            for cell in same(Design::Launches { launches, trials }) {
                table.cell(
                    &cell,
                    &format!("{launches} launches x {trials}"),
                    Promise::NoFalseWins,
                );
            }
        }
    }
    table.close();

    table.section("A/A, one launch a side: coverage of the difference of these two launches; wins with the assumed restart spread of 1.5%");
    for &trials in &options.trials {
        for cell in same(Design::TwoLaunches { trials }) {
            table.cell(
                &cell,
                &format!("2 launches, {trials} trials"),
                Promise::NoFalseWins,
            );
        }
    }
    table.close();

    table.section("A/A, ABBA blocks over one launch a side: the same two claims");
    for noise in [NoiseOf::Machine, NoiseOf::Server] {
        for &blocks in &options.trials {
            for cell in same(Design::Blocks { blocks, noise }) {
                table.cell(
                    &cell,
                    &format!("{blocks} blocks, {noise:?}"),
                    Promise::NoFalseWins,
                );
            }
        }
    }
    table.close();

    table.section("A/A, ABBA blocks with both servers launched anew for each: the population of launches");
    for &blocks in &options.trials {
        for cell in same(Design::FreshBlocks { blocks }) {
            table.cell(&cell, &format!("{blocks} fresh blocks"), Promise::NoFalseWins);
        }
    }
    table.close();

    table.section("A/A, until the interval is within the target: ABBA blocks, trials of one launch a side, launches of 5 trials");
    for target in [0.01, 0.02] {
        let percent = 100.0 * target;
        for noise in [NoiseOf::Machine, NoiseOf::Server] {
            for cell in same(Design::BlocksUntil { target, noise }) {
                table.cell(
                    &cell,
                    &format!("blocks {noise:?} <{percent}%"),
                    Promise::NoFalseWins,
                );
            }
        }
        for cell in same(Design::TrialsUntil { target }) {
            table.cell(&cell, &format!("trials <{percent}%"), Promise::NoFalseWins);
        }
        for cell in same(Design::LaunchesUntil { target, trials: 5 }) {
            table.cell(&cell, &format!("launches <{percent}%"), Promise::NoFalseWins);
        }
    }
    table.close();

    table.section("Power");
    let story = (96.1f64 / 54.1).ln();
    for &rho in &options.rho {
        let cell = Cell {
            design: Design::Launches {
                launches: 4,
                trials: 5,
            },
            launch_sd: 0.005,
            trial_sd: 0.01,
            rho,
            truth: 0.035,
        };
        table.cell(&cell, "3.5%: 4 launches x 5", Promise::Found(0.95));
        for &trial_sd in &options.trial_sd {
            for &trials in &options.trials {
                let cell = Cell {
                    design: Design::TwoLaunches { trials },
                    launch_sd: 0.01,
                    trial_sd: trial_sd / 100.0,
                    rho,
                    truth: story,
                };
                table.cell(
                    &cell,
                    &format!("54.1 to 96.1: 1 x {trials}"),
                    Promise::Found(0.999),
                );
            }
        }
    }

    gates(&mut table);
    println!("\n{} cells, {} broken", table.cells, table.broken);
    ExitCode::from(u8::from(table.broken > 0))
}

/// The gate beside inference-doctor 0.4.1's rule: on independent runs, as that rule takes them, and on trials of one launch
/// a side, taken for independent runs by that rule.
fn gates(table: &mut Table) {
    println!("\nGate, beside inference-doctor 0.4.1 (Welch's interval of the log ratio of means, 90%)");
    println!(
        "{:>34} {:>6} {:>6}  {:>14} {:>14}  {:>14} {:>14}",
        "runs", "drop", "limit", "ours pass %", "ours fail %", "its pass %", "its fail %"
    );
    let mut cells = Vec::new();
    for runs in [3, 5, 10] {
        for drop in [0.0, 0.05, 0.10, 0.15, 0.20] {
            cells.push(GateCell {
                runs,
                drop,
                limit: 0.10,
                run_sd: 0.04,
                launch_sd: 0.0,
            });
        }
    }
    for drop in [0.0, 0.02, 0.04] {
        for launch_sd in [0.0, 0.01] {
            cells.push(GateCell {
                runs: 5,
                drop,
                limit: 0.02,
                run_sd: 0.005,
                launch_sd,
            });
        }
    }
    for cell in cells {
        table.place += 1;
        table.cells += 1;
        let tally = run_gate(&cell, table.reps, table.seed, table.place);
        let error = 2.0 * (0.05f64 * 0.95 / f64::from(table.reps)).sqrt();
        // At the limit either answer is wrong, and so is a miss of either kind away from it.
        let wrong = |pass: f64, fail: f64| {
            if cell.drop > cell.limit {
                pass
            } else if cell.drop < cell.limit {
                fail
            } else {
                pass.max(fail)
            }
        };
        let mut kept = wrong(tally.ours_pass, tally.ours_fail) <= 0.05 + error;
        if cell.launch_sd == 0.0 && cell.limit > 0.05 {
            let below = |ours: f64, its: f64| {
                ours < its - 2.0 * (2.0 * its * (1.0 - its) / f64::from(table.reps)).sqrt()
            };
            kept &= !(cell.drop < cell.limit && below(tally.ours_pass, tally.its_pass));
            kept &= !(cell.drop > cell.limit && below(tally.ours_fail, tally.its_fail));
        }
        table.broken += u32::from(!kept);
        let runs = if cell.limit > 0.05 {
            format!("{} independent runs, 4%", cell.runs)
        } else {
            format!(
                "{} trials of 1 launch, restarts {}%",
                cell.runs,
                100.0 * cell.launch_sd
            )
        };
        println!(
            "{runs:>34} {:>5}% {:>5}%  {:>14.2} {:>14.2}  {:>14.2} {:>14.2}{}",
            100.0 * cell.drop,
            100.0 * cell.limit,
            100.0 * tally.ours_pass,
            100.0 * tally.ours_fail,
            100.0 * tally.its_pass,
            100.0 * tally.its_fail,
            if kept { "" } else { "  <- broken" }
        );
    }
}
