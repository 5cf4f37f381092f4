//! What was found, asked: state, version, models, settings; and engines behind processes that no rule knows.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde_json::Value;
use shakedown_host::{Host, ListenerAddress, owners};
use shakedown_model::{
    AddressReason, Engine, Evidence, Found, FoundAddress, FoundServer, FoundWorker, Reach, ServerState,
};
use shakedown_wire::client::{Client, ClientError};
use shakedown_wire::target::Target;

use super::candidate::Group;
use super::{Machine, Networks, link_workers, server};
use crate::catalog::Catalog;
use crate::in_force::joined_asked;
use crate::mask::mask_text;
use crate::recognise::{Recogniser, Recognition};
use crate::state::{State, read_state_with};

/// Servers that are asked at the same time.
const AT_ONCE: usize = 16;
/// Programs that pass connections on: what answers there is not theirs.
const PASSERS: &[&str] = &[
    "ssh",
    "docker-proxy",
    "rootlesskit",
    "slirp4netns",
    "pasta",
    "kubectl",
    "socat",
    "nginx",
    "haproxy",
    "envoy",
    "caddy",
    "traefik",
];

/// How to confirm.
#[derive(Debug, Clone, Copy)]
pub struct Confirm<'a> {
    /// The catalogue.
    pub catalog: &'a Catalog,
    /// The machine, for ports that no found server holds; without it only what was found is asked.
    pub host: Option<&'a Host>,
    /// Asks for health even where that makes the server generate a token and takes a second.
    pub health: bool,
    /// Reads reports and settings in force too.
    pub settings: bool,
}

/// Asks every server of `found` that has a URL, several at a time, and puts into it what they tell.
pub fn confirm(how: &Confirm<'_>, client: &Client, found: &mut Found) {
    let mut asked: Vec<Option<Told>> = Vec::with_capacity(found.servers.len());
    for some in found.servers.chunks(AT_ONCE) {
        asked.extend(std::thread::scope(|scope| {
            let threads: Vec<_> = some
                .iter()
                .map(|server| scope.spawn(move || ask(how, client, server)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().ok().flatten())
                .collect::<Vec<_>>()
        }));
    }
    for (server, told) in found.servers.iter_mut().zip(asked) {
        if let Some(told) = told {
            put(how.catalog, server, told);
        }
    }
    if let Some(host) = how.host {
        let more = unknown_processes(how, client, host, found);
        found.servers.extend(more);
        found.servers.sort_by_key(|server| server.pid);
    }
    link_workers(&mut found.servers);
}

/// What a server told.
struct Told {
    /// Which of its addresses answered.
    url: String,
    recognition: Recognition,
    state: State,
}

fn ask(how: &Confirm<'_>, client: &Client, server: &FoundServer) -> Option<Told> {
    // The address for requests first; where it does not answer as an engine, its others may.
    let urls = server
        .addresses
        .iter()
        .filter_map(|address| address.url.as_deref());
    let mut first = None;
    for url in urls.take(8) {
        let Ok(target) = Target::parse(url) else { continue };
        let recogniser = Recogniser::new(how.catalog).hint(server.engine.kind);
        let recogniser = if how.health {
            recogniser
        } else {
            recogniser.glance()
        };
        let recognition = recogniser.recognise(client, &target, None);
        let is_engine = recognition.engine.is_some();
        let told = Told {
            url: url.to_owned(),
            state: match &recognition.engine {
                Some(engine) if how.settings => read_state_with(how.catalog, client, &target, engine),
                _ => State::default(),
            },
            recognition,
        };
        if is_engine {
            return Some(told);
        }
        first.get_or_insert(told);
    }
    first
}

fn put(catalog: &Catalog, server: &mut FoundServer, told: Told) {
    let Told {
        url,
        recognition,
        state,
    } = told;
    if let Some(engine) = recognition.engine {
        // An engine that runs another one inside answers as that one in places.
        let inside = catalog.entry(server.engine.kind).absorbs.contains(&engine.kind);
        let kind = if inside { server.engine.kind } else { engine.kind };
        server.engine = Engine {
            kind,
            version: if inside {
                server.engine.version.take()
            } else {
                engine.version.or(server.engine.version.take())
            },
            recognised_by: format!("{}, and {}", server.engine.recognised_by, engine.recognised_by),
            practice: engine.practice || server.engine.practice,
        };
        for address in &mut server.addresses {
            // What was only guessed gives way to what answered.
            let guessed = address.because == AddressReason::Unknown;
            address.requests = address.url.as_deref() == Some(&url) || (address.requests && !guessed);
        }
        server
            .addresses
            .sort_by_key(|address| (!address.requests, address.url.is_none()));
    }
    server.state = match (recognition.state, &recognition.failure) {
        // It has the port, and refuses: it does not listen yet, or no more.
        (ServerState::Unknown, Some(ClientError::Refused { .. })) => ServerState::Loading,
        (ServerState::Unknown, _) => server.state,
        (told, _) => told,
    };
    if recognition.needs_key {
        server
            .not_read
            .push(Evidence::new(url.clone(), "the server wants an API key"));
    }
    if let Some(failure) = &recognition.failure {
        server
            .not_read
            .push(Evidence::new(url, mask_text(&failure.to_string())));
    }
    server.models = recognition.models;
    if let Some(workers) = state.reports.get("/workers") {
        server.workers = listed_workers(workers);
    }
    server.in_force = joined_asked(state.in_force, server.in_force.take());
}

/// The workers that a router lists.
fn listed_workers(report: &Value) -> Vec<FoundWorker> {
    let text = |worker: &Value, name: &str| worker.get(name).and_then(Value::as_str).map(mask_text);
    report
        .pointer("/workers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .take(1000)
        .filter_map(|worker| {
            Some(FoundWorker {
                url: text(worker, "url")?,
                model: text(worker, "model_id"),
                healthy: worker.get("is_healthy").and_then(Value::as_bool),
                pid: None,
            })
        })
        .collect()
}

/// Engines that answer on an engine's default port and that no found server holds: behind a program that passes
/// connections on, or started by one that no rule knows.
fn unknown_processes(how: &Confirm<'_>, client: &Client, host: &Host, found: &Found) -> Vec<FoundServer> {
    let Ok(listeners) = host.listeners() else {
        return Vec::new();
    };
    let known: BTreeSet<&str> = found
        .servers
        .iter()
        .flat_map(|server| &server.addresses)
        .map(|address| address.listens.as_str())
        .collect();
    let ports = how.catalog.default_ports();
    let mut seen: BTreeSet<u16> = BTreeSet::new();
    let open: Vec<(SocketAddr, u64)> = listeners
        .tcp
        .iter()
        .filter_map(|listener| match listener.address {
            ListenerAddress::Tcp(address) => Some((address, listener.inode)),
            ListenerAddress::Unix(_) => None,
        })
        .filter(|(address, _)| {
            ports.contains(&address.port()) && !known.contains(address.to_string().as_str())
        })
        .filter(|(address, _)| seen.insert(address.port()))
        .collect();
    if open.is_empty() {
        return Vec::new();
    }
    let Ok(machine) = Machine::read(host) else {
        return Vec::new();
    };
    let wanted: BTreeSet<u64> = open.iter().map(|(_, inode)| *inode).collect();
    let pids = machine
        .processes
        .iter()
        .filter(|process| !process.stat.kernel)
        .map(shakedown_host::Process::pid);
    let (holders, _) = owners(host, pids, &wanted);
    let answers: Vec<Option<(Engine, Recognition)>> = std::thread::scope(|scope| {
        let threads: Vec<_> = open
            .iter()
            .map(|(address, _)| {
                scope.spawn(move || {
                    let target = Target::parse(&format!("http://{}", reachable(*address))).ok()?;
                    let recogniser = Recogniser::new(how.catalog);
                    let recogniser = if how.health {
                        recogniser
                    } else {
                        recogniser.glance()
                    };
                    let mut recognition = recogniser.recognise(client, &target, None);
                    Some((recognition.engine.take()?, recognition))
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().ok().flatten())
            .collect()
    });
    let mut networks = Networks::new(&machine);
    open.iter()
        .zip(answers)
        .filter_map(|((address, inode), answer)| {
            let (engine, recognition) = answer?;
            let pid = holders.get(inode).copied();
            Some(from_answer(
                how,
                &machine,
                &mut networks,
                *address,
                pid,
                engine,
                recognition,
            ))
        })
        .collect()
}

fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address {
        SocketAddr::V4(_) if address.ip().is_unspecified() => std::net::Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(_) if address.ip().is_unspecified() => std::net::Ipv6Addr::LOCALHOST.into(),
        _ => address.ip(),
    };
    SocketAddr::new(ip, address.port())
}

fn from_answer(
    how: &Confirm<'_>,
    machine: &Machine<'_>,
    networks: &mut Networks<'_>,
    listens: SocketAddr,
    pid: Option<u32>,
    engine: Engine,
    recognition: Recognition,
) -> FoundServer {
    let group = Group {
        kind: engine.kind,
        by: engine.recognised_by.clone(),
        head: pid.unwrap_or_default(),
        headed: true,
        pids: pid.map(|pid| machine.processes.tree(pid)).unwrap_or_default(),
    };
    let mut server = server::describe(how.catalog, machine, networks, &group);
    let program = pid
        .and_then(|pid| machine.processes.get(pid))
        .map(shakedown_host::Process::program);
    let passes = program.filter(|program| PASSERS.contains(program));
    let because = match passes {
        Some(program) => AddressReason::Published {
            how: format!("{program} (pid {}) passes connections on", group.head),
        },
        None => AddressReason::Unknown,
    };
    let answered = FoundAddress {
        listens: listens.to_string(),
        url: Some(format!("http://{}", reachable(listens))),
        reach: if listens.ip().to_canonical().is_loopback() {
            Reach::ThisMachine
        } else {
            Reach::Outside
        },
        because,
        requests: true,
    };
    // Where the process is not the engine's own, its sockets and arguments say nothing of the engine.
    server
        .addresses
        .retain(|address| address.listens != answered.listens && passes.is_none());
    for address in &mut server.addresses {
        address.requests = false;
    }
    server.addresses.insert(0, answered);
    server.will_listen = None;
    server.engine = engine;
    server.state = recognition.state;
    server.model = recognition
        .models
        .first()
        .map(|model| model.root.clone().unwrap_or_else(|| model.id.clone()));
    server.models = recognition.models;
    server.in_force = None;
    if pid.is_none() {
        server.not_read.push(Evidence::new(
            listens.to_string(),
            "who holds the socket is not readable without more privileges",
        ));
    }
    server
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_of_a_router() {
        let report = serde_json::json!({"workers": [
            {"url": "http://u:p@127.0.0.1:31001", "model_id": "m/x", "is_healthy": true},
            {"no": "url"},
        ]});
        let workers = listed_workers(&report);
        assert_eq!(workers.len(), 1);
        assert_eq!(workers[0].url, "http://***@127.0.0.1:31001");
        assert_eq!(
            (workers[0].model.as_deref(), workers[0].healthy),
            (Some("m/x"), Some(true))
        );
        assert!(listed_workers(&serde_json::json!([])).is_empty());
    }

    #[test]
    fn addresses_to_connect_to() {
        assert_eq!(
            reachable("0.0.0.0:80".parse().unwrap()).to_string(),
            "127.0.0.1:80"
        );
        assert_eq!(reachable("[::]:80".parse().unwrap()).to_string(), "[::1]:80");
        assert_eq!(
            reachable("10.0.0.1:80".parse().unwrap()).to_string(),
            "10.0.0.1:80"
        );
    }
}
