//! stdout is data, stderr is talk: the one place that writes to either.

use std::error::Error;
use std::io::{self, IsTerminal, Write};

use shakedown_report::Style;

use crate::args::{Format, Global};
use crate::exit::CliError;

/// How this invocation talks.
pub(crate) struct Output {
    pub(crate) format: Format,
    /// Style of what goes to stdout.
    pub(crate) style: Style,
    /// Style of what goes to stderr.
    pub(crate) talk_style: Style,
    quiet: bool,
}

impl Output {
    pub(crate) fn new(global: &Global) -> Self {
        let coloured = |choice| choice != anstream::ColorChoice::Never;
        Self {
            format: global.format,
            style: style(coloured(anstream::AutoStream::choice(&io::stdout()))),
            talk_style: style(coloured(anstream::AutoStream::choice(&io::stderr()))),
            quiet: global.quiet,
        }
    }

    /// Whether progress can be drawn.
    pub(crate) fn draws_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Says something, unless told to be quiet.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet {
            // Nobody is left to tell when stderr is gone.
            let _ = writeln!(io::stderr(), "{text}");
        }
    }

    /// Says what went wrong.
    pub(crate) fn error(&self, error: &CliError) {
        if matches!(error, CliError::Output(source) if source.kind() == io::ErrorKind::BrokenPipe) {
            return;
        }
        let mut causes = Vec::new();
        let mut source = error.source();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            source = cause.source();
        }
        let text =
            shakedown_report::error_text(&error.to_string(), &causes, &error.hints(), &self.talk_style);
        let _ = write!(io::stderr(), "{text}");
    }
}

/// Writes data to stdout.
pub(crate) fn data(text: &str) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(CliError::Output)
}

fn style(colour: bool) -> Style {
    let width = terminal_width().unwrap_or(100);
    let unicode = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|value| !value.is_empty())
        .is_some_and(|value| value.to_ascii_lowercase().contains("utf"));
    Style {
        colour,
        unicode,
        width,
    }
}

fn terminal_width() -> Option<usize> {
    let columns = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    columns.or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)))
}
