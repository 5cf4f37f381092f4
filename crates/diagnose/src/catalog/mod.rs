//! What we know of failures: data from `catalog/failures`, loaded and made searchable.

mod builtin;
mod entry;
mod index;
mod page;

use thiserror::Error;

pub use entry::{
    Condition, Failure, FixEntry, LazyRegex, Observe, OneOrMany, Pattern, Role, Sample, Stage, StageMark,
};
pub use index::Index;
pub use page::Page;

use entry::CatalogFile;
pub(crate) use index::Use;

pub use crate::judge::Sign;

/// The catalogue could not be read.
#[derive(Debug, Error)]
pub enum CatalogError {
    /// A file is not the TOML that it should be.
    #[error("read the failure catalogue's file {file}")]
    Toml {
        /// Which file.
        file: String,
        /// What is wrong with it.
        #[source]
        error: Box<toml::de::Error>,
    },
    /// The literals could not be made into an automaton.
    #[error("index the failure catalogue")]
    Index(#[from] aho_corasick::BuildError),
}

/// The failure catalogue.
#[derive(Debug)]
pub struct Catalog {
    /// Failures.
    pub failures: Vec<Failure>,
    /// Stage marks.
    pub stages: Vec<StageMark>,
    /// Observations.
    pub observes: Vec<Observe>,
}

impl Catalog {
    /// The built-in catalogue.
    pub fn built_in() -> Result<Self, CatalogError> {
        Self::from_files(builtin::FILES.iter().copied())
    }

    /// A catalogue of `files`: name and text of each.
    pub fn from_files<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Self, CatalogError> {
        let mut catalog = Self {
            failures: Vec::new(),
            stages: Vec::new(),
            observes: Vec::new(),
        };
        for (name, text) in files {
            let file: CatalogFile = toml::from_str(text).map_err(|error| CatalogError::Toml {
                file: name.to_owned(),
                error: Box::new(error),
            })?;
            for mut failure in file.failure {
                if failure.family.is_empty() {
                    failure.family.clone_from(&file.family);
                }
                catalog.failures.push(failure);
            }
            catalog.stages.extend(file.stage);
            catalog.observes.extend(file.observe);
        }
        Ok(catalog)
    }

    /// The same catalogue without the entries for which `drop` holds: for calibration.
    #[must_use]
    pub fn without(mut self, drop: impl Fn(&Failure) -> bool) -> Self {
        self.failures.retain(|failure| !drop(failure));
        self
    }

    /// The entry with this code.
    pub fn get(&self, code: &str) -> Option<&Failure> {
        self.failures.iter().find(|failure| failure.code == code)
    }
}
