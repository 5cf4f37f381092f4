//! The catalogue of engines, loaded: what serves at an address, whether it is ready, what it says of itself.

mod acceptance;
pub mod catalog;
mod command;
pub mod discover;
mod environment;
mod in_force;
pub mod mask;
mod metrics;
mod probe;
mod recognise;
mod source;
mod state;
mod version;

pub use acceptance::acceptance;
pub use catalog::{Catalog, CatalogError};
pub use command::{Command, asked_settings, asked_value};
pub use environment::{COMMON_VARIABLES, environment_that_matters};
pub use in_force::{asked_not_in_force, with_arguments};
pub use mask::{mask_arguments, mask_command_line, mask_environment, mask_json, mask_text};
pub use metrics::{
    from_page, read_metrics, read_metrics_at_rest, read_metrics_at_rest_with, read_metrics_with,
};
pub use probe::Answered;
pub use recognise::{Recogniser, Recognition, recognise};
pub use state::{State, read_state, read_state_with};
