//! Processes that look like an engine's, grouped into servers.

use std::collections::{BTreeMap, HashSet};

use shakedown_host::{Host, Process, Processes};
use shakedown_model::{EngineKind, ProcessPart};

use crate::catalog::{Catalog, ProcessField, ProcessRule};
use crate::command::Command;

/// Bytes of a name that the kernel keeps.
const NAME_LENGTH: usize = 15;

/// A process that a rule recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) kind: EngineKind,
    pub(super) part: ProcessPart,
    pub(super) by: String,
}

/// The processes of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) kind: EngineKind,
    /// What its head was recognised by.
    pub(super) by: String,
    /// Its head, or the first of its helpers where there is no head.
    pub(super) head: u32,
    /// It has a head.
    pub(super) headed: bool,
    /// All of them, the head first.
    pub(super) pids: Vec<u32>,
}

/// The servers that the processes make up, by the process id of their heads.
pub(super) fn groups(catalog: &Catalog, host: &Host, processes: &Processes) -> Vec<Group> {
    let candidates: BTreeMap<u32, Candidate> = processes
        .iter()
        .filter_map(|process| Some((process.pid(), candidate(catalog, host, process)?)))
        .collect();
    let absorbs = |above: EngineKind, below: EngineKind| {
        above == below || catalog.entry(above).absorbs.contains(&below)
    };
    // The outermost process that a candidate belongs to.
    let top_of = |pid: u32| {
        let mut top = pid;
        let mut kind = candidates.get(&pid).map(|candidate| candidate.kind);
        for above in processes.ancestors(pid) {
            if let (Some(candidate), Some(below)) = (candidates.get(&above), kind)
                && absorbs(candidate.kind, below)
            {
                top = above;
                kind = Some(candidate.kind);
            }
        }
        top
    };
    let mut heads: Vec<u32> = Vec::new();
    let mut without_head: BTreeMap<(EngineKind, i32), Vec<u32>> = BTreeMap::new();
    for (pid, candidate) in &candidates {
        if top_of(*pid) != *pid {
            continue;
        }
        match candidate.part {
            ProcessPart::Head => heads.push(*pid),
            ProcessPart::Worker => {
                let session = processes.get(*pid).map_or(0, |process| process.stat.session);
                without_head
                    .entry((candidate.kind, session))
                    .or_default()
                    .push(*pid);
            }
        }
    }
    let others: HashSet<u32> = heads.iter().copied().collect();
    let mut groups: Vec<Group> = heads
        .iter()
        .filter_map(|head| {
            let candidate = candidates.get(head)?;
            Some(Group {
                kind: candidate.kind,
                by: candidate.by.clone(),
                head: *head,
                headed: true,
                pids: tree_without(processes, *head, &others),
            })
        })
        .collect();
    groups.extend(without_head.into_iter().filter_map(|((kind, _), pids)| {
        let head = *pids.first()?;
        Some(Group {
            kind,
            by: candidates.get(&head)?.by.clone(),
            head,
            headed: false,
            pids: pids
                .iter()
                .flat_map(|pid| tree_without(processes, *pid, &others))
                .collect(),
        })
    }));
    groups.sort_by_key(|group| group.head);
    groups
}

/// The tree of `head`, the trees of other servers' heads in it left out.
fn tree_without(processes: &Processes, head: u32, others: &HashSet<u32>) -> Vec<u32> {
    let mut left_out: HashSet<u32> = HashSet::new();
    let mut kept = Vec::new();
    for pid in processes.tree(head) {
        let parent = processes.get(pid).map_or(0, |process| process.stat.parent);
        if pid != head && (others.contains(&pid) || left_out.contains(&parent)) {
            left_out.insert(pid);
        } else {
            kept.push(pid);
        }
    }
    kept
}

fn candidate(catalog: &Catalog, host: &Host, process: &Process) -> Option<Candidate> {
    // A process that ended and is not yet waited for serves nothing.
    if process.stat.kernel || process.stat.state == 'Z' {
        return None;
    }
    let command = Command::of(&process.arguments);
    catalog.entries().find_map(|entry| {
        entry.process.iter().find_map(|rule| {
            let by = matched(host, process, &command, rule)?;
            Some(Candidate {
                kind: entry.kind,
                part: rule.role,
                by,
            })
        })
    })
}

/// What shows that the process is one of the rule's.
fn matched(host: &Host, process: &Process, command: &Command, rule: &ProcessRule) -> Option<String> {
    match rule.field {
        ProcessField::Command => rule
            .pattern
            .is_match(command.text())
            .then(|| format!("its command line ({})", program_of(command))),
        ProcessField::Title => {
            // A title is one argument; a command that only mentions one has more.
            let title = process
                .arguments
                .first()
                .filter(|_| process.arguments.len() == 1)?;
            rule.pattern
                .is_match(title)
                .then(|| format!("its title ({})", title.chars().take(60).collect::<String>()))
        }
        ProcessField::Executable => {
            let name = &process.stat.name;
            let may = rule.pattern.literals.iter().any(|literal| {
                let end = literal.len().min(NAME_LENGTH);
                literal.get(..end).is_some_and(|begin| name.starts_with(begin))
            });
            if !may {
                return None;
            }
            let path = host.executable(process.pid()).ok()?;
            let base = path.rsplit('/').next().unwrap_or(&path);
            rule.pattern
                .is_match(base)
                .then(|| format!("its executable ({base})"))
        }
    }
}

/// The beginning of a command: its program, and the word after it unless that is a flag.
fn program_of(command: &Command) -> String {
    let mut words = command.text().split(' ');
    let mut shown = words.next().unwrap_or_default().to_owned();
    if let Some(word) = words.next()
        && (shown == "-m" || word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
    {
        shown = format!("{shown} {word}");
    }
    shown.chars().take(80).collect()
}
