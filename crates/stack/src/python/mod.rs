//! A Python environment read from its files: interpreter, search path, distributions, what they require.

mod dist;
mod env;
mod marker;
mod path;
mod requirement;
mod tags;

pub use dist::{Direct, DirectKind, DistError, Distribution, Metadata};
pub use env::{EnvError, Environment, Variables};
pub use marker::{Marker, MarkerValues};
pub(crate) use path::lexical;
pub use path::{Hook, HookKind, SearchPath};
pub use requirement::{Requirement, normalize};
pub use tags::{Interpreter, TagFault, check_tags, extension_tag};
