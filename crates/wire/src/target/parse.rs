//! Taking a base URL apart.

use std::net::{Ipv4Addr, Ipv6Addr};

use shakedown_model::{MASK, Secret};

use super::{Scheme, Target, TargetError};

/// Paths of endpoints that a user may have pasted with the base URL, longest first.
const ENDPOINTS: [&str; 5] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/models",
    "/generate",
    "/v1",
];

pub(super) fn parse(text: &str) -> Result<Target, TargetError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(TargetError::Empty);
    }
    let input = || masked(text);
    let (named_scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Some(Scheme::Http), rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Some(Scheme::Https), rest),
        Some((scheme, _)) if is_scheme(scheme) => {
            return Err(TargetError::Scheme {
                input: input(),
                scheme: scheme.to_owned(),
            });
        }
        // A "://" that no scheme precedes stands in a path or password; the checks below refuse it.
        _ => (None, text),
    };
    if rest.contains(['?', '#']) {
        return Err(TargetError::Query { input: input() });
    }
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    let (user_info, host_port) = match authority.rsplit_once('@') {
        Some((user, host_port)) => (Some(user), host_port),
        None => (None, authority),
    };
    let authorization = match user_info {
        Some(user) => Some(basic(user).ok_or_else(|| TargetError::UserInfo { input: input() })?),
        None => None,
    };
    // "user:pass/word@host": what looks like host and path may be the parts of a password.
    if path.contains('@') {
        return Err(TargetError::UserInfo { input: input() });
    }
    let (host, port) = host_and_port(host_port, &input)?;
    let port = match (port, named_scheme) {
        (Some(port), _) => port,
        (None, Some(scheme)) => scheme.default_port(),
        (None, None) => return Err(TargetError::NoPort { input: input() }),
    };
    if !path.bytes().all(is_path_byte) {
        return Err(TargetError::Path { input: input() });
    }
    Ok(Target {
        scheme: named_scheme.unwrap_or(Scheme::Http),
        host,
        port,
        prefix: base_path(path).to_owned(),
        authorization,
    })
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// The text as it may be shown: what could be a credential masked, the query left out.
fn masked(text: &str) -> String {
    let end = text.find(['?', '#']).unwrap_or(text.len());
    let (shown, cut) = text.split_at(end);
    let start = match shown.split_once("://") {
        Some((scheme, _)) if is_scheme(scheme) => scheme.len() + 3,
        _ => 0,
    };
    // An unescaped slash or "@" in a password must not uncover the rest of it: mask up to the last "@" of the
    // whole text, the query included.
    let mut result = match (shown.rfind('@'), cut.contains('@')) {
        (_, true) => format!("{}{MASK}", &shown[..start]),
        (Some(at), false) if at >= start => format!("{}{MASK}{}", &shown[..start], &shown[at..]),
        _ => shown.to_owned(),
    };
    if !cut.is_empty() {
        result.push_str(&cut[..1]);
        result.push('…');
    }
    result
}

fn host_and_port(text: &str, input: &dyn Fn() -> String) -> Result<(String, Option<u16>), TargetError> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let bad = || TargetError::Host {
            input: input(),
            host: text.to_owned(),
        };
        let (literal, after) = rest.split_once(']').ok_or_else(bad)?;
        let port = match after.strip_prefix(':') {
            Some(port) => Some(port),
            None if after.is_empty() => None,
            None => return Err(bad()),
        };
        (ipv6(literal).ok_or_else(bad)?, port)
    } else {
        match text.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err(if text.parse::<Ipv6Addr>().is_ok() || is_ipv6_with_port(text) {
                    TargetError::Ipv6Brackets { input: input() }
                } else {
                    TargetError::Port {
                        input: input(),
                        port: port.to_owned(),
                    }
                });
            }
            Some((host, port)) => (name(host, input)?, Some(port)),
            None => (name(text, input)?, None),
        }
    };
    let port = match port {
        None => None,
        Some(port) => Some(
            Some(port)
                .filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|port| port.parse::<u16>().ok())
                .filter(|port| *port != 0)
                .ok_or_else(|| TargetError::Port {
                    input: input(),
                    port: port.to_owned(),
                })?,
        ),
    };
    Ok((host, port))
}

fn is_ipv6_with_port(text: &str) -> bool {
    text.rsplit_once(':')
        .is_some_and(|(host, _)| host.parse::<Ipv6Addr>().is_ok())
}

/// An IPv6 literal without its brackets; a zone may be written `%eth0` or, as in URLs, `%25eth0`.
fn ipv6(literal: &str) -> Option<String> {
    let (address, zone) = match literal.split_once('%') {
        Some((address, zone)) => (address, Some(zone.strip_prefix("25").unwrap_or(zone))),
        None => (literal, None),
    };
    let address = address.parse::<Ipv6Addr>().ok()?;
    match zone {
        None => Some(address.to_string()),
        Some(zone) => (!zone.is_empty()
            && zone
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')))
        .then(|| format!("{address}%{zone}")),
    }
}

fn name(host: &str, input: &dyn Fn() -> String) -> Result<String, TargetError> {
    if host.is_empty() {
        return Err(TargetError::NoHost { input: input() });
    }
    let looks_right = host.len() <= 253
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && !host.starts_with(['.', '-'])
        && !host.contains("..");
    // "127.0.0.1.2" and "1234" are neither addresses nor names that anybody has.
    let only_numbers = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !looks_right || (only_numbers && host.parse::<Ipv4Addr>().is_err()) {
        return Err(TargetError::Host {
            input: input(),
            host: host.to_owned(),
        });
    }
    Ok(host.to_ascii_lowercase())
}

/// The characters of RFC 3986 `path`, percent signs included; a `@` is refused before.
fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:%/".contains(&byte)
}

fn base_path(path: &str) -> &str {
    let mut path = path.trim_end_matches('/');
    for endpoint in ENDPOINTS {
        if let Some(base) = path.strip_suffix(endpoint) {
            path = base.trim_end_matches('/');
            break;
        }
    }
    path
}

/// The value of an Authorization header for `user` or `user:password`, percent-encoding undone.
fn basic(user_info: &str) -> Option<Secret> {
    let mut plain = percent_decode(user_info)?;
    if !plain.contains(&b':') {
        plain.push(b':');
    }
    Some(Secret::new(format!("Basic {}", base64(&plain))))
}

fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            out.push((high * 16 + low) as u8);
        } else {
            out.push(byte);
        }
    }
    Some(out)
}

/// Standard base64 with padding (RFC 4648 section 4).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = group
            .iter()
            .enumerate()
            .fold(0_u32, |word, (at, byte)| word | u32::from(*byte) << (16 - 8 * at));
        for sextet in 0..4 {
            if sextet <= group.len() {
                let index = (word >> (18 - 6 * sextet)) & 63;
                out.push(char::from(ALPHABET[index as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (Scheme, String, u16, String) {
        let target = parse(text).unwrap();
        (target.scheme, target.host, target.port, target.prefix)
    }

    #[test]
    fn reads_what_users_write() {
        let http = Scheme::Http;
        for (text, host, port, prefix) in [
            ("localhost:30000", "localhost", 30000, ""),
            (" http://LocalHost:8000/ ", "localhost", 8000, ""),
            ("http://10.0.0.7:8000/v1", "10.0.0.7", 8000, ""),
            ("http://10.0.0.7:8000/v1/", "10.0.0.7", 8000, ""),
            ("HTTP://h:1/v1/chat/completions", "h", 1, ""),
            ("http://h:1/v1/completions/", "h", 1, ""),
            ("http://h:1/api/llm/v1", "h", 1, "/api/llm"),
            ("http://h:1/api/llm//", "h", 1, "/api/llm"),
            ("h:1/a%20b", "h", 1, "/a%20b"),
            ("http://[::1]:30000/v1", "::1", 30000, ""),
            ("[2001:DB8::1]:80", "2001:db8::1", 80, ""),
            ("http://[fe80::1%25eth0]:8000", "fe80::1%eth0", 8000, ""),
            ("http://my_host.example", "my_host.example", 80, ""),
            ("h:1/v10", "h", 1, "/v10"),
        ] {
            assert_eq!(
                parts(text),
                (http, host.to_owned(), port, prefix.to_owned()),
                "{text}"
            );
        }
        assert_eq!(parts("https://api.example/openai").0, Scheme::Https);
        assert_eq!(parts("https://api.example/openai").2, 443);
    }

    #[test]
    fn authority_is_the_host_header() {
        for (text, authority) in [
            ("http://h:80", "h"),
            ("http://h:8080", "h:8080"),
            ("https://h", "h"),
            ("https://h:80", "h:80"),
            ("http://[::1]:80", "[::1]"),
            ("http://[fe80::1%eth0]:9", "[fe80::1]:9"),
        ] {
            assert_eq!(parse(text).unwrap().authority(), authority);
        }
    }

    #[test]
    fn path_joins_prefix() {
        let target = parse("http://h:1/llm/v1").unwrap();
        assert_eq!(target.path("/v1/models"), "/llm/v1/models");
        assert_eq!(target.path("health"), "/llm/health");
    }

    #[test]
    fn credentials_are_used_and_masked() {
        let target = parse("http://ann:s%40cret@h:1/p").unwrap();
        // base64("ann:s@cret"), by an independent tool.
        assert_eq!(target.authorization().unwrap().expose(), "Basic YW5uOnNAY3JldA==");
        assert_eq!(target.to_string(), "http://***@h:1/p");
        assert!(!format!("{target:?}").contains("YW5u"));
    }

    #[test]
    fn base64_pads_as_the_rfc_says() {
        for (plain, code) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), code);
        }
    }

    #[test]
    fn refuses_with_a_reason() {
        use TargetError as E;
        type Check = fn(&E) -> bool;
        let cases: [(&str, Check); 17] = [
            ("", |e| matches!(e, E::Empty)),
            ("unix:///run/x", |e| matches!(e, E::Scheme { .. })),
            ("ftp://h:1", |e| matches!(e, E::Scheme { .. })),
            (":30000", |e| matches!(e, E::NoHost { .. })),
            ("http://", |e| matches!(e, E::NoHost { .. })),
            ("gpu1", |e| matches!(e, E::NoPort { .. })),
            ("h:", |e| matches!(e, E::Port { .. })),
            ("h:0", |e| matches!(e, E::Port { .. })),
            ("h:65536", |e| matches!(e, E::Port { .. })),
            ("h:+80", |e| matches!(e, E::Port { .. })),
            ("::1", |e| matches!(e, E::Ipv6Brackets { .. })),
            ("http://2001:db8::1:8000", |e| matches!(e, E::Ipv6Brackets { .. })),
            ("http://[::1", |e| matches!(e, E::Host { .. })),
            ("http://h h:1", |e| matches!(e, E::Host { .. })),
            ("http://127.0.0.1.5:1", |e| matches!(e, E::Host { .. })),
            ("http://h:1/v1?key=x", |e| matches!(e, E::Query { .. })),
            ("http://h:1/a b", |e| matches!(e, E::Path { .. })),
        ];
        for (text, check) in cases {
            let error = parse(text).unwrap_err();
            assert!(check(&error), "{text}: {error:?}");
        }
    }

    #[test]
    fn errors_never_show_credentials() {
        for text in [
            "ftp://ann:hunter2@h:1",
            "http://ann:hun/ter2@h:1",
            "http://ann:hunter2@h:x",
            "http://ann:1/hunter2@h:1",
            "http://ann:@h/hunter2@h:1",
            "http://ann:hunter2@:1",
            "http://ann:%zzhunter2@h:1",
            "http://h:1/v1?api_key=hunter2",
            "http://h:1/#hunter2",
            "http://ann:hun?ter2@h:1",
            "ann:hun#ter2@h:1",
            "ann:hunter2@h",
            "ann:hunter2@h://",
        ] {
            let error = parse(text).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("hun") && !shown.contains("ter2"), "{shown}");
        }
    }
}
