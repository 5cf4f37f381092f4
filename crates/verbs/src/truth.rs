//! Holds the client's stamps against the practice server's own.

use std::collections::HashMap;

use shakedown_model::{Metrics, Phase, RequestRecord, RequestTruth, ServerTruth, Stamp, Truth};
use shakedown_stats::Sorted;
use shakedown_wire::clock;

/// Compares every chunk of the measured requests with the write that carried it: error = client's stamp − the
/// server's stamp before the write, which no honest client can undercut. `None` where the two clocks differ or
/// nothing can be joined.
pub(crate) fn compare(
    served: &ServerTruth,
    origin: Stamp,
    records: &[RequestRecord],
    pooled: &Metrics,
) -> Option<Truth> {
    if clock::boot_id().is_none_or(|boot| boot != served.boot_id) {
        return None;
    }
    let by_id: HashMap<&str, &RequestTruth> = served
        .requests
        .iter()
        .filter_map(|request| Some((request.id.as_deref()?, request)))
        .collect();
    let mut errors_ms = Vec::new();
    let mut late_ms = Vec::new();
    let mut server_ttft_ms = Vec::new();
    let mut early = 0;
    for record in records
        .iter()
        .filter(|record| record.phase == Phase::Measured && record.outcome.is_success())
    {
        let Some(request) = by_id.get(record.id.as_str()) else {
            continue;
        };
        let writes = token_writes(request);
        let stamps = client_stamps(record, origin);
        // Several events in one write, or one in several, cannot be told apart here; no guess is made.
        if request.writes_dropped > 0 || writes.len() != stamps.len() {
            continue;
        }
        if let Some((_, before)) = writes.first() {
            server_ttft_ms.push(millis(*before, request.read_ns));
        }
        for (stamp, (due, before)) in stamps.iter().zip(&writes) {
            early += u64::from(stamp < before);
            errors_ms.push(millis(*stamp, *before));
            late_ms.push(millis(*before, *due));
        }
    }
    let errors = Sorted::new(errors_ms).ok()?;
    let late = Sorted::new(late_ms).ok()?;
    Some(Truth {
        chunks: errors.count(),
        early,
        p50_ms: errors.quantile(0.5),
        p99_ms: errors.quantile(0.99),
        max_ms: errors.max(),
        ttft_p99_ms: pooled.ttft_ms.as_ref().and_then(|_| client_ttft_p99(records)),
        server_ttft_p99_ms: Sorted::new(server_ttft_ms).ok().map(|ttft| ttft.quantile(0.99)),
        server_late_p99_ms: late.quantile(0.99),
    })
}

/// The writes of a request that carried tokens: when each was due, and the stamp before it, in nanoseconds.
fn token_writes(request: &RequestTruth) -> Vec<(u64, u64)> {
    let writes = &request.writes;
    let stamps = writes.due_ns.iter().zip(&writes.before_ns);
    stamps
        .zip(&writes.tokens)
        .filter(|(_, tokens)| **tokens > 0)
        .map(|((due, before), _)| (*due, *before))
        .collect()
}

/// The client's stamps of a request's chunks, in nanoseconds on the same clock.
fn client_stamps(record: &RequestRecord, origin: Stamp) -> Vec<u64> {
    let Some(mut at_us) = record.stamps.first_token else {
        return Vec::new();
    };
    let absolute = record.gaps_us.iter().map(|gap| {
        at_us += u64::from(*gap);
        origin.nanos() + at_us * 1000
    });
    absolute.collect()
}

/// The client's TTFT p99 in milliseconds, over the same requests whatever their number.
fn client_ttft_p99(records: &[RequestRecord]) -> Option<f64> {
    let ttft = records
        .iter()
        .filter(|record| record.phase == Phase::Measured && record.outcome.is_success())
        .filter_map(|record| {
            Some(record.stamps.first_token?.saturating_sub(record.stamps.sent?) as f64 / 1000.0)
        })
        .collect();
    Sorted::new(ttft).ok().map(|ttft| ttft.quantile(0.99))
}

/// Milliseconds from `from` to `to`, negative when `to` is earlier.
fn millis(to: u64, from: u64) -> f64 {
    (to as f64 - from as f64) / 1e6
}
