//! The kernel's files of processes and sockets, and the arguments found there: any bytes, no panic, and lists of no
//! more than the input holds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shakedown_host::{CpuTimes, OpenTarget, Stat, parse};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    if let Some(stat) = Stat::parse(bytes) {
        // What it read is what a kernel would write of it.
        let line = format!(
            "{} ({}) {} {} {} {} 0 0 {} 0 0 0 0 0 0 0 0 0 0 0 0 {}",
            stat.pid,
            stat.name,
            stat.state,
            stat.parent,
            stat.group,
            stat.session,
            u64::from(stat.kernel) << 21,
            stat.start_ticks
        );
        assert_eq!(Stat::parse(line.as_bytes()), Some(stat));
    }
    let lines = bytes.split(|byte| *byte == b'\n').count();
    assert!(parse::tcp_listeners(bytes).len() <= lines);
    assert!(parse::unix_listeners(bytes).len() <= lines);
    let words = parse::nul_list(bytes);
    assert!(words.len() <= bytes.len());
    let _ = parse::docker_proxy(&words);
    let environment = parse::environment(bytes);
    assert!(environment.len() <= bytes.len());
    let _ = parse::local_addresses(&text);
    let _ = parse::cgroup(&text);
    let _ = parse::limits(&text);
    let _ = parse::meminfo_kib(&text, "MemTotal");
    let _ = parse::cpu_list(&text);
    let _ = parse::cpu_max(&text);
    let _ = parse::fdinfo_flags(&text);
    let _ = parse::tty_index(&text);
    let _ = parse::user_name(&text, 1000);
    let _ = parse::status_field(&text, "Uid");
    let _ = CpuTimes::parse(&text);
    let _ = OpenTarget::parse(&text);
    let command = shakedown_engines::Command::of(&words);
    let _ = command.arguments(&words);
    let _ = shakedown_engines::mask_environment(&environment);
    let masked = shakedown_engines::mask_arguments(&words);
    assert_eq!(masked.len(), words.len());
});
