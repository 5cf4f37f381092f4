//! One connection: what was read, what is being answered, what waits to be written.

use mio::net::TcpStream;
use shakedown_model::{RequestEnd, WriteKind};

use crate::counters::Counters;
use crate::http::{Dechunker, Head};
use crate::script::ScriptRun;
use crate::shared::Key;
use crate::sse;
use crate::stream::{Step, Stream, Then};
use crate::truth::Record;

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    pub(crate) accepted: u64,
    /// Bytes read and not yet understood.
    pub(crate) input: Vec<u8>,
    /// How much of `input` was searched for the end of a head.
    pub(crate) searched: usize,
    /// The head in `input`, its length, and the body's state, once the head is whole.
    pub(crate) reading: Option<Reading>,
    /// Bytes may wait in the kernel: the edge was seen, and the kernel was not yet found empty.
    pub(crate) readable: bool,
    /// The peer will send nothing more, and what it sent is to be read to its end.
    pub(crate) gone: bool,
    /// What comes is thrown away.
    pub(crate) draining: bool,
    /// The answer is made by another thread.
    pub(crate) awaiting: bool,
    /// Stamp of the last read.
    pub(crate) read: u64,
    pub(crate) job: Option<Job>,
    /// Bytes that the kernel did not take yet.
    pub(crate) output: Vec<u8>,
    pub(crate) written: usize,
    /// The write that `output` is the rest of.
    pub(crate) pending: Option<Pending>,
    /// Close when `output` is written and no job is left.
    pub(crate) closing: bool,
    /// When it is given up, unless something happens before.
    pub(crate) deadline: u64,
}

/// A request whose head is whole.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) head: Head,
    pub(crate) length: usize,
    pub(crate) dechunker: Dechunker,
}

/// A write of a job that the kernel has not taken whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pending {
    pub(crate) due: u64,
    pub(crate) before: u64,
    pub(crate) step: Step,
}

impl Connection {
    /// A connection accepted at `accepted`.
    pub(crate) const fn new(stream: TcpStream, accepted: u64, deadline: u64) -> Self {
        Self {
            stream,
            accepted,
            input: Vec::new(),
            searched: 0,
            reading: None,
            readable: false,
            gone: false,
            draining: false,
            awaiting: false,
            read: accepted,
            job: None,
            output: Vec::new(),
            written: 0,
            pending: None,
            closing: false,
            deadline,
        }
    }

    /// Whether bytes wait for the kernel to take them.
    pub(crate) const fn blocked(&self) -> bool {
        self.written < self.output.len()
    }

    /// Whether a request is being answered.
    pub(crate) const fn busy(&self) -> bool {
        self.job.is_some() || self.awaiting || self.blocked()
    }
}

/// Whether a request runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// It needs none.
    Free,
    /// It waits for one.
    Waiting,
    /// It has one.
    Held,
}

/// The head of an answer that is written in steps.
#[derive(Debug)]
pub(crate) enum HeadState {
    /// To be written at once, alone.
    Alone(Vec<u8>),
    /// To be written together with the first step.
    WithFirst(Vec<u8>),
    /// Written, or part of the step itself.
    Sent,
}

/// Where an answer's bytes come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A generation.
    Stream(Box<Stream>),
    /// A script.
    Script(Box<ScriptRun>),
    /// Bytes that are ready, head included.
    Ready(Vec<u8>),
}

/// A request that is being answered, and that `/truth` will tell of.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) source: Source,
    pub(crate) record: Record,
    pub(crate) ordinal: u64,
    pub(crate) slot: Slot,
    pub(crate) head: HeadState,
    /// Each step is one chunk of a chunked body.
    pub(crate) chunked: bool,
    /// For an answer that is not streamed: makes its head, given the body's length.
    pub(crate) whole_head: Option<Vec<u8>>,
    pub(crate) keep_alive: bool,
    /// 0 stop, 1 length: how it ends if nothing goes wrong.
    pub(crate) way: usize,
}

impl Job {
    /// When its next step is due.
    pub(crate) fn due(&self) -> u64 {
        if matches!(self.head, HeadState::Alone(_)) {
            return self.record.read_ns();
        }
        match &self.source {
            Source::Stream(stream) => stream.due(),
            Source::Script(script) => script.due(),
            Source::Ready(_) => self.record.read_ns(),
        }
    }

    /// Whether its next step has to wait for a slot.
    pub(crate) const fn waits(&self) -> bool {
        matches!(self.slot, Slot::Waiting) && !matches!(self.head, HeadState::Alone(_))
    }

    /// Puts the next step into `frame`, as it goes over the wire. `event` is scratch space.
    pub(crate) fn step(&mut self, frame: &mut Vec<u8>, event: &mut Vec<u8>, counters: &Counters) -> Step {
        match std::mem::replace(&mut self.head, HeadState::Sent) {
            HeadState::Alone(head) => {
                frame.extend_from_slice(&head);
                return Step {
                    tokens: 0,
                    kind: WriteKind::Head,
                    then: Then::Continue,
                };
            }
            HeadState::WithFirst(head) => frame.extend_from_slice(&head),
            HeadState::Sent => {}
        }
        match &mut self.source {
            Source::Script(script) => script.step(frame),
            Source::Ready(bytes) => {
                frame.append(bytes);
                Step {
                    tokens: 0,
                    kind: WriteKind::Body,
                    then: Then::Complete,
                }
            }
            Source::Stream(stream) => {
                event.clear();
                let step = stream.step(event, counters);
                if let Some(head) = &self.whole_head {
                    if !event.is_empty() {
                        frame.extend_from_slice(head);
                        frame.extend_from_slice(format!("{}\r\n\r\n", event.len()).as_bytes());
                        frame.append(event);
                    }
                    return step;
                }
                if !event.is_empty() {
                    if self.chunked {
                        sse::chunk(frame, event);
                    } else {
                        frame.append(event);
                    }
                }
                if step.then == Then::Complete && self.chunked {
                    frame.extend_from_slice(sse::LAST_CHUNK);
                }
                step
            }
        }
    }
}

/// How a job's end is recorded.
pub(crate) const fn end_of(then: Then) -> RequestEnd {
    match then {
        Then::Continue | Then::Complete => RequestEnd::Complete,
        Then::Cut => RequestEnd::Cut,
        Then::Reset => RequestEnd::Reset,
    }
}

/// The connections of one thread. A place that is used again has another generation, so that what was meant
/// for its former connection is not taken for the new one's.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    places: Vec<(u32, Option<Box<Connection>>)>,
    free: Vec<u32>,
    pub(crate) open: usize,
}

impl Slab {
    /// A free place.
    pub(crate) fn reserve(&mut self) -> Key {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() as u32 - 1
        });
        Key {
            index,
            generation: self.places[index as usize].0,
        }
    }

    /// Puts a connection into its place.
    pub(crate) fn put(&mut self, key: Key, connection: Box<Connection>) {
        if let Some(place) = self.places.get_mut(key.index as usize) {
            place.1 = Some(connection);
            self.open += 1;
        }
    }

    /// Takes a connection out of its place to work on it; [`Slab::put`] or [`Slab::free`] follows.
    pub(crate) fn take(&mut self, key: Key) -> Option<Box<Connection>> {
        let place = self.places.get_mut(key.index as usize)?;
        if place.0 != key.generation {
            return None;
        }
        let connection = place.1.take()?;
        self.open -= 1;
        Some(connection)
    }

    /// Gives a place back.
    pub(crate) fn free(&mut self, key: Key) {
        if let Some(place) = self.places.get_mut(key.index as usize) {
            place.0 = place.0.wrapping_add(1) & 0x3fff_ffff;
            self.free.push(key.index);
        }
    }

    /// The connections whose deadline has passed and that are doing nothing else.
    pub(crate) fn overdue(&self, now: u64) -> Vec<Key> {
        self.places
            .iter()
            .enumerate()
            .filter(|(_, (_, connection))| {
                connection.as_ref().is_some_and(|connection| {
                    connection.job.is_none() && !connection.awaiting && connection.deadline <= now
                })
            })
            .map(|(index, (generation, _))| Key {
                index: index as u32,
                generation: *generation,
            })
            .collect()
    }

    /// All connections, taken out.
    pub(crate) fn drain(&mut self) -> Vec<(Key, Box<Connection>)> {
        let taken: Vec<_> = self
            .places
            .iter_mut()
            .enumerate()
            .filter_map(|(index, (generation, connection))| {
                let key = Key {
                    index: index as u32,
                    generation: *generation,
                };
                connection.take().map(|connection| (key, connection))
            })
            .collect();
        self.open = 0;
        taken
    }
}
