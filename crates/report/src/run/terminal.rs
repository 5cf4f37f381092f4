//! A run on one screen.

use shakedown_model::RunDocument;

use super::{facts, figures, subject};
use crate::finding::brief;
use crate::style::Tone;
use crate::table::push_line;
use crate::{Style, text};

/// A run on one screen: whether its figures count, then the figures, then what they rest on. `bundle_path` is
/// where its bundle lies.
pub fn run_summary(document: &RunDocument, bundle_path: Option<&str>, style: &Style) -> String {
    let mut out = String::new();
    let server = subject::server(&document.server);
    push_line(
        &mut out,
        &style.paint(Tone::Heading, &text::wrap(&server, 0, 2, style.width)),
    );
    push_line(&mut out, &text::wrap(&subject::sent(document), 0, 2, style.width));
    push_line(&mut out, "");

    let (word, rest, tone) = subject::standing(document);
    push_line(&mut out, &format!("{}: {rest}", style.paint(tone, word)));
    for finding in subject::findings(document) {
        out.push_str(&brief(finding, style));
    }
    push_line(&mut out, "");

    if let Some(reason) = subject::without_figures(document) {
        push_line(&mut out, &text::wrap(reason, 0, 2, style.width));
        push_line(&mut out, "");
    }
    if let Some(metrics) = &document.pooled {
        out.push_str(&figures::latencies(document, metrics).terminal(style));
        push_line(&mut out, "");
        out.push_str(&figures::rates(metrics).terminal(style));
        push_line(&mut out, "");
    }

    let facts = facts::facts(document, bundle_path);
    let label = facts
        .iter()
        .map(|fact| text::columns(fact.label))
        .max()
        .unwrap_or(0)
        + 2;
    for fact in &facts {
        for (place, line) in fact.lines.iter().enumerate() {
            let name = if place == 0 { fact.label } else { "" };
            let padding = label - text::columns(name);
            let body = text::wrap(line, label, label, style.width);
            let body = fact
                .tone
                .map_or_else(|| body.clone(), |tone| style.paint(tone, &body));
            push_line(
                &mut out,
                &format!("{}{:padding$}{body}", style.paint(Tone::Heading, name), ""),
            );
        }
    }
    style.signs(out)
}
