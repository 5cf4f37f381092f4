//! One server, described from its processes.

use std::collections::BTreeMap;

use shakedown_host::{Host, HostError, Listener, LogPlace, OpenTarget, Process};
use shakedown_model::{
    Engine, EngineKind, Evidence, FoundLog, FoundProcess, FoundServer, FoundWorker, ProcessPart, ServerState,
};

use super::address::{self, About};
use super::candidate::Group;
use super::installed::installed_version;
use super::{Machine, Networks, evidence};
use crate::catalog::{Catalog, Entry};
use crate::command::{Command, asked_value};
use crate::environment::environment_that_matters;
use crate::in_force::asked_by;
use crate::mask::{mask_arguments, mask_text};

/// Longest name of a process that is kept, in characters.
const NAME_CAP: usize = 80;
/// Processes of one server that are listed.
const PROCESSES_CAP: usize = 4096;

pub(super) fn describe(
    catalog: &Catalog,
    machine: &Machine<'_>,
    networks: &mut Networks<'_>,
    group: &Group,
) -> FoundServer {
    let host = machine.host;
    let entry = catalog.entry(group.kind);
    let head = machine.processes.get(group.head);
    let arguments: &[String] = head.map_or(&[], |process| &process.arguments);
    let mut not_read: Vec<Evidence> = Vec::new();
    let mut noted = |error: &HostError| not_read.push(evidence(error));

    let environment = host.environment(group.head).unwrap_or_else(|error| {
        noted(&error);
        BTreeMap::new()
    });
    let control_group = host.group(group.head).unwrap_or_default();
    let in_container = control_group.container.is_some();
    // A title stands alone where arguments stood, and names no program.
    let arguments_known = group.headed && !(arguments.len() == 1 && arguments[0].contains("::"));
    let version = installed_version(host, entry, group.head, arguments, &environment, in_container);

    let asked: &[String] = if arguments_known { arguments } else { &[] };

    let (listeners, own_network) = networks.of(group.head);
    let held = hold(host, group, listeners.all(), &mut noted);
    let about = About {
        entry,
        arguments: asked,
        environment: &environment,
        version: version.as_deref(),
        arguments_known,
        own_network,
        head: group.head,
    };
    let addresses = address::addresses(machine, &about, &held.sockets);
    let will_listen = if addresses.iter().any(|address| address.requests) || !group.headed {
        None
    } else {
        address::will_listen(&about)
    };
    let state = if !group.headed {
        ServerState::LeftOver
    } else if addresses.iter().any(|address| address.requests) {
        ServerState::Listening
    } else if held.complete {
        ServerState::Loading
    } else {
        ServerState::Unknown
    };
    let logs = host.logs(&machine.processes, group.head);
    logs.not_read.iter().for_each(&mut noted);
    let engine = Engine {
        kind: group.kind,
        version,
        recognised_by: group.by.clone(),
        practice: group.kind == EngineKind::Practice,
    };
    let in_force = arguments_known.then(|| asked_by(entry, arguments, &environment));
    not_read.dedup();
    FoundServer {
        state,
        model: model(entry, asked, &environment),
        models: Vec::new(),
        addresses,
        will_listen,
        pid: group.head,
        processes: processes(machine, group),
        user: host.user_id(group.head).ok().map(|uid| host.user_name(uid)),
        started_s: head
            .zip(machine.boot_s)
            .map(|(process, boot_s)| Host::started_s(boot_s, process.stat.start_ticks)),
        start_ticks: head.map(|process| process.stat.start_ticks),
        arguments: mask_arguments(arguments),
        environment: environment_that_matters(Some(entry), &environment),
        in_force: in_force.filter(|in_force| !in_force.asked.is_empty()),
        gpu_devices: held.gpu_devices,
        logs: logs.places.into_iter().map(log).collect(),
        container: control_group.container.or(control_group.unit),
        own_network,
        workers: workers(entry, asked),
        not_read,
        engine,
    }
}

/// What the processes of a server hold open.
struct Held {
    sockets: Vec<(Listener, u32)>,
    gpu_devices: Vec<String>,
    /// The descriptors of all its processes could be read.
    complete: bool,
}

fn hold<'a>(
    host: &Host,
    group: &Group,
    listeners: impl Iterator<Item = &'a Listener>,
    noted: &mut impl FnMut(&HostError),
) -> Held {
    let by_inode: BTreeMap<u64, &Listener> = listeners.map(|listener| (listener.inode, listener)).collect();
    let mut held = Held {
        sockets: Vec::new(),
        gpu_devices: Vec::new(),
        complete: true,
    };
    let mut denied = false;
    for pid in &group.pids {
        let files = match host.files(*pid) {
            Ok(files) => files,
            Err(error) if error.is_denied() => {
                held.complete = false;
                // One note stands for the processes of one server.
                if !std::mem::replace(&mut denied, true) {
                    noted(&error);
                }
                continue;
            }
            Err(_) => continue,
        };
        for file in files {
            match file.target {
                OpenTarget::Socket(inode) => {
                    if let Some(listener) = by_inode.get(&inode)
                        && !held.sockets.iter().any(|(known, _)| known.inode == inode)
                    {
                        held.sockets.push(((*listener).clone(), *pid));
                    }
                }
                OpenTarget::Device(path) if is_gpu(&path) && !held.gpu_devices.contains(&path) => {
                    held.gpu_devices.push(path);
                }
                _ => {}
            }
        }
    }
    held.gpu_devices.sort();
    held
}

/// `/dev/nvidia0` and `/dev/dri/renderD128`, not the control devices.
fn is_gpu(path: &str) -> bool {
    path.strip_prefix("/dev/nvidia")
        .or_else(|| path.strip_prefix("/dev/dri/renderD"))
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn model(entry: &Entry, arguments: &[String], environment: &BTreeMap<String, String>) -> Option<String> {
    ["model", "served_model_name"].iter().find_map(|name| {
        let asked = asked_value(entry, arguments, environment, name)?;
        Some(mask_text(&asked.value))
    })
}

fn processes(machine: &Machine<'_>, group: &Group) -> Vec<FoundProcess> {
    group
        .pids
        .iter()
        .take(PROCESSES_CAP)
        .filter_map(|pid| machine.processes.get(*pid))
        .map(|process| FoundProcess {
            pid: process.pid(),
            parent: process.stat.parent,
            name: name(process),
            part: if group.headed && process.pid() == group.head {
                ProcessPart::Head
            } else {
                ProcessPart::Worker
            },
        })
        .collect()
}

/// The title of a process, else the name that its command goes by.
fn name(process: &Process) -> String {
    match &process.arguments[..] {
        [title] if title.contains("::") => mask_text(title).chars().take(NAME_CAP).collect(),
        [] => process.stat.name.clone(),
        arguments => {
            let command = Command::of(arguments);
            let mut words = command.text().split(' ');
            let first = words.next().unwrap_or_default();
            let shown = match words.next() {
                Some(module) if first == "-m" => module,
                // Code given as text is no name.
                _ if first.starts_with('-') => &process.stat.name,
                _ => first,
            };
            shown.chars().take(NAME_CAP).collect()
        }
    }
}

fn log(place: LogPlace) -> FoundLog {
    match place {
        LogPlace::File { path, how, deleted } => FoundLog::File { path, how, deleted },
        LogPlace::Terminal { device } => FoundLog::Terminal { device },
        LogPlace::Journal { unit } => FoundLog::Journal { unit },
        LogPlace::Container { id } => FoundLog::Container { id },
        LogPlace::Discarded => FoundLog::Discarded,
        LogPlace::Pipe { reader } => FoundLog::Pipe { reader },
    }
}

/// The workers that a router's arguments name: all words after the flag up to the next one.
fn workers(entry: &Entry, arguments: &[String]) -> Vec<FoundWorker> {
    let Some(flag) = entry.flag.iter().find(|flag| flag.setting == "worker_urls") else {
        return Vec::new();
    };
    let Some(at) = arguments
        .iter()
        .position(|argument| flag.names.contains(argument))
    else {
        return Vec::new();
    };
    arguments[at + 1..]
        .iter()
        .take_while(|argument| !argument.starts_with('-'))
        .map(|url| FoundWorker {
            url: mask_text(url),
            model: None,
            healthy: None,
            pid: None,
        })
        .collect()
}
