//! Addresses: where the server listens and where the client knocks.

use std::net::IpAddr;
use std::sync::LazyLock;

use regex::Regex;

/// Host and port, as far as a text gives them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Address {
    pub(super) host: Option<String>,
    pub(super) port: Option<u16>,
}

static URL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:https?|grpc|tcp)://(\[[0-9a-f:]+\]|[\w.-]+|\*)(?::(\d{1,5}))?").ok()
});
static HOST_PORT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:^|[\s=('\x22@>,])(\[[0-9a-f:]+\]|::1?|(?:\d{1,3}\.){3}\d{1,3}|localhost|\*|[a-z][\w-]*(?:\.[\w-]+)+|[a-z][\w-]*):(\d{2,5})\b").ok()
});
static NAMED_PARTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)\b(?:host(?:name)?)\s*[=:]\s*['"]?([\w.:\[\]-]+?)['"]?,?\s+port\s*[=:]\s*['"]?(\d{2,5})"#,
    )
    .ok()
});
static PORT_WORD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:connect(?:ion)? to |to |on |at )?([\w.-]+|\[[0-9a-f:]+\])?\s*(?:\([^)]*\)[, ]+)?\bport[ =:]+(\d{2,5})").ok()
});

/// The address that a text speaks of: a URL, `host:port`, or `host=…, port=…`.
pub(super) fn address(text: &str) -> Option<Address> {
    let part = |found: &regex::Captures<'_>, group: usize| found.get(group).map(|m| m.as_str().to_owned());
    for regex in [&NAMED_PARTS, &URL, &HOST_PORT, &PORT_WORD] {
        if let Some(found) = regex.as_ref().and_then(|regex| regex.captures(text)) {
            let host = part(&found, 1).map(|host| host.trim_matches(['[', ']']).to_owned());
            let port = part(&found, 2).and_then(|port| port.parse().ok());
            if host.is_some() || port.is_some() {
                return Some(Address { host, port });
            }
        }
    }
    None
}

/// Whether only the same network namespace reaches this host.
pub(super) fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether this host stands for all interfaces.
pub(super) fn is_any(host: &str) -> bool {
    host == "*"
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_unspecified())
}

/// Whether `no_proxy` covers `host`: the rules that Python's and curl's clients share.
pub(super) fn bypasses(no_proxy: &str, host: &str) -> bool {
    no_proxy
        .split([',', ' '])
        .map(|rule| rule.trim().trim_start_matches('.'))
        .filter(|rule| !rule.is_empty())
        .any(|rule| {
            rule == "*"
                || rule.eq_ignore_ascii_case(host)
                || host
                    .to_ascii_lowercase()
                    .strip_suffix(&rule.to_ascii_lowercase())
                    .is_some_and(|head| head.ends_with('.'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> (Option<String>, Option<u16>) {
        let found = address(text).unwrap_or_default();
        (found.host, found.port)
    }

    #[test]
    fn addresses_in_all_shapes() {
        let is = |host: &str, port| (Some(host.to_owned()), Some(port));
        assert_eq!(
            at("Uvicorn running on http://0.0.0.0:25600 (Press CTRL+C"),
            is("0.0.0.0", 25600)
        );
        assert_eq!(
            at("HTTPConnectionPool(host='localhost', port=11434): Max"),
            is("localhost", 11434)
        );
        assert_eq!(
            at("connect ECONNREFUSED 172.17.0.1:11434"),
            is("172.17.0.1", 11434)
        );
        assert_eq!(at("connect ECONNREFUSED ::1:8080"), is("::1", 8080));
        assert_eq!(
            at("Listening on 127.0.0.1:11434 (version 0.1.20)"),
            is("127.0.0.1", 11434)
        );
        assert_eq!(
            at("Failed to connect to localhost port 8000 after 0 ms"),
            is("localhost", 8000)
        );
        assert_eq!(
            at("HTTP server is listening, hostname: 0.0.0.0, port: 8000"),
            is("0.0.0.0", 8000)
        );
        assert_eq!(
            at("Cannot connect to host 127.0.0.1:23333 ssl:default"),
            is("127.0.0.1", 23333)
        );
        assert_eq!(
            at("couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8122"),
            is("127.0.0.1", 8122)
        );
    }

    #[test]
    fn proxies() {
        assert!(bypasses("localhost,127.0.0.1", "127.0.0.1"));
        assert!(!bypasses("localhost,127.0.0.1", "0.0.0.0"));
        assert!(bypasses(".example.org", "a.example.org"));
        assert!(!bypasses("", "localhost"));
        assert!(is_loopback("127.0.0.1") && is_loopback("::1") && !is_loopback("0.0.0.0"));
        assert!(is_any("0.0.0.0") && is_any("::") && is_any("*"));
    }
}
