//! Columns that line up.

use std::fmt::Write;

use crate::style::Tone;
use crate::text::columns;
use crate::{Style, text};

/// One row: a label, figures, and what is to be said of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub(crate) label: String,
    pub(crate) cells: Vec<String>,
    /// Stands after the figures, or in their place.
    pub(crate) note: String,
}

/// A table with its units in the first header.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) headers: Vec<String>,
    pub(crate) rows: Vec<Row>,
    /// Sentences below it.
    pub(crate) notes: Vec<String>,
}

impl Table {
    /// Drops the columns in which no row has a figure.
    pub(crate) fn without_empty_columns(mut self) -> Self {
        let used: Vec<bool> = (0..self.headers.len())
            .map(|column| {
                self.rows
                    .iter()
                    .any(|row| row.cells.get(column).is_some_and(|cell| !cell.is_empty()))
            })
            .collect();
        let keep = |cells: &mut Vec<String>| {
            let mut column = 0..;
            cells.retain(|_| column.next().is_some_and(|column| used[column]));
        };
        keep(&mut self.headers);
        self.rows.iter_mut().for_each(|row| keep(&mut row.cells));
        self
    }

    /// For a terminal: labels to the left, figures to the right.
    pub(crate) fn terminal(&self, style: &Style) -> String {
        let label = self
            .rows
            .iter()
            .map(|row| columns(&row.label))
            .chain([columns(&self.title)])
            .max()
            .unwrap_or(0);
        let widths: Vec<usize> = (0..self.headers.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.cells.get(column));
                cells
                    .map(|cell| columns(cell))
                    .chain([columns(&self.headers[column])])
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let line = |first: &str, cells: &[String]| {
            let mut line = format!("{first}{:1$}", "", label.saturating_sub(columns(first)));
            for (cell, width) in cells.iter().zip(&widths) {
                let _ = write!(line, "  {:1$}{cell}", "", width.saturating_sub(columns(cell)));
            }
            line
        };
        let mut out = String::new();
        push_line(
            &mut out,
            &style.paint(Tone::Heading, line(&self.title, &self.headers).trim_end()),
        );
        for row in &self.rows {
            let mut drawn = line(&row.label, &row.cells);
            if !row.note.is_empty() {
                let before = columns(&drawn) + 2;
                drawn.push_str("  ");
                drawn.push_str(&text::wrap(&row.note, before, label + 2, style.width));
            }
            push_line(&mut out, drawn.trim_end());
        }
        for note in &self.notes {
            push_line(&mut out, &text::wrap(note, 0, 2, style.width));
        }
        out
    }

    /// For Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut out = String::new();
        let mut line = |cells: &mut dyn Iterator<Item = String>| {
            let cells: Vec<String> = cells.collect();
            push_line(&mut out, &format!("| {} |", cells.join(" | ")));
        };
        let noted = self.rows.iter().any(|row| !row.note.is_empty());
        let last = usize::from(noted);
        let blank = || std::iter::repeat_n(String::new(), last);
        line(
            &mut [self.title.clone()]
                .into_iter()
                .chain(self.headers.iter().cloned())
                .chain(blank()),
        );
        let rules = std::iter::repeat_n("---:".to_owned(), self.headers.len());
        line(
            &mut ["---".to_owned()]
                .into_iter()
                .chain(rules)
                .chain((0..last).map(|_| "---".to_owned())),
        );
        for row in &self.rows {
            let missing = self.headers.len().saturating_sub(row.cells.len());
            line(
                &mut [row.label.clone()]
                    .into_iter()
                    .chain(row.cells.iter().cloned())
                    .chain(std::iter::repeat_n(String::new(), missing))
                    .chain(noted.then(|| row.note.clone())),
            );
        }
        for note in &self.notes {
            push_line(&mut out, "");
            push_line(&mut out, note);
        }
        out
    }
}

/// Appends one line.
pub(crate) fn push_line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let row = |label: &str, cells: &[&str], note: &str| Row {
            label: label.to_owned(),
            cells: cells.iter().map(|&cell| cell.to_owned()).collect(),
            note: note.to_owned(),
        };
        Table {
            title: "Times, ms".to_owned(),
            headers: vec!["p50".to_owned(), "gone".to_owned(), "p99".to_owned()],
            rows: vec![
                row("TTFT", &["50.1", "", "–"], ""),
                row("a long label", &["1234", "", "5.00"], "seen"),
                row("ITL", &[], "unknown"),
            ],
            notes: vec!["– p99 needs more".to_owned()],
        }
    }

    #[test]
    fn figures_line_up_to_the_right() {
        assert_eq!(
            table().without_empty_columns().terminal(&Style::PLAIN),
            "Times, ms      p50   p99\n\
             TTFT          50.1     –\n\
             a long label  1234  5.00  seen\n\
             ITL           unknown\n\
             – p99 needs more\n"
        );
    }

    #[test]
    fn markdown_has_as_many_cells_in_each_row() {
        let drawn = table().without_empty_columns().markdown();
        let bars: Vec<usize> = drawn
            .lines()
            .filter(|line| line.starts_with('|'))
            .map(|line| line.matches('|').count())
            .collect();
        assert_eq!(bars, [5; 5], "{drawn}");
    }
}
