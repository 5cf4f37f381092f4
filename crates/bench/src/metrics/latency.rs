//! Times and per-request rates over the answered requests of the sample.

use shakedown_model::{Load, Metrics, RequestRecord, Stamps};

use super::{between_ms, collect, distribution, weighted_distribution};

pub(super) fn fill(metrics: &mut Metrics, answered: &[&RequestRecord], load: Load) {
    let open = matches!(load, Load::Open { .. });
    // In an open loop latency counts from the time at which the request should have left, whatever kept it.
    let begin = |stamps: &Stamps| if open { Some(stamps.scheduled) } else { stamps.sent };
    let times =
        |get: &dyn Fn(&Stamps) -> Option<f64>| distribution(&collect(answered, |record| get(&record.stamps)));
    metrics.ttft_ms = times(&|stamps| between_ms(begin(stamps), stamps.first_token));
    metrics.e2e_ms = times(&|stamps| between_ms(begin(stamps), last_token(stamps)));
    if open {
        metrics.service_ttft_ms = times(&|stamps| between_ms(stamps.sent, stamps.first_token));
        metrics.service_e2e_ms = times(&|stamps| between_ms(stamps.sent, last_token(stamps)));
    }
    if answered
        .iter()
        .any(|record| record.stamps.first_output != record.stamps.first_token)
    {
        metrics.ttfo_ms = times(&|stamps| between_ms(begin(stamps), stamps.first_output));
    }
    metrics.tail_ms = times(&|stamps| between_ms(stamps.last_token, Some(stamps.end)));
    metrics.connect_ms = times(&|stamps| between_ms(stamps.connect_start, stamps.connected));
    metrics.send_lag_ms = times(&|stamps| between_ms(Some(stamps.scheduled), stamps.sent));
    metrics.tpot_ms = distribution(&collect(answered, |record| {
        let (gaps, span_ms) = decode_span(record)?;
        Some(span_ms / gaps)
    }));
    metrics.decode_tok_s = distribution(&collect(answered, decode_tok_s));
    metrics.request_tok_s = distribution(&collect(answered, |record| {
        let e2e_ms = between_ms(record.stamps.sent, last_token(&record.stamps)).filter(|e2e| *e2e > 0.0)?;
        Some(record.tokens.output? as f64 / e2e_ms * 1000.0)
    }));
    metrics.server_decode_tok_s = distribution(&collect(answered, |record| record.server_decode_tok_s));
    let (icl, itl) = gaps(answered);
    metrics.icl_ms = distribution(&icl);
    metrics.itl_ms = weighted_distribution(&itl);
}

/// The last token's stamp; for an answer that was not streamed, its end.
pub(super) fn last_token(stamps: &Stamps) -> Option<u64> {
    stamps
        .last_token
        .or_else(|| (stamps.first_token.is_none() && stamps.finish.is_some()).then_some(stamps.end))
}

/// Gaps between tokens (tokens − 1) and the milliseconds that they took together.
fn decode_span(record: &RequestRecord) -> Option<(f64, f64)> {
    let tokens = record.tokens.output.filter(|tokens| *tokens > 1)?;
    let span = between_ms(record.stamps.first_token, record.stamps.last_token).filter(|span| *span > 0.0)?;
    Some(((tokens - 1) as f64, span))
}

/// (tokens − 1) / (last token − first token) of one request, tokens a second.
pub(crate) fn decode_tok_s(record: &RequestRecord) -> Option<f64> {
    let (gaps, span_ms) = decode_span(record)?;
    Some(gaps / span_ms * 1000.0)
}

/// All chunk gaps (ICL), and token gaps with their counts (ITL), in milliseconds.
///
/// Chunks of one read arrived together as far as we can tell: they are one chunk here, for a gap of 0 between
/// them was not observed. A chunk of k tokens is k gaps of 1/k of the gap before it. Chunks that carry no token
/// of their own pass their gap on.
fn gaps(answered: &[&RequestRecord]) -> (Vec<f64>, Vec<(f64, u64)>) {
    let mut icl = Vec::new();
    let mut itl = Vec::new();
    for record in answered {
        let mut tokens = record.chunk_tokens.as_ref().map(|runs| {
            runs.iter()
                .flat_map(|[tokens, chunks]| std::iter::repeat_n(u64::from(*tokens), *chunks as usize))
        });
        let mut carried_us = 0;
        let mut chunks = record.gaps_us.iter().enumerate().peekable();
        while let Some((index, gap)) = chunks.next() {
            let mut count = tokens.as_mut().map_or(0, |tokens| tokens.next().unwrap_or(0));
            while chunks.next_if(|(_, gap)| **gap == 0).is_some() {
                count += tokens.as_mut().map_or(0, |tokens| tokens.next().unwrap_or(0));
            }
            if index == 0 {
                continue;
            }
            icl.push(f64::from(*gap) / 1000.0);
            if tokens.is_some() {
                carried_us += u64::from(*gap);
                if count > 0 {
                    itl.push((carried_us as f64 / count as f64 / 1000.0, count));
                    carried_us = 0;
                }
            }
        }
    }
    (icl, itl)
}
