//! When chunks are due, and how many tokens each has.

use crate::clock;
use crate::options::{Options, Phase};
use crate::random::Random;

use shakedown_model::PromptKind;

/// The due times of one stream: absolute, so a late write never moves the next one.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// The next chunk's place in the schedule, jitter not included.
    base: u64,
    /// When the next chunk is due.
    due: u64,
    itl: u64,
    jitter: u64,
    growth: f64,
    aligned: bool,
    seed: u64,
    random: Random,
}

impl Schedule {
    /// The schedule of a stream that begins to run at `start`. `origin` is the start of the server, from which
    /// aligned streams count their multiples; `earliest` bounds the first chunk from below.
    pub(crate) fn new(options: &Options, ordinal: u64, start: u64, origin: u64, earliest: u64) -> Self {
        let itl = clock::nanos(options.itl);
        let aligned = options.phase == Phase::Aligned && itl > 0;
        let first = start.saturating_add(clock::nanos(options.ttft)).max(earliest);
        let base = if aligned {
            origin + (first.saturating_sub(origin)).div_ceil(itl) * itl
        } else {
            first
        };
        let mut schedule = Self {
            base,
            due: base,
            itl,
            jitter: clock::nanos(options.jitter),
            growth: options.itl_growth,
            aligned,
            seed: options.seed,
            random: Random::new(options.seed, ordinal),
        };
        schedule.due = schedule.jittered().max(start);
        schedule
    }

    /// When the next chunk is due.
    pub(crate) const fn due(&self) -> u64 {
        self.due
    }

    /// Goes on to the chunk after it; `running` requests run now, this one included.
    pub(crate) fn next(&mut self, running: u32) {
        let gap = if self.growth > 0.0 {
            let others = f64::from(running.saturating_sub(1));
            (self.itl as f64 * (1.0 + self.growth * others)) as u64
        } else {
            self.itl
        };
        self.base = self.base.saturating_add(gap);
        self.due = self.jittered().max(self.due);
    }

    fn jittered(&mut self) -> u64 {
        if self.jitter == 0 {
            return self.base;
        }
        // Aligned streams share each step, so they share its jitter.
        let unit = if self.aligned {
            Random::new(self.seed, self.base).unit()
        } else {
            self.random.unit()
        };
        let shift = (self.jitter as f64 * (2.0 * unit - 1.0)) as i64;
        self.base.saturating_add_signed(shift)
    }
}

/// What speculation did for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Speculated {
    /// Verify steps.
    pub(crate) steps: u32,
    /// Drafts proposed.
    pub(crate) drafted: u32,
    /// Drafts accepted.
    pub(crate) accepted: u32,
    /// Steps by how many drafts they accepted, none first: one entry more than drafts are proposed each step.
    pub(crate) histogram: Vec<u32>,
}

/// One chunk's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) tokens: u32,
    /// Drafts proposed and accepted, where the chunk is a verify step.
    pub(crate) verified: Option<(u32, u32)>,
}

/// Tokens of each chunk.
#[derive(Debug)]
pub(crate) enum Chunks {
    /// So many in each.
    Fixed(u32),
    /// As the verify steps of speculative decoding yield.
    Verify(Box<Verify>),
}

/// Speculative decoding of one request.
#[derive(Debug)]
pub(crate) struct Verify {
    /// Weights of 1, 2, … tokens, summed up and scaled to end at 1.
    cumulative: Vec<f64>,
    random: Random,
    done: Speculated,
    /// The next chunk is the prefill's.
    first: bool,
}

impl Chunks {
    /// The chunks of request number `ordinal` with a prompt of `kind`.
    pub(crate) fn new(options: &Options, ordinal: u64, kind: Option<PromptKind>) -> Self {
        let Some(acceptance) = &options.acceptance else {
            return Self::Fixed(options.tokens_per_chunk);
        };
        let weights = acceptance.weights_for(kind);
        Self::Verify(Box::new(Verify {
            cumulative: cumulative(weights),
            random: Random::new(options.seed ^ 0xacce_97a6, ordinal),
            done: Speculated {
                steps: 0,
                drafted: 0,
                accepted: 0,
                histogram: vec![0; weights.len()],
            },
            first: true,
        }))
    }

    /// The next chunk, of at most `left` tokens.
    pub(crate) fn next(&mut self, left: u32) -> Chunk {
        match self {
            Self::Fixed(tokens) => Chunk {
                tokens: (*tokens).min(left),
                verified: None,
            },
            Self::Verify(verify) => verify.next(left),
        }
    }

    /// What speculation did so far, where there is any.
    pub(crate) fn speculated(&self) -> Option<Speculated> {
        match self {
            Self::Fixed(_) => None,
            Self::Verify(verify) => Some(verify.done.clone()),
        }
    }
}

impl Verify {
    fn next(&mut self, left: u32) -> Chunk {
        if self.first {
            self.first = false;
            return Chunk {
                tokens: left.min(1),
                verified: None,
            };
        }
        let at = self.random.unit();
        let last = self.cumulative.len() - 1;
        let index = self.cumulative.iter().position(|sum| at < *sum).unwrap_or(last);
        let tokens = (index as u32 + 1).min(left);
        let (drafted, accepted) = (last as u32, tokens.saturating_sub(1));
        self.done.steps += 1;
        self.done.drafted += drafted;
        self.done.accepted += accepted;
        if let Some(count) = self.done.histogram.get_mut(accepted as usize) {
            *count += 1;
        }
        Chunk {
            tokens,
            verified: Some((drafted, accepted)),
        }
    }
}

fn cumulative(weights: &[f64]) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    let mut sum = 0.0;
    weights
        .iter()
        .map(|weight| {
            sum += weight / total;
            sum
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::options::Acceptance;

    fn options() -> Options {
        Options {
            ttft: Duration::from_nanos(50_000_003),
            itl: Duration::from_nanos(10_000_001),
            ..Options::default()
        }
    }

    #[test]
    fn no_drift_to_the_nanosecond() {
        let mut schedule = Schedule::new(&options(), 1, 1_000, 0, 0);
        for index in 0..5_000 {
            assert_eq!(schedule.due(), 1_000 + 50_000_003 + index * 10_000_001);
            schedule.next(9);
        }
    }

    #[test]
    fn jitter_stays_around_the_schedule_in_order_and_repeats_with_the_seed() {
        let options = Options {
            jitter: Duration::from_millis(12),
            seed: 5,
            ..options()
        };
        let dues = |ordinal| {
            let mut schedule = Schedule::new(&options, ordinal, 0, 0, 0);
            (0..500)
                .map(|_| {
                    let due = schedule.due();
                    schedule.next(1);
                    due
                })
                .collect::<Vec<_>>()
        };
        let first = dues(1);
        assert_eq!(first, dues(1));
        assert_ne!(first, dues(2));
        for (index, due) in first.iter().enumerate() {
            let place = 50_000_003 + index as i64 * 10_000_001;
            // A chunk that follows a late one may be pushed behind it, by less than twice the jitter.
            assert!((*due as i64 - place).abs() <= 24_000_000);
        }
        assert!(first.is_sorted());
    }

    #[test]
    fn aligned_streams_share_every_step() {
        let options = Options {
            phase: Phase::Aligned,
            jitter: Duration::from_millis(3),
            ..options()
        };
        let mut a = Schedule::new(&options, 1, 123_456_789, 77, 0);
        let mut b = Schedule::new(&options, 2, 119_000_000, 77, 0);
        while a.base < b.base {
            a.next(2);
        }
        while b.base < a.base {
            b.next(2);
        }
        for _ in 0..50 {
            assert_eq!(a.base, b.base);
            assert_eq!((a.base - 77) % 10_000_001, 0);
            a.next(2);
            b.next(2);
            assert_eq!(a.due, b.due);
        }
    }

    #[test]
    fn gaps_grow_with_the_batch() {
        let options = Options {
            itl_growth: 0.5,
            ..options()
        };
        let mut schedule = Schedule::new(&options, 1, 0, 0, 0);
        let first = schedule.due();
        schedule.next(3);
        assert_eq!(schedule.due() - first, 20_000_002);
    }

    #[test]
    fn acceptance_follows_its_weights() {
        let options = Options {
            acceptance: Some(Acceptance {
                weights: vec![1.0, 1.0, 2.0],
                by_kind: [(PromptKind::Code, vec![0.0, 0.0, 1.0])].into(),
            }),
            ..options()
        };
        let mut chunks = Chunks::new(&options, 4, None);
        assert_eq!(chunks.next(u32::MAX).tokens, 1, "the prefill's token");
        let total: u32 = (0..40_000).map(|_| chunks.next(u32::MAX).tokens).sum();
        let done = chunks.speculated().unwrap();
        assert_eq!(total, done.steps + done.accepted);
        assert_eq!(done.drafted, 80_000);
        assert_eq!(done.histogram.iter().sum::<u32>(), 40_000);
        let length = f64::from(total) / 40_000.0;
        // Mean 2.25, standard error 0.0041.
        assert!((length - 2.25).abs() < 0.025, "{length}");
        let mut code = Chunks::new(&options, 4, Some(PromptKind::Code));
        code.next(u32::MAX);
        assert!((0..100).all(|_| code.next(u32::MAX).tokens == 3));
        assert_eq!(code.next(2).tokens, 2);
    }
}
