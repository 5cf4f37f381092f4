//! This machine: what the kernel says of things that we made ourselves.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use shakedown_host::{Host, ListenerAddress, LogPlace, owners};

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn our_own_process() {
    let host = Host::local();
    let pid = std::process::id();
    let processes = host.processes().unwrap();
    let own = processes.get(pid).unwrap();
    assert!(own.arguments[0].contains("it-"), "{:?}", own.arguments);
    assert_eq!(
        host.executable(pid).unwrap(),
        std::env::current_exe().unwrap().to_str().unwrap()
    );
    let started = Host::started_s(host.boot_time().unwrap(), own.stat.start_ticks);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs_f64();
    // The time of boot is whole seconds, and the clock may have been set since.
    assert!(started <= now + 2.0 && started > now - 3600.0, "{started} {now}");
    assert!(host.environment(pid).unwrap().contains_key("PATH"));
    assert_eq!(
        host.network_namespace(pid).unwrap(),
        host.own_network_namespace().unwrap()
    );
    assert!(processes.ancestors(pid).contains(&own.stat.parent));
}

#[test]
fn our_own_sockets() {
    let host = Host::local();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let six = TcpListener::bind("[::1]:0").ok();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a socket.sock");
    let _unix = UnixListener::bind(&path).unwrap();
    let listeners = host.listeners().unwrap();
    let mut wanted: Vec<ListenerAddress> = vec![
        ListenerAddress::Tcp(tcp.local_addr().unwrap()),
        ListenerAddress::Unix(path.to_str().unwrap().to_owned()),
    ];
    wanted.extend(
        six.as_ref()
            .map(|six| ListenerAddress::Tcp(six.local_addr().unwrap())),
    );
    let found: Vec<_> = listeners
        .all()
        .filter(|listener| wanted.contains(&listener.address))
        .collect();
    assert_eq!(found.len(), wanted.len(), "{wanted:?}");
    let inodes: BTreeSet<u64> = found.iter().map(|listener| listener.inode).collect();
    let (owners, _) = owners(&host, [std::process::id()], &inodes);
    assert_eq!(owners.len(), wanted.len());
}

#[test]
fn a_real_pipe_into_tee() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("server.log");
    // The shell's own pid is the server's after exec; a line says that it runs.
    let mut child = Command::new("sh")
        .arg("-c")
        .arg("(echo $$ready; exec sleep 60) 2>&1 | tee \"$0\"")
        .arg(&log)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map(Ended)
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.0.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let host = Host::local();
    let shell = child.0.id();
    // tee wrote the line, so it runs; sleep may still be the shell that becomes it.
    let (processes, server) = (0..500)
        .find_map(|_| {
            let processes = host.processes().unwrap();
            let server = processes.tree(shell).into_iter().find(|pid| {
                processes
                    .get(*pid)
                    .is_some_and(|process| process.program() == "sleep")
            });
            if server.is_none() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            Some((processes, server?))
        })
        .expect("a server in the tree");
    let found = host.logs(&processes, server);
    let _ = Command::new("kill").arg(server.to_string()).status();
    match &found.places[..] {
        [
            LogPlace::File {
                path,
                how,
                deleted: false,
            },
        ] => {
            assert_eq!(path, &log.canonicalize().unwrap().to_str().unwrap().to_owned());
            assert!(how.starts_with("through tee"), "{how}");
        }
        other => panic!("{other:?}"),
    }
}
