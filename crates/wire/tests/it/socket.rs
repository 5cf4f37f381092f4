//! Sockets over the loopback interface.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};
use shakedown_wire::clock;
use shakedown_wire::socket::{Idle, Read, Socket};

/// A connected pair, and a poll that the first end is registered with.
struct Pair {
    poll: Poll,
    client: Socket,
    server: TcpStream,
}

impl Pair {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut poll = Poll::new().unwrap();
        let mut client = Socket::connect(listener.local_addr().unwrap()).unwrap();
        poll.registry()
            .register(&mut client, Token(0), Interest::READABLE | Interest::WRITABLE)
            .unwrap();
        let (server, _) = listener.accept().unwrap();
        connect(&mut poll, &client).unwrap();
        Self { poll, client, server }
    }

    /// Reads once, waiting for an event whenever there is nothing.
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<Read> {
        loop {
            match self.client.read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait(&mut self.poll),
                other => return other,
            }
        }
    }
}

fn wait(poll: &mut Poll) {
    let mut events = Events::with_capacity(4);
    poll.poll(&mut events, Some(Duration::from_mins(1))).unwrap();
    assert!(!events.is_empty(), "no event within a minute");
}

fn connect(poll: &mut Poll, client: &Socket) -> std::io::Result<()> {
    loop {
        match client.finish_connect() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(poll),
            other => return other,
        }
    }
}

#[test]
fn bytes_go_both_ways_with_stamps() {
    let mut pair = Pair::new();
    assert_eq!(
        pair.client.peer_addr().unwrap(),
        pair.server.local_addr().unwrap()
    );
    assert_eq!(
        pair.client.local_addr().unwrap(),
        pair.server.peer_addr().unwrap()
    );
    assert_eq!(pair.client.write(b"ping").unwrap(), 4);
    let mut buffer = [0; 16];
    pair.server.read_exact(&mut buffer[..4]).unwrap();
    assert_eq!(&buffer[..4], b"ping");
    let mut last = clock::now();
    for _ in 0..4 {
        let before = clock::now();
        pair.server.write_all(b"pong").unwrap();
        let read = pair.read(&mut buffer).unwrap();
        let after = clock::now();
        assert_eq!(&buffer[..read.n], b"pong");
        assert!(before <= read.at && read.at <= after && last <= read.at);
        last = read.at;
    }
}

/// The kernel's stamp lies between the write and the read, so that the lag is at most their distance.
#[cfg(target_os = "linux")]
#[test]
fn the_lag_is_that_behind_the_kernel() {
    let mut pair = Pair::new();
    let mut buffer = [0; 16];
    // The kernel switches its stamping on in the background.
    wait_for(|| {
        pair.server.write_all(b"x").unwrap();
        pair.read(&mut buffer).unwrap().lag.is_some()
    });
    for _ in 0..50 {
        let before = clock::now();
        pair.server.write_all(b"x").unwrap();
        let lag = pair.read(&mut buffer).unwrap().lag.unwrap();
        let after = clock::now();
        // The two clocks are read one after the other and may be slewed against each other.
        assert!(lag <= after.since(before) + Duration::from_millis(1), "{lag:?}");
    }

    // A reader that comes late sees how late it comes.
    pair.server.write_all(b"x").unwrap();
    std::thread::sleep(Duration::from_millis(30));
    let late = clock::now();
    let read = pair.read(&mut buffer).unwrap();
    assert!(read.lag.unwrap() >= Duration::from_millis(25), "{:?}", read.lag);
    assert!(
        late.since(read.at) >= Duration::from_millis(25),
        "the stamp is when they came"
    );
    // And the stamp is that of the newest bytes.
    pair.server.write_all(b"x").unwrap();
    std::thread::sleep(Duration::from_millis(30));
    let before = clock::now();
    pair.server.write_all(b"y").unwrap();
    let mut n = 0;
    let mut lag = None;
    while n < 2 {
        let read = pair.read(&mut buffer).unwrap();
        n += read.n;
        lag = read.lag;
    }
    assert!(
        lag.unwrap() <= clock::now().since(before) + Duration::from_millis(1),
        "{lag:?}"
    );
}

#[test]
fn idle_connections_are_looked_at_without_reading() {
    let mut pair = Pair::new();
    assert_eq!(pair.client.idle(), Idle::Quiet);
    assert!(!pair.client.is_closed_by_peer());
    pair.server.write_all(b"x").unwrap();
    wait_for(|| pair.client.idle() == Idle::Unasked);
    let mut buffer = [0; 4];
    assert_eq!(pair.read(&mut buffer).unwrap().n, 1, "looking did not take it");
    drop(pair.server);
    wait_for(|| pair.client.is_closed_by_peer());
    assert_eq!(pair.client.read(&mut buffer).unwrap().n, 0);
    pair.client.shutdown().unwrap();
}

/// The rule of `Socket::read`: one read per event unless it is full or the event says that the peer has closed.
#[test]
fn one_read_per_event_misses_nothing() {
    for round in 0..200_usize {
        let mut pair = Pair::new();
        let mut server = pair.server;
        let writer = std::thread::spawn(move || {
            for part in 0..5_u8 {
                server.write_all(&[part; 7]).unwrap();
                if round % 3 == 0 {
                    std::thread::yield_now();
                }
            }
        });
        if round % 2 == 0 {
            // Everything, the end included, comes with one event.
            writer.join().unwrap();
        }
        let mut seen = Vec::new();
        let mut buffer = [0; 16];
        let mut events = Events::with_capacity(4);
        'stream: loop {
            pair.poll.poll(&mut events, Some(Duration::from_mins(1))).unwrap();
            assert!(!events.is_empty(), "an end was missed after {} bytes", seen.len());
            for event in &events {
                loop {
                    match pair.client.read(&mut buffer) {
                        Ok(read) if read.n == 0 => break 'stream,
                        Ok(read) => {
                            seen.extend_from_slice(&buffer[..read.n]);
                            if read.n < buffer.len() && !event.is_read_closed() {
                                break;
                            }
                        }
                        Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }
        let sent: Vec<u8> = (0..5_u8).flat_map(|part| [part; 7]).collect();
        assert_eq!(seen, sent);
    }
}

#[test]
fn a_reset_is_an_error_and_closed() {
    let mut pair = Pair::new();
    let now = nix::libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    nix::sys::socket::setsockopt(&pair.server, nix::sys::socket::sockopt::Linger, &now).unwrap();
    drop(pair.server);
    wait_for(|| pair.client.idle() == Idle::Closed);
    // Looking has consumed the error; what remains is an end.
    let mut buffer = [0; 4];
    match pair.client.read(&mut buffer) {
        Ok(read) => assert_eq!(read.n, 0),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    pair.client.shutdown().unwrap();
}

#[test]
fn refused_is_said() {
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let mut poll = Poll::new().unwrap();
    let mut client = Socket::connect(address).unwrap();
    poll.registry()
        .register(&mut client, Token(0), Interest::WRITABLE)
        .unwrap();
    let error = connect(&mut poll, &client).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

/// The 192.0.2.0/24 block is for documentation: nobody answers, or the system says so.
#[test]
fn unfinished_connects_would_block() {
    let address: SocketAddr = "192.0.2.1:9".parse().unwrap();
    let Ok(client) = Socket::connect(address) else {
        return;
    };
    let error = client.finish_connect().unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ErrorKind::WouldBlock
                | ErrorKind::NetworkUnreachable
                | ErrorKind::HostUnreachable
                | ErrorKind::ConnectionRefused
        ),
        "{error:?}"
    );
}

fn wait_for(mut condition: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("not within a minute");
}
