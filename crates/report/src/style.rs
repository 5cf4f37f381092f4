//! How text may look where it is shown: what it says never depends on that.

use anstyle::{AnsiColor, Style as Ansi};

/// What the place where text is shown can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Colours, by ANSI escape codes.
    pub colour: bool,
    /// Characters beyond ASCII.
    pub unicode: bool,
    /// Columns.
    pub width: usize,
}

impl Style {
    /// No colour, ASCII, 80 columns: right everywhere.
    pub const PLAIN: Self = Self {
        colour: false,
        unicode: false,
        width: 80,
    };
}

impl Default for Style {
    fn default() -> Self {
        Self::PLAIN
    }
}

/// What a piece of text is, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Well.
    Good,
    /// Deserves a look.
    Warning,
    /// Wrong.
    Bad,
    /// A hint, a command or a path.
    Hint,
    /// Heads a section.
    Heading,
}

impl Style {
    /// `text` in the colour of `tone`.
    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let ansi = match tone {
            Tone::Good => AnsiColor::Green.on_default().bold(),
            Tone::Warning => AnsiColor::Yellow.on_default().bold(),
            Tone::Bad => AnsiColor::Red.on_default().bold(),
            Tone::Hint => AnsiColor::Cyan.on_default(),
            Tone::Heading => Ansi::new().bold(),
        };
        format!("{ansi}{text}{ansi:#}")
    }

    /// `text` with our own signs in ASCII where nothing else can be shown. Columns of a table keep their widths:
    /// the signs in them have one character either way.
    pub(crate) fn signs(&self, text: String) -> String {
        if self.unicode || text.is_ascii() {
            return text;
        }
        let mut plain = String::with_capacity(text.len());
        for sign in text.chars() {
            match sign {
                '–' => plain.push('-'),
                '±' => plain.push_str("+/-"),
                '…' => plain.push_str("..."),
                other => plain.push(other),
            }
        }
        plain
    }
}
