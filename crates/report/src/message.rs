//! Errors of the program itself.

use crate::style::Tone;
use crate::table::push_line;
use crate::{Style, text};

/// An error: what failed, its causes from the outermost in, and what may help. Lower case, and no full stop after
/// a single sentence. A cause or hint that says nothing new is left out.
pub fn error_text(message: &str, causes: &[String], hints: &[String], style: &Style) -> String {
    let mut out = String::new();
    labelled(&mut out, "", "error", Tone::Bad, message, style);
    let mut last = message;
    for cause in causes {
        if !last.ends_with(cause.as_str()) {
            labelled(&mut out, "  ", "caused by", Tone::Heading, cause, style);
        }
        last = cause;
    }
    for (place, hint) in hints.iter().enumerate() {
        if !hints[..place].contains(hint) {
            labelled(&mut out, "", "hint", Tone::Hint, hint, style);
        }
    }
    style.signs(out)
}

/// Appends `label: text`, its further lines set in by two more than `indent`.
pub(crate) fn labelled(out: &mut String, indent: &str, label: &str, tone: Tone, text: &str, style: &Style) {
    let before = indent.len() + label.len() + 2;
    let body = text::wrap(&text::clean(text), before, indent.len() + 2, style.width);
    push_line(out, &format!("{indent}{}: {body}", style.paint(tone, label)));
}
