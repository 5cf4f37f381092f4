//! The parsers take any bytes.

use proptest::prelude::*;
use shakedown_host::parse;
use shakedown_host::{CpuTimes, OpenTarget, Stat};

proptest! {
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let _ = Stat::parse(&bytes);
        let _ = parse::tcp_listeners(&bytes);
        let _ = parse::unix_listeners(&bytes);
        let _ = parse::environment(&bytes);
        let _ = parse::local_addresses(&text);
        let _ = parse::cgroup(&text);
        let _ = parse::limits(&text);
        let _ = parse::cpu_list(&text);
        let _ = parse::cpu_max(&text);
        let _ = parse::fdinfo_flags(&text);
        let _ = parse::tty_index(&text);
        let _ = parse::user_name(&text, 0);
        let _ = CpuTimes::parse(&text);
        let _ = OpenTarget::parse(&text);
        let words = parse::nul_list(&bytes);
        let _ = parse::docker_proxy(&words);
    }

    #[test]
    fn near_to_the_real_thing(text in "([0-9A-F]{1,9}[: ()\t\n]|[a-z/.-]{1,6}| |:|/){0,80}") {
        let _ = Stat::parse(text.as_bytes());
        let _ = parse::tcp_listeners(text.as_bytes());
        let _ = parse::unix_listeners(text.as_bytes());
        let _ = parse::cgroup(&text);
    }

    #[test]
    fn arguments_come_back(arguments in proptest::collection::vec("[^\0]{1,20}", 1..10)) {
        let mut bytes = arguments.join("\0").into_bytes();
        bytes.push(0);
        prop_assert_eq!(parse::nul_list(&bytes), arguments);
    }

    #[test]
    fn a_stat_line_comes_back(pid in 1u32.., name in "[^\0]{0,15}", parent in 0u32.., group: i32, ticks: u64) {
        let line = format!("{pid} ({name}) S {parent} {group} {group} 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 {ticks} 0 0\n");
        let stat = Stat::parse(line.as_bytes()).unwrap();
        prop_assert_eq!((stat.pid, stat.name, stat.parent, stat.group, stat.start_ticks), (pid, name, parent, group, ticks));
    }
}
