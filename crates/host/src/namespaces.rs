//! Network namespaces: which one a process is in, and what can be reached there.

use std::net::Ipv4Addr;

use crate::error::HostError;
use crate::parse;
use crate::process::of;
use crate::root::Host;

/// Longest routing table that is read, in bytes.
const TRIE_CAP: usize = 4 * 1024 * 1024;

impl Host {
    /// The inode of the network namespace of `pid`.
    ///
    /// # Errors
    /// [`HostError`]; it is denied for processes of other users.
    pub fn network_namespace(&self, pid: u32) -> Result<u64, HostError> {
        self.namespace(&of(pid, "ns/net"))
    }

    /// The inode of the network namespace that we are in.
    ///
    /// # Errors
    /// [`HostError`] on kernels without namespaces.
    pub fn own_network_namespace(&self) -> Result<u64, HostError> {
        self.namespace("/proc/self/ns/net")
    }

    fn namespace(&self, path: &str) -> Result<u64, HostError> {
        self.read_link(path)?
            .strip_prefix("net:[")
            .and_then(|rest| rest.strip_suffix(']')?.parse().ok())
            .ok_or_else(|| HostError::malformed(path, "it is no network namespace"))
    }

    /// The IPv4 addresses of the network namespace of `pid`, loopback left out.
    ///
    /// # Errors
    /// [`HostError`] where its routing table cannot be read.
    pub fn addresses_of(&self, pid: u32) -> Result<Vec<Ipv4Addr>, HostError> {
        let trie = self.read_text(&of(pid, "net/fib_trie"), TRIE_CAP)?;
        Ok(parse::local_addresses(&trie))
    }

    /// The IPv4 addresses of this machine, loopback left out.
    ///
    /// # Errors
    /// [`HostError`] where its routing table cannot be read.
    pub fn addresses(&self) -> Result<Vec<Ipv4Addr>, HostError> {
        let trie = self.read_text("/proc/net/fib_trie", TRIE_CAP)?;
        Ok(parse::local_addresses(&trie))
    }
}
