//! What the user points at: a base URL, taken apart, without any guess about ports or paths.

mod parse;
mod resolve;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use shakedown_model::{MASK, Secret};

pub use resolve::ResolveError;

/// How bytes travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain TCP.
    Http,
    /// TLS over TCP.
    Https,
}

impl Scheme {
    /// The word before `://`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that a URL of this scheme means when it names none.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The base of a server: scheme, host, port, and the path before `/v1`. `Display` and `Debug` mask credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    scheme: Scheme,
    /// Without the brackets of an IPv6 literal; with its zone, if it has one.
    host: String,
    port: u16,
    /// Empty, or begins with a slash and does not end with one.
    prefix: String,
    /// Value of the Authorization header.
    authorization: Option<Secret>,
}

impl Target {
    /// Reads `host:port`, `http://host:port`, or the same with a path prefix. IPv6 literals stand in brackets. A
    /// trailing slash, `/v1` and the path of an endpoint below it are dropped, so that what other tools take as a
    /// base URL works too. `user:password@` becomes HTTP basic authentication.
    ///
    /// # Errors
    /// [`TargetError`], whose message masks credentials and leaves out queries.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        parse::parse(text)
    }

    /// The scheme.
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host: a name or an address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The path before `/v1`: empty, or begins with a slash and does not end with one.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The value of the `Host` header: the port is left out where it is the scheme's own, an IPv6 zone always.
    pub fn authority(&self) -> String {
        let host = self.bracketed_host(false);
        if self.port == self.scheme.default_port() {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }

    /// The value of the `Authorization` header, where the URL carried credentials.
    pub fn authorization(&self) -> Option<&Secret> {
        self.authorization.as_ref()
    }

    /// The path of an endpoint on this server: the prefix, then `path`, which may lack its first slash.
    pub fn path(&self, path: &str) -> String {
        let slash = if path.starts_with('/') { "" } else { "/" };
        format!("{}{slash}{path}", self.prefix)
    }

    /// The addresses of the host, in the order of the system's preference. A name is looked up on a thread of its
    /// own so that the timeout holds; that thread ends when the system's resolver gives up.
    ///
    /// # Errors
    /// [`ResolveError`] when the name is not known or the lookup takes longer than `timeout`.
    pub fn resolve(&self, timeout: Duration) -> Result<Vec<SocketAddr>, ResolveError> {
        match self.host.parse::<IpAddr>() {
            Ok(address) => Ok(vec![SocketAddr::new(address, self.port)]),
            Err(_) => resolve::look_up(&self.host, self.port, timeout),
        }
    }

    fn bracketed_host(&self, zone: bool) -> String {
        if !self.host.contains(':') {
            return self.host.clone();
        }
        let host = if zone {
            self.host.as_str()
        } else {
            self.host.split('%').next().unwrap_or_default()
        };
        format!("[{host}]")
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = if self.authorization.is_some() {
            format!("{MASK}@")
        } else {
            String::new()
        };
        write!(
            f,
            "{}://{user}{}:{}{}",
            self.scheme.as_str(),
            self.bracketed_host(true),
            self.port,
            self.prefix
        )
    }
}

impl std::str::FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// Why a text is no target. `input` is the text with credentials masked and without its query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Nothing to parse.
    #[error("read the target: it is empty; write http://host:port")]
    Empty,
    /// A scheme other than http and https.
    #[error("read the target {input}: the scheme {scheme} is not supported, only http and https are")]
    Scheme {
        /// The text.
        input: String,
        /// The scheme found.
        scheme: String,
    },
    /// No host before the port or path.
    #[error(
        "read the target {input}: it has no host; write http://host:port, for example http://localhost:30000"
    )]
    NoHost {
        /// The text.
        input: String,
    },
    /// A host without scheme and port: which port is not for us to guess.
    #[error("read the target {input}: it has no port; write {input}:PORT or http://{input}")]
    NoPort {
        /// The text.
        input: String,
    },
    /// A port that is not a number from 1 to 65535.
    #[error("read the target {input}: the port {port:?} is not a number from 1 to 65535")]
    Port {
        /// The text.
        input: String,
        /// What stood in its place.
        port: String,
    },
    /// A host with characters that no host has, or a malformed address.
    #[error("read the target {input}: {host:?} is not a host name or an IP address")]
    Host {
        /// The text.
        input: String,
        /// What stood in its place.
        host: String,
    },
    /// An IPv6 literal without brackets: its last group could be the port.
    #[error("read the target {input}: write an IPv6 address in brackets, for example http://[::1]:30000")]
    Ipv6Brackets {
        /// The text.
        input: String,
    },
    /// A query or a fragment: a base URL has none, and it may hold a key.
    #[error("read the target {input}: a base URL has no query or fragment (send keys as headers)")]
    Query {
        /// The text.
        input: String,
    },
    /// A path with characters that must be percent-encoded.
    #[error("read the target {input}: the path has a character that is not allowed in a URL")]
    Path {
        /// The text.
        input: String,
    },
    /// A user or password that is not percent-encoded as it must be, or a path with a `@`.
    #[error(
        "read the target {input}: percent-encode the special characters of the user name, the password or the path"
    )]
    UserInfo {
        /// The text.
        input: String,
    },
}
