//! The reading side: bytes into requests, requests into answers.

use std::io::{ErrorKind, Write as _};
use std::sync::Arc;

use mio::event::Event;

use super::{Fate, Worker, send, start_job};
use crate::clock;
use crate::connection::{Connection, Reading, Slot};
use crate::http::{self, Bad, Dechunker, Length};
use crate::reply;
use crate::routes::{self, Route};
use crate::shared::{Key, Mail, Shared};

/// Bytes taken in behind a request that is being answered.
const PIPELINE_CAP: usize = 256 * 1024;
/// How long what comes behind a refused request is read and thrown away.
const DRAIN: u64 = 1_000_000_000;

impl Worker {
    pub(super) fn on_event(
        &mut self,
        shared: &Shared,
        key: Key,
        connection: &mut Connection,
        event: &Event,
    ) -> Fate {
        if event.is_error() {
            return Fate::Close;
        }
        if event.is_writable() && connection.blocked() {
            match self.flush(shared, key, connection) {
                Fate::Keep => {}
                fate => return fate,
            }
        }
        connection.readable |= event.is_readable();
        connection.gone |= event.is_read_closed();
        self.drive(shared, key, connection)
    }

    /// Reads, understands and answers until the connection has to wait for something.
    pub(super) fn drive(&mut self, shared: &Shared, key: Key, connection: &mut Connection) -> Fate {
        loop {
            if connection.closing && !connection.busy() {
                return Fate::Close;
            }
            let full = connection.busy() && connection.input.len() >= PIPELINE_CAP;
            if connection.gone || (connection.readable && !full) {
                match self.read(shared, connection) {
                    Fate::Keep => {}
                    fate => return fate,
                }
            }
            if connection.busy() {
                let full = connection.input.len() >= PIPELINE_CAP;
                if connection.gone || (connection.readable && !full) {
                    continue;
                }
                return Fate::Keep;
            }
            let fate = match next_request(connection) {
                Ok(Some((reading, body))) => self.route(shared, key, connection, reading, &body),
                Ok(None) if connection.readable || connection.gone => Fate::Keep,
                Ok(None) => return Fate::Keep,
                Err(Bad(status, why)) => {
                    // What still comes is read and thrown away for a while: closing at once would reset the
                    // connection and take the answer with it.
                    connection.draining = true;
                    connection.input = Vec::new();
                    let bytes = reply::error(&shared.options, status, why, false);
                    let fate = send(shared, connection, bytes);
                    connection.deadline = clock::now() + DRAIN;
                    let _ = connection.stream.shutdown(std::net::Shutdown::Write);
                    fate
                }
            };
            if fate != Fate::Keep {
                return fate;
            }
        }
    }

    /// One read.
    fn read(&mut self, shared: &Shared, connection: &mut Connection) -> Fate {
        match self.arrivals.read(&connection.stream, &mut self.scratch) {
            Ok((0, _)) => Fate::Close,
            Ok((length, at)) => {
                connection.read = at;
                if length < self.scratch.len() {
                    connection.readable = false;
                }
                if connection.draining || (connection.busy() && connection.input.len() >= PIPELINE_CAP) {
                    return Fate::Keep;
                }
                if connection.input.is_empty() && !connection.busy() {
                    connection.deadline = connection
                        .read
                        .saturating_add(clock::nanos(shared.options.request_timeout));
                }
                connection.input.extend_from_slice(&self.scratch[..length]);
                Fate::Keep
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                connection.readable = false;
                connection.gone = false;
                Fate::Keep
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Fate::Keep,
            Err(_) => Fate::Close,
        }
    }

    fn route(
        &mut self,
        shared: &Shared,
        key: Key,
        connection: &mut Connection,
        reading: Reading,
        body: &[u8],
    ) -> Fate {
        let head = reading.head;
        shared.log(&head.method, &head.path);
        let seen = routes::Seen {
            accepted: connection.accepted,
            read: connection.read,
        };
        connection.closing = !head.keep_alive;
        match routes::route(shared, &head, body, seen) {
            Route::Reply(bytes) => send(shared, connection, bytes),
            Route::Truth { clear } => {
                connection.awaiting = true;
                let owned = Arc::clone(&self.shared);
                let (thread, keep_alive) = (self.index, head.keep_alive);
                // It may be many megabytes: not on a thread that has deadlines.
                let spawned = std::thread::Builder::new()
                    .name("practice-truth".to_owned())
                    .spawn(move || {
                        let bytes = routes::truth(&owned, clear, keep_alive);
                        owned.post(thread, Mail::Reply(key, bytes));
                    });
                if spawned.is_ok() {
                    return Fate::Keep;
                }
                let bytes = reply::error(&shared.options, 500, "no thread for it", head.keep_alive);
                send(shared, connection, bytes)
            }
            Route::Job(mut job) => {
                connection.closing = !job.keep_alive;
                if job.slot == Slot::Waiting
                    && let Some(at) = shared.acquire(self.index, key, job.record.read_ns())
                {
                    start_job(shared, &mut job, at);
                }
                connection.job = Some(*job);
                self.advance(shared, key, connection, clock::now())
            }
        }
    }
}

/// The next whole request in what was read, and its body.
fn next_request(connection: &mut Connection) -> Result<Option<(Reading, Vec<u8>)>, Bad> {
    if connection.draining {
        return Ok(None);
    }
    let input = &mut connection.input;
    if connection.reading.is_none() {
        // Line ends between two requests are allowed.
        let blank = input
            .iter()
            .take_while(|byte| matches!(byte, b'\r' | b'\n'))
            .count();
        input.drain(..blank);
        let Some(length) = http::head_end(input, connection.searched) else {
            connection.searched = input.len();
            return if input.len() > http::HEAD_CAP {
                Err(Bad(431, "head too large"))
            } else {
                Ok(None)
            };
        };
        if length > http::HEAD_CAP {
            return Err(Bad(431, "head too large"));
        }
        let head = http::parse_head(&input[..length])?;
        if head.expects_continue && input.len() == length && head.length != Length::None {
            // Sent while nothing else is: it cannot fail in part on an idle connection.
            let _ = connection.stream.write(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        connection.searched = 0;
        connection.reading = Some(Reading {
            head,
            length,
            dechunker: Dechunker::default(),
        });
    }
    let Some(reading) = &mut connection.reading else {
        return Ok(None);
    };
    let from = reading.length;
    let (body, end) = match reading.head.length {
        Length::None => (Vec::new(), from),
        Length::Bytes(length) => {
            let end = from + length;
            match input.get(from..end) {
                Some(body) => (body.to_vec(), end),
                None => return Ok(None),
            }
        }
        Length::Chunked => match reading.dechunker.feed(&input[from..])? {
            Some(length) => (reading.dechunker.take(), from + length),
            None if input.len() > http::HEAD_CAP + 2 * http::BODY_CAP => {
                return Err(Bad(413, "body too large"));
            }
            None => return Ok(None),
        },
    };
    if input.len() == end && input.capacity() > PIPELINE_CAP {
        *input = Vec::new();
    } else {
        input.drain(..end);
    }
    Ok(connection.reading.take().map(|reading| (reading, body)))
}
