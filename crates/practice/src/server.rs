//! A running practice server: started, asked for its truth, stopped.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use mio::{Poll, Waker};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, getsockname, listen, setsockopt,
    socket, sockopt,
};
use shakedown_model::ServerTruth;

use crate::clock::Timer;
use crate::options::{self, Options};
use crate::shared::{Inbox, Shared};
use crate::worker::{Door, WAKE, Worker};

/// Why a practice server does not run.
#[derive(Debug, thiserror::Error)]
pub enum PracticeError {
    /// An option is wrong.
    #[error("option {option}: {why}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The host is no address and has none.
    #[error("find an address of host {host}: {why}")]
    Host {
        /// The host.
        host: String,
        /// The resolver's reason.
        why: String,
    },
    /// The address cannot be taken.
    #[error("listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A thread, a poller or a timer cannot be made, or broke.
    #[error("run the event loop: {0}")]
    Loop(#[source] std::io::Error),
}

/// A running practice server. Dropping it stops it.
#[derive(Debug)]
pub struct Practice {
    shared: Arc<Shared>,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

impl Practice {
    /// Starts a server and returns as soon as its address is taken (or will be, where the options delay that).
    ///
    /// # Errors
    /// When an option is wrong, the address cannot be taken or the system refuses a thread, poller or timer.
    pub fn start(options: Options) -> Result<Self, PracticeError> {
        if let Some((option, why)) = options::fault(&options) {
            return Err(PracticeError::Option { option, why });
        }
        let port = options.port.unwrap_or_else(|| options.engine.default_port());
        let mut address = resolve(&options.host, port)?;
        let broken = |error: nix::Error| PracticeError::Loop(error.into());
        let mut polls = Vec::new();
        let mut inboxes = Vec::new();
        for _ in 0..options.threads {
            let poll = Poll::new().map_err(PracticeError::Loop)?;
            let waker = Waker::new(poll.registry(), WAKE).map_err(PracticeError::Loop)?;
            inboxes.push(Inbox {
                mail: Mutex::new(Vec::new()),
                waker,
            });
            polls.push(poll);
        }
        let bind_later = port != 0 && !options.startup.bound.is_zero();
        let mut door = Door::Closed(address);
        if !bind_later {
            let socket = bind_socket(address)?;
            let bound: SockaddrStorage =
                getsockname(std::os::fd::AsRawFd::as_raw_fd(&socket)).map_err(broken)?;
            if let Some(taken) = to_std(&bound) {
                address = taken;
            }
            door = Door::Bound(address, socket);
        }
        let shared = Arc::new(Shared::new(options, address, inboxes));
        if shared.options.startup.listening.is_zero() {
            door = door.open()?;
        }
        let mut practice = Self {
            shared: Arc::clone(&shared),
            address,
            threads: Vec::new(),
        };
        for (index, poll) in polls.into_iter().enumerate() {
            let timer = Timer::new().map_err(broken)?;
            let door = (index == 0).then(|| std::mem::replace(&mut door, Door::Closed(address)));
            let worker =
                Worker::new(index, Arc::clone(&shared), poll, timer, door).map_err(PracticeError::Loop)?;
            let thread = std::thread::Builder::new()
                .name(format!("practice-{index}"))
                .spawn(move || worker.run())
                .map_err(PracticeError::Loop)?;
            practice.threads.push(thread);
        }
        Ok(practice)
    }

    /// The address that it listens on. A wildcard host is given as it was bound.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its base URL, without a path, usable from this machine.
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        format!("http://{address}")
    }

    /// What it knows of its timing: every request whose last byte a client can have seen is in it.
    pub fn truth(&self) -> ServerTruth {
        self.shared.truth(false)
    }

    /// The same, and forgets it.
    pub fn take_truth(&self) -> ServerTruth {
        self.shared.truth(true)
    }

    /// Method and path of the newest requests (65,536 at most), oldest first, for example `GET /health`.
    pub fn requests_log(&self) -> Vec<String> {
        self.shared.logged()
    }

    /// The fault that ended one of its threads, once.
    pub fn take_fault(&self) -> Option<PracticeError> {
        self.shared.take_fault()
    }

    /// Stops it: connections are closed, threads are joined.
    pub fn stop(mut self) {
        self.shut_down();
    }

    fn shut_down(&mut self) {
        self.shared.stop.store(true, Relaxed);
        for inbox in &self.shared.inboxes {
            let _ = inbox.waker.wake();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Practice {
    fn drop(&mut self) {
        self.shut_down();
    }
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, PracticeError> {
    let fail = |why: String| PracticeError::Host {
        host: host.to_owned(),
        why,
    };
    if let Ok(ip) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, port));
    }
    (host, port)
        .to_socket_addrs()
        .map_err(|error| fail(error.to_string()))?
        .next()
        .ok_or_else(|| fail("it has none".to_owned()))
}

fn to_std(address: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(SocketAddr::new(IpAddr::V4(v4.ip()), v4.port()));
    }
    address
        .as_sockaddr_in6()
        .map(|v6| SocketAddr::new(IpAddr::V6(v6.ip()), v6.port()))
}

/// Takes an address without listening on it.
pub(crate) fn bind_socket(address: SocketAddr) -> Result<OwnedFd, PracticeError> {
    let fail = |error: nix::Error| PracticeError::Listen {
        address,
        source: error.into(),
    };
    let family = if address.is_ipv4() {
        AddressFamily::Inet
    } else {
        AddressFamily::Inet6
    };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(family, SockType::Stream, flags, None).map_err(fail)?;
    setsockopt(&fd, sockopt::ReuseAddr, &true).map_err(fail)?;
    // Accepted sockets inherit both, which saves system calls for each. Without stamps requests arrive when read.
    setsockopt(&fd, sockopt::TcpNoDelay, &true).map_err(fail)?;
    let _unstamped = setsockopt(&fd, sockopt::ReceiveTimestampns, &true);
    bind(
        std::os::fd::AsRawFd::as_raw_fd(&fd),
        &SockaddrStorage::from(address),
    )
    .map_err(fail)?;
    Ok(fd)
}

/// Listens on a bound socket.
pub(crate) fn listen_on(fd: OwnedFd, address: SocketAddr) -> Result<mio::net::TcpListener, PracticeError> {
    let fail = |error: nix::Error| PracticeError::Listen {
        address,
        source: error.into(),
    };
    // A burst of connections must not be the server's lateness; the kernel caps it at somaxconn.
    let backlog = Backlog::new(4096).map_err(fail)?;
    listen(&fd, backlog).map_err(fail)?;
    Ok(mio::net::TcpListener::from_std(std::net::TcpListener::from(fd)))
}
