//! One finding: what is so, why, what it rests on, how to mend it.

use shakedown_model::{Finding, Fix};

use crate::message::labelled;
use crate::style::Tone;
use crate::table::push_line;
use crate::{Style, text, words};

/// Lines of evidence that are shown; the document has them all.
const EVIDENCE_SHOWN: usize = 5;

/// A finding in full.
pub fn finding_text(finding: &Finding, style: &Style) -> String {
    let mut out = headline(finding, style);
    labelled(&mut out, "  ", "about", Tone::Heading, &finding.subject, style);
    if !finding.why.is_empty() {
        labelled(&mut out, "  ", "why", Tone::Heading, &finding.why, style);
    }
    for evidence in finding.evidence.iter().take(EVIDENCE_SHOWN) {
        let line = evidence.line.map(|line| format!(":{line}")).unwrap_or_default();
        let seen = format!("{}{line}: {}", evidence.source, evidence.value);
        labelled(&mut out, "  ", "seen in", Tone::Heading, &seen, style);
    }
    let more = finding.evidence.len().saturating_sub(EVIDENCE_SHOWN);
    if more > 0 {
        push_line(&mut out, &format!("  and {more} more"));
    }
    for fix in &finding.fixes {
        push_fix(&mut out, fix, style);
    }
    if let Some(verify) = &finding.verify {
        push_line(
            &mut out,
            &format!("  {}:", style.paint(Tone::Heading, "to verify")),
        );
        push_command(&mut out, verify, style);
    }
    style.signs(out)
}

/// A finding in two or three lines: its sentence and its first fix.
pub(crate) fn brief(finding: &Finding, style: &Style) -> String {
    let mut out = headline(finding, style);
    if let Some(fix) = finding.fixes.first() {
        push_fix(&mut out, fix, style);
    }
    out
}

fn headline(finding: &Finding, style: &Style) -> String {
    let (word, tone) = words::verdict(finding.verdict);
    let label = format!("{word}[{}]", text::clean(&finding.code));
    let mut out = String::new();
    let what = format!("{}{}", words::confidence(finding.confidence), finding.what);
    labelled(&mut out, "", &label, tone, &what, style);
    out
}

fn push_fix(out: &mut String, fix: &Fix, style: &Style) {
    let what = format!("{}{}", fix.text, words::applicability(fix.applicability));
    labelled(out, "  ", "fix", Tone::Hint, &what, style);
    if let Some(command) = &fix.command {
        push_command(out, command, style);
    }
}

/// Commands are never broken: they are there to be pasted.
fn push_command(out: &mut String, command: &str, style: &Style) {
    push_line(
        out,
        &format!("    {}", style.paint(Tone::Hint, &text::clean(command))),
    );
}
