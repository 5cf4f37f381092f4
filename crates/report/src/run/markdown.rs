//! A run for a page: the same figures and sentences, and every trial.

use shakedown_model::{Finding, RunDocument};

use super::{facts, figures, subject};
use crate::number::figure;
use crate::table::{Row, Table, push_line};
use crate::text::clean;
use crate::words;

/// A run in Markdown. `bundle_path` is where its bundle lies.
pub fn run_markdown(document: &RunDocument, bundle_path: Option<&str>) -> String {
    let mut out = String::new();
    push_line(
        &mut out,
        &format!("## {}\n", escape(&subject::server(&document.server))),
    );
    push_line(&mut out, &format!("{}\n", escape(&subject::sent(document))));
    let (word, rest, _) = subject::standing(document);
    push_line(&mut out, &format!("**{word}**: {rest}\n"));
    for finding in subject::findings(document) {
        push_finding(&mut out, finding);
    }
    if let Some(reason) = subject::without_figures(document) {
        push_line(&mut out, &format!("{reason}\n"));
    }
    if let Some(metrics) = &document.pooled {
        for table in [figures::latencies(document, metrics), figures::rates(metrics)] {
            push_line(&mut out, &escaped(table).markdown());
        }
    }
    for fact in facts::facts(document, bundle_path) {
        let lines: Vec<String> = fact.lines.iter().map(|line| escape(line)).collect();
        push_line(&mut out, &format!("- **{}**: {}", fact.label, lines.join("; ")));
    }
    if document.trials.len() > 1 {
        push_line(&mut out, "");
        out.push_str(&trials(document).markdown());
    }
    out
}

/// One row a trial.
fn trials(document: &RunDocument) -> Table {
    let rows = document.trials.iter().map(|trial| {
        let metrics = &trial.metrics;
        let median = |sample: &Option<shakedown_model::Distribution>| {
            let median = sample.as_ref().and_then(shakedown_model::Distribution::median);
            median.map_or_else(|| "unknown".to_owned(), figure)
        };
        let output = match &metrics.output_tok_s {
            Some(rate) => figures::bounded(rate),
            // One stream has none.
            None if metrics.window_s.is_none() => String::new(),
            None => "unknown".to_owned(),
        };
        Row {
            label: trial.number.to_string(),
            cells: vec![
                output,
                median(&metrics.request_tok_s),
                median(&metrics.decode_tok_s),
                median(&metrics.ttft_ms),
                median(&metrics.tpot_ms),
                metrics.successes().to_string(),
                metrics.failures().to_string(),
            ],
            note: String::new(),
        }
    });
    let headers = [
        "output",
        "request tok/s p50",
        "decode tok/s p50",
        "TTFT ms p50",
        "TPOT ms p50",
        "answered",
        "failed",
    ];
    Table {
        title: "Trial".to_owned(),
        headers: headers.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        notes: Vec::new(),
    }
    .without_empty_columns()
}

fn push_finding(out: &mut String, finding: &Finding) {
    let (word, _) = words::verdict(finding.verdict);
    let what = format!(
        "{}{}",
        words::confidence(finding.confidence),
        clean(&finding.what)
    );
    push_line(
        out,
        &format!("- **{word}** {}: {}", code(&finding.code), escape(&what)),
    );
    if !finding.why.is_empty() {
        push_line(out, &format!("  - why: {}", escape(&clean(&finding.why))));
    }
    for fix in &finding.fixes {
        let command = fix
            .command
            .as_ref()
            .map(|command| format!(": {}", code(command)))
            .unwrap_or_default();
        let text = escape(&clean(&fix.text));
        push_line(
            out,
            &format!(
                "  - fix: {text}{}{command}",
                words::applicability(fix.applicability)
            ),
        );
    }
    push_line(out, "");
}

fn escaped(mut table: Table) -> Table {
    for row in &mut table.rows {
        row.label = escape(&row.label);
        row.note = escape(&row.note);
        row.cells.iter_mut().for_each(|cell| *cell = escape(cell));
    }
    table.notes.iter_mut().for_each(|note| *note = escape(note));
    table
}

/// `text` so that Markdown shows it as it is.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        if "\\`*_[]<>|#~".contains(sign) {
            out.push('\\');
        }
        out.push(sign);
    }
    out
}

/// `text` as code: its fence is longer than any run of backticks within it.
fn code(text: &str) -> String {
    let text = clean(text);
    let longest = text.split(|sign| sign != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if longest > 0 { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_stays_text() {
        assert_eq!(escape("a|b <img> *x* _y_"), "a\\|b \\<img\\> \\*x\\* \\_y\\_");
        assert_eq!(code("ls"), "`ls`");
        assert_eq!(code("a ``b`` c"), "``` a ``b`` c ```");
    }
}
