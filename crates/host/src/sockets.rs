//! Listening sockets, joined to the processes that hold them.

use std::collections::{BTreeSet, HashMap};

use crate::error::HostError;
use crate::files::OpenTarget;
use crate::parse::{self, Listener};
use crate::process::of;
use crate::root::Host;

/// Longest table of sockets that is read, in bytes: about 400,000 sockets.
const TABLE_CAP: usize = 64 * 1024 * 1024;

/// The listening sockets of one network namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listeners {
    /// TCP over IPv4 and IPv6.
    pub tcp: Vec<Listener>,
    /// Unix sockets with a name. Their table belongs to the namespace too.
    pub unix: Vec<Listener>,
}

impl Listeners {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Listener> {
        self.tcp.iter().chain(&self.unix)
    }
}

impl Host {
    /// The listening sockets of this process's own network namespace.
    ///
    /// # Errors
    /// [`HostError`] where the table of IPv4 cannot be read; a kernel without IPv6 or Unix sockets has none of those.
    pub fn listeners(&self) -> Result<Listeners, HostError> {
        self.listeners_below("/proc/net")
    }

    /// The listening sockets of the network namespace of `pid`.
    ///
    /// # Errors
    /// As [`Self::listeners`].
    pub fn listeners_of(&self, pid: u32) -> Result<Listeners, HostError> {
        self.listeners_below(&of(pid, "net"))
    }

    fn listeners_below(&self, directory: &str) -> Result<Listeners, HostError> {
        let mut bytes = Vec::new();
        self.read_into(&format!("{directory}/tcp"), TABLE_CAP, &mut bytes)?;
        let mut tcp = parse::tcp_listeners(&bytes);
        if self
            .read_into(&format!("{directory}/tcp6"), TABLE_CAP, &mut bytes)
            .is_ok()
        {
            tcp.extend(parse::tcp_listeners(&bytes));
        }
        let unix = match self.read_into(&format!("{directory}/unix"), TABLE_CAP, &mut bytes) {
            Ok(()) => parse::unix_listeners(&bytes),
            Err(_) => Vec::new(),
        };
        Ok(Listeners { tcp, unix })
    }
}

/// Which of `pids` holds each of the sockets `wanted`, the first holder in their order; ends as soon as all are found.
/// Also the processes whose descriptors could not be read.
pub fn owners(
    host: &Host,
    pids: impl IntoIterator<Item = u32>,
    wanted: &BTreeSet<u64>,
) -> (HashMap<u64, u32>, Vec<HostError>) {
    let mut found = HashMap::new();
    let mut not_read = Vec::new();
    for pid in pids {
        if found.len() == wanted.len() {
            break;
        }
        match host.files(pid) {
            Ok(files) => {
                for file in files {
                    if let OpenTarget::Socket(inode) = file.target
                        && wanted.contains(&inode)
                    {
                        found.entry(inode).or_insert(pid);
                    }
                }
            }
            Err(error) if error.is_denied() => not_read.push(error),
            Err(_) => {}
        }
    }
    (found, not_read)
}
