//! The writing side: each due step one write, stamped before and after.

use std::io::{ErrorKind, Write as _};

use mio::net::TcpStream;
use shakedown_model::RequestEnd;

use super::{Fate, Worker};
use crate::clock;
use crate::connection::{Connection, Job, Pending, Slot, Source, end_of};
use crate::reply;
use crate::shared::{Key, Shared, lock};
use crate::stream::Then;
use crate::truth::Ring;

/// A write longer than this lets others go first.
const LARGE: usize = 16 * 1024;

impl Worker {
    pub(super) fn advance_key(&mut self, shared: &Shared, key: Key, now: u64) {
        let Some(mut connection) = self.slab.take(key) else {
            return;
        };
        let mut fate = self.advance(shared, key, &mut connection, now);
        if fate == Fate::Keep && !connection.busy() {
            fate = self.drive(shared, key, &mut connection);
        }
        self.settle(shared, key, connection, fate);
    }

    /// Writes what is due by `now`, and puts what comes next on the schedule.
    pub(super) fn advance(
        &mut self,
        shared: &Shared,
        key: Key,
        connection: &mut Connection,
        now: u64,
    ) -> Fate {
        loop {
            if connection.blocked() {
                return Fate::Keep;
            }
            let Some(job) = &mut connection.job else {
                return Fate::Keep;
            };
            if job.waits() {
                return Fate::Keep;
            }
            let due = job.due();
            if due > now {
                // Never is no deadline.
                if due < u64::MAX {
                    self.push(due, key.index, key.generation);
                }
                return Fate::Keep;
            }
            self.frame.clear();
            let step = job.step(&mut self.frame, &mut self.event, &shared.counters);
            if self.frame.is_empty() {
                if step.then == Then::Continue {
                    continue;
                }
                let mut ring = lock(&shared.rings[self.index]);
                return self.finish_job(shared, key, connection, step.then, clock::now(), &mut ring);
            }
            // Whoever has seen the last byte of an answer finds it in the truth: the ring is held while that
            // byte is written.
            let guard = (step.then != Then::Continue).then(|| lock(&shared.rings[self.index]));
            let before = clock::now();
            let written = write_some(&mut connection.stream, &self.frame);
            let after = clock::now();
            match written {
                Ok(length) if length == self.frame.len() => {
                    job.record.write(due, before, after, step.tokens, step.kind);
                    if let Some(mut ring) = guard {
                        return self.finish_job(shared, key, connection, step.then, after, &mut ring);
                    }
                    if step.tokens > 0 || self.frame.len() > LARGE {
                        // Back on the schedule behind the others, even if the next step is due already.
                        let due = job.due();
                        self.push(due, key.index, key.generation);
                        return Fate::Keep;
                    }
                }
                Ok(length) => {
                    connection.output.clear();
                    connection.output.extend_from_slice(&self.frame[length..]);
                    connection.written = 0;
                    connection.pending = Some(Pending { due, before, step });
                    return Fate::Keep;
                }
                Err(_) => return Fate::Close,
            }
        }
    }

    /// Writes what the kernel did not take before.
    pub(super) fn flush(&mut self, shared: &Shared, key: Key, connection: &mut Connection) -> Fate {
        let last = connection
            .pending
            .is_some_and(|pending| pending.step.then != Then::Continue);
        let guard = last.then(|| lock(&shared.rings[self.index]));
        let rest = &connection.output[connection.written..];
        let Ok(length) = write_some(&mut connection.stream, rest) else {
            return Fate::Close;
        };
        let after = clock::now();
        connection.written += length;
        connection.deadline = after.saturating_add(reply::keep_alive(&shared.options));
        if connection.blocked() {
            return Fate::Keep;
        }
        connection.output.clear();
        connection.written = 0;
        let Some(pending) = connection.pending.take() else {
            return Fate::Keep;
        };
        let step = pending.step;
        if let Some(job) = &mut connection.job {
            job.record
                .write(pending.due, pending.before, after, step.tokens, step.kind);
            // What became due meanwhile is not late by the server's fault.
            job.record.excuse(after);
        }
        if let Some(mut ring) = guard {
            return self.finish_job(shared, key, connection, step.then, after, &mut ring);
        }
        self.advance(shared, key, connection, after)
    }

    /// The job's last byte is written; `ring` is this thread's.
    fn finish_job(
        &mut self,
        shared: &Shared,
        key: Key,
        connection: &mut Connection,
        then: Then,
        at: u64,
        ring: &mut Ring,
    ) -> Fate {
        connection.deadline = at.saturating_add(reply::keep_alive(&shared.options));
        if let Some(job) = connection.job.take() {
            self.end_job(shared, key, job, end_of(then), at, ring);
        }
        match then {
            Then::Cut => Fate::Close,
            Then::Reset => Fate::Reset,
            Then::Continue | Then::Complete => Fate::Keep,
        }
    }

    /// Records a job that ended and gives back what it held.
    pub(super) fn end_job(
        &mut self,
        shared: &Shared,
        key: Key,
        job: Job,
        end: RequestEnd,
        at: u64,
        ring: &mut Ring,
    ) {
        let Job {
            mut record,
            slot,
            way,
            ..
        } = job;
        record.finish(at, end);
        if slot != Slot::Free {
            let way = if end == RequestEnd::Complete { way } else { 2 };
            shared.counters.ended(&record, at, way);
        }
        ring.push(record);
        match slot {
            Slot::Held => self.release(shared),
            Slot::Waiting => {
                shared.give_up(self.index, key);
            }
            Slot::Free => {}
        }
    }
}

/// A request begins to run at `at`.
pub(super) fn start_job(shared: &Shared, job: &mut Job, at: u64) {
    job.slot = Slot::Held;
    job.record.set_slot(at);
    let earliest = if shared.options.startup.first_token.is_zero() {
        0
    } else {
        shared.startup(shared.options.startup.first_token)
    };
    if let Source::Stream(stream) = &mut job.source {
        stream.start(&shared.options, job.ordinal, at, shared.origin, earliest);
    }
}

/// Writes as much as the kernel takes.
pub(super) fn write_some(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<usize> {
    let mut written = 0;
    while written < bytes.len() {
        match stream.write(&bytes[written..]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(length) => written += length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

/// Writes an answer that is not recorded.
pub(super) fn send(shared: &Shared, connection: &mut Connection, bytes: Vec<u8>) -> Fate {
    connection.awaiting = false;
    let now = clock::now();
    connection.deadline = now.saturating_add(reply::keep_alive(&shared.options));
    match write_some(&mut connection.stream, &bytes) {
        Ok(length) if length == bytes.len() => Fate::Keep,
        Ok(length) => {
            connection.output = bytes;
            connection.written = length;
            Fate::Keep
        }
        Err(_) => Fate::Close,
    }
}
