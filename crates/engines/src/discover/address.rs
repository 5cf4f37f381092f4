//! Where a server listens, from where that can be reached, and what put it there.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use shakedown_host::{Listener, ListenerAddress, Processes, parse};
use shakedown_model::{AddressReason, FoundAddress, Reach};

use super::Machine;
use crate::catalog::Entry;
use crate::command::asked_value;
use crate::mask::mask_text;
use crate::version;

/// Where an engine is to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The host, as it was asked for or by default: a name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// What says so.
    pub because: AddressReason,
}

/// Where an engine with these arguments and this environment is to listen; `version` decides between defaults.
pub fn expected_address(
    entry: &Entry,
    arguments: &[String],
    environment: &BTreeMap<String, String>,
    version: Option<&str>,
) -> Option<Expected> {
    expected_addresses(entry, arguments, environment, version)
        .into_iter()
        .next()
}

/// All addresses that it may be: several only where defaults of different versions are in question.
fn expected_addresses(
    entry: &Entry,
    arguments: &[String],
    environment: &BTreeMap<String, String>,
    version: Option<&str>,
) -> Vec<Expected> {
    let asked = |name: &str| asked_value(entry, arguments, environment, name);
    let defaults = || {
        entry
            .listen
            .iter()
            .filter(|listen| version.is_none_or(|version| version::within(&listen.versions, version)))
    };
    let default_host = || defaults().next().map(|listen| listen.host.clone());
    if let Some(address) = asked("address")
        && let Some((host, port)) = split_address(&address.value)
    {
        return vec![Expected {
            host: host.or_else(default_host).unwrap_or_default(),
            port: port
                .or_else(|| defaults().next().map(|listen| listen.port))
                .unwrap_or_default(),
            because: reason(&address.source, &address.value),
        }];
    }
    let host = asked("host").map(|host| host.value);
    if let Some(port) = asked("port") {
        return match port.value.parse() {
            Ok(number) => vec![Expected {
                host: host.or_else(default_host).unwrap_or_default(),
                port: number,
                because: reason(&port.source, &port.value),
            }],
            Err(_) => Vec::new(),
        };
    }
    let because = match asked("config_file") {
        Some(file) => AddressReason::ConfigFile {
            path: mask_text(&file.value),
        },
        None => AddressReason::Default {
            flag: entry
                .flag
                .iter()
                .find(|flag| flag.setting == "port")
                .and_then(|flag| flag.names.first().or(flag.env.first()).cloned()),
        },
    };
    defaults()
        .map(|listen| Expected {
            host: host.clone().unwrap_or_else(|| listen.host.clone()),
            port: listen.port,
            because: because.clone(),
        })
        .collect()
}

fn reason(source: &str, value: &str) -> AddressReason {
    match source.strip_prefix("variable ") {
        Some(name) => AddressReason::Variable {
            name: name.to_owned(),
        },
        None => AddressReason::Argument {
            argument: format!("{} {}", source.trim_start_matches("argument "), mask_text(value)),
        },
    }
}

/// Ollama's one variable: `http://0.0.0.0:11434`, `:8080`, `host`.
fn split_address(value: &str) -> Option<(Option<String>, Option<u16>)> {
    let rest = value.split_once("://").map_or(value, |(_, rest)| rest);
    let rest = rest.split('/').next().unwrap_or_default();
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (host, port.parse().ok())
        }
        _ => (rest, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty() || port.is_some()).then(|| ((!host.is_empty()).then(|| host.to_owned()), port))
}

/// What an address needs beyond the socket.
pub(super) struct About<'a> {
    pub(super) entry: &'a Entry,
    pub(super) arguments: &'a [String],
    pub(super) environment: &'a BTreeMap<String, String>,
    pub(super) version: Option<&'a str>,
    /// Its arguments are known: not written over by a title.
    pub(super) arguments_known: bool,
    /// It has a network namespace of its own.
    pub(super) own_network: bool,
    pub(super) head: u32,
}

/// The addresses of the sockets that a server holds (each with its holder), those for requests first.
pub(super) fn addresses(
    machine: &Machine<'_>,
    about: &About<'_>,
    held: &[(Listener, u32)],
) -> Vec<FoundAddress> {
    let expected = if about.arguments_known {
        expected_addresses(about.entry, about.arguments, about.environment, about.version)
    } else {
        expected_addresses(about.entry, &[], &BTreeMap::new(), about.version)
    };
    let chosen = for_requests(about, &expected, held);
    let inside = if about.own_network {
        machine.host.addresses_of(about.head).unwrap_or_default()
    } else {
        Vec::new()
    };
    let mut found = Vec::new();
    for (listener, _) in held {
        let requests = chosen.contains(&listener.inode);
        match &listener.address {
            ListenerAddress::Unix(path) => found.push(FoundAddress {
                listens: listener.address.to_string(),
                url: None,
                reach: Reach::ThisMachine,
                because: asked_value(about.entry, about.arguments, about.environment, "unix_socket")
                    .map_or(AddressReason::Unknown, |asked| reason(&asked.source, path)),
                requests,
            }),
            ListenerAddress::Tcp(address) => {
                let because = because(about, &expected, address.port());
                if about.own_network {
                    found.extend(published(machine, about, *address, &inside, requests));
                    found.push(inner(machine, about, *address, &inside, because, requests));
                } else {
                    found.push(FoundAddress {
                        listens: address.to_string(),
                        url: Some(url(about, *address)),
                        reach: reach(address.ip()),
                        because,
                        requests,
                    });
                }
            }
        }
    }
    found.sort_by_key(|address| (!address.requests, address.url.is_none()));
    found
}

/// Where a server that listens nowhere will listen.
pub(super) fn will_listen(about: &About<'_>) -> Option<FoundAddress> {
    if !about.arguments_known {
        return None;
    }
    let expected = expected_address(about.entry, about.arguments, about.environment, about.version)?;
    let ip = match expected.host.as_str() {
        "" | "*" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        host => host.parse().ok()?,
    };
    let address = SocketAddr::new(ip, expected.port);
    Some(FoundAddress {
        listens: address.to_string(),
        url: (!about.own_network).then(|| url(about, address)),
        reach: if about.own_network {
            Reach::Namespace
        } else {
            reach(ip)
        },
        because: expected.because,
        requests: true,
    })
}

/// The sockets that take requests: on the expected port, else the only one, else the lowest of the head.
fn for_requests(about: &About<'_>, expected: &[Expected], held: &[(Listener, u32)]) -> Vec<u64> {
    let port_of = |listener: &Listener| match &listener.address {
        ListenerAddress::Tcp(address) => Some(address.port()),
        ListenerAddress::Unix(_) => None,
    };
    let on = |ports: &dyn Fn(u16) -> bool| -> Vec<u64> {
        held.iter()
            .filter(|(listener, _)| port_of(listener).is_some_and(ports))
            .map(|(listener, _)| listener.inode)
            .collect()
    };
    let wanted = on(&|port| expected.iter().any(|expected| expected.port == port));
    if !wanted.is_empty() {
        return wanted;
    }
    let unix = asked_value(about.entry, about.arguments, about.environment, "unix_socket");
    if let Some(asked) = unix {
        let listener = held.iter().find(
            |(listener, _)| matches!(&listener.address, ListenerAddress::Unix(path) if *path == asked.value),
        );
        if let Some((listener, _)) = listener {
            return vec![listener.inode];
        }
    }
    let lowest = |own: bool| {
        held.iter()
            .filter(|(_, holder)| !own || *holder == about.head)
            .filter_map(|(listener, _)| port_of(listener))
            .filter(|port| !about.entry.other_ports.contains(port))
            .min()
    };
    match lowest(true).or_else(|| lowest(false)) {
        Some(lowest) => on(&|port| port == lowest),
        None => Vec::new(),
    }
}

fn because(about: &About<'_>, expected: &[Expected], port: u16) -> AddressReason {
    let reason = expected
        .iter()
        .find(|expected| expected.port == port)
        .map(|expected| expected.because.clone());
    match reason {
        Some(AddressReason::Default { flag }) if about.arguments_known => AddressReason::Default { flag },
        Some(AddressReason::Default { .. }) | None => AddressReason::Unknown,
        Some(reason) => reason,
    }
}

/// From where an address of this machine's own network is reached.
fn reach(ip: IpAddr) -> Reach {
    if ip.to_canonical().is_loopback() {
        Reach::ThisMachine
    } else {
        Reach::Outside
    }
}

/// The base URL that reaches a socket from this machine. A socket on all IPv6 addresses may take IPv6 alone.
fn url(about: &About<'_>, address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let asked = |name: &str| asked_value(about.entry, about.arguments, about.environment, name);
    let scheme = if asked("tls_certificate").is_some() {
        "https"
    } else {
        "http"
    };
    let prefix = asked("api_prefix").map(|prefix| prefix.value).unwrap_or_default();
    format!(
        "{scheme}://{}{}",
        SocketAddr::new(ip, address.port()),
        prefix.trim_end_matches('/')
    )
}

/// Ports of this machine that docker-proxy passes on to a socket in another namespace.
fn published(
    machine: &Machine<'_>,
    about: &About<'_>,
    address: SocketAddr,
    inside: &[Ipv4Addr],
    requests: bool,
) -> Vec<FoundAddress> {
    proxies(&machine.processes)
        .filter(|(_, passes)| {
            passes.inside.port() == address.port()
                && matches!(passes.inside.ip(), IpAddr::V4(ip) if inside.contains(&ip))
        })
        .map(|(pid, passes)| FoundAddress {
            listens: passes.outside.to_string(),
            url: Some(url(about, passes.outside)),
            reach: reach(passes.outside.ip()),
            because: AddressReason::Published {
                how: format!(
                    "docker-proxy (pid {pid}) passes {} on to {}",
                    passes.outside, passes.inside
                ),
            },
            requests,
        })
        .collect()
}

pub(super) fn proxies(processes: &Processes) -> impl Iterator<Item = (u32, parse::Published)> {
    processes
        .iter()
        .filter_map(|process| Some((process.pid(), parse::docker_proxy(&process.arguments)?)))
}

/// The socket in its own namespace: reached from here where this machine has an address in the same network.
fn inner(
    machine: &Machine<'_>,
    about: &About<'_>,
    address: SocketAddr,
    inside: &[Ipv4Addr],
    because: AddressReason,
    requests: bool,
) -> FoundAddress {
    let own = machine.host.addresses().unwrap_or_default();
    let near = |ip: &Ipv4Addr| own.iter().any(|own| own.octets()[..2] == ip.octets()[..2]);
    let open_to_others = !address.ip().to_canonical().is_loopback();
    let via = inside.iter().find(|ip| open_to_others && near(ip));
    FoundAddress {
        listens: address.to_string(),
        url: via.map(|ip| url(about, SocketAddr::new(IpAddr::V4(*ip), address.port()))),
        reach: if via.is_some() {
            Reach::ThisMachine
        } else {
            Reach::Namespace
        },
        because,
        requests,
    }
}

#[cfg(test)]
mod tests {
    use shakedown_model::EngineKind;

    use super::*;
    use crate::catalog::Catalog;

    fn expect(kind: EngineKind, line: &str, env: &[(&str, &str)], version: Option<&str>) -> Expected {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let environment = env
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        expected_address(Catalog::built_in().entry(kind), &arguments, &environment, version).unwrap()
    }

    fn default(flag: &str) -> AddressReason {
        AddressReason::Default {
            flag: Some(flag.to_owned()),
        }
    }

    #[test]
    fn what_puts_a_server_where() {
        let found = expect(
            EngineKind::Sglang,
            "python3 -m sglang.launch_server --model-path m",
            &[],
            None,
        );
        assert_eq!(
            (found.host.as_str(), found.port, found.because),
            ("127.0.0.1", 30000, default("--port"))
        );
        let found = expect(
            EngineKind::Sglang,
            "python3 -m sglang.launch_server --port=8000 --host 0.0.0.0",
            &[],
            None,
        );
        assert_eq!((found.host.as_str(), found.port), ("0.0.0.0", 8000));
        assert_eq!(
            found.because,
            AddressReason::Argument {
                argument: "--port 8000".to_owned()
            }
        );
        let found = expect(
            EngineKind::LlamaCpp,
            "llama-server",
            &[("LLAMA_ARG_PORT", "9000")],
            None,
        );
        assert_eq!(
            (found.port, found.because),
            (
                9000,
                AddressReason::Variable {
                    name: "LLAMA_ARG_PORT".to_owned()
                }
            )
        );
        let found = expect(EngineKind::Vllm, "vllm serve m --config c.yaml", &[], None);
        assert_eq!(
            found.because,
            AddressReason::ConfigFile {
                path: "c.yaml".to_owned()
            }
        );
    }

    #[test]
    fn one_variable_for_all() {
        for (value, host, port) in [
            ("0.0.0.0:8080", "0.0.0.0", 8080),
            ("http://0.0.0.0", "0.0.0.0", 11434),
            (":9999", "127.0.0.1", 9999),
            ("[::1]:7", "::1", 7),
        ] {
            let found = expect(
                EngineKind::Ollama,
                "ollama serve",
                &[("OLLAMA_HOST", value)],
                None,
            );
            assert_eq!((found.host.as_str(), found.port), (host, port), "{value}");
        }
    }

    #[test]
    fn a_version_decides_between_defaults() {
        assert_eq!(expect(EngineKind::LlamaCpp, "llama-server", &[], None).port, 8080);
        let catalog = Catalog::built_in();
        let all = expected_addresses(catalog.entry(EngineKind::LlamaCpp), &[], &BTreeMap::new(), None);
        assert_eq!(
            all.iter().map(|expected| expected.port).collect::<Vec<_>>(),
            [8080, 9931]
        );
        let old = expected_addresses(
            catalog.entry(EngineKind::LlamaCpp),
            &[],
            &BTreeMap::new(),
            Some("b4000"),
        );
        assert_eq!(
            old.iter().map(|expected| expected.port).collect::<Vec<_>>(),
            [8080]
        );
    }
}
