//! Who holds a port: the first question when a connection is refused, or when something else answers.

use std::collections::BTreeSet;

use shakedown_host::{Host, HostError, ListenerAddress, owners};

use crate::mask::mask_arguments;

/// A listening socket on a port, and the process that holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortHolder {
    /// Where it listens.
    pub listens: std::net::SocketAddr,
    /// The process, where it could be found out.
    pub pid: Option<u32>,
    /// Its program.
    pub program: Option<String>,
    /// Its arguments, secrets masked.
    pub arguments: Vec<String>,
    /// The user who made the socket.
    pub uid: u32,
}

/// All listening sockets on `port` in this network namespace.
///
/// # Errors
/// [`HostError`] where sockets or processes cannot be listed. A holder that cannot be found out is no error.
pub fn holder_of_port(host: &Host, port: u16) -> Result<Vec<PortHolder>, HostError> {
    let listeners: Vec<_> = host
        .listeners()?
        .tcp
        .into_iter()
        .filter_map(|listener| match listener.address {
            ListenerAddress::Tcp(address) if address.port() == port => {
                Some((address, listener.inode, listener.uid))
            }
            _ => None,
        })
        .collect();
    if listeners.is_empty() {
        return Ok(Vec::new());
    }
    let processes = host.processes()?;
    let wanted: BTreeSet<u64> = listeners.iter().map(|(_, inode, _)| *inode).collect();
    let pids = processes
        .iter()
        .filter(|process| !process.stat.kernel)
        .map(shakedown_host::Process::pid);
    let (holders, _) = owners(host, pids, &wanted);
    Ok(listeners
        .into_iter()
        .map(|(listens, inode, uid)| {
            let process = holders.get(&inode).and_then(|pid| processes.get(*pid));
            PortHolder {
                listens,
                pid: process.map(shakedown_host::Process::pid),
                program: process.map(|process| process.program().to_owned()),
                arguments: process
                    .map(|process| mask_arguments(&process.arguments))
                    .unwrap_or_default(),
                uid,
            }
        })
        .collect())
}
