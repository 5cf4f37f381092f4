//! Lists of strings and numbers, and the small files of descriptors and users.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Parts of a list that are read: more is no real process.
const PARTS_CAP: usize = 65_536;
/// CPUs that a list may name.
const CPUS_CAP: u32 = 1 << 20;

/// The strings of a file where each ends with a NUL (`cmdline`), those at the end that are empty left out: a title
/// written over the arguments leaves them.
pub fn nul_list(bytes: &[u8]) -> Vec<String> {
    let mut end = bytes.len();
    while end > 0 && bytes[end - 1] == 0 {
        end -= 1;
    }
    if end == 0 {
        return Vec::new();
    }
    bytes[..end]
        .split(|byte| *byte == 0)
        .take(PARTS_CAP)
        .map(|part| String::from_utf8_lossy(part).into_owned())
        .collect()
}

/// The variables of an `environ`; where a name is given twice, the first counts, as for `getenv`.
pub fn environment(bytes: &[u8]) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for part in bytes.split(|byte| *byte == 0).take(PARTS_CAP) {
        let text = String::from_utf8_lossy(part);
        if let Some((name, value)) = text.split_once('=')
            && !name.is_empty()
        {
            variables
                .entry(name.to_owned())
                .or_insert_with(|| value.to_owned());
        }
    }
    variables
}

/// The flags of a descriptor in its `fdinfo`: the lowest two bits are 0 for reading, 1 for writing, 2 for both.
pub fn fdinfo_flags(text: &str) -> Option<u32> {
    let value = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
    u32::from_str_radix(value.trim(), 8).ok()
}

/// The number of the terminal whose master a descriptor is, in its `fdinfo`: 3 is `/dev/pts/3`.
pub fn tty_index(text: &str) -> Option<u32> {
    text.lines()
        .find_map(|line| line.strip_prefix("tty-index:"))?
        .trim()
        .parse()
        .ok()
}

/// The name of a user in a `passwd` file.
pub fn user_name(passwd: &str, uid: u32) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let id: u32 = fields.nth(1)?.parse().ok()?;
        (id == uid && !name.is_empty()).then(|| name.to_owned())
    })
}

/// How many CPUs a list names: `0-3,8` are five.
pub fn cpu_list(text: &str) -> Option<u32> {
    let mut count: u32 = 0;
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first = first.trim().parse::<u32>().ok()?;
        let last = last.trim().parse::<u32>().ok()?;
        if first > last || last >= CPUS_CAP {
            return None;
        }
        count = count.checked_add(last - first + 1)?;
    }
    (count > 0).then_some(count)
}

/// A port that `docker-proxy` passes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Where the machine listens.
    pub outside: SocketAddr,
    /// Where connections go.
    pub inside: SocketAddr,
}

/// What a `docker-proxy` with these arguments passes on; `None` for other programs and protocols.
pub fn docker_proxy(arguments: &[String]) -> Option<Published> {
    let program = arguments.first()?.rsplit('/').next()?;
    if program != "docker-proxy" && program != "rootlesskit-docker-proxy" {
        return None;
    }
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    if value("-proto").is_some_and(|protocol| protocol != "tcp") {
        return None;
    }
    let address = |ip: &str, port: &str| {
        let ip = value(ip)?
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse()
            .ok()?;
        Some(SocketAddr::new(ip, value(port)?.parse().ok()?))
    };
    Some(Published {
        outside: address("-host-ip", "-host-port")?,
        inside: address("-container-ip", "-container-port")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_titles() {
        assert_eq!(nul_list(b"a\0b c\0\0d\0"), ["a", "b c", "", "d"]);
        assert_eq!(nul_list(b"sglang::router\0\0\0\0"), ["sglang::router"]);
        assert_eq!(nul_list(b"\0\0"), Vec::<String>::new());
        assert_eq!(nul_list(b""), Vec::<String>::new());
        assert_eq!(nul_list(b"\xff\0"), ["\u{fffd}"]);
    }

    #[test]
    fn variables() {
        let found = environment(b"A=1\0B=x=y\0A=2\0=z\0none\0\0");
        assert_eq!(found.len(), 2);
        assert_eq!((found["A"].as_str(), found["B"].as_str()), ("1", "x=y"));
    }

    #[test]
    fn descriptors() {
        let text = "pos:\t0\nflags:\t02100001\nmnt_id:\t15\ntty-index:\t3\n";
        assert_eq!(fdinfo_flags(text).unwrap() & 3, 1);
        assert_eq!(tty_index(text), Some(3));
        assert_eq!(fdinfo_flags("pos: 1"), None);
    }

    #[test]
    fn users_and_cpus() {
        assert_eq!(
            user_name("root:x:0:0::/root:/bin/sh\nllm:x:1000:1000::\n", 1000).as_deref(),
            Some("llm")
        );
        assert_eq!(user_name("root:x:0:0", 5), None);
        assert_eq!(cpu_list("0-3,8\n"), Some(5));
        assert_eq!(cpu_list("3-1"), None);
        assert_eq!(cpu_list("0-4294967295"), None);
        assert_eq!(cpu_list(""), None);
    }

    #[test]
    fn published_ports() {
        let line = "/usr/bin/docker-proxy -proto tcp -host-ip 0.0.0.0 -host-port 8001 -container-ip 172.17.0.2 -container-port 8000 -use-listen-fd";
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let found = docker_proxy(&arguments).unwrap();
        assert_eq!(found.outside.to_string(), "0.0.0.0:8001");
        assert_eq!(found.inside.to_string(), "172.17.0.2:8000");
        assert_eq!(docker_proxy(&["ls".to_owned()]), None);
        assert_eq!(docker_proxy(&["docker-proxy".to_owned()]), None);
    }
}
