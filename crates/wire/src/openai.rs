//! What engines send in the OpenAI dialects and in SGLang's own: stream events, whole answers, model lists and
//! errors.
//!
//! serde reads everything; strings are borrowed from the input where JSON allows. Members that engines write
//! differently are read leniently (a value of an unexpected kind counts as absent), the structure is not.

mod error_body;
mod event;
mod few;
mod lenient;
mod models;
mod raw;
mod whole;

pub use error_body::parse_error_body;
pub use event::{Deltas, SpecFigures, StreamEvent, Timings, Usage, parse_event};
pub use few::{Few, FewIter};
pub use models::{Model, parse_models};
pub use whole::{WholeReply, parse_whole};

/// Why bytes are not a frame of the dialect. The bytes themselves are not shown: they are private text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Not JSON, or not UTF-8 within it.
    #[error("read the answer: invalid JSON at line {line}, column {column}")]
    Syntax {
        /// Line from 1.
        line: usize,
        /// Column in bytes from 1; 0 at a line's very start.
        column: usize,
    },
    /// JSON that ends early.
    #[error("read the answer: the JSON ends early")]
    Incomplete,
    /// JSON, but not of the dialect's structure.
    #[error("read the answer: JSON of an unexpected structure at line {line}, column {column}")]
    Shape {
        /// Line from 1.
        line: usize,
        /// Column in bytes from 1; 0 at a line's very start.
        column: usize,
    },
    /// JSON, but not an object.
    #[error("read the answer: this is not a JSON object")]
    NotAnObject,
}

impl From<serde_json::Error> for ParseError {
    fn from(error: serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            serde_json::error::Category::Eof => Self::Incomplete,
            serde_json::error::Category::Data => Self::Shape { line, column },
            serde_json::error::Category::Syntax | serde_json::error::Category::Io => {
                Self::Syntax { line, column }
            }
        }
    }
}

/// Refuses what is not an object: serde would read an array into a struct, member by member.
fn check_object(data: &[u8]) -> Result<(), ParseError> {
    match data.trim_ascii_start().first() {
        Some(b'{') => Ok(()),
        None => Err(ParseError::Incomplete),
        Some(_) => Err(ParseError::NotAnObject),
    }
}
