//! One stream: its connection, and the request that it carries.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use mio::{Interest, Registry, Token};
use shakedown_model::Stamp;
use shakedown_wire::clock;
use shakedown_wire::socket::{Idle, Socket};

use super::exchange::Exchange;
use super::outcome::{Ending, Timeout};
use crate::plan::Limits;

/// uvicorn closes idle connections after five seconds; one that has been idle for longer than this is replaced
/// rather than risked.
const IDLE_REUSE: Duration = Duration::from_secs(2);
/// How long the end of the answer is waited for after its terminator.
const AFTER_DONE: Duration = Duration::from_secs(2);

/// The state of a stream's connection.
enum Link {
    Closed,
    Connecting {
        socket: Socket,
        since: Stamp,
    },
    Open {
        socket: Socket,
        requests: u32,
        idle_since: Stamp,
    },
}

/// One stream.
pub(super) struct Slot {
    token: Token,
    link: Link,
    /// The request in flight, or waiting for its connection.
    pub(super) exchange: Option<Box<Exchange>>,
    out: Vec<u8>,
    written: usize,
    /// Connect stamps of a connection that no request has used yet.
    opened: Option<(Stamp, Stamp)>,
    /// The last request failed.
    pub(super) unhealthy: bool,
    /// Why no request is sent for now.
    pub(super) rest: Option<Rest>,
}

/// A stream that sends nothing for a while.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest {
    /// Until when.
    pub(super) until: Stamp,
    /// Since when the stream has been free: its next request was due then.
    pub(super) free: Stamp,
    /// Its used connection is watched for a close.
    pub(super) watching: bool,
}

/// What a slot wants its core to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    /// The exchange in flight has ended so.
    Ended(Ending),
}

impl Slot {
    pub(super) fn new(token: Token) -> Self {
        Self {
            token,
            link: Link::Closed,
            exchange: None,
            out: Vec::new(),
            written: 0,
            opened: None,
            unhealthy: false,
            rest: None,
        }
    }

    /// Starts connecting, unless the connection is there or under way. `Err` when not even that can be done.
    pub(super) fn connect(&mut self, registry: &Registry, address: SocketAddr) -> Result<(), Ending> {
        if !matches!(self.link, Link::Closed) {
            return Ok(());
        }
        let since = clock::now();
        let opened = Socket::connect(address).and_then(|mut socket| {
            registry.register(&mut socket, self.token, Interest::READABLE | Interest::WRITABLE)?;
            Ok(socket)
        });
        match opened {
            Ok(socket) => {
                self.link = Link::Connecting { socket, since };
                Ok(())
            }
            Err(error) => Err(connect_ending(&error)),
        }
    }

    pub(super) fn is_connecting(&self) -> bool {
        matches!(self.link, Link::Connecting { .. })
    }

    /// Gives the slot its next request. An idle connection that is too old, or that the peer has closed, is
    /// dropped first. Returns whether the connection has served a request before.
    pub(super) fn reusable_now(&mut self) -> bool {
        if let Link::Open {
            socket,
            requests,
            idle_since,
        } = &self.link
        {
            let stale = *requests > 0
                && (clock::now().since(*idle_since) > IDLE_REUSE || socket.idle() != Idle::Quiet);
            if stale {
                self.close();
                return false;
            }
            return *requests > 0;
        }
        false
    }

    /// Takes up `exchange`, whose bytes are `out`; `start` sends them.
    pub(super) fn load(&mut self, exchange: Box<Exchange>, out: Vec<u8>) {
        self.exchange = Some(exchange);
        self.out = out;
        self.written = 0;
    }

    /// Sends the loaded request if the connection is open; connects first where it is not.
    pub(super) fn start(&mut self, registry: &Registry, address: SocketAddr) -> Step {
        match &self.link {
            Link::Open { .. } => self.send(),
            Link::Connecting { .. } => Step::Nothing,
            Link::Closed => match self.connect(registry, address) {
                Ok(()) => Step::Nothing,
                Err(ending) => Step::Ended(ending),
            },
        }
    }

    /// The socket is writable: a connect has ended, or more of the request can go.
    pub(super) fn on_writable(&mut self) -> Step {
        if let Link::Connecting { socket, since } = &mut self.link {
            match socket.finish_connect() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Step::Nothing,
                Ok(()) => {
                    let since = *since;
                    let now = clock::now();
                    self.opened = Some((since, now));
                    if let Link::Connecting { socket, .. } = std::mem::replace(&mut self.link, Link::Closed) {
                        self.link = Link::Open {
                            socket,
                            requests: 0,
                            idle_since: now,
                        };
                    }
                }
                Err(error) => {
                    let ending = connect_ending(&error);
                    self.close();
                    return if self.exchange.is_some() {
                        Step::Ended(ending)
                    } else {
                        Step::Nothing
                    };
                }
            }
        }
        if self.exchange.is_some() && self.written < self.out.len() {
            self.send()
        } else {
            Step::Nothing
        }
    }

    fn send(&mut self) -> Step {
        let (Link::Open { socket, requests, .. }, Some(exchange)) = (&mut self.link, &mut self.exchange)
        else {
            return Step::Nothing;
        };
        if self.written == 0 {
            *requests += 1;
            if let Some((since, connected)) = self.opened.take() {
                exchange.times.connect_start = Some(since);
                exchange.times.connected = Some(connected);
            }
        }
        while self.written < self.out.len() {
            // The stamp before the write that completes the request: after it, the server may already have had this
            // CPU for a while, and a late stamp here would make every latency too short.
            let before = clock::now();
            match socket.write(&self.out[self.written..]) {
                Ok(count) => {
                    self.written += count;
                    exchange.times.sent = Some(before);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Step::Nothing,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The answer (a refusal, say) may already be there: reading tells.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Step::Ended(Ending::Closed);
                }
                Err(error) => return Step::Ended(Ending::Reset(error.to_string())),
            }
        }
        Step::Nothing
    }

    /// Reads once into `buffer`.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Option<io::Result<Read>> {
        let Link::Open { socket, .. } = &mut self.link else {
            return None;
        };
        Some(socket.read(buffer))
    }

    /// The limit that the exchange has passed at `now`, if any.
    pub(super) fn overdue(&self, now: Stamp, limits: &Limits) -> Option<Ending> {
        if let Link::Connecting { since, .. } = &self.link {
            return (now.since(*since) > limits.connect).then_some(Ending::Timeout(Timeout::Connect));
        }
        let exchange = self.exchange.as_ref()?;
        let times = &exchange.times;
        let begun = times.sent.unwrap_or(times.dequeued);
        if now.since(begun) > limits.total {
            return Some(Ending::Timeout(Timeout::Total));
        }
        let last = times.last_read.unwrap_or(begun);
        if exchange.terminated() && now.since(last) > AFTER_DONE {
            return Some(Ending::Timeout(Timeout::Idle));
        }
        if !exchange.any_token() && exchange.asked.streamed {
            return (now.since(begun) > limits.first_token).then_some(Ending::Timeout(Timeout::FirstToken));
        }
        (now.since(last) > limits.idle).then_some(Ending::Timeout(Timeout::Idle))
    }

    /// Drops the request that has ended. The connection stays only where it can carry another and may.
    pub(super) fn finish(&mut self, ending: &Ending, may_keep: bool, at: Stamp) -> Option<Box<Exchange>> {
        let exchange = self.exchange.take()?;
        let keep = may_keep && *ending == Ending::Complete && exchange.reusable();
        match &mut self.link {
            Link::Open { idle_since, .. } if keep => *idle_since = at,
            _ => self.close(),
        }
        Some(exchange)
    }

    /// Whether there is a connection that has carried a request.
    pub(super) fn has_used_connection(&self) -> bool {
        matches!(self.link, Link::Open { requests, .. } if requests > 0)
    }

    /// Closes the connection.
    pub(super) fn close(&mut self) {
        self.link = Link::Closed;
        self.opened = None;
    }
}

pub(super) use shakedown_wire::socket::Read;

fn connect_ending(error: &io::Error) -> Ending {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Ending::Refused(error.to_string()),
        _ => Ending::ConnectFailed(error.to_string()),
    }
}
