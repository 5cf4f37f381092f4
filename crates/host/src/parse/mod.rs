//! Parsers of the kernel's files: pure, total, bounded by their input.

mod group;
mod lists;
mod net;
mod stat;
mod system;

pub use group::{Group, cgroup};
pub use lists::Published;
pub use lists::{cpu_list, docker_proxy, environment, fdinfo_flags, nul_list, tty_index, user_name};
pub use net::{Listener, ListenerAddress, local_addresses, tcp_listeners, unix_listeners};
pub use stat::{Stat, status_field};
pub use system::{Limits, cpu_max, limits, meminfo_kib};
