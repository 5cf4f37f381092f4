//! A small blocking client for probes: one request a connection, an absolute deadline, caps, and a typed reason for
//! every failure. It follows no redirect, uses no proxy and decodes no Content-Encoding.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use shakedown_model::Stamp;

use crate::clock;
use crate::request::{HeaderError, Headers, Method, encode};
use crate::response::{Head, HttpError, Limits, Piece, ResponseReader};
use crate::target::{ResolveError, Scheme, Target};

/// How a [`Client`] asks.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// For the whole of a request: name, connect, send and answer.
    pub timeout: Duration,
    /// Bytes of a body; a longer one is an error.
    pub max_body: usize,
    /// Sent with every request.
    pub headers: Headers,
}

impl Default for ClientOptions {
    /// 10 s and 16 MiB: the longest `/metrics` page seen is 60 KB.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            max_body: 16 * 1024 * 1024,
            headers: Headers::new(),
        }
    }
}

/// A client for probes.
#[derive(Debug, Clone, Default)]
pub struct Client {
    options: ClientOptions,
}

/// An answer, whatever its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The head.
    pub head: Head,
    /// The body.
    pub body: Vec<u8>,
    /// The address that answered.
    pub address: SocketAddr,
    /// When what happened.
    pub stamps: ReplyStamps,
}

impl Reply {
    /// Whether the status is 2xx.
    pub const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }

    /// The body as text; bytes that are not UTF-8 show as replacement characters.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }
}

/// Times of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyStamps {
    /// Before the connect to the address that answered.
    pub connect_start: Stamp,
    /// After it.
    pub connected: Stamp,
    /// The last byte of the request was handed to the kernel.
    pub sent: Stamp,
    /// The first byte of the answer was read.
    pub first_byte: Stamp,
    /// The last byte of the answer was read.
    pub end: Stamp,
}

/// Why there is no answer. `address` is the one that was really connected to.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The host has no address.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The request cannot be made: a header of its own is refused.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// This client speaks no TLS.
    #[error("connect to {target}: https is not supported")]
    Https {
        /// The target, credentials masked.
        target: String,
    },
    /// Nobody listens there.
    #[error("connect to {address}: connection refused")]
    Refused {
        /// The address.
        address: SocketAddr,
    },
    /// No answer to the connect in time.
    #[error("connect to {address}: no answer within {} ms", after.as_millis())]
    ConnectTimeout {
        /// The address.
        address: SocketAddr,
        /// The time allowed for the whole request.
        after: Duration,
    },
    /// The connect failed for another reason.
    #[error("connect to {address}: {source}")]
    Connect {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// No whole answer in time.
    #[error("read the answer of {address}: not complete within {} ms ({})", after.as_millis(), match begun {
        true => "it had begun",
        false => "not a byte had come",
    })]
    Timeout {
        /// The address.
        address: SocketAddr,
        /// The time allowed for the whole request.
        after: Duration,
        /// Whether the answer had begun.
        begun: bool,
    },
    /// The connection was reset.
    #[error("read the answer of {address}: connection reset ({})", match begun {
        true => "the answer had begun",
        false => "not a byte had come",
    })]
    Reset {
        /// The address.
        address: SocketAddr,
        /// Whether the answer had begun.
        begun: bool,
    },
    /// The bytes are no HTTP answer, or a cut one.
    #[error("talk to {address}: {source}")]
    Http {
        /// The address.
        address: SocketAddr,
        /// What is wrong with them.
        source: HttpError,
    },
    /// The body is longer than allowed.
    #[error("read the answer of {address}: the body is longer than {limit} bytes")]
    BodyTooLarge {
        /// The address.
        address: SocketAddr,
        /// The cap in bytes.
        limit: usize,
    },
    /// The body is encoded although we asked for none.
    #[error("read the answer of {address}: it has the Content-Encoding {coding:?}, which was not asked for")]
    ContentEncoding {
        /// The address.
        address: SocketAddr,
        /// The coding.
        coding: String,
    },
    /// Another error of the connection.
    #[error("talk to {address}: {source}")]
    Io {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
}

impl Client {
    /// A client with these options.
    pub const fn new(options: ClientOptions) -> Self {
        Self { options }
    }

    /// The same client with another time allowed for a request.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            options: ClientOptions {
                timeout,
                ..self.options.clone()
            },
        }
    }

    /// GETs an endpoint of the target, at `addr` where one is given, else at the first of the host's addresses
    /// that accepts the connection.
    ///
    /// # Errors
    /// [`ClientError`] when there is no whole answer; an HTTP error status is an answer.
    pub fn get(&self, target: &Target, addr: Option<SocketAddr>, path: &str) -> Result<Reply, ClientError> {
        self.request(Method::Get, target, addr, path, b"")
    }

    /// POSTs a JSON body; else as [`Self::get`].
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn post_json(
        &self,
        target: &Target,
        addr: Option<SocketAddr>,
        path: &str,
        body: &[u8],
    ) -> Result<Reply, ClientError> {
        self.request(Method::Post, target, addr, path, body)
    }

    /// Connects to `address` and lets go again: says whether anybody accepts there.
    ///
    /// # Errors
    /// [`ClientError`] when nobody does.
    pub fn connect(&self, address: SocketAddr) -> Result<(), ClientError> {
        connect(&[address], &Deadline::after(self.options.timeout)).map(drop)
    }

    fn request(
        &self,
        method: Method,
        target: &Target,
        addr: Option<SocketAddr>,
        path: &str,
        body: &[u8],
    ) -> Result<Reply, ClientError> {
        if target.scheme() == Scheme::Https {
            return Err(ClientError::Https {
                target: target.to_string(),
            });
        }
        let mut headers = self.options.headers.clone();
        headers.set("Connection", "close")?;
        let bytes = encode(method, target, &target.path(path), &headers, body);
        let deadline = Deadline::after(self.options.timeout);
        let addresses = match addr {
            Some(address) => vec![address],
            None => target.resolve(deadline.left())?,
        };
        let (stream, address, connect_start) = connect(&addresses, &deadline)?;
        let connected = clock::now();
        let mut exchange = Exchange {
            stream,
            address,
            deadline,
            begun: false,
        };
        exchange.send(&bytes)?;
        let sent = clock::now();
        let (head, body, first_byte, end) = exchange.receive(method, self.options.max_body)?;
        Ok(Reply {
            status: head.status,
            head,
            body,
            address,
            stamps: ReplyStamps {
                connect_start,
                connected,
                sent,
                first_byte,
                end,
            },
        })
    }
}

/// An absolute end of the time allowed: a server that drips bytes does not move it.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    allowed: Duration,
    at: Stamp,
}

impl Deadline {
    fn after(allowed: Duration) -> Self {
        Self {
            allowed,
            at: clock::now() + allowed,
        }
    }

    fn left(&self) -> Duration {
        self.at.since(clock::now())
    }

    /// The time left for a system call, which does not take zero.
    fn left_for_call(&self) -> Option<Duration> {
        let left = self.left();
        (!left.is_zero()).then(|| left.max(Duration::from_millis(1)))
    }
}

fn connect(
    addresses: &[SocketAddr],
    deadline: &Deadline,
) -> Result<(TcpStream, SocketAddr, Stamp), ClientError> {
    let mut first_error = None;
    for &address in addresses {
        let timeout = || ClientError::ConnectTimeout {
            address,
            after: deadline.allowed,
        };
        let Some(left) = deadline.left_for_call() else {
            first_error.get_or_insert_with(timeout);
            break;
        };
        let start = clock::now();
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok((stream, address, start)),
            Err(source) => {
                let error = match source.kind() {
                    ErrorKind::ConnectionRefused => ClientError::Refused { address },
                    ErrorKind::TimedOut | ErrorKind::WouldBlock => timeout(),
                    _ => ClientError::Connect { address, source },
                };
                first_error.get_or_insert(error);
            }
        }
    }
    Err(first_error.unwrap_or_else(|| {
        ClientError::Resolve(ResolveError::Failed {
            host: String::new(),
            reason: "the name has no address".to_owned(),
        })
    }))
}

/// One request and its answer on an open connection.
struct Exchange {
    stream: TcpStream,
    address: SocketAddr,
    deadline: Deadline,
    begun: bool,
}

impl Exchange {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.stream.set_nodelay(true).map_err(|error| self.io(error))?;
        let mut rest = bytes;
        while !rest.is_empty() {
            let left = self.left()?;
            self.stream
                .set_write_timeout(Some(left))
                .map_err(|error| self.io(error))?;
            match self.stream.write(rest) {
                Ok(n) => rest = &rest[n..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A server may answer and close before it has read all, with 413 for example: see what it said.
                Err(error) if is_reset(&error) => break,
                Err(error) => return Err(self.io(error)),
            }
        }
        Ok(())
    }

    fn receive(
        &mut self,
        method: Method,
        max_body: usize,
    ) -> Result<(Head, Vec<u8>, Stamp, Stamp), ClientError> {
        let mut reader = ResponseReader::new(Limits::default()).answering(method);
        let mut body = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        let mut first_byte = None;
        loop {
            let left = self.left()?;
            self.stream
                .set_read_timeout(Some(left))
                .map_err(|error| self.io(error))?;
            let result = self.stream.read(&mut buffer);
            let at = clock::now();
            let n = match result {
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.io(error)),
            };
            if n == 0 {
                reader.eof().map_err(|source| self.http(source))?;
            } else {
                self.begun = true;
                first_byte.get_or_insert(at);
                self.feed(&mut reader, &buffer[..n], &mut body, max_body)?;
            }
            if reader.is_done()
                && let Some(head) = reader.head()
            {
                return Ok((head.clone(), body, first_byte.unwrap_or(at), at));
            }
        }
    }

    fn feed(
        &self,
        reader: &mut ResponseReader,
        mut bytes: &[u8],
        body: &mut Vec<u8>,
        max_body: usize,
    ) -> Result<(), ClientError> {
        loop {
            let (consumed, piece) = reader.read(bytes).map_err(|source| self.http(source))?;
            bytes = &bytes[consumed..];
            match piece {
                Piece::NeedMore | Piece::End => return Ok(()),
                Piece::Head => {
                    if let Some(coding) = reader.head().and_then(|head| head.content_encoding.clone()) {
                        return Err(ClientError::ContentEncoding {
                            address: self.address,
                            coding,
                        });
                    }
                }
                Piece::Body(part) => {
                    if body.len() + part.len() > max_body {
                        return Err(ClientError::BodyTooLarge {
                            address: self.address,
                            limit: max_body,
                        });
                    }
                    body.extend_from_slice(part);
                }
            }
        }
    }

    fn left(&self) -> Result<Duration, ClientError> {
        self.deadline.left_for_call().ok_or_else(|| self.timeout())
    }

    fn timeout(&self) -> ClientError {
        ClientError::Timeout {
            address: self.address,
            after: self.deadline.allowed,
            begun: self.begun,
        }
    }

    fn http(&self, source: HttpError) -> ClientError {
        ClientError::Http {
            address: self.address,
            source,
        }
    }

    fn io(&self, source: io::Error) -> ClientError {
        match source.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => self.timeout(),
            _ if is_reset(&source) => ClientError::Reset {
                address: self.address,
                begun: self.begun,
            },
            _ => ClientError::Io {
                address: self.address,
                source,
            },
        }
    }
}

fn is_reset(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe
    )
}
