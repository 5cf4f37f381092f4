//! The machine under the stack: driver, GPUs, toolkits, tools, host.

mod driver;
mod gpus;
mod host;
mod tools;

pub use driver::read_driver;
pub use gpus::{SMI_QUERY, parse_smi};
pub use host::read_host;
pub use tools::{read_toolkits, read_tools};
