//! The listening side: coming up in steps, accepting, handing connections to threads.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Token};

use super::{DOOR, KNOCK, SWEEP, SWEEP_EVERY, Worker};
use crate::clock;
use crate::connection::Connection;
use crate::server::{PracticeError, bind_socket, listen_on};
use crate::shared::{Mail, Shared};

/// Before accepting is tried again when the process has no descriptor left.
const ACCEPT_AGAIN: u64 = 20_000_000;

/// The listening side, as far as it has come.
#[derive(Debug)]
pub(crate) enum Door {
    /// The address is not taken yet.
    Closed(SocketAddr),
    /// It is taken, and refuses.
    Bound(SocketAddr, OwnedFd),
    /// It accepts.
    Open(TcpListener),
}

impl Door {
    /// Listens.
    pub(crate) fn open(self) -> Result<Self, PracticeError> {
        match self {
            Self::Closed(address) => Self::Bound(address, bind_socket(address)?).open(),
            Self::Bound(address, fd) => listen_on(fd, address).map(Self::Open),
            Self::Open(_) => Ok(self),
        }
    }
}

impl Worker {
    pub(super) fn watch_door(&mut self, mut listener: TcpListener) -> std::io::Result<()> {
        self.poll
            .registry()
            .register(&mut listener, DOOR, Interest::READABLE)?;
        self.door = Some(Door::Open(listener));
        Ok(())
    }

    /// A step of coming up, or another try at accepting.
    pub(super) fn knock(&mut self, shared: &Shared) {
        let next = match self.door.take() {
            Some(Door::Closed(address)) => bind_socket(address).map(|fd| Door::Bound(address, fd)),
            Some(Door::Bound(address, fd)) => listen_on(fd, address).map(Door::Open),
            Some(open) => Ok(open),
            None => return,
        };
        let result = next.and_then(|door| match door {
            Door::Open(listener) if shared.reached(shared.options.startup.listening, clock::now()) => {
                // Registered before when accepting is only tried again.
                match self.watch_door(listener) {
                    Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(PracticeError::Loop(error)),
                    _ => Ok(()),
                }
            }
            door => {
                self.door = Some(door);
                self.push(shared.startup(shared.options.startup.listening), KNOCK, 0);
                Ok(())
            }
        });
        match result {
            Ok(()) => self.accept(shared),
            Err(error) => {
                shared.fail(error);
                shared.stop.store(true, Relaxed);
                for inbox in &shared.inboxes {
                    let _ = inbox.waker.wake();
                }
            }
        }
    }

    pub(super) fn accept(&mut self, shared: &Shared) {
        loop {
            let Some(Door::Open(listener)) = &self.door else {
                return;
            };
            match listener.accept() {
                Ok((stream, _)) => {
                    let accepted = clock::now();
                    let thread = self.next_thread;
                    self.next_thread = (thread + 1) % shared.inboxes.len();
                    if thread == self.index {
                        self.adopt(shared, stream, accepted);
                    } else {
                        shared.post(thread, Mail::Accepted(stream, accepted));
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                    ) => {}
                Err(_) => {
                    // No descriptors or no memory: the edge will not come again by itself.
                    self.push(clock::now() + ACCEPT_AGAIN, KNOCK, 0);
                    return;
                }
            }
        }
    }

    /// Begins to serve a connection.
    pub(super) fn adopt(&mut self, shared: &Shared, mut stream: TcpStream, accepted: u64) {
        let key = self.slab.reserve();
        let token = Token(key.index as usize | (key.generation as usize) << 32);
        let both = Interest::READABLE | Interest::WRITABLE;
        if self.poll.registry().register(&mut stream, token, both).is_err() {
            self.slab.free(key);
            return;
        }
        let deadline = accepted.saturating_add(clock::nanos(shared.options.request_timeout));
        self.slab
            .put(key, Box::new(Connection::new(stream, accepted, deadline)));
        if !self.sweeping {
            self.sweeping = true;
            self.push(accepted + SWEEP_EVERY, SWEEP, 0);
        }
    }
}
