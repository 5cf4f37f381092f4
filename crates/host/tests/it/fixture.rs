//! A machine made of files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use shakedown_host::Host;
use tempfile::TempDir;

pub struct Machine {
    directory: TempDir,
}

impl Machine {
    pub fn new() -> Self {
        let machine = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        machine.file("/proc/stat", "cpu  1 2 3 4 5 6 7 8\nbtime 1700000000\n");
        machine.file(
            "/etc/passwd",
            "root:x:0:0::/root:/bin/sh\nllm:x:1000:1000::/home/llm:/bin/sh\n",
        );
        machine
    }

    pub fn host(&self) -> Host {
        Host::at(self.directory.path())
    }

    pub fn file(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.directory.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn link(&self, path: &str, target: &str) {
        let path = self.directory.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        symlink(Path::new(target), path).unwrap();
    }

    /// A process in its own group and session, unless its parent's are given.
    pub fn process(&self, pid: u32, parent: u32, group: u32, arguments: &[&str]) {
        let name: String = arguments[0]
            .rsplit('/')
            .next()
            .unwrap()
            .chars()
            .take(15)
            .collect();
        self.file(
            &format!("/proc/{pid}/stat"),
            format!(
                "{pid} ({name}) S {parent} {group} {group} 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 {} 0 0\n",
                pid * 10
            ),
        );
        let mut line = arguments.join("\0");
        line.push('\0');
        self.file(&format!("/proc/{pid}/cmdline"), line);
        self.file(
            &format!("/proc/{pid}/status"),
            "Uid:\t1000\t1000\t1000\t1000\nCpus_allowed_list:\t0-1\n",
        );
        self.file(&format!("/proc/{pid}/cgroup"), "0::/user.slice\n");
        self.link(&format!("/proc/{pid}/ns/net"), "net:[4026531840]");
    }

    pub fn open(&self, pid: u32, number: u32, target: &str, written: bool) {
        self.link(&format!("/proc/{pid}/fd/{number}"), target);
        let flags = if written { "0100001" } else { "0100000" };
        self.file(
            &format!("/proc/{pid}/fdinfo/{number}"),
            format!("pos:\t0\nflags:\t{flags}\n"),
        );
    }

    #[allow(
        dead_code,
        reason = "the tests of the engines share this file and need no terminals"
    )]
    pub fn master(&self, pid: u32, number: u32, terminal: u32) {
        self.link(&format!("/proc/{pid}/fd/{number}"), "/dev/ptmx");
        self.file(
            &format!("/proc/{pid}/fdinfo/{number}"),
            format!("pos:\t0\nflags:\t0100002\ntty-index:\t{terminal}\n"),
        );
    }
}
