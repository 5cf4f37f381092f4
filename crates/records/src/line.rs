//! One line of `requests.jsonl`: a [`RequestRecord`] in few bytes.
//!
//! A long answer is mostly its chunk gaps, so these are written as offsets from one base; a short one is mostly
//! its stamps, so these are a row in a fixed order. Members that hold their usual value are left out.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{SeqAccess, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use shakedown_model::{
    Channel, FinishReason, Phase, PromptRef, RequestOutcome, RequestRecord, Stamps, TextRef, Tokens,
};

use crate::LineFault;

/// One ended request: a line of `requests.jsonl`, appended as the request ends.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RequestLine<'a> {
    /// Identity within the run, also sent as `X-Request-Id`.
    id: Cow<'a, str>,
    /// Trial, from 1; warm-up before the first trial is 0.
    trial: u32,
    /// Part of the trial; absent for a measured request.
    #[serde(default = "measured", skip_serializing_if = "is_measured")]
    phase: Phase,
    /// Stream (closed loop) or connection slot (open loop) that sent it.
    stream: u32,
    /// The prompt.
    prompt: Cow<'a, PromptRef>,
    /// Output tokens asked for.
    max_tokens: u32,
    /// How it ended.
    outcome: RequestOutcome,
    /// The error in one line, secrets masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, str>>,
    /// HTTP status, where one came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// Why the server says that it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finish_reason: Option<Cow<'a, FinishReason>>,
    /// Its times.
    stamps_us: StampRow,
    /// Its token counts.
    tokens: Tokens,
    /// Gaps between its token-bearing chunks; absent when none came.
    #[serde(default, skip_serializing_if = "GapRow::is_empty")]
    gaps: GapRow<'a>,
    /// Tokens in each of those chunks, run-length coded as `[tokens, chunks]`; absent where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chunk_tokens: Option<Cow<'a, [[u32; 2]]>>,
    /// Channel of each of those chunks, run-length coded as `[channel, chunks]`; absent when all are content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channels: Option<Cow<'a, [(Channel, u32)]>>,
    /// Reads that brought the answer.
    reads: u32,
    /// Events of the stream, comments excepted.
    events: u32,
    /// The text that came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, TextRef>>,
    /// What the server itself says of its decode rate in tokens a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server_decode_tok_s: Option<f64>,
}

const fn measured() -> Phase {
    Phase::Measured
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_measured(phase: &Phase) -> bool {
    matches!(phase, Phase::Measured)
}

/// The channels of a stream of `chunks` chunks that are all content: what an absent member stands for.
fn all_content(chunks: usize) -> Option<(Channel, u32)> {
    u32::try_from(chunks)
        .ok()
        .filter(|&chunks| chunks > 0)
        .map(|chunks| (Channel::Content, chunks))
}

impl<'a> From<&'a RequestRecord> for RequestLine<'a> {
    fn from(record: &'a RequestRecord) -> Self {
        let usual_channels = record.channels.as_slice() == all_content(record.gaps_us.len()).as_slice();
        Self {
            id: Cow::Borrowed(&record.id),
            trial: record.trial,
            phase: record.phase,
            stream: record.stream,
            prompt: Cow::Borrowed(&record.prompt),
            max_tokens: record.max_tokens,
            outcome: record.outcome,
            error: record.error.as_deref().map(Cow::Borrowed),
            status: record.status,
            finish_reason: record.finish_reason.as_ref().map(Cow::Borrowed),
            stamps_us: StampRow(record.stamps),
            tokens: record.tokens,
            gaps: GapRow(Cow::Borrowed(&record.gaps_us)),
            chunk_tokens: record.chunk_tokens.as_deref().map(Cow::Borrowed),
            channels: (!usual_channels).then_some(Cow::Borrowed(&record.channels)),
            reads: record.reads,
            events: record.events,
            text: record.text.as_ref().map(Cow::Borrowed),
            server_decode_tok_s: record.server_decode_tok_s,
        }
    }
}

impl From<RequestLine<'_>> for RequestRecord {
    fn from(line: RequestLine<'_>) -> Self {
        let gaps_us = line.gaps.0.into_owned();
        Self {
            id: line.id.into_owned(),
            trial: line.trial,
            phase: line.phase,
            stream: line.stream,
            prompt: line.prompt.into_owned(),
            max_tokens: line.max_tokens,
            outcome: line.outcome,
            error: line.error.map(Cow::into_owned),
            status: line.status,
            finish_reason: line.finish_reason.map(Cow::into_owned),
            stamps: line.stamps_us.0,
            tokens: line.tokens,
            chunk_tokens: line.chunk_tokens.map(Cow::into_owned),
            channels: match line.channels {
                Some(channels) => channels.into_owned(),
                None => all_content(gaps_us.len()).into_iter().collect(),
            },
            gaps_us,
            reads: line.reads,
            events: line.events,
            text: line.text.map(Cow::into_owned),
            server_decode_tok_s: line.server_decode_tok_s,
        }
    }
}

/// Appends the line of `record`, newline included, to `buffer`.
pub(crate) fn encode(record: &RequestRecord, buffer: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    serde_json::to_writer(&mut *buffer, &RequestLine::from(record))?;
    buffer.push(b'\n');
    Ok(())
}

/// Reads one line; a newline at its end is allowed.
pub(crate) fn decode(line: &[u8]) -> Result<RequestRecord, LineFault> {
    let line: RequestLine<'_> = serde_json::from_slice(line)?;
    Ok(line.into())
}

/// Chunk gaps: `base_us` plus each of `offsets_us`.
#[derive(Debug, Default)]
struct GapRow<'a>(Cow<'a, [u32]>);

impl GapRow<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Bytes that the offsets of `gaps` from `base` take as JSON, commas included.
fn width(gaps: &[u32], base: u32) -> u64 {
    gaps.iter()
        .map(|&gap| {
            let digits = gap
                .abs_diff(base)
                .checked_ilog10()
                .map_or(1, |log| u64::from(log) + 1);
            digits + u64::from(gap < base) + 1
        })
        .sum()
}

/// The base that makes the offsets shortest, of the two that matter: the median for a steady stream, and none.
fn best_base(gaps: &[u32]) -> u32 {
    let mut sorted: Vec<u32> = gaps.iter().copied().filter(|&gap| gap > 0).collect();
    if sorted.is_empty() {
        return 0;
    }
    let middle = sorted.len() / 2;
    let (_, &mut median, _) = sorted.select_nth_unstable(middle);
    if width(gaps, median) < width(gaps, 0) {
        median
    } else {
        0
    }
}

/// The offsets, written one by one without a copy.
struct Offsets<'a> {
    base: u32,
    gaps: &'a [u32],
}

impl Serialize for Offsets<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.gaps.iter().map(|&gap| i64::from(gap) - i64::from(self.base)))
    }
}

impl Serialize for GapRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let base = best_base(&self.0);
        let mut row = serializer.serialize_struct("gaps", 2)?;
        row.serialize_field("base_us", &base)?;
        row.serialize_field("offsets_us", &Offsets { base, gaps: &self.0 })?;
        row.end()
    }
}

impl<'de> Deserialize<'de> for GapRow<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let row = PlainGaps::deserialize(deserializer)?;
        let gaps: Result<Vec<u32>, LineFault> = row
            .offsets_us
            .iter()
            .enumerate()
            .map(|(index, offset)| {
                i64::from(row.base_us)
                    .checked_add(*offset)
                    .and_then(|gap| u32::try_from(gap).ok())
                    .ok_or(LineFault::Gap { index })
            })
            .collect();
        gaps.map(|gaps| Self(Cow::Owned(gaps)))
            .map_err(serde::de::Error::custom)
    }
}

/// Gaps between token-bearing chunks: gap i is `base_us` + `offsets_us`[i]. The first counts from the first
/// token, so it is 0. Any other 0 means "in the same read as the one before": no gap was observed.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Gaps")]
struct PlainGaps {
    /// Microseconds that every gap starts from.
    base_us: u32,
    /// Microseconds to add, one for each chunk.
    offsets_us: Vec<i64>,
}

impl JsonSchema for GapRow<'_> {
    fn schema_name() -> Cow<'static, str> {
        PlainGaps::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        PlainGaps::json_schema(generator)
    }
}

/// Times of one request as a row: the first is `scheduled` in microseconds since the run's origin, the others
/// are microseconds since `scheduled`, null where not observed.
#[derive(Debug)]
struct StampRow(Stamps);

/// The columns of a [`StampRow`] and what they say.
const STAMPS: [(&str, &str); 13] = [
    (
        "scheduled",
        "when it should have been sent, in microseconds since the run's origin",
    ),
    (
        "dequeued",
        "a core took it up; from here on all count from scheduled",
    ),
    (
        "connect_start",
        "start of the connect, where this request opened the connection",
    ),
    ("connected", "end of the connect"),
    ("secured", "end of the TLS handshake"),
    ("sent", "last byte of the request handed to the kernel"),
    ("first_byte", "first byte of the answer"),
    ("first_event", "first event of the stream, be it only the role"),
    ("first_token", "first generated token in any channel"),
    ("first_output", "first token that is not reasoning"),
    ("last_token", "last generated token"),
    ("finish", "the finish reason"),
    ("end", "end of the stream, or the moment at which it failed"),
];

impl Serialize for StampRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stamps = &self.0;
        let since = |stamp: u64| stamp.wrapping_sub(stamps.scheduled).cast_signed();
        let others = [
            Some(stamps.dequeued),
            stamps.connect_start,
            stamps.connected,
            stamps.secured,
            stamps.sent,
            stamps.first_byte,
            stamps.first_event,
            stamps.first_token,
            stamps.first_output,
            stamps.last_token,
            stamps.finish,
            Some(stamps.end),
        ];
        // The first is unsigned, so it cannot be one of a signed array.
        let mut row = vec![Some(i128::from(stamps.scheduled))];
        row.extend(others.map(|stamp| stamp.map(|stamp| i128::from(since(stamp)))));
        row.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StampRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(StampVisitor)
    }
}

struct StampVisitor;

impl StampVisitor {
    /// The next stamp that may be absent, made absolute.
    fn next<'de, A: SeqAccess<'de>>(
        row: &mut A,
        scheduled: u64,
        column: usize,
    ) -> Result<Option<u64>, A::Error> {
        use serde::de::Error;
        let since: Option<i64> = row
            .next_element()?
            .ok_or_else(|| A::Error::invalid_length(column, &Self))?;
        since
            .map(|since| {
                scheduled.checked_add_signed(since).ok_or_else(|| {
                    A::Error::custom(LineFault::Stamp {
                        name: STAMPS[column].0,
                    })
                })
            })
            .transpose()
    }

    /// The next stamp, which must be there.
    fn must<'de, A: SeqAccess<'de>>(row: &mut A, scheduled: u64, column: usize) -> Result<u64, A::Error> {
        use serde::de::Error;
        Self::next(row, scheduled, column)?
            .ok_or_else(|| A::Error::custom(format_args!("stamp {:?} is null", STAMPS[column].0)))
    }
}

impl<'de> Visitor<'de> for StampVisitor {
    type Value = StampRow;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "a row of {} stamps", STAMPS.len())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut row: A) -> Result<StampRow, A::Error> {
        use serde::de::Error;
        let scheduled: u64 = row
            .next_element()?
            .ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let stamps = Stamps {
            scheduled,
            dequeued: Self::must(&mut row, scheduled, 1)?,
            connect_start: Self::next(&mut row, scheduled, 2)?,
            connected: Self::next(&mut row, scheduled, 3)?,
            secured: Self::next(&mut row, scheduled, 4)?,
            sent: Self::next(&mut row, scheduled, 5)?,
            first_byte: Self::next(&mut row, scheduled, 6)?,
            first_event: Self::next(&mut row, scheduled, 7)?,
            first_token: Self::next(&mut row, scheduled, 8)?,
            first_output: Self::next(&mut row, scheduled, 9)?,
            last_token: Self::next(&mut row, scheduled, 10)?,
            finish: Self::next(&mut row, scheduled, 11)?,
            end: Self::must(&mut row, scheduled, 12)?,
        };
        // A later version may add columns at the end.
        while row.next_element::<serde::de::IgnoredAny>()?.is_some() {}
        Ok(StampRow(stamps))
    }
}

impl JsonSchema for StampRow {
    fn schema_name() -> Cow<'static, str> {
        "Stamps".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let columns: Vec<Schema> = STAMPS
            .iter()
            .enumerate()
            .map(|(column, (title, description))| match column {
                0 => json_schema!({ "title": title, "description": description, "type": "integer", "minimum": 0 }),
                1 | 12 => json_schema!({ "title": title, "description": description, "type": "integer" }),
                _ => json_schema!({ "title": title, "description": description, "type": ["integer", "null"] }),
            })
            .collect();
        json_schema!({
            "description": "Times of one request as a row: the first is microseconds since the run's origin, \
                the others are microseconds since the first, null where not observed.",
            "type": "array",
            "prefixItems": columns,
            "minItems": STAMPS.len(),
        })
    }
}
