//! A run for a spreadsheet.

use shakedown_model::{Distribution, Load, Metrics, RunDocument};

/// One column of [`run_csv`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvColumn {
    /// Its header.
    pub name: String,
    /// What it holds, with its unit.
    pub holds: String,
}

/// One row: a trial, or all of them.
#[derive(Clone, Copy)]
struct Line<'a> {
    document: &'a RunDocument,
    trial: Option<u32>,
    metrics: &'a Metrics,
}

/// The columns of [`run_csv`], in their order. New ones come last.
pub fn csv_columns() -> Vec<CsvColumn> {
    columns().into_iter().map(|(column, _)| column).collect()
}

/// A run as CSV (RFC 4180, header first): one row a trial, and last one for all together. What is unknown is an
/// empty field; figures are in full precision.
pub fn run_csv(document: &RunDocument) -> String {
    let columns = columns();
    let mut out = String::new();
    push_row(&mut out, columns.iter().map(|(column, _)| column.name.clone()));
    let trials = document
        .trials
        .iter()
        .map(|trial| (Some(trial.number), &trial.metrics));
    let pooled = document.pooled.iter().map(|metrics| (None, metrics));
    for (trial, metrics) in trials.chain(pooled) {
        let line = Line {
            document,
            trial,
            metrics,
        };
        push_row(
            &mut out,
            columns.iter().map(|(_, value)| value(&line).unwrap_or_default()),
        );
    }
    out
}

fn push_row(out: &mut String, fields: impl Iterator<Item = String>) {
    let fields: Vec<String> = fields.map(|field| quoted(&field)).collect();
    out.push_str(&fields.join(","));
    out.push_str("\r\n");
}

/// A field, quoted where it must be. What a spreadsheet would take for a formula is made plain text: model names
/// and URLs come from others.
fn quoted(field: &str) -> String {
    let number = field.parse::<f64>().is_ok();
    let formula = !number && field.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let field = if formula {
        format!("'{field}")
    } else {
        field.to_owned()
    };
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field
    }
}

fn number(value: Option<f64>) -> Option<String> {
    value
        .filter(|value| value.is_finite())
        .map(|value| value.to_string())
}

type Value = Box<dyn Fn(&Line<'_>) -> Option<String>>;

fn column(
    name: &str,
    holds: &str,
    value: impl Fn(&Line<'_>) -> Option<String> + 'static,
) -> (CsvColumn, Value) {
    (
        CsvColumn {
            name: name.to_owned(),
            holds: holds.to_owned(),
        },
        Box::new(value),
    )
}

fn columns() -> Vec<(CsvColumn, Value)> {
    let mut columns = of_the_run();
    columns.extend(of_the_requests());
    columns.extend(of_the_samples());
    columns.extend(of_the_server());
    columns
}

fn of_the_run() -> Vec<(CsvColumn, Value)> {
    vec![
        column("run", "id of the run", |line| Some(line.document.id.clone())),
        column(
            "trial",
            "number of the trial, or `pooled` for all together",
            |line| {
                Some(
                    line.trial
                        .map_or_else(|| "pooled".to_owned(), |trial| trial.to_string()),
                )
            },
        ),
        column("started", "start of the run, RFC 3339, UTC", |line| {
            Some(line.document.started.clone())
        }),
        column("url", "address of the server", |line| {
            Some(line.document.server.url.clone())
        }),
        column("engine", "engine, by its name in documents", |line| {
            line.document
                .server
                .engine
                .as_ref()
                .map(|engine| engine.kind.as_str().to_owned())
        }),
        column("engine_version", "its version in its own words", |line| {
            line.document.server.engine.as_ref()?.version.clone()
        }),
        column("model", "model that requests named", |line| {
            line.document.server.model.clone()
        }),
        column("workload", "SHA-256 of the workload", |line| {
            Some(line.document.workload.sha256.clone())
        }),
        column("load", "`closed` or `open` loop", |line| {
            Some(
                if matches!(line.document.load, Load::Closed { .. }) {
                    "closed"
                } else {
                    "open"
                }
                .to_owned(),
            )
        }),
        column("concurrency", "requests in flight at most", |line| {
            line.document.load.concurrency().map(|most| most.to_string())
        }),
        column(
            "rate",
            "requests a second asked for in an open loop",
            |line| match line.document.load {
                Load::Open { rate, .. } => number(Some(rate)),
                Load::Closed { .. } => None,
            },
        ),
    ]
}

fn of_the_requests() -> Vec<(CsvColumn, Value)> {
    vec![
        column("answered", "measured requests that were answered whole", |line| {
            Some(line.metrics.successes().to_string())
        }),
        column("failed", "measured requests that failed", |line| {
            Some(line.metrics.failures().to_string())
        }),
        column("window_s", "length of the window, s", |line| {
            number(line.metrics.window_s)
        }),
        column(
            "output_tok_s",
            "output tokens stamped in the window / its length, tok/s",
            |line| number(line.metrics.output_tok_s.map(|rate| rate.value)),
        ),
        column(
            "output_tok_s_low",
            "its lower bound where it is not exact, tok/s",
            |line| number(line.metrics.output_tok_s.and_then(|rate| rate.low)),
        ),
        column(
            "output_tok_s_high",
            "its upper bound where it is not exact, tok/s",
            |line| number(line.metrics.output_tok_s.and_then(|rate| rate.high)),
        ),
        column(
            "requests_s",
            "requests answered in the window / its length, 1/s",
            |line| number(line.metrics.requests_s),
        ),
    ]
}

/// Chooses one sample of the metrics.
type Sample = fn(&Metrics) -> Option<&Distribution>;

fn of_the_samples() -> Vec<(CsvColumn, Value)> {
    let samples: [(&str, &str, &str, Sample); 10] = [
        ("ttft_ms", "TTFT", "ms", |metrics| metrics.ttft_ms.as_ref()),
        ("ttfo_ms", "TTFO, where it differs from TTFT", "ms", |metrics| {
            metrics.ttfo_ms.as_ref()
        }),
        ("itl_ms", "ITL", "ms", |metrics| metrics.itl_ms.as_ref()),
        ("icl_ms", "ICL", "ms", |metrics| metrics.icl_ms.as_ref()),
        ("tpot_ms", "TPOT", "ms", |metrics| metrics.tpot_ms.as_ref()),
        ("e2e_ms", "E2E", "ms", |metrics| metrics.e2e_ms.as_ref()),
        ("request_tok_s", "request tok/s", "tok/s", |metrics| {
            metrics.request_tok_s.as_ref()
        }),
        ("decode_tok_s", "decode tok/s", "tok/s", |metrics| {
            metrics.decode_tok_s.as_ref()
        }),
        (
            "output_tokens",
            "output tokens of an answered request",
            "tokens",
            |metrics| metrics.output_tokens.as_ref(),
        ),
        (
            "input_tokens",
            "prompt tokens of a request",
            "tokens",
            |metrics| metrics.input_tokens.as_ref(),
        ),
    ];
    let mut columns = Vec::new();
    for (name, what, unit, sample) in samples {
        columns.push(column(
            &format!("{name}_n"),
            &format!("{what}: sample size"),
            move |line| sample(line.metrics).map(|sample| sample.count.to_string()),
        ));
        columns.push(column(
            &format!("{name}_mean"),
            &format!("{what}: mean, {unit}"),
            move |line| number(sample(line.metrics).map(|sample| sample.mean)),
        ));
        for p in [50.0, 90.0, 95.0, 99.0] {
            let holds = format!("{what}: percentile {p}, {unit}; empty where the sample is too small");
            columns.push(column(&format!("{name}_p{p}"), &holds, move |line| {
                number(
                    sample(line.metrics)?
                        .percentile(p)
                        .map(|percentile| percentile.value),
                )
            }));
        }
    }
    columns
}

fn of_the_server() -> Vec<(CsvColumn, Value)> {
    vec![
        column(
            "acceptance_length",
            "tokens per verify step, bonus included, all prompts",
            |line| {
                number(
                    line.metrics
                        .acceptance
                        .iter()
                        .find(|entry| entry.kind.is_none())?
                        .length,
                )
            },
        ),
        column(
            "acceptance_rate",
            "drafted tokens accepted, 0 to 1, all prompts",
            |line| {
                number(
                    line.metrics
                        .acceptance
                        .iter()
                        .find(|entry| entry.kind.is_none())?
                        .rate,
                )
            },
        ),
        column(
            "cached_tokens",
            "prompt tokens from the prefix cache, by the server's count",
            |line| line.metrics.cache_hits.map(|hits| hits.cached_tokens.to_string()),
        ),
        column(
            "cache_input_tokens",
            "prompt tokens of the requests that told of the cache",
            |line| line.metrics.cache_hits.map(|hits| hits.input_tokens.to_string()),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_survive_a_spreadsheet() {
        for (field, text) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("=1+1", "'=1+1"),
            ("-x", "'-x"),
            ("-1.5", "-1.5"),
        ] {
            assert_eq!(quoted(field), text);
        }
    }
}
