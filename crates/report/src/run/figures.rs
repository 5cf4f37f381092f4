//! The tables of a run: latencies and rates.

use shakedown_model::{Distribution, Load, Metrics, Rate, RunDocument};

use crate::number::{duration, figure, range, row};
use crate::table::{Row, Table};

/// The percentiles that are shown.
const SHOWN: [f64; 4] = [50.0, 90.0, 95.0, 99.0];

/// Stands where a sample is too small for a percentile.
const ABSENT: &str = "–";

/// One line of the table of latencies.
struct Line<'a> {
    label: &'static str,
    /// What its sample consists of.
    unit: &'static str,
    sample: Option<&'a Distribution>,
    /// What is said where there is no sample.
    why_not: &'static str,
}

/// The latencies of a run with their percentiles.
pub(super) fn latencies(document: &RunDocument, metrics: &Metrics) -> Table {
    let lines = lines(document, metrics);
    let rows = lines
        .iter()
        .map(|line| match line.sample {
            Some(sample) => Row {
                label: line.label.to_owned(),
                cells: percentiles(sample),
                note: String::new(),
            },
            None => Row {
                label: line.label.to_owned(),
                cells: Vec::new(),
                note: line.why_not.to_owned(),
            },
        })
        .collect();
    let mut notes = too_few(&lines);
    if matches!(document.load, Load::Open { .. }) {
        notes.push("TTFT and E2E count from the scheduled arrival".to_owned());
    }
    Table {
        title: "Times, ms".to_owned(),
        headers: ["p50", "p90", "p95", "p99", "p50 95% CI", "n"]
            .map(str::to_owned)
            .to_vec(),
        rows,
        notes,
    }
    .without_empty_columns()
}

fn lines<'a>(document: &RunDocument, metrics: &'a Metrics) -> Vec<Line<'a>> {
    const NO_TOKEN: &str = "unknown: no request brought a token";
    let line = |label, unit, sample: &'a Option<Distribution>, why_not| Line {
        label,
        unit,
        sample: sample.as_ref(),
        why_not,
    };
    let as_ttft = if metrics.ttft_ms.is_some() {
        "as TTFT: no answer began with reasoning"
    } else {
        NO_TOKEN
    };
    let open = matches!(document.load, Load::Open { .. });
    let mut lines = vec![
        line("TTFT", "requests", &metrics.ttft_ms, NO_TOKEN),
        line("TTFO", "requests", &metrics.ttfo_ms, as_ttft),
        line(
            "ITL",
            "gaps",
            &metrics.itl_ms,
            "unknown: tokens per chunk are not known",
        ),
        line(
            "ICL",
            "gaps",
            &metrics.icl_ms,
            "unknown: no gap between two chunks was seen",
        ),
        line(
            "TPOT",
            "requests",
            &metrics.tpot_ms,
            "unknown: no answer of two tokens whose count is known",
        ),
        line("E2E", "requests", &metrics.e2e_ms, NO_TOKEN),
    ];
    // An open loop counts from the scheduled time; what the server alone took stands below.
    if open && metrics.service_ttft_ms.is_some() {
        lines.push(line(
            "TTFT, from sent",
            "requests",
            &metrics.service_ttft_ms,
            NO_TOKEN,
        ));
    }
    if open && metrics.service_e2e_ms.is_some() {
        lines.push(line(
            "E2E, from sent",
            "requests",
            &metrics.service_e2e_ms,
            NO_TOKEN,
        ));
    }
    if metrics.connect_ms.is_some() {
        lines.push(line("connect", "connects", &metrics.connect_ms, NO_TOKEN));
    }
    lines
}

/// The figures of one sample.
fn percentiles(sample: &Distribution) -> Vec<String> {
    let median = sample.median().unwrap_or(sample.mean);
    let percentile = |p| match sample.percentile(p) {
        Some(at) => row(median, &[at.value]).concat(),
        None => ABSENT.to_owned(),
    };
    let interval = sample
        .percentile(50.0)
        .and_then(|at| Some(range(median, at.low?, at.high?)))
        .unwrap_or_default();
    SHOWN
        .into_iter()
        .map(percentile)
        .chain([interval, sample.count.to_string()])
        .collect()
}

/// Observations that a percentile needs: one is then expected beyond it.
fn needed(p: f64) -> u64 {
    (100.0 / p.min(100.0 - p) - 1e-9).ceil() as u64
}

/// Why percentiles are absent: a sentence for each kind of sample that is too small for one.
fn too_few(lines: &[Line<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    for unit in ["requests", "gaps", "connects"] {
        let samples = || {
            lines
                .iter()
                .filter(|line| line.unit == unit)
                .filter_map(|line| line.sample)
        };
        let lacks = |sample: &Distribution, p| sample.percentile(p).is_none() && sample.count < needed(p);
        let absent: Vec<f64> = SHOWN
            .into_iter()
            .filter(|&p| samples().any(|sample| lacks(sample, p)))
            .collect();
        let needs: Vec<String> = absent
            .iter()
            .enumerate()
            .map(|(place, &p)| match place {
                0 => format!("p{p} needs {} {unit}", needed(p)),
                _ => format!("p{p} {}", needed(p)),
            })
            .collect();
        let most = samples()
            .filter(|sample| SHOWN.into_iter().any(|p| lacks(sample, p)))
            .map(|sample| sample.count)
            .max();
        if let Some(most) = most {
            notes.push(format!("{ABSENT} {}; there are {most}", needs.join(", ")));
        }
    }
    notes
}

/// The rates of single requests.
pub(super) fn rates(metrics: &Metrics) -> Table {
    let line = |label: &str, sample: &Option<Distribution>, why_not: &str| match sample {
        Some(sample) => {
            let median = sample.median().unwrap_or(sample.mean);
            let mut cells = row(median, &[median, sample.mean, sample.min, sample.max]);
            cells.push(sample.count.to_string());
            Row {
                label: label.to_owned(),
                cells,
                note: String::new(),
            }
        }
        None => Row {
            label: label.to_owned(),
            cells: Vec::new(),
            note: why_not.to_owned(),
        },
    };
    let unknown = "unknown: tokens are not counted";
    let mut rows = vec![
        line("request", &metrics.request_tok_s, unknown),
        line(
            "decode",
            &metrics.decode_tok_s,
            "unknown: no answer of two tokens whose count is known",
        ),
    ];
    if metrics.server_decode_tok_s.is_some() {
        rows.push(line(
            "decode, says the server",
            &metrics.server_decode_tok_s,
            unknown,
        ));
    }
    Table {
        title: "Rate of a request, tok/s".to_owned(),
        headers: ["p50", "mean", "min", "max", "n"].map(str::to_owned).to_vec(),
        rows,
        notes: Vec::new(),
    }
}

/// The primary metric in words.
pub(super) fn output(document: &RunDocument, metrics: &Metrics) -> String {
    let Some(rate) = &metrics.output_tok_s else {
        return if metrics.window_s.is_none() && document.load.concurrency() == Some(1) {
            "one stream: its rate is that of a request".to_owned()
        } else {
            "unknown: tokens are not counted".to_owned()
        };
    };
    let window = metrics
        .window_s
        .map(|window| format!(", stamped within {}", duration(window)))
        .unwrap_or_default();
    format!("{}{window}", bounded(rate))
}

/// A rate with its bounds.
pub(super) fn bounded(rate: &Rate) -> String {
    match (rate.low, rate.high) {
        (Some(low), Some(high)) => {
            format!(
                "{} tok/s (between {} and {})",
                figure(rate.value),
                figure(low),
                figure(high)
            )
        }
        (Some(low), None) => format!("at least {} tok/s (some counts are unknown)", figure(low)),
        (None, Some(high)) => format!("at most {} tok/s (some counts are unknown)", figure(high)),
        (None, None) => format!("{} tok/s", figure(rate.value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_one_value_beyond_it() {
        assert_eq!(SHOWN.map(needed), [2, 10, 20, 100]);
        assert_eq!(needed(99.9), 1000);
    }

    #[test]
    fn rates_say_how_sure_they_are() {
        let rate = |low, high| {
            bounded(&Rate {
                value: 83.94,
                low,
                high,
            })
        };
        assert_eq!(rate(None, None), "83.9 tok/s");
        assert_eq!(rate(Some(80.0), Some(87.9)), "83.9 tok/s (between 80.0 and 87.9)");
        assert_eq!(
            rate(Some(83.94), None),
            "at least 83.9 tok/s (some counts are unknown)"
        );
    }
}
