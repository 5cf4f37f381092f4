//! A non-blocking TCP connection for a `mio` loop whose reads are stamped with the moment at which the kernel
//! received their newest byte. A client that the scheduler keeps waiting still tells when the server's bytes came.

use std::io::{self, ErrorKind, Write as _};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use mio::event::Source;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use shakedown_model::Stamp;

use crate::clock;

/// One connection.
#[derive(Debug)]
pub struct Socket {
    transport: Transport,
    /// Room for one kernel stamp; kept so that no read allocates.
    #[cfg(target_os = "linux")]
    control: Vec<u8>,
    /// How far the time of day was ahead of the monotonic clock at the last read.
    #[cfg(target_os = "linux")]
    ahead: Option<u64>,
}

/// Moves of the time of day against the monotonic clock beyond this are a step, and a kernel stamp taken before a
/// step cannot be placed. Slewing moves both clocks alike; what is left is the gap between two reads of clocks.
#[cfg(target_os = "linux")]
const STEP: u64 = 50_000;

/// What carries the bytes.
#[derive(Debug)]
enum Transport {
    Plain(TcpStream),
}

/// What one read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// Bytes; 0 is the end of the stream.
    pub n: usize,
    /// When the kernel received the newest of these bytes; the line after the system call where it does not tell.
    pub at: Stamp,
    /// How long the bytes had waited for this read. `None` where the kernel does not tell; Linux begins to stamp a
    /// moment after the first socket of the machine asks for it.
    pub lag: Option<Duration>,
}

/// What an idle connection has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Nothing: it can carry a request.
    Quiet,
    /// The peer has closed or reset it.
    Closed,
    /// Bytes that nobody asked for: it cannot carry a request either.
    Unasked,
}

impl Socket {
    /// Starts to connect, with `TCP_NODELAY`. The connection is made when it becomes writable and
    /// [`Self::finish_connect`] agrees.
    ///
    /// # Errors
    /// When the system has no socket to give or knows at once that the address cannot be reached.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            #[cfg(target_os = "linux")]
            control: {
                // Without it `lag` is unknown, which it says itself.
                let _unknown = nix::sys::socket::setsockopt(
                    &stream,
                    nix::sys::socket::sockopt::ReceiveTimestampns,
                    &true,
                );
                nix::cmsg_space!(nix::sys::time::TimeSpec)
            },
            #[cfg(target_os = "linux")]
            ahead: None,
            transport: Transport::Plain(stream),
        })
    }

    /// Says whether the connection is made; call it when the socket is writable.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] while it is still being made, else the reason why it failed.
    pub fn finish_connect(&self) -> io::Result<()> {
        let stream = self.stream();
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        match stream.peer_addr() {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotConnected => Err(ErrorKind::WouldBlock.into()),
            Err(error) => Err(error),
        }
    }

    /// Reads once: one system call, stamped on the next line.
    ///
    /// Events are edge-triggered. A read that is short of the buffer has emptied the socket, and what comes next
    /// brings an event of its own: there is no need to read until [`ErrorKind::WouldBlock`]. Only when the event
    /// said `is_read_closed` must it be read on, until 0 or an error: that end is announced once.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] when there is nothing to read, else the connection's error.
    #[inline]
    pub fn read(&mut self, buf: &mut [u8]) -> io::Result<Read> {
        loop {
            match self.read_stamped(buf) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Writes what the kernel takes.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] when it takes nothing, else the connection's error.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.stream_mut().write(bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// What an idle connection has to say, without consuming it. Look before reuse: servers close idle
    /// connections, and a request on a closed one fails without having been served.
    pub fn idle(&self) -> Idle {
        loop {
            match self.stream().peek(&mut [0]) {
                Ok(0) => return Idle::Closed,
                Ok(_) => return Idle::Unasked,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Idle::Quiet,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Idle::Closed,
            }
        }
    }

    /// Whether the peer has closed or reset the connection and no unread bytes come before that.
    pub fn is_closed_by_peer(&self) -> bool {
        self.idle() == Idle::Closed
    }

    /// Ends the connection in both directions. One that is already gone is no error.
    ///
    /// # Errors
    /// Another error of the system.
    pub fn shutdown(&self) -> io::Result<()> {
        match self.stream().shutdown(Shutdown::Both) {
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(()),
            other => other,
        }
    }

    /// The address of this end.
    ///
    /// # Errors
    /// The system's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream().local_addr()
    }

    /// The address of the other end.
    ///
    /// # Errors
    /// [`ErrorKind::NotConnected`] before the connection is made.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream().peer_addr()
    }

    /// TCP's stamp is that of the newest segment copied, so that the lag is that of the newest byte.
    #[cfg(target_os = "linux")]
    fn read_stamped(&mut self, buf: &mut [u8]) -> io::Result<Read> {
        use std::os::fd::AsRawFd as _;

        use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};

        let Transport::Plain(stream) = &self.transport;
        let mut parts = [io::IoSliceMut::new(buf)];
        let result = recvmsg::<()>(
            stream.as_raw_fd(),
            &mut parts,
            Some(&mut self.control),
            MsgFlags::empty(),
        );
        // In this order: what comes between the two makes a stamp late, never early.
        let real = clock::real_nanos();
        let now = clock::now();
        let message = result.map_err(io::Error::from)?;
        let n = message.bytes;
        let stamp = message.cmsgs().ok().and_then(|mut controls| {
            controls.find_map(|control| match control {
                ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
                _ => None,
            })
        });
        let received = stamp.and_then(|stamp| {
            let seconds = u64::try_from(stamp.tv_sec()).ok()?;
            seconds
                .checked_mul(1_000_000_000)?
                .checked_add(u64::try_from(stamp.tv_nsec()).ok()?)
        });
        let ahead = real.wrapping_sub(now.nanos());
        let stepped = self
            .ahead
            .replace(ahead)
            .is_some_and(|before| before.abs_diff(ahead) > STEP);
        // A stamp from the future is one from before a step, too.
        let lag = received
            .filter(|_| !stepped)
            .and_then(|received| real.checked_sub(received))
            .map(Duration::from_nanos);
        let at = lag.map_or(now, |lag| now.before(lag));
        Ok(Read { n, at, lag })
    }

    #[cfg(not(target_os = "linux"))]
    fn read_stamped(&mut self, buf: &mut [u8]) -> io::Result<Read> {
        use std::io::Read as _;

        let result = self.stream_mut().read(buf);
        let at = clock::now();
        result.map(|n| Read { n, at, lag: None })
    }

    const fn stream(&self) -> &TcpStream {
        let Transport::Plain(stream) = &self.transport;
        stream
    }

    const fn stream_mut(&mut self) -> &mut TcpStream {
        let Transport::Plain(stream) = &mut self.transport;
        stream
    }
}

impl Source for Socket {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.stream_mut().register(registry, token, interests)
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.stream_mut().reregister(registry, token, interests)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.stream_mut().deregister(registry)
    }
}
