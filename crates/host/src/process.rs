//! Processes, their trees, and what of one process is read when it is wanted.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use crate::error::HostError;
use crate::parse::{self, Group, Limits, Stat};
use crate::root::Host;

/// Ticks of the clock that `/proc` counts in, per second: the same on every Linux that engines run on.
pub(crate) const TICKS_PER_SECOND: f64 = 100.0;
/// Longest command line that is read, in bytes.
const ARGUMENTS_CAP: usize = 128 * 1024;
/// Longest environment that is read, in bytes.
const ENVIRONMENT_CAP: usize = 512 * 1024;
/// Longest of the small files of a process, in bytes.
const SMALL_CAP: usize = 64 * 1024;

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// What its `stat` says.
    pub stat: Stat,
    /// Its arguments, the program first; a title alone where it wrote one over them.
    pub arguments: Vec<String>,
}

impl Process {
    /// Process id.
    pub const fn pid(&self) -> u32 {
        self.stat.pid
    }

    /// The base name of its program, or the name that the kernel has for it.
    pub fn program(&self) -> &str {
        self.arguments
            .first()
            .and_then(|program| program.rsplit('/').next())
            .filter(|name| !name.is_empty())
            .unwrap_or(&self.stat.name)
    }
}

/// All processes of a moment.
#[derive(Debug, Clone, Default)]
pub struct Processes {
    list: Vec<Process>,
    place: HashMap<u32, usize>,
    children: HashMap<u32, Vec<u32>>,
    /// Files that could not be read, those of processes that ended aside.
    pub not_read: Vec<HostError>,
}

impl Processes {
    /// Processes as they are, in any order.
    pub fn new(mut list: Vec<Process>) -> Self {
        list.sort_by_key(Process::pid);
        list.dedup_by_key(|process| process.stat.pid);
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for process in &list {
            children
                .entry(process.stat.parent)
                .or_default()
                .push(process.pid());
        }
        Self {
            place: list
                .iter()
                .enumerate()
                .map(|(at, process)| (process.pid(), at))
                .collect(),
            list,
            children,
            not_read: Vec::new(),
        }
    }

    /// All of them, by process id.
    pub fn iter(&self) -> impl Iterator<Item = &Process> {
        self.list.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The process `pid`.
    pub fn get(&self, pid: u32) -> Option<&Process> {
        self.list.get(*self.place.get(&pid)?)
    }

    /// The children of `pid`, by process id.
    pub fn children(&self, pid: u32) -> &[u32] {
        self.children.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// `pid` and all that descend from it, parents before children. Each once, whatever the table says.
    pub fn tree(&self, pid: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let mut seen = std::collections::HashSet::new();
        let mut next = std::collections::VecDeque::from([pid]);
        while let Some(pid) = next.pop_front() {
            if seen.insert(pid) {
                found.push(pid);
                next.extend(self.children(pid));
            }
        }
        found
    }

    /// The ancestors of `pid`, the parent first. Ends where the table goes round.
    pub fn ancestors(&self, pid: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let mut at = pid;
        while let Some(process) = self.get(at) {
            at = process.stat.parent;
            if at == 0 || found.contains(&at) || at == pid {
                break;
            }
            found.push(at);
        }
        found
    }
}

impl Host {
    /// All processes. `stat` and `cmdline` of each are read once; kernel threads have no command line.
    ///
    /// # Errors
    /// [`HostError`] where `/proc` itself cannot be listed.
    pub fn processes(&self) -> Result<Processes, HostError> {
        let pids: Vec<u32> = self
            .list("/proc")?
            .iter()
            .filter_map(|name| name.parse().ok())
            .collect();
        let mut list = Vec::with_capacity(pids.len());
        let mut not_read = Vec::new();
        let mut bytes = Vec::new();
        let mut path = String::new();
        for pid in pids {
            match self.read_process(pid, &mut path, &mut bytes) {
                Ok(process) => list.push(process),
                Err(error) if error.reason == crate::Reason::Missing => {}
                Err(error) => not_read.push(error),
            }
        }
        let mut processes = Processes::new(list);
        processes.not_read = not_read;
        Ok(processes)
    }

    /// One process.
    ///
    /// # Errors
    /// [`HostError`] where it ended or its `stat` cannot be read.
    pub fn process(&self, pid: u32) -> Result<Process, HostError> {
        self.read_process(pid, &mut String::new(), &mut Vec::new())
    }

    fn read_process(&self, pid: u32, path: &mut String, bytes: &mut Vec<u8>) -> Result<Process, HostError> {
        name(path, pid, "stat");
        self.read_into(path, SMALL_CAP, bytes)?;
        let stat = Stat::parse(bytes).ok_or_else(|| HostError::malformed(path, "it is no stat line"))?;
        let mut arguments = Vec::new();
        if !stat.kernel {
            name(path, pid, "cmdline");
            // It may end just now; its name is then all there is.
            if self.read_into(path, ARGUMENTS_CAP, bytes).is_ok() {
                arguments = parse::nul_list(bytes);
            }
        }
        Ok(Process { stat, arguments })
    }

    /// The path of the program that `pid` runs.
    ///
    /// # Errors
    /// [`HostError`]; it is denied for processes of other users.
    pub fn executable(&self, pid: u32) -> Result<String, HostError> {
        self.read_link(&of(pid, "exe"))
    }

    /// The working directory of `pid`.
    ///
    /// # Errors
    /// As [`Self::executable`].
    pub fn working_directory(&self, pid: u32) -> Result<String, HostError> {
        self.read_link(&of(pid, "cwd"))
    }

    /// The environment that `pid` was started with; empty where it wrote a title over it.
    ///
    /// # Errors
    /// As [`Self::executable`].
    pub fn environment(&self, pid: u32) -> Result<BTreeMap<String, String>, HostError> {
        Ok(parse::environment(
            &self.read(&of(pid, "environ"), ENVIRONMENT_CAP)?,
        ))
    }

    /// The user id that `pid` acts as.
    ///
    /// # Errors
    /// [`HostError`] where its `status` cannot be read.
    pub fn user_id(&self, pid: u32) -> Result<u32, HostError> {
        let path = of(pid, "status");
        let text = self.read_text(&path, SMALL_CAP)?;
        // Real, effective, saved, of files.
        parse::status_field(&text, "Uid")
            .and_then(|ids| ids.split_ascii_whitespace().nth(1)?.parse().ok())
            .ok_or_else(|| HostError::malformed(&path, "it names no user"))
    }

    /// The name of a user by `/etc/passwd`; the number where it has none.
    pub fn user_name(&self, uid: u32) -> String {
        self.read_text("/etc/passwd", 16 * SMALL_CAP)
            .ok()
            .and_then(|passwd| parse::user_name(&passwd, uid))
            .unwrap_or_else(|| uid.to_string())
    }

    /// The container or service of `pid`.
    ///
    /// # Errors
    /// [`HostError`] where it cannot be read.
    pub fn group(&self, pid: u32) -> Result<Group, HostError> {
        let path = of(pid, "cgroup");
        parse::cgroup(&self.read_text(&path, SMALL_CAP)?)
            .ok_or_else(|| HostError::malformed(&path, "it names no group"))
    }

    /// The limits of `pid`.
    ///
    /// # Errors
    /// [`HostError`] where they cannot be read.
    pub fn limits(&self, pid: u32) -> Result<Limits, HostError> {
        Ok(parse::limits(&self.read_text(&of(pid, "limits"), SMALL_CAP)?))
    }

    /// How many CPUs `pid` may use by its affinity.
    ///
    /// # Errors
    /// [`HostError`] where its `status` cannot be read.
    pub fn cpus_allowed(&self, pid: u32) -> Result<u32, HostError> {
        let path = of(pid, "status");
        let text = self.read_text(&path, SMALL_CAP)?;
        parse::status_field(&text, "Cpus_allowed_list")
            .and_then(parse::cpu_list)
            .ok_or_else(|| HostError::malformed(&path, "it names no CPUs"))
    }
}

/// `/proc/PID/name`.
pub(crate) fn of(pid: u32, file: &str) -> String {
    let mut path = String::new();
    name(&mut path, pid, file);
    path
}

fn name(path: &mut String, pid: u32, file: &str) {
    path.clear();
    // Writing to a string cannot fail.
    let _ = write!(path, "/proc/{pid}/{file}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32) -> Process {
        Process {
            stat: Stat {
                pid,
                name: format!("p{pid}"),
                state: 'S',
                parent,
                group: 0,
                session: 0,
                kernel: false,
                start_ticks: 0,
            },
            arguments: Vec::new(),
        }
    }

    #[test]
    fn trees() {
        let processes = Processes::new(
            [(5, 1), (7, 5), (6, 5), (9, 7), (1, 0)]
                .map(|(a, b)| process(a, b))
                .to_vec(),
        );
        assert_eq!(processes.tree(5), [5, 6, 7, 9]);
        assert_eq!(processes.ancestors(9), [7, 5, 1]);
        assert_eq!(processes.tree(99), [99]);
    }

    #[test]
    fn a_table_that_goes_round_ends() {
        let processes = Processes::new([(5, 7), (7, 5)].map(|(a, b)| process(a, b)).to_vec());
        assert_eq!(processes.tree(5), [5, 7]);
        assert_eq!(processes.ancestors(5), [7]);
    }
}
