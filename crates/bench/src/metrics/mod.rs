//! Figures from records: pure, so that a bundle gives the same figures again.

mod acceptance;
mod latency;
mod throughput;

use std::collections::BTreeMap;

use shakedown_model::{
    CacheHits, ChunkSizes, Distribution, Load, Metrics, OutcomeCount, Percentile, Phase, RequestOutcome,
    RequestRecord, TokenSource,
};
use shakedown_stats::{Sorted, Summary};

/// The percentiles that are reported, where the sample is large enough for them.
pub const PERCENTILES: [f64; 4] = [50.0, 90.0, 95.0, 99.0];

/// The window of a trial in microseconds since the run's origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its start.
    pub start_us: u64,
    /// Its end.
    pub end_us: u64,
}

impl Window {
    fn contains(&self, at_us: u64) -> bool {
        (self.start_us..=self.end_us).contains(&at_us)
    }

    fn seconds(&self) -> f64 {
        self.end_us.saturating_sub(self.start_us) as f64 / 1e6
    }
}

/// The figures of the trials whose windows are given, together.
pub fn of(records: &[RequestRecord], windows: &[(u32, Window)], load: Load) -> Metrics {
    let in_trials = |record: &&RequestRecord| windows.iter().any(|(trial, _)| *trial == record.trial);
    let measured: Vec<&RequestRecord> = records
        .iter()
        .filter(in_trials)
        .filter(|record| record.phase == Phase::Measured)
        .collect();
    let answered: Vec<&RequestRecord> = measured
        .iter()
        .copied()
        .filter(|record| record.outcome.is_success())
        .collect();
    let mut metrics = Metrics {
        outcomes: outcomes(&measured),
        output_tokens: distribution(&collect(&answered, |record| {
            record.tokens.output.map(|count| count as f64)
        })),
        input_tokens: distribution(&collect(&measured, |record| {
            record.tokens.input.map(|count| count as f64)
        })),
        token_sources: token_sources(&answered),
        chunk_sizes: chunk_sizes(&answered),
        cache_hits: cache_hits(&measured),
        acceptance: acceptance::of(&answered),
        ..Metrics::default()
    };
    latency::fill(&mut metrics, &answered, load);
    throughput::fill(&mut metrics, records, &answered, windows, load);
    metrics
}

/// Summarises a sample; `None` for an empty one.
pub(crate) fn distribution(sample: &[f64]) -> Option<Distribution> {
    shakedown_stats::summarise(sample, &PERCENTILES).map(into_distribution)
}

/// Summarises a sample given as values with counts.
fn weighted_distribution(sample: &[(f64, u64)]) -> Option<Distribution> {
    let sorted = Sorted::weighted(sample.to_vec()).ok()?;
    Some(into_distribution(Summary::of(&sorted, &PERCENTILES)))
}

fn into_distribution(summary: Summary) -> Distribution {
    Distribution {
        count: summary.count,
        mean: summary.mean,
        sd: summary.sd,
        min: summary.min,
        max: summary.max,
        percentiles: summary
            .percentiles
            .into_iter()
            .map(|percentile| Percentile {
                p: percentile.p,
                value: percentile.value,
                low: percentile.low,
                high: percentile.high,
            })
            .collect(),
    }
}

fn collect(records: &[&RequestRecord], get: impl Fn(&RequestRecord) -> Option<f64>) -> Vec<f64> {
    records.iter().filter_map(|record| get(record)).collect()
}

/// Milliseconds between two stamps in microseconds, where both are there.
fn between_ms(from: Option<u64>, to: Option<u64>) -> Option<f64> {
    Some(to?.saturating_sub(from?) as f64 / 1000.0)
}

fn outcomes(measured: &[&RequestRecord]) -> Vec<OutcomeCount> {
    let mut counts: BTreeMap<RequestOutcome, u64> = BTreeMap::new();
    for record in measured {
        *counts.entry(record.outcome).or_default() += 1;
    }
    let mut counts: Vec<OutcomeCount> = counts
        .into_iter()
        .map(|(outcome, count)| OutcomeCount { outcome, count })
        .collect();
    counts.sort_by(|a, b| b.count.cmp(&a.count).then(a.outcome.cmp(&b.outcome)));
    counts
}

fn token_sources(answered: &[&RequestRecord]) -> Vec<(TokenSource, u64)> {
    let mut counts: BTreeMap<TokenSource, u64> = BTreeMap::new();
    for record in answered {
        *counts.entry(record.tokens.source).or_default() += 1;
    }
    counts.into_iter().collect()
}

fn chunk_sizes(answered: &[&RequestRecord]) -> Option<ChunkSizes> {
    let mut histogram: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut chunks, mut known) = (0, 0);
    for record in answered {
        chunks += record.gaps_us.len() as u64;
        for [tokens, count] in record.chunk_tokens.iter().flatten() {
            *histogram.entry(u64::from(*tokens)).or_default() += u64::from(*count);
            known += u64::from(*count);
        }
    }
    (chunks > 0).then(|| ChunkSizes {
        known: known as f64 / chunks as f64,
        histogram: histogram
            .into_iter()
            .map(|(tokens, count)| [tokens, count])
            .collect(),
    })
}

fn cache_hits(measured: &[&RequestRecord]) -> Option<CacheHits> {
    let reported: Vec<_> = measured
        .iter()
        .filter_map(|record| record.tokens.cached.zip(record.tokens.input))
        .collect();
    (!reported.is_empty()).then(|| CacheHits {
        cached_tokens: reported.iter().map(|(cached, _)| cached).sum(),
        input_tokens: reported.iter().map(|(_, input)| input).sum(),
        requests: reported.len() as u64,
    })
}
