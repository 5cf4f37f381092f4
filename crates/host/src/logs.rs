//! Where the log of a process goes: a file, a pipe and the file that its reader writes, a terminal and what a
//! multiplexer writes of it, the journal, a container's log.

use crate::error::HostError;
use crate::files::OpenTarget;
use crate::process::Processes;
use crate::root::Host;

/// Pipes that are followed one after the other (`server | grep | tee`).
const DEPTH_CAP: usize = 4;
/// Files that one reader may write before it is more than a log's.
const FILES_CAP: usize = 8;
/// Programs that hold terminals and may write what goes over them, by the beginning of their names.
const MULTIPLEXERS: &[&str] = &[
    "tmux",
    "screen",
    "SCREEN",
    "script",
    "zellij",
    "ttyrec",
    "asciinema",
    "abduco",
    "dtach",
];
/// Programs that read the output of containers.
const CONTAINER_READERS: &[&str] = &["containerd-shim", "conmon", "dockerd", "podman"];

/// Where a log goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogPlace {
    /// A file.
    File {
        /// Its path, as this machine sees it.
        path: String,
        /// How the log gets there.
        how: String,
        /// It was removed since.
        deleted: bool,
    },
    /// A terminal alone.
    Terminal {
        /// Its device.
        device: String,
    },
    /// The journal, by the unit.
    Journal {
        /// The unit, where known.
        unit: Option<String>,
    },
    /// A container's log.
    Container {
        /// The container.
        id: String,
    },
    /// `/dev/null`.
    Discarded,
    /// A pipe whose reader writes no file that we can see.
    Pipe {
        /// The reader, where known.
        reader: Option<String>,
    },
}

/// What a search for logs found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogSearch {
    /// Places, standard output first, without repeats.
    pub places: Vec<LogPlace>,
    /// What could not be read on the way.
    pub not_read: Vec<HostError>,
}

impl Host {
    /// Where the log of `pid` goes: its standard output and error, and log files that it has open itself.
    pub fn logs(&self, processes: &Processes, pid: u32) -> LogSearch {
        let mut search = Search {
            host: self,
            processes,
            pid,
            found: LogSearch::default(),
        };
        search.run();
        search.found
    }
}

struct Search<'a> {
    host: &'a Host,
    processes: &'a Processes,
    pid: u32,
    found: LogSearch,
}

impl Search<'_> {
    fn run(&mut self) {
        let files = match self.host.files(self.pid) {
            Ok(files) => files,
            Err(error) => {
                self.found.not_read.push(error);
                return;
            }
        };
        for (number, name) in [(1, "standard output"), (2, "standard error")] {
            if let Some(file) = files.iter().find(|file| file.number == number) {
                self.follow(&file.target, &format!("its {name}"));
            }
        }
        for file in files.iter().filter(|file| file.number > 2) {
            if let OpenTarget::File { path, deleted } = &file.target
                && looks_like_log(path)
                && self.host.is_written(self.pid, file.number) == Some(true)
            {
                self.add_file(self.pid, path, "it has the file open itself", *deleted);
            }
        }
    }

    fn add(&mut self, place: LogPlace) {
        let same_file = |known: &LogPlace| match (known, &place) {
            (LogPlace::File { path: a, .. }, LogPlace::File { path: b, .. }) => a == b,
            (known, place) => known == place,
        };
        if !self.found.places.iter().any(same_file) {
            self.found.places.push(place);
        }
    }

    /// A file that process `writer` sees at `path`; in a container that is another file than ours of that name.
    fn add_file(&mut self, writer: u32, path: &str, how: &str, deleted: bool) {
        let in_container = self
            .host
            .group(writer)
            .is_ok_and(|group| group.container.is_some());
        let path = if in_container {
            format!("/proc/{writer}/root{path}")
        } else {
            path.to_owned()
        };
        self.add(LogPlace::File {
            path,
            how: how.to_owned(),
            deleted,
        });
    }

    fn follow(&mut self, target: &OpenTarget, how: &str) {
        match target {
            OpenTarget::File { path, deleted } => self.add_file(self.pid, path, how, *deleted),
            OpenTarget::Device(path) if path == "/dev/null" => self.add(LogPlace::Discarded),
            OpenTarget::Device(path) => self.follow_terminal(path),
            OpenTarget::Pipe(inode) => self.follow_pipe(*inode, self.pid, DEPTH_CAP),
            OpenTarget::Socket(_) => {
                // A service of systemd has a socket to the journal here.
                let unit = self.host.group(self.pid).ok().and_then(|group| group.unit);
                if unit.is_some() {
                    self.add(LogPlace::Journal { unit });
                } else {
                    self.add(LogPlace::Pipe { reader: None });
                }
            }
            OpenTarget::Other(_) => {}
        }
    }

    fn follow_pipe(&mut self, inode: u64, writer: u32, depth: usize) {
        let Some(reader) = self.reader_of(inode, writer) else {
            let group = self.host.group(self.pid).ok();
            self.add(match group.and_then(|group| group.container) {
                Some(id) => LogPlace::Container { id },
                None => LogPlace::Pipe { reader: None },
            });
            return;
        };
        let program = self.program(reader);
        if CONTAINER_READERS.iter().any(|name| program.starts_with(name)) {
            let group = self.host.group(self.pid).ok();
            if let Some(id) = group.and_then(|group| group.container) {
                self.add(LogPlace::Container { id });
                return;
            }
        }
        let how = format!("through {program} (pid {reader})");
        let files = self.host.files(reader).unwrap_or_default();
        let mut written = 0;
        // What it says of itself on its standard error is no part of what it reads.
        for file in files.iter().filter(|file| file.number != 2) {
            if let OpenTarget::File { path, deleted } = &file.target
                && written < FILES_CAP
                && self.host.is_written(reader, file.number) == Some(true)
            {
                self.add_file(reader, path, &how, *deleted);
                written += 1;
            }
        }
        if written > 0 {
            return;
        }
        let output = files.iter().find(|file| file.number == 1);
        match output.map(|file| &file.target) {
            Some(OpenTarget::Pipe(next)) if *next != inode && depth > 1 => {
                self.follow_pipe(*next, reader, depth - 1);
            }
            _ => self.add(LogPlace::Pipe {
                reader: Some(format!("{program} (pid {reader})")),
            }),
        }
    }

    fn program(&self, pid: u32) -> String {
        self.processes
            .get(pid)
            .map_or_else(|| "a process".to_owned(), |process| process.program().to_owned())
    }

    /// The process that reads the pipe: looked for in the group of its writer, then in its session, then everywhere.
    fn reader_of(&self, inode: u64, writer: u32) -> Option<u32> {
        let own = self.processes.tree(self.pid);
        let stat = &self.processes.get(writer)?.stat;
        let nearness = |pid: u32| {
            self.processes.get(pid).map_or(3, |process| {
                if process.stat.group == stat.group {
                    0
                } else if process.stat.session == stat.session {
                    1
                } else {
                    2
                }
            })
        };
        let mut others: Vec<u32> = self
            .processes
            .iter()
            .filter(|process| !process.stat.kernel)
            .map(crate::Process::pid)
            .filter(|pid| *pid != writer && !own.contains(pid))
            .collect();
        others.sort_by_key(|pid| nearness(*pid));
        others.into_iter().find(|pid| {
            let files = self.host.files(*pid).unwrap_or_default();
            files.iter().any(|file| {
                file.target == OpenTarget::Pipe(inode)
                    && self.host.is_written(*pid, file.number) == Some(false)
            })
        })
    }

    fn follow_terminal(&mut self, device: &str) {
        let index = device
            .strip_prefix("/dev/pts/")
            .and_then(|index| index.parse().ok());
        let written = match index.and_then(|index| self.holder_of(index)) {
            Some(holder) => self.follow_multiplexer(holder),
            None => false,
        };
        if !written {
            self.add(LogPlace::Terminal {
                device: device.to_owned(),
            });
        }
    }

    /// Whether the multiplexer `holder`, or a child that it passes the terminal to, writes a file.
    fn follow_multiplexer(&mut self, holder: u32) -> bool {
        let program = self.program(holder);
        let own = self.processes.tree(self.pid);
        let mut written = self.written_by(
            holder,
            &format!("{program} (pid {holder}) writes what is on the terminal"),
        );
        // `tmux pipe-pane`: a child of the server that reads no terminal and writes a file.
        for child in self.processes.tree(holder).into_iter().skip(1) {
            let reads_terminal = matches!(self.host.file(child, 0), Ok(OpenTarget::Device(_)) | Err(_));
            if !reads_terminal && !own.contains(&child) {
                let how = format!(
                    "{program} passes the terminal to {} (pid {child})",
                    self.program(child)
                );
                written |= self.written_by(child, &how);
            }
        }
        written
    }

    /// Adds the files that `writer` writes; whether there is one.
    fn written_by(&mut self, writer: u32, how: &str) -> bool {
        let files = self.host.files(writer).unwrap_or_default();
        let mut written = false;
        for file in files.iter().take(FILES_CAP * 8) {
            if let OpenTarget::File { path, deleted } = &file.target
                && self.host.is_written(writer, file.number) == Some(true)
            {
                self.add_file(writer, path, how, *deleted);
                written = true;
            }
        }
        written
    }

    /// The multiplexer that holds the master of terminal `index`.
    fn holder_of(&self, index: u32) -> Option<u32> {
        self.processes
            .iter()
            .filter(|process| {
                MULTIPLEXERS
                    .iter()
                    .any(|name| process.stat.name.starts_with(name))
            })
            .map(crate::Process::pid)
            .find(|pid| {
                let files = self.host.files(*pid).unwrap_or_default();
                files.iter().any(|file| {
                    matches!(&file.target, OpenTarget::Device(path) if path.ends_with("/ptmx"))
                        && self.host.terminal_of_master(*pid, file.number) == Some(index)
                })
            })
    }
}

fn looks_like_log(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let ends = name.rsplit('.').next().unwrap_or_default();
    matches!(ends, "log" | "out" | "err")
        || name.contains(".log.")
        || path.contains("/log/")
        || path.contains("/logs/")
}
