//! What the server knows of its own timing: kept per thread, bounded, handed out as a document.

use std::collections::VecDeque;
use std::sync::Arc;

use shakedown_model::{RequestEnd, RequestTruth, WriteKind, WritesTruth};

/// Writes kept of one request: an endless stream must not fill the memory.
const WRITES_A_REQUEST: usize = 1_000_000;

/// The record of one request while it runs.
#[derive(Debug)]
pub(crate) struct Record {
    truth: RequestTruth,
    late: Vec<u64>,
    /// What was due before this is late by the client's fault.
    excused: u64,
}

impl Record {
    /// A record of a request that has just been read, with room for `writes` writes.
    pub(crate) fn new(
        id: Option<String>,
        path: String,
        accepted_ns: u64,
        read_ns: u64,
        writes: usize,
    ) -> Self {
        let room = writes.min(4096);
        Self {
            truth: RequestTruth {
                id,
                path,
                script: None,
                status: None,
                accepted_ns,
                read_ns,
                slot_ns: None,
                end_ns: 0,
                end: RequestEnd::ClientGone,
                prompt_tokens: 0,
                tokens: 0,
                writes: WritesTruth {
                    due_ns: Vec::with_capacity(room),
                    before_ns: Vec::with_capacity(room),
                    after_ns: Vec::with_capacity(room),
                    tokens: Vec::with_capacity(room),
                    kind: Vec::with_capacity(room),
                },
                writes_dropped: 0,
            },
            late: Vec::with_capacity(room),
            excused: 0,
        }
    }

    /// The request is answered by the script `name`.
    pub(crate) fn set_script(&mut self, name: &str) {
        self.truth.script = Some(name.to_owned());
    }

    /// The answer's status.
    pub(crate) const fn set_status(&mut self, status: u16) {
        self.truth.status = Some(status);
    }

    /// The request's prompt tokens.
    pub(crate) const fn set_prompt_tokens(&mut self, tokens: u32) {
        self.truth.prompt_tokens = tokens;
    }

    /// The request began to run.
    pub(crate) const fn set_slot(&mut self, at: u64) {
        self.truth.slot_ns = Some(at);
    }

    /// When the request was read.
    pub(crate) const fn read_ns(&self) -> u64 {
        self.truth.read_ns
    }

    /// When the request began to run.
    pub(crate) const fn slot_ns(&self) -> Option<u64> {
        self.truth.slot_ns
    }

    /// A write had to wait for the client to read until `at`.
    pub(crate) const fn excuse(&mut self, at: u64) {
        self.excused = at;
    }

    /// One whole write.
    pub(crate) fn write(&mut self, due: u64, before: u64, after: u64, tokens: u32, kind: WriteKind) {
        self.truth.tokens += u64::from(tokens);
        let writes = &mut self.truth.writes;
        if writes.due_ns.len() >= WRITES_A_REQUEST {
            self.truth.writes_dropped += 1;
            return;
        }
        if due >= self.excused {
            self.late.push(before.saturating_sub(due));
        }
        writes.due_ns.push(due);
        writes.before_ns.push(before);
        writes.after_ns.push(after);
        writes.tokens.push(tokens);
        writes.kind.push(kind);
    }

    /// The stamps of token-bearing writes, for the engine's own histograms.
    pub(crate) fn token_stamps(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let writes = &self.truth.writes;
        writes
            .before_ns
            .iter()
            .copied()
            .zip(writes.tokens.iter().copied())
            .filter(|(_, tokens)| *tokens > 0)
    }

    /// The request ended.
    pub(crate) const fn finish(&mut self, at: u64, end: RequestEnd) {
        self.truth.end_ns = at;
        self.truth.end = end;
    }
}

/// The newest ended requests of one thread.
#[derive(Debug)]
pub(crate) struct Ring {
    requests: VecDeque<Arc<RequestTruth>>,
    writes: usize,
    max_requests: usize,
    max_writes: usize,
    dropped: u64,
    late: Lateness,
}

impl Ring {
    /// An empty ring.
    pub(crate) fn new(max_requests: usize, max_writes: usize) -> Self {
        Self {
            requests: VecDeque::new(),
            writes: 0,
            max_requests,
            max_writes,
            dropped: 0,
            late: Lateness::default(),
        }
    }

    /// Adds an ended request; the oldest make room.
    pub(crate) fn push(&mut self, record: Record) {
        for late in &record.late {
            self.late.add(*late);
        }
        self.writes += record.truth.writes.due_ns.len();
        self.requests.push_back(Arc::new(record.truth));
        while self.requests.len() > self.max_requests || self.writes > self.max_writes {
            let Some(oldest) = self.requests.pop_front() else {
                break;
            };
            self.writes -= oldest.writes.due_ns.len();
            self.dropped += 1;
        }
    }

    /// Adds what it holds to a snapshot, and empties it if told to. Cheap: the requests are shared, not copied.
    pub(crate) fn snapshot(&mut self, into: &mut Snapshot, clear: bool) {
        into.requests.extend(self.requests.iter().cloned());
        into.dropped += self.dropped;
        into.late.merge(&self.late);
        if clear {
            self.requests.clear();
            self.writes = 0;
            self.dropped = 0;
            self.late = Lateness::default();
        }
    }
}

/// What all rings held at one moment.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) requests: Vec<Arc<RequestTruth>>,
    pub(crate) dropped: u64,
    pub(crate) late: Lateness,
}

/// A histogram of nanoseconds with 64 buckets an octave: any quantile to 2%, in fixed memory.
#[derive(Debug)]
pub(crate) struct Lateness {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

/// log2 of the number of buckets an octave.
const SUB_BITS: u32 = 6;

impl Default for Lateness {
    fn default() -> Self {
        Self {
            counts: vec![0; (64 - SUB_BITS as usize + 1) << SUB_BITS],
            total: 0,
            max: 0,
        }
    }
}

impl Lateness {
    fn bucket(value: u64) -> usize {
        if value < 1 << SUB_BITS {
            return value as usize;
        }
        let octave = value.ilog2() - SUB_BITS;
        (((octave as usize) + 1) << SUB_BITS) + ((value >> octave) as usize & ((1 << SUB_BITS) - 1))
    }

    fn upper(bucket: usize) -> u64 {
        let octave = bucket >> SUB_BITS;
        let sub = (bucket & ((1 << SUB_BITS) - 1)) as u64;
        if octave == 0 {
            return sub;
        }
        let shift = octave - 1;
        (((1 << SUB_BITS) + sub) << shift) | ((1 << shift) - 1)
    }

    /// Counts one value.
    pub(crate) fn add(&mut self, value: u64) {
        if let Some(count) = self.counts.get_mut(Self::bucket(value)) {
            *count += 1;
        }
        self.total += 1;
        self.max = self.max.max(value);
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    /// The smallest bucket end that at least the share `q` of all values does not exceed; 0 when empty.
    pub(crate) fn quantile(&self, q: f64) -> u64 {
        let rank = ((self.total as f64 * q).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Self::upper(bucket).min(self.max);
            }
        }
        0
    }

    /// The largest value.
    pub(crate) const fn max(&self) -> u64 {
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_two_percent() {
        let mut late = Lateness::default();
        let values: Vec<u64> = (0..10_000_u64).map(|i| i * i * 7 + i).collect();
        for value in &values {
            late.add(*value);
        }
        for q in [0.01, 0.5, 0.9, 0.99, 1.0] {
            let exact = values[((values.len() as f64 * q).ceil() as usize).max(1) - 1] as f64;
            let got = late.quantile(q) as f64;
            assert!(
                got >= exact && got <= exact * 1.02 + 1.0,
                "q {q}: {got} for {exact}"
            );
        }
        assert_eq!(late.max(), 9_999 * 9_999 * 7 + 9_999);
        late.add(u64::MAX);
        assert_eq!(late.quantile(1.0), u64::MAX);
    }

    #[test]
    fn buckets_cover_the_line() {
        for value in [0, 1, 63, 64, 65, 127, 128, 1 << 20, (1 << 20) + 12_345, u64::MAX] {
            let bucket = Lateness::bucket(value);
            assert!(Lateness::upper(bucket) >= value);
            assert!(bucket == 0 || Lateness::upper(bucket - 1) < value);
        }
    }

    #[test]
    fn the_ring_keeps_the_newest_within_both_bounds() {
        let mut ring = Ring::new(3, 10);
        for n in 0..6_u64 {
            let mut record = Record::new(None, n.to_string(), 0, n, 1);
            for _ in 0..4 {
                record.write(5, 6, 7, 1, WriteKind::Content);
            }
            record.finish(9, RequestEnd::Complete);
            ring.push(record);
        }
        let mut snapshot = Snapshot::default();
        ring.snapshot(&mut snapshot, true);
        let paths: Vec<_> = snapshot
            .requests
            .iter()
            .map(|request| request.path.as_str())
            .collect();
        assert_eq!(paths, ["4", "5"]);
        assert_eq!(snapshot.dropped, 4);
        let mut after = Snapshot::default();
        ring.snapshot(&mut after, false);
        assert!(after.requests.is_empty());
    }
}
