//! The token-bearing chunks of one answer, in about five bytes each.

use shakedown_model::{Channel, Stamp};

/// Chunks of one answer: a gap each, tokens and channels run-length coded.
#[derive(Debug, Default)]
pub(super) struct ChunkLog {
    /// Microseconds since the run's origin of the first and the latest chunk.
    first_us: Option<u64>,
    last_us: u64,
    last_read: u32,
    gaps_us: Vec<u32>,
    tokens: Vec<[u32; 2]>,
    tokens_known: bool,
    token_sum: u64,
    channels: Vec<(Channel, u32)>,
}

impl ChunkLog {
    pub(super) fn new() -> Self {
        Self {
            tokens_known: true,
            ..Self::default()
        }
    }

    /// Adds a chunk that came with read number `read` at `at`. `tokens` is `None` where the server did not say.
    ///
    /// Stamps are rounded to whole microseconds since `origin` before gaps are taken, so that gaps add up to the
    /// stamps without drift. A gap of 0 is kept for chunks of one read: chunks of different reads are at least
    /// 1 µs apart, as two system calls are.
    pub(super) fn push(
        &mut self,
        at: Stamp,
        origin: Stamp,
        read: u32,
        channel: Channel,
        tokens: Option<u32>,
    ) {
        let at_us = at.micros_since(origin);
        let gap = match self.first_us {
            None => {
                self.first_us = Some(at_us);
                self.last_us = at_us;
                0
            }
            Some(_) if read == self.last_read => 0,
            Some(_) => {
                let at_us = at_us.max(self.last_us + 1);
                let gap = u32::try_from(at_us - self.last_us).unwrap_or(u32::MAX);
                self.last_us += u64::from(gap);
                gap
            }
        };
        self.last_read = read;
        self.gaps_us.push(gap);
        match tokens {
            Some(count) => {
                self.token_sum += u64::from(count);
                match self.tokens.last_mut() {
                    Some([last, chunks]) if *last == count => *chunks += 1,
                    _ => self.tokens.push([count, 1]),
                }
            }
            None => self.tokens_known = false,
        }
        match self.channels.last_mut() {
            Some((last, chunks)) if *last == channel => *chunks += 1,
            _ => self.channels.push((channel, 1)),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.gaps_us.len() as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.gaps_us.is_empty()
    }

    /// Microseconds since the run's origin of the first chunk.
    pub(super) fn first_us(&self) -> Option<u64> {
        self.first_us
    }

    /// Microseconds since the run's origin of the latest chunk.
    pub(super) fn last_us(&self) -> Option<u64> {
        self.first_us.map(|_| self.last_us)
    }

    /// The sum of the chunks' token counts, where every chunk has one.
    pub(super) fn token_sum(&self) -> Option<u64> {
        (self.tokens_known && !self.is_empty()).then_some(self.token_sum)
    }

    /// The parts for the record: gaps, tokens per chunk where known, channels. `total` is the request's token
    /// count, where one is known: when it equals the number of chunks, each chunk had exactly one token, since
    /// none has less.
    pub(super) fn into_parts(self, total: Option<u64>) -> ChunkParts {
        let chunks = self.len();
        let tokens = if chunks == 0 {
            None
        } else if self.tokens_known {
            Some(self.tokens)
        } else if total == Some(chunks) {
            Some(vec![[1, u32::try_from(chunks).unwrap_or(u32::MAX)]])
        } else {
            None
        };
        ChunkParts {
            gaps_us: self.gaps_us,
            tokens,
            channels: self.channels,
        }
    }
}

/// What a [`ChunkLog`] leaves for the record.
pub(super) struct ChunkParts {
    pub(super) gaps_us: Vec<u32>,
    pub(super) tokens: Option<Vec<[u32; 2]>>,
    pub(super) channels: Vec<(Channel, u32)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: Stamp = Stamp::from_nanos(1_000_000);

    fn at(nanos: u64) -> Stamp {
        Stamp::from_nanos(1_000_000 + nanos)
    }

    #[test]
    fn gaps_add_up_to_the_rounded_stamps() {
        let mut log = ChunkLog::new();
        // Each gap is 10.4 µs: rounding gap by gap would lose 40 µs in 100.
        for index in 0..101 {
            log.push(
                at(index * 10_400),
                ORIGIN,
                index as u32,
                Channel::Content,
                Some(1),
            );
        }
        assert_eq!(log.last_us(), Some(1040));
        let parts = log.into_parts(None);
        assert_eq!(parts.gaps_us.iter().map(|gap| u64::from(*gap)).sum::<u64>(), 1040);
        assert_eq!(parts.tokens, Some(vec![[1, 101]]));
    }

    #[test]
    fn zero_means_the_same_read_and_nothing_else() {
        let mut log = ChunkLog::new();
        log.push(at(0), ORIGIN, 1, Channel::Reasoning, Some(2));
        log.push(at(0), ORIGIN, 1, Channel::Content, Some(2));
        log.push(at(100), ORIGIN, 2, Channel::Content, Some(3));
        let parts = log.into_parts(None);
        assert_eq!(parts.gaps_us, [0, 0, 1]);
        assert_eq!(parts.tokens, Some(vec![[2, 2], [3, 1]]));
        assert_eq!(parts.channels, [(Channel::Reasoning, 1), (Channel::Content, 2)]);
    }

    #[test]
    fn one_token_a_chunk_is_inferred_only_from_an_equal_total() {
        for (total, expected) in [(Some(2), Some(vec![[1, 2]])), (Some(3), None), (None, None)] {
            let mut log = ChunkLog::new();
            log.push(at(0), ORIGIN, 1, Channel::Content, None);
            log.push(at(5000), ORIGIN, 2, Channel::Content, None);
            assert_eq!(log.token_sum(), None);
            assert_eq!(log.into_parts(total).tokens, expected);
        }
    }
}
