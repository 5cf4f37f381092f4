//! `/proc/net/tcp`, `tcp6`, `unix` and `fib_trie`.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// State of a listening socket in the kernel's tables.
const LISTEN: &[u8] = b"0A";
/// Flag of a Unix socket that listens.
const ACCEPTS: u32 = 0x0001_0000;

/// Where a socket listens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListenerAddress {
    /// TCP.
    Tcp(SocketAddr),
    /// A Unix socket's path; an abstract name begins with `@`.
    Unix(String),
}

impl fmt::Display for ListenerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{path}"),
        }
    }
}

/// A listening socket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Listener {
    /// Where.
    pub address: ListenerAddress,
    /// The socket's inode, by which processes hold it.
    pub inode: u64,
    /// The user who made it.
    pub uid: u32,
}

/// The listening sockets of a table of `/proc/net/tcp` or `tcp6`; lines of other sockets are passed over, and so are
/// lines that are none.
pub fn tcp_listeners(table: &[u8]) -> Vec<Listener> {
    table
        .split(|byte| *byte == b'\n')
        .filter_map(tcp_listener)
        .collect()
}

fn tcp_listener(line: &[u8]) -> Option<Listener> {
    let mut fields = line
        .split(u8::is_ascii_whitespace)
        .filter(|field| !field.is_empty());
    let local = fields.nth(1)?;
    let state = fields.nth(1)?;
    if state != LISTEN {
        return None;
    }
    // queues, timer, retransmits
    let uid = number(fields.nth(3)?)?;
    let inode = number(fields.nth(1)?)?;
    Some(Listener {
        address: ListenerAddress::Tcp(socket_address(local)?),
        inode,
        uid: u32::try_from(uid).ok()?,
    })
}

fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// `0100007F:7530`: each 32 bits of the address in the machine's own byte order, the port as a number.
fn socket_address(field: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(field).ok()?;
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| -> Option<[u8; 4]> {
        let digits = address.get(at..at + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for part in 0..4 {
                bytes[part * 4..part * 4 + 4].copy_from_slice(&word(part * 8)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// The listening sockets of a table of `/proc/net/unix` that have a name.
pub fn unix_listeners(table: &[u8]) -> Vec<Listener> {
    table
        .split(|byte| *byte == b'\n')
        .filter_map(unix_listener)
        .collect()
}

fn unix_listener(line: &[u8]) -> Option<Listener> {
    let text = String::from_utf8_lossy(line);
    let mut rest = text.trim_start();
    let mut fields = Vec::with_capacity(7);
    for _ in 0..7 {
        let end = rest.find(char::is_whitespace)?;
        fields.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    let flags = u32::from_str_radix(fields[3], 16).ok()?;
    let path = rest.trim_end();
    if flags & ACCEPTS == 0 || path.is_empty() {
        return None;
    }
    Some(Listener {
        address: ListenerAddress::Unix(path.to_owned()),
        inode: fields[6].parse().ok()?,
        uid: 0,
    })
}

/// The machine's own IPv4 addresses in a `/proc/net/fib_trie`, loopback left out.
pub fn local_addresses(trie: &str) -> Vec<Ipv4Addr> {
    let mut found = BTreeSet::new();
    let mut last = None;
    for line in trie.lines() {
        let line = line.trim_start();
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.trim().parse::<Ipv4Addr>().ok();
        } else if line.starts_with("/32 host LOCAL")
            && let Some(address) = last.filter(|address| !address.is_loopback())
        {
            found.insert(address);
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Recorded on a little-endian machine.
    #[cfg(target_endian = "little")]
    #[test]
    fn listening_tcp() {
        let table = b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:7530 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 55501 1 0000000000000000 100 0 0 10 0
   1: 0100007F:7530 0100007F:B001 01 00000000:00000000 00:00000000 00000000  1000        0 55502 1 0000000000000000 20 4 30 10 -1
   2: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 55503 1 0000000000000000 100 0 0 10 0
garbage
   3: 0100007F:XYZ 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
";
        let found = tcp_listeners(table);
        let shown: Vec<String> = found
            .iter()
            .map(|listener| listener.address.to_string())
            .collect();
        assert_eq!(shown, ["127.0.0.1:30000", "0.0.0.0:8000"]);
        assert_eq!((found[0].inode, found[0].uid), (55_501, 1000));
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn listening_tcp6() {
        let table = b"  sl  local_address                         remote_address                        st
   0: 00000000000000000000000000000000:1F40 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 9 1 0
   1: 00000000000000000000000001000000:2CAA 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 10 1 0
";
        let shown: Vec<String> = tcp_listeners(table)
            .iter()
            .map(|listener| listener.address.to_string())
            .collect();
        assert_eq!(shown, ["[::]:8000", "[::1]:11434"]);
    }

    #[test]
    fn listening_unix() {
        let table = b"Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/vllm socket.sock
0000000000000000: 00000003 00000000 00000000 0001 03 12346 /run/other.sock
0000000000000000: 00000002 00000000 00010000 0001 01 12347 @abstract
0000000000000000: 00000002 00000000 00010000 0001 01 12348
";
        let found = unix_listeners(table);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].address.to_string(), "unix:/run/vllm socket.sock");
        assert_eq!(found[1].address, ListenerAddress::Unix("@abstract".to_owned()));
        assert_eq!(found[0].inode, 12_345);
    }

    #[test]
    fn own_addresses() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     +-- 172.17.0.0/16 2 0 2\n        |-- 172.17.0.0\n           /16 link UNICAST\n        |-- 172.17.0.2\n           /32 host LOCAL\n        |-- 172.17.255.255\n           /32 link BROADCAST\n     |-- 127.0.0.1\n           /32 host LOCAL\nLocal:\n        |-- 172.17.0.2\n           /32 host LOCAL\n";
        assert_eq!(local_addresses(trie), [Ipv4Addr::new(172, 17, 0, 2)]);
    }
}
