//! A machine of fixtures: processes, sockets, logs.

use std::collections::BTreeSet;

use shakedown_host::{Host, LogPlace, Reason, owners};

use crate::fixture::Machine;

fn logs(machine: &Machine, pid: u32) -> Vec<LogPlace> {
    let host = machine.host();
    let processes = host.processes().unwrap();
    host.logs(&processes, pid).places
}

fn file(path: &str, how: &str) -> LogPlace {
    LogPlace::File {
        path: path.to_owned(),
        how: how.to_owned(),
        deleted: false,
    }
}

#[test]
fn processes_with_their_facts() {
    let machine = Machine::new();
    machine.process(10, 1, 10, &["/usr/bin/python3", "-m", "sglang.launch_server"]);
    machine.process(11, 10, 10, &["sglang::scheduler_TP0"]);
    machine.file("/proc/10/environ", "HF_TOKEN=x\0A=b\0");
    machine.link("/proc/10/exe", "/usr/bin/python3.12");
    machine.file("/proc/uptime", "1 1");
    let host = machine.host();
    let processes = host.processes().unwrap();
    assert_eq!(processes.len(), 2);
    assert_eq!(processes.tree(10), [10, 11]);
    assert_eq!(processes.get(11).unwrap().stat.name, "sglang::schedul");
    assert_eq!(processes.get(11).unwrap().program(), "sglang::scheduler_TP0");
    assert_eq!(host.environment(10).unwrap()["A"], "b");
    assert_eq!(host.executable(10).unwrap(), "/usr/bin/python3.12");
    assert_eq!(host.user_name(host.user_id(10).unwrap()), "llm");
    assert_eq!(host.cpus_allowed(10).unwrap(), 2);
    assert_eq!(host.network_namespace(10).unwrap(), 4_026_531_840);
    assert!(
        (Host::started_s(
            host.boot_time().unwrap(),
            processes.get(10).unwrap().stat.start_ticks
        ) - 1_700_000_001.0)
            .abs()
            < 1e-6
    );
    assert_eq!(host.environment(11).unwrap_err().reason, Reason::Missing);
}

#[cfg(target_endian = "little")]
#[test]
fn sockets_and_their_owners() {
    let machine = Machine::new();
    let line = |at: u32, port: &str, state: &str, inode: u32| {
        format!(
            "   {at}: 0100007F:{port} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1 0\n"
        )
    };
    machine.file(
        "/proc/net/tcp",
        [
            "header\n".to_owned(),
            line(0, "7530", "0A", 501),
            line(1, "7530", "01", 502),
            line(2, "1F40", "0A", 503),
        ]
        .concat(),
    );
    machine.process(10, 1, 10, &["sglang"]);
    machine.process(11, 10, 10, &["child"]);
    machine.open(10, 0, "/dev/null", false);
    machine.open(11, 5, "socket:[501]", true);
    machine.open(11, 6, "socket:[502]", true);
    let host = machine.host();
    let listeners = host.listeners().unwrap();
    assert_eq!(listeners.tcp.len(), 2);
    let wanted: BTreeSet<u64> = listeners.tcp.iter().map(|listener| listener.inode).collect();
    let (found, not_read) = owners(&host, [10, 11, 12], &wanted);
    assert_eq!(found.get(&501), Some(&11));
    assert_eq!(found.get(&503), None);
    assert!(
        not_read.is_empty(),
        "a process that ended is no want of privileges"
    );
}

#[test]
fn redirected_output() {
    let machine = Machine::new();
    machine.process(10, 1, 10, &["server"]);
    machine.open(10, 1, "/var/log/server.log", true);
    machine.open(10, 2, "/var/log/server.log", true);
    machine.open(10, 5, "/srv/own.log", true);
    machine.open(10, 6, "/srv/model.safetensors", false);
    machine.open(10, 7, "/srv/read.log", false);
    assert_eq!(
        logs(&machine, 10),
        [
            file("/var/log/server.log", "its standard output"),
            file("/srv/own.log", "it has the file open itself")
        ]
    );
}

#[test]
fn the_file_of_tee_and_not_of_the_neighbour() {
    let machine = Machine::new();
    // sh: server 2>&1 | grep -v x | tee server.log, in one group; a stranger reads another pipe.
    machine.process(10, 1, 10, &["server"]);
    machine.process(11, 1, 10, &["grep"]);
    machine.process(12, 1, 10, &["tee", "server.log"]);
    machine.process(20, 1, 20, &["tee", "other.log"]);
    machine.open(10, 1, "pipe:[7]", true);
    machine.open(10, 2, "pipe:[7]", true);
    machine.open(11, 0, "pipe:[7]", false);
    machine.open(11, 1, "pipe:[8]", true);
    machine.open(12, 0, "pipe:[8]", false);
    machine.open(12, 1, "/dev/pts/0", true);
    machine.open(12, 3, "/home/llm/server.log", true);
    machine.open(20, 0, "pipe:[9]", false);
    machine.open(20, 3, "/home/llm/other.log", true);
    assert_eq!(
        logs(&machine, 10),
        [file("/home/llm/server.log", "through tee (pid 12)")]
    );
}

#[test]
fn a_pipe_whose_reader_writes_nothing() {
    let machine = Machine::new();
    machine.process(10, 1, 10, &["server"]);
    machine.process(11, 1, 10, &["less"]);
    machine.open(10, 1, "pipe:[7]", true);
    machine.open(11, 0, "pipe:[7]", false);
    assert_eq!(
        logs(&machine, 10),
        [LogPlace::Pipe {
            reader: Some("less (pid 11)".to_owned())
        }]
    );
}

#[test]
fn a_pipe_that_goes_round_ends() {
    let machine = Machine::new();
    machine.process(10, 1, 10, &["server"]);
    machine.process(11, 1, 10, &["cat"]);
    machine.process(12, 1, 10, &["cat"]);
    machine.open(10, 1, "pipe:[7]", true);
    machine.open(11, 0, "pipe:[7]", false);
    machine.open(11, 1, "pipe:[8]", true);
    machine.open(12, 0, "pipe:[8]", false);
    machine.open(12, 1, "pipe:[7]", true);
    assert!(!logs(&machine, 10).is_empty());
}

#[test]
fn terminals_and_what_multiplexers_write() {
    let machine = Machine::new();
    machine.process(5, 1, 5, &["tmux: server"]);
    machine.process(10, 5, 10, &["server"]);
    machine.process(11, 5, 11, &["sh", "-c", "cat >> pane.log"]);
    machine.process(12, 11, 11, &["cat"]);
    machine.open(10, 1, "/dev/pts/3", true);
    machine.open(10, 2, "/dev/pts/3", true);
    machine.master(5, 8, 2);
    assert_eq!(
        logs(&machine, 10),
        [LogPlace::Terminal {
            device: "/dev/pts/3".to_owned()
        }]
    );
    // Now the same server holds this terminal, and its pane is piped.
    machine.master(5, 9, 3);
    machine.open(11, 0, "socket:[77]", true);
    machine.open(11, 1, "/home/llm/pane.log", true);
    machine.open(12, 0, "socket:[77]", true);
    machine.open(12, 1, "/home/llm/pane.log", true);
    assert_eq!(
        logs(&machine, 10),
        [file(
            "/home/llm/pane.log",
            "tmux: server passes the terminal to sh (pid 11)"
        )]
    );
}

#[test]
fn journals_containers_and_nothing() {
    let machine = Machine::new();
    machine.process(10, 1, 10, &["server"]);
    machine.open(10, 1, "socket:[5]", true);
    machine.file("/proc/10/cgroup", "0::/system.slice/vllm.service\n");
    assert_eq!(
        logs(&machine, 10),
        [LogPlace::Journal {
            unit: Some("vllm.service".to_owned())
        }]
    );
    machine.open(10, 1, "pipe:[6]", true);
    let id = "0123456789abcdef".repeat(4);
    machine.file("/proc/10/cgroup", format!("0::/system.slice/docker-{id}.scope\n"));
    assert_eq!(
        logs(&machine, 10),
        [LogPlace::Container {
            id: "0123456789ab".to_owned()
        }]
    );
    machine.open(10, 1, "/dev/null", true);
    assert_eq!(logs(&machine, 10), [LogPlace::Discarded]);
    // A file in a container is not the file of that name out here.
    machine.open(10, 1, "/logs/vllm.log", true);
    assert_eq!(
        logs(&machine, 10),
        [file("/proc/10/root/logs/vllm.log", "its standard output")]
    );
}

#[test]
fn facts_of_a_machine() {
    let machine = Machine::new();
    machine.file("/proc/sys/kernel/hostname", "box\n");
    machine.file("/proc/sys/kernel/ostype", "Linux\n");
    machine.file("/proc/sys/kernel/osrelease", "6.1.0\n");
    machine.file("/proc/sys/kernel/random/boot_id", "b-1\n");
    machine.file("/proc/cpuinfo", "processor\t: 0\nmodel name\t: A CPU @ 2 GHz\n");
    machine.file("/proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 50 kB\n");
    machine.file("/proc/loadavg", "1.50 1.00 0.50 2/345 6789\n");
    machine.file("/sys/devices/system/cpu/online", "0-15\n");
    machine.file("/proc/self/status", "Cpus_allowed_list:\t0-3\n");
    machine.file("/proc/self/cgroup", "0::/limited\n");
    machine.file("/sys/fs/cgroup/limited/cpu.max", "200000 100000\n");
    let facts = machine.host().facts();
    assert_eq!(facts.kernel.as_deref(), Some("Linux 6.1.0"));
    assert_eq!(facts.cpu_model.as_deref(), Some("A CPU @ 2 GHz"));
    assert_eq!(
        (facts.cpus, facts.cpus_allowed, facts.cpu_quota),
        (Some(16), Some(4), Some(2.0))
    );
    assert_eq!((facts.memory_kib, facts.load), (Some(100), Some(1.5)));
    assert_eq!(facts.boot_s, Some(1_700_000_000));
    assert_eq!(facts.name.as_deref(), Some("box"));
}

#[test]
fn a_root_without_proc_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let host = Host::at(directory.path());
    assert_eq!(host.processes().unwrap_err().reason, Reason::Missing);
    assert_eq!(
        host.listeners().unwrap_err().to_string(),
        "read /proc/net/tcp: it is not there"
    );
    assert_eq!(host.facts(), shakedown_host::Facts::default());
}
