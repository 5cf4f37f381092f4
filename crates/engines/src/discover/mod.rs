//! Which inference servers run on a machine: from its processes and sockets, then confirmed by asking them.
//!
//! [`discover`] reads `/proc` alone. [`confirm`] asks what was found, and what listens on an engine's default port
//! besides, by GETs of the allow-list.

mod address;
mod candidate;
mod confirm;
mod holder;
mod installed;
mod server;

use std::collections::HashMap;

use shakedown_host::{Host, HostError, Listeners, Processes};
use shakedown_model::{Evidence, FIND_SCHEMA, Found, FoundServer};

use crate::catalog::Catalog;

pub use address::{Expected, expected_address};
pub use confirm::{Confirm, confirm};
pub use holder::{PortHolder, holder_of_port};

/// The servers on `host`, by what its processes and sockets show; nothing is asked.
///
/// # Errors
/// [`HostError`] where processes cannot be listed.
pub fn discover(catalog: &Catalog, host: &Host) -> Result<Found, HostError> {
    let machine = Machine::read(host)?;
    let mut found = Found {
        schema: FIND_SCHEMA.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        host: host
            .read_text("/proc/sys/kernel/hostname", 256)
            .unwrap_or_default()
            .trim()
            .to_owned(),
        servers: Vec::new(),
        findings: Vec::new(),
        not_read: machine.not_read.iter().map(evidence).collect(),
    };
    let groups = candidate::groups(catalog, host, &machine.processes);
    let mut networks = Networks::new(&machine);
    found.servers = groups
        .iter()
        .map(|group| server::describe(catalog, &machine, &mut networks, group))
        .collect();
    link_workers(&mut found.servers);
    Ok(found)
}

/// What was read of the machine once.
pub(crate) struct Machine<'a> {
    host: &'a Host,
    processes: Processes,
    own: Listeners,
    own_network: Option<u64>,
    boot_s: Option<u64>,
    not_read: Vec<HostError>,
}

impl<'a> Machine<'a> {
    fn read(host: &'a Host) -> Result<Self, HostError> {
        let processes = host.processes()?;
        let mut not_read = processes.not_read.clone();
        let own = host.listeners().unwrap_or_else(|error| {
            not_read.push(error);
            Listeners::default()
        });
        Ok(Self {
            host,
            processes,
            own,
            own_network: host.own_network_namespace().ok(),
            boot_s: host.boot_time().ok(),
            not_read,
        })
    }
}

/// The listening sockets of each network namespace that was met, read once.
struct Networks<'a> {
    machine: &'a Machine<'a>,
    others: HashMap<u64, Listeners>,
}

impl<'a> Networks<'a> {
    fn new(machine: &'a Machine<'a>) -> Self {
        Self {
            machine,
            others: HashMap::new(),
        }
    }

    /// The listeners that `pid` shares a namespace with, and whether that is another than ours. A namespace that
    /// cannot be read counts as ours.
    fn of(&mut self, pid: u32) -> (&Listeners, bool) {
        let machine = self.machine;
        let network = machine.host.network_namespace(pid).ok();
        match network.filter(|network| machine.own_network.is_some_and(|own| own != *network)) {
            None => (&machine.own, false),
            Some(network) => {
                let listeners = self
                    .others
                    .entry(network)
                    .or_insert_with(|| machine.host.listeners_of(pid).unwrap_or_default());
                (listeners, true)
            }
        }
    }
}

/// Which of the servers found are the workers of a router found.
fn link_workers(servers: &mut [FoundServer]) {
    let urls: Vec<(u32, Vec<String>)> = servers
        .iter()
        .map(|server| {
            let urls = server.addresses.iter().filter_map(|address| address.url.clone());
            (server.pid, urls.collect())
        })
        .collect();
    for server in servers.iter_mut() {
        for worker in &mut server.workers {
            let wanted = worker
                .url
                .trim_end_matches('/')
                .replace("://localhost", "://127.0.0.1")
                .replace("://0.0.0.0", "://127.0.0.1");
            worker.pid = urls
                .iter()
                .find(|(pid, urls)| *pid != server.pid && urls.contains(&wanted))
                .map(|(pid, _)| *pid);
        }
    }
}

fn evidence(error: &HostError) -> Evidence {
    let why = if error.is_denied() {
        "not readable without more privileges".to_owned()
    } else {
        error.to_string()
    };
    Evidence::new(error.path.clone(), why)
}
