//! Foreign text made safe to show, and text made to fit.

use crate::Style;

/// One line of foreign text without what a terminal would obey or a reader would be fooled by: control characters
/// and changes of writing direction.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|sign| match sign {
            '\n' | '\r' | '\t' => ' ',
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '?',
            sign if sign.is_control() => '?',
            sign => sign,
        })
        .collect()
}

/// Columns that `text` takes, a character a column.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().count()
}

/// `text` cut to `width` columns, with a sign that it was.
pub(crate) fn clip(text: &str, width: usize, style: &Style) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let more = if style.unicode { "…" } else { "..." };
    let kept = width.saturating_sub(columns(more));
    let mut cut: String = text.chars().take(kept).collect();
    cut.push_str(more);
    cut.chars().take(width).collect()
}

/// The words of `text` in lines of at most `width` columns; a longer word has a line of its own. Every line after
/// the first begins with `indent` spaces, and the first one leaves room for `before` columns.
pub(crate) fn wrap(text: &str, before: usize, indent: usize, width: usize) -> String {
    let mut out = String::new();
    let mut column = before;
    let mut at_start = true;
    for word in text.split_whitespace() {
        let length = columns(word);
        if !at_start && column + 1 + length > width {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            column = indent;
            at_start = true;
        }
        if !at_start {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        at_start = false;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(clean("model\u{1b}[2J\u{7}\u{202e}\nx\u{9b}y"), "model?[2J?? x?y");
    }

    #[test]
    fn lines_fit_and_lose_no_word() {
        let text = "one two three four five six a-word-that-is-longer-than-a-line seven";
        let wrapped = wrap(text, 4, 2, 14);
        assert_eq!(
            wrapped,
            "one two\n  three four\n  five six\n  a-word-that-is-longer-than-a-line\n  seven"
        );
        assert_eq!(
            wrapped.split_whitespace().collect::<Vec<_>>(),
            text.split_whitespace().collect::<Vec<_>>()
        );
    }

    #[test]
    fn what_is_cut_says_so() {
        let style = Style {
            unicode: true,
            ..Style::PLAIN
        };
        assert_eq!(clip("abcdef", 6, &style), "abcdef");
        assert_eq!(clip("abcdefg", 6, &style), "abcde…");
        assert_eq!(clip("abcdefg", 6, &Style::PLAIN), "abc...");
        assert_eq!(clip("abcdefg", 2, &Style::PLAIN), "..");
    }
}
