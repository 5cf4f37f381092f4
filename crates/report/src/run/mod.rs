//! The document of a run, as text. What is said of it is put together once (`subject`, `figures`, `facts`); the
//! terminal and Markdown only draw it.

mod csv;
mod facts;
mod figures;
mod markdown;
mod subject;
mod terminal;

pub use csv::{CsvColumn, csv_columns, run_csv};
pub use markdown::run_markdown;
pub use terminal::run_summary;
