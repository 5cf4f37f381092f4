//! The published JSON schemas of what a bundle holds.

use serde_json::Value;
use shakedown_model::{RUN_SCHEMA, RunDocument};

use crate::line::RequestLine;

/// Name and version of the schema of one line of `requests.jsonl`.
pub const REQUEST_SCHEMA: &str = "shakedown.request/1";

/// One published schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// Its file under `docs/schemas`.
    pub file: &'static str,
    /// The schema.
    pub schema: Value,
}

/// Every schema of this crate, as generated from the types that read and write.
pub fn schemas() -> Vec<Schema> {
    let mut run = schemars::schema_for!(RunDocument).to_value();
    // The one value that a reader may rely on before it reads anything else.
    if let Some(schema) = run.pointer_mut("/properties/schema") {
        schema["const"] = RUN_SCHEMA.into();
    }
    vec![
        Schema {
            file: "shakedown.run.1.json",
            schema: titled(run, RUN_SCHEMA),
        },
        Schema {
            file: "shakedown.request.1.json",
            schema: titled(
                schemars::schema_for!(RequestLine<'static>).to_value(),
                REQUEST_SCHEMA,
            ),
        },
    ]
}

fn titled(mut schema: Value, title: &str) -> Value {
    schema["title"] = title.into();
    schema
}
