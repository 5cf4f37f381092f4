//! How the trials of both sides are arranged: by launch, or in interleaved blocks.

use std::collections::BTreeMap;

use shakedown_model::{Basis, Trial};

use crate::launches::{Launch, TimedTrial};

/// The trials of both sides, arranged as they are compared.
#[derive(Debug)]
pub(crate) struct Units<'a> {
    pub(crate) basis: Basis,
    /// Trials of A by launch, in order of time.
    pub(crate) a: Vec<Vec<&'a Trial>>,
    /// Trials of B by launch.
    pub(crate) b: Vec<Vec<&'a Trial>>,
    /// Interleaved blocks, in order of time; empty where the basis has none.
    pub(crate) blocks: Vec<Block<'a>>,
}

/// One interleaved block.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    /// Places of the launches of A and B in [`Units`].
    pub(crate) pair: (usize, usize),
    pub(crate) a: Vec<&'a Trial>,
    pub(crate) b: Vec<&'a Trial>,
}

impl Units<'_> {
    /// Units on each side.
    pub(crate) fn counts(&self) -> (u32, u32) {
        let trials = |launches: &[Vec<&Trial>]| launches.iter().map(Vec::len).sum::<usize>() as u32;
        match self.basis {
            Basis::Launches | Basis::TwoLaunches => (self.a.len() as u32, self.b.len() as u32),
            Basis::SameLaunch => (trials(&self.a), trials(&self.b)),
            Basis::Blocks | Basis::SameLaunchBlocks => (self.blocks.len() as u32, self.blocks.len() as u32),
            Basis::FreshBlocks => {
                let pairs = self.pairs().len() as u32;
                (pairs, pairs)
            }
        }
    }

    /// The blocks by pair of launches.
    pub(crate) fn pairs(&self) -> BTreeMap<(usize, usize), Vec<&Block<'_>>> {
        let mut pairs: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for block in &self.blocks {
            pairs.entry(block.pair).or_default().push(block);
        }
        pairs
    }
}

/// Arranges the launches of both sides.
pub(crate) fn arrange<'a>(a: &[Launch<'a>], b: &[Launch<'a>]) -> Units<'a> {
    let same = a.len() == 1 && b.len() == 1 && a[0].key.same(&b[0].key) && !a[0].key.is_unknown();
    let blocks = blocks(a, b);
    let pairs: std::collections::BTreeSet<(usize, usize)> = blocks.iter().map(|block| block.pair).collect();
    let each_once = |side: fn(&(usize, usize)) -> usize, launches: usize| {
        let places: std::collections::BTreeSet<usize> = pairs.iter().map(side).collect();
        places.len() == pairs.len() && places.len() == launches
    };
    let basis = if blocks.len() >= 2 && a.len() == 1 && b.len() == 1 {
        if same {
            Basis::SameLaunchBlocks
        } else {
            Basis::Blocks
        }
    } else if pairs.len() >= 2 && each_once(|pair| pair.0, a.len()) && each_once(|pair| pair.1, b.len()) {
        Basis::FreshBlocks
    } else if same {
        Basis::SameLaunch
    } else if a.len() == 1 && b.len() == 1 {
        Basis::TwoLaunches
    } else {
        Basis::Launches
    };
    let interleaved = matches!(
        basis,
        Basis::Blocks | Basis::SameLaunchBlocks | Basis::FreshBlocks
    );
    let trials = |launches: &[Launch<'a>]| {
        launches
            .iter()
            .map(|launch| launch.trials.iter().map(|timed| timed.trial).collect())
            .collect()
    };
    Units {
        basis,
        a: trials(a),
        b: trials(b),
        blocks: if interleaved { blocks } else { Vec::new() },
    }
}

#[derive(Clone, Copy)]
struct Placed<'a> {
    timed: TimedTrial<'a>,
    is_b: bool,
    launch: usize,
}

/// The interleaved blocks of both sides: by the blocks that the runs carry, else by the order of time. None unless the
/// whole of both sides is interleaved.
fn blocks<'a>(a: &[Launch<'a>], b: &[Launch<'a>]) -> Vec<Block<'a>> {
    let placed = |launches: &[Launch<'a>], is_b| {
        launches
            .iter()
            .enumerate()
            .flat_map(|(launch, of)| of.trials.iter().map(move |&timed| Placed { timed, is_b, launch }))
            .collect::<Vec<_>>()
    };
    let mut all = placed(a, false);
    all.extend(placed(b, true));
    all.sort_by_key(|trial| trial.timed.at_us);
    let parts: Vec<&[Placed<'a>]> = if all.iter().all(|trial| trial.timed.block.is_some()) {
        // A block is a stretch of time: its number changes once, and never comes back.
        let parts: Vec<_> = all
            .chunk_by(|one, next| one.timed.block == next.timed.block)
            .collect();
        let numbers: std::collections::BTreeSet<_> = parts.iter().map(|part| part[0].timed.block).collect();
        if numbers.len() == parts.len() {
            parts
        } else {
            Vec::new()
        }
    } else {
        // Without numbers: whole groups of four, each A B B A or B A A B.
        let parts: Vec<_> = all.chunks(4).collect();
        let mirrored = |part: &&[Placed<'a>]| {
            part.len() == 4
                && part[0].is_b == part[3].is_b
                && part[1].is_b == part[2].is_b
                && part[0].is_b != part[1].is_b
        };
        // An interrupted last block is left out; anything else is no interleaving.
        let whole = parts.iter().filter(|part| mirrored(part)).count();
        let broken = parts.len() - whole;
        if broken == 0 || (broken == 1 && parts.last().is_some_and(|part| part.len() < 4)) {
            parts.into_iter().filter(mirrored).collect()
        } else {
            Vec::new()
        }
    };
    let blocks: Vec<Block<'a>> = parts.into_iter().filter_map(block).collect();
    if blocks.len() < 2 { Vec::new() } else { blocks }
}

/// A block of one launch a side with trials of both.
fn block<'a>(part: &[Placed<'a>]) -> Option<Block<'a>> {
    let side = |is_b| -> Option<(usize, Vec<&'a Trial>)> {
        let mut of = part.iter().filter(|trial| trial.is_b == is_b);
        let first = of.clone().next()?;
        of.all(|trial| trial.launch == first.launch).then(|| {
            let trials = part
                .iter()
                .filter(|trial| trial.is_b == is_b)
                .map(|trial| trial.timed.trial);
            (first.launch, trials.collect())
        })
    };
    let ((launch_a, a), (launch_b, b)) = (side(false)?, side(true)?);
    Some(Block {
        pair: (launch_a, launch_b),
        a,
        b,
    })
}
