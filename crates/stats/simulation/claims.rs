//! One cell of the calibration: a way of comparing, a kind of noise, a true difference; and what came of it.

use shakedown_stats::{
    ASSUMED_RESTART_SD, Answer, Estimate, Judgement, Rules, SerialPrior, UNTIL_LEVEL, block_log_ratio,
    independent, judge, judge_with_restarts, launches, mean, series, trials, width_reached,
};

use super::noise::{Draws, Process};

/// Which trials share a noise process in an interleaved comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoiseOf {
    /// All of them, in order of time: the machine's noise.
    Machine,
    /// Those of one server: its own noise.
    Server,
}

/// How the two sides are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Design {
    /// So many launches a side, each with so many trials.
    Launches { launches: usize, trials: usize },
    /// One launch a side with so many trials, judged with the assumed restart spread.
    TwoLaunches { trials: usize },
    /// So many ABBA blocks over one launch a side, judged with the assumed restart spread.
    Blocks { blocks: usize, noise: NoiseOf },
    /// So many ABBA blocks, both servers launched anew for each.
    FreshBlocks { blocks: usize },
    /// ABBA blocks until the interval is so narrow (40 at most).
    BlocksUntil { target: f64, noise: NoiseOf },
    /// Trials of one launch a side in turn until the interval is so narrow (40 at most).
    TrialsUntil { target: f64 },
    /// Launches of so many trials until the interval is so narrow (40 a side at most).
    LaunchesUntil { target: f64, trials: usize },
}

const MOST: usize = 40;

/// One cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cell {
    pub(crate) design: Design,
    /// Standard deviation of the launch effect, of ln.
    pub(crate) launch_sd: f64,
    /// Standard deviation of the trial noise, of ln.
    pub(crate) trial_sd: f64,
    /// Lag-1 correlation of the trial noise.
    pub(crate) rho: f64,
    /// True ln(B / A).
    pub(crate) truth: f64,
}

/// What came of the repetitions of a cell.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) reps: u32,
    pub(crate) higher: u32,
    pub(crate) lower: u32,
    pub(crate) same: u32,
    /// Answers "higher" and "lower" that the rules without the restart spread would have given.
    pub(crate) uncapped: u32,
    /// Intervals that held the truth of the claim (the population's for launches, these two launches' for the rest).
    pub(crate) covered: u32,
    pub(crate) units: u64,
}

impl Tally {
    /// Share of answers "higher" or "lower".
    pub(crate) fn wins(&self) -> f64 {
        self.share(self.higher + self.lower)
    }

    /// `count` as a share of the repetitions.
    pub(crate) fn share(&self, count: u32) -> f64 {
        f64::from(count) / f64::from(self.reps)
    }

    /// Monte Carlo standard error of a share whose true value is `p`.
    pub(crate) fn error(&self, p: f64) -> f64 {
        (p * (1.0 - p) / f64::from(self.reps)).sqrt()
    }
}

/// Runs a cell `reps` times; the same seed and place give the same tally.
pub(crate) fn run(cell: &Cell, reps: u32, seed: u64, place: u64) -> Tally {
    let mut draws = Draws::new(seed, place);
    let mut tally = Tally {
        reps,
        ..Tally::default()
    };
    for _ in 0..reps {
        let once = compare_once(cell, &mut draws);
        match once.judgement.answer {
            Answer::Higher => tally.higher += 1,
            Answer::Lower => tally.lower += 1,
            Answer::Same => tally.same += 1,
            Answer::CannotTell => {}
        }
        tally.uncapped += u32::from(matches!(once.uncapped, Answer::Higher | Answer::Lower));
        let (low, high) = once.judgement.interval;
        tally.covered += u32::from(low <= once.claim && once.claim <= high);
        tally.units += once.units as u64;
    }
    tally
}

struct Once {
    judgement: Judgement,
    uncapped: Answer,
    /// What the interval claims to hold.
    claim: f64,
    units: usize,
}

fn compare_once(cell: &Cell, draws: &mut Draws) -> Once {
    let rules = Rules::default();
    match cell.design {
        Design::Launches { launches: n, trials } => {
            let a: Vec<f64> = (0..n).map(|_| launch_mean(cell, draws, 0.0, trials)).collect();
            let b: Vec<f64> = (0..n)
                .map(|_| launch_mean(cell, draws, cell.truth, trials))
                .collect();
            population(cell, &launches(&a, &b).unwrap(), &rules, n)
        }
        Design::FreshBlocks { blocks } => {
            let ratios: Vec<f64> = (0..blocks)
                .map(|_| {
                    let mut pair = Pair::launch(cell, draws, NoiseOf::Machine);
                    pair.block(draws)
                })
                .collect();
            population(cell, &independent(&ratios).unwrap(), &rules, blocks)
        }
        Design::TwoLaunches { trials: n } => {
            let mut pair = Pair::launch(cell, draws, NoiseOf::Server);
            let (mut a, mut b) = (Vec::new(), Vec::new());
            for _ in 0..n {
                a.push(pair.a(draws));
                b.push(pair.b(draws));
            }
            these_two(&pair, &trials(&a, &b).unwrap(), &rules, n)
        }
        Design::Blocks { blocks, noise } => {
            let mut pair = Pair::launch(cell, draws, noise);
            let ratios: Vec<f64> = (0..blocks).map(|_| pair.block(draws)).collect();
            these_two(
                &pair,
                &series(&ratios, SerialPrior::BLOCKS).unwrap(),
                &rules,
                blocks,
            )
        }
        Design::BlocksUntil { target, noise } => {
            let mut pair = Pair::launch(cell, draws, noise);
            let mut ratios = Vec::new();
            let estimate = until(target, || {
                ratios.push(pair.block(draws));
                series(&ratios, SerialPrior::BLOCKS)
            });
            these_two(&pair, &estimate, &until_rules(), ratios.len())
        }
        Design::TrialsUntil { target } => {
            let mut pair = Pair::launch(cell, draws, NoiseOf::Server);
            let (mut a, mut b) = (Vec::new(), Vec::new());
            let estimate = until(target, || {
                a.push(pair.a(draws));
                b.push(pair.b(draws));
                trials(&a, &b)
            });
            these_two(&pair, &estimate, &until_rules(), a.len())
        }
        Design::LaunchesUntil { target, trials } => {
            let (mut a, mut b) = (Vec::new(), Vec::new());
            let estimate = until(target, || {
                a.push(launch_mean(cell, draws, 0.0, trials));
                b.push(launch_mean(cell, draws, cell.truth, trials));
                launches(&a, &b)
            });
            population(cell, &estimate, &until_rules(), a.len())
        }
    }
}

fn until_rules() -> Rules {
    Rules {
        level: UNTIL_LEVEL,
        ..Rules::default()
    }
}

/// Adds a unit at a time until the interval is narrow.
fn until(target: f64, mut one_more: impl FnMut() -> Option<Estimate>) -> Estimate {
    let mut units = 0;
    loop {
        let estimate = one_more();
        units += 1;
        if let Some(estimate) = estimate
            && (units >= MOST || width_reached(&estimate, units, target).reached)
        {
            return estimate;
        }
    }
}

fn launch_mean(cell: &Cell, draws: &mut Draws, centre: f64, trials: usize) -> f64 {
    let effect = centre + cell.launch_sd * draws.normal();
    let mut noise = Process::new(draws, cell.rho, cell.trial_sd);
    let values: Vec<f64> = (0..trials).map(|_| effect + noise.next(draws)).collect();
    mean(&values)
}

/// One launch of each side.
struct Pair {
    effect_a: f64,
    effect_b: f64,
    noise_a: Process,
    /// Absent where all trials share the machine's noise.
    noise_b: Option<Process>,
}

impl Pair {
    fn launch(cell: &Cell, draws: &mut Draws, noise: NoiseOf) -> Self {
        Self {
            effect_a: cell.launch_sd * draws.normal(),
            effect_b: cell.truth + cell.launch_sd * draws.normal(),
            noise_a: Process::new(draws, cell.rho, cell.trial_sd),
            noise_b: (noise == NoiseOf::Server).then(|| Process::new(draws, cell.rho, cell.trial_sd)),
        }
    }

    fn a(&mut self, draws: &mut Draws) -> f64 {
        self.effect_a + self.noise_a.next(draws)
    }

    fn b(&mut self, draws: &mut Draws) -> f64 {
        self.effect_b + self.noise_b.as_mut().unwrap_or(&mut self.noise_a).next(draws)
    }

    /// A B B A or B A A B.
    fn block(&mut self, draws: &mut Draws) -> f64 {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        let outer_a = draws.coin();
        for inner in [false, true, true, false] {
            if inner == outer_a {
                b.push(self.b(draws));
            } else {
                a.push(self.a(draws));
            }
        }
        block_log_ratio(&a, &b).unwrap()
    }
}

fn population(cell: &Cell, estimate: &Estimate, rules: &Rules, units: usize) -> Once {
    let judgement = judge(estimate, rules, None);
    Once {
        judgement,
        uncapped: judgement.answer,
        claim: cell.truth,
        units,
    }
}

fn these_two(pair: &Pair, estimate: &Estimate, rules: &Rules, units: usize) -> Once {
    Once {
        judgement: judge_with_restarts(estimate, rules, None, ASSUMED_RESTART_SD),
        uncapped: judge(estimate, rules, None).answer,
        claim: pair.effect_b - pair.effect_a,
        units,
    }
}
