//! Tokens a second: one window for numerator and denominator, tokens placed by their stamps.

use shakedown_model::{Load, Metrics, Phase, Rate, RequestRecord};

use super::latency::last_token;
use super::{Window, between_ms};

/// Output tokens of one request in a window: at least `low`, at most `high` where a bound is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bounds {
    low: u64,
    high: Option<u64>,
}

impl Bounds {
    const fn exact(count: u64) -> Self {
        Self {
            low: count,
            high: Some(count),
        }
    }
}

pub(super) fn fill(
    metrics: &mut Metrics,
    records: &[RequestRecord],
    answered: &[&RequestRecord],
    windows: &[(u32, Window)],
    load: Load,
) {
    if load == (Load::Closed { concurrency: 1 }) {
        one_stream(metrics, answered);
        return;
    }
    let seconds: f64 = windows.iter().map(|(_, window)| window.seconds()).sum();
    if seconds <= 0.0 {
        return;
    }
    metrics.window_s = Some(seconds);
    let mut sum = Bounds::exact(0);
    let mut ended = 0u64;
    for (trial, window) in windows {
        for record in records
            .iter()
            .filter(|record| record.trial == *trial && record.phase != Phase::Warmup)
        {
            let bounds = tokens_in(record, window);
            sum.low += bounds.low;
            sum.high = sum.high.zip(bounds.high).map(|(sum, high)| sum + high);
            ended += u64::from(
                record.phase == Phase::Measured
                    && record.outcome.is_success()
                    && window.contains(record.stamps.end),
            );
        }
    }
    metrics.requests_s = Some(ended as f64 / seconds);
    let low = sum.low as f64 / seconds;
    metrics.output_tok_s = match sum.high.map(|high| high as f64 / seconds) {
        // No token was counted and none can be ruled out: there is no rate to tell.
        None if sum.low == 0 => None,
        Some(high) if sum.high == Some(sum.low) => Some(Rate::exact(high)),
        Some(high) => Some(Rate {
            value: f64::midpoint(low, high),
            low: Some(low),
            high: Some(high),
        }),
        None => Some(Rate {
            value: low,
            low: Some(low),
            high: None,
        }),
    };
}

/// One stream has no overlap to place in a window: its rate is tokens over the time that requests took.
fn one_stream(metrics: &mut Metrics, answered: &[&RequestRecord]) {
    let (mut tokens, mut took_ms, mut unknown) = (0u64, 0.0, false);
    for record in answered {
        match (
            record.tokens.output,
            between_ms(record.stamps.sent, last_token(&record.stamps)),
        ) {
            (Some(output), Some(e2e_ms)) => {
                tokens += output;
                took_ms += e2e_ms;
            }
            _ => unknown = true,
        }
    }
    // Requests of unknown length would have to be left out of both sides, and they need not be like the others.
    if took_ms > 0.0 && !unknown {
        metrics.output_tok_s = Some(Rate::exact(tokens as f64 / took_ms * 1000.0));
    }
    let span_us: u64 = answered
        .iter()
        .map(|record| record.stamps.end.saturating_sub(record.stamps.scheduled))
        .sum();
    if span_us > 0 {
        metrics.requests_s = Some(answered.len() as f64 / (span_us as f64 / 1e6));
    }
}

fn tokens_in(record: &RequestRecord, window: &Window) -> Bounds {
    let Some(first) = record.stamps.first_token else {
        return unplaced(record, window);
    };
    let mut at = first;
    let inside = record.gaps_us.iter().map(|gap| {
        at += u64::from(*gap);
        window.contains(at)
    });
    if let Some(runs) = &record.chunk_tokens {
        let tokens = runs
            .iter()
            .flat_map(|[tokens, chunks]| std::iter::repeat_n(*tokens, *chunks as usize));
        return Bounds::exact(
            inside
                .zip(tokens)
                .map(|(inside, tokens)| if inside { u64::from(tokens) } else { 0 })
                .sum(),
        );
    }
    // Each chunk holds at least one token.
    let inside = inside.filter(|inside| *inside).count() as u64;
    let outside = record.gaps_us.len() as u64 - inside;
    match record.tokens.output {
        Some(total) if outside == 0 => Bounds::exact(total),
        Some(_) if inside == 0 => Bounds::exact(0),
        Some(total) => Bounds {
            low: inside,
            high: Some(total.saturating_sub(outside).max(inside)),
        },
        None => Bounds {
            low: inside,
            high: (inside == 0).then_some(0),
        },
    }
}

/// Tokens without stamps of their own: an answer that was not streamed, or none at all.
fn unplaced(record: &RequestRecord, window: &Window) -> Bounds {
    let began = record.stamps.sent.unwrap_or(record.stamps.scheduled);
    match record.tokens.output {
        None if record.outcome.is_success() => Bounds { low: 0, high: None },
        None | Some(0) => Bounds::exact(0),
        Some(total) if window.contains(began) && window.contains(record.stamps.end) => Bounds::exact(total),
        Some(total) => Bounds {
            low: 0,
            high: Some(total),
        },
    }
}
