//! Every rendering of a document: pure functions from a document to text.
//!
//! Numbers, units and verdict words are written here and nowhere else, so that one figure looks the same on the
//! screen, in Markdown and in every verb. What a server or a log said is shown without its control characters.

mod finding;
mod message;
mod number;
mod progress;
mod run;
mod style;
mod table;
mod text;
mod words;

pub use finding::finding_text;
pub use message::error_text;
pub use number::{duration, figure, percent};
pub use progress::progress_line;
pub use run::{CsvColumn, csv_columns, run_csv, run_markdown, run_summary};
pub use style::Style;
