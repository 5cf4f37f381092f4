//! The documentation of the CSV columns is that of the code.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use shakedown_report::csv_columns;

/// `UPDATE_DOCS=1` writes it anew.
#[test]
fn documented_columns_are_those_of_the_code() {
    let mut text = "# Columns of a run as CSV\n\n\
        One row a trial, and last one row, `pooled`, for all together. What is unknown is an empty field. Figures are \
        in full precision; the definitions are those of [metrics.md](metrics.md).\n\n| column | holds |\n|---|---|\n"
        .to_owned();
    for column in csv_columns() {
        writeln!(text, "| `{}` | {} |", column.name, column.holds).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/csv.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == text,
        "{} is out of date: run with UPDATE_DOCS=1",
        path.display()
    );
}
