//! Bytes that anybody may have written.

use std::path::Path;

use proptest::prelude::*;
use shakedown_model::{
    Channel, FinishReason, Phase, PromptKind, PromptRef, RequestOutcome, RequestRecord, Stamps, TextRef,
    TokenSource, Tokens,
};
use shakedown_records::{Store, read_requests};

use crate::sample;

/// Any time that a run of thirty thousand years can have.
fn stamp() -> impl Strategy<Value = u64> {
    0..1_u64 << 60
}

fn stamps() -> impl Strategy<Value = Stamps> {
    let maybe = || prop::option::of(stamp());
    (
        (stamp(), stamp(), maybe(), maybe(), maybe(), maybe(), maybe()),
        (maybe(), maybe(), maybe(), maybe(), maybe(), stamp()),
    )
        .prop_map(|((a, b, c, d, e, f, g), (h, i, j, k, l, m))| Stamps {
            scheduled: a,
            dequeued: b,
            connect_start: c,
            connected: d,
            secured: e,
            sent: f,
            first_byte: g,
            first_event: h,
            first_token: i,
            first_output: j,
            last_token: k,
            finish: l,
            end: m,
        })
}

fn tokens() -> impl Strategy<Value = Tokens> {
    let maybe = || prop::option::of(any::<u64>());
    (
        maybe(),
        maybe(),
        maybe(),
        maybe(),
        maybe(),
        maybe(),
        maybe(),
        maybe(),
    )
        .prop_map(|(a, b, c, d, e, f, g, h)| Tokens {
            output: a,
            source: if a.is_some() {
                TokenSource::ContinuousUsage
            } else {
                TokenSource::Unknown
            },
            timed: h,
            input: b,
            cached: c,
            reasoning: d,
            drafted: e,
            accepted: f,
            verify_steps: g,
        })
}

fn channel() -> impl Strategy<Value = Channel> {
    prop_oneof![
        Just(Channel::Content),
        Just(Channel::Reasoning),
        Just(Channel::ToolCall)
    ]
}

fn outcome() -> impl Strategy<Value = RequestOutcome> {
    prop_oneof![
        Just(RequestOutcome::Ok),
        Just(RequestOutcome::ErrorInStream),
        Just(RequestOutcome::Http5xx),
        Just(RequestOutcome::Cancelled),
    ]
}

fn record() -> impl Strategy<Value = RequestRecord> {
    let gaps = prop_oneof![
        prop::collection::vec(any::<u32>(), 0..50),
        prop::collection::vec(prop_oneof![Just(0_u32), 9_000_u32..11_000], 0..300),
    ];
    let phase = prop_oneof![Just(Phase::Warmup), Just(Phase::Measured), Just(Phase::Filler)];
    let text = prop::option::of(any::<String>());
    (
        (
            any::<String>(),
            any::<u32>(),
            phase,
            outcome(),
            prop::option::of(any::<String>()),
        ),
        (
            stamps(),
            tokens(),
            gaps,
            text.clone(),
            text,
            prop::option::of(-1e300_f64..1e300),
        ),
        prop::option::of(prop::collection::vec(any::<[u32; 2]>(), 0..9)),
        prop::collection::vec((channel(), any::<u32>()), 0..9),
        prop::option::of(any::<String>().prop_map(|word| FinishReason::from_word(&word))),
        any::<bool>(),
    )
        .prop_map(
            |(
                (id, number, phase, outcome, error),
                (stamps, tokens, gaps_us, prompt, text, server_decode_tok_s),
                chunk_tokens,
                channels,
                finish_reason,
                usual,
            )| {
                let chunks = u32::try_from(gaps_us.len()).unwrap();
                let all_content = if chunks == 0 {
                    Vec::new()
                } else {
                    vec![(Channel::Content, chunks)]
                };
                RequestRecord {
                    id,
                    trial: number,
                    phase,
                    stream: number / 2,
                    prompt: PromptRef {
                        index: number,
                        kind: PromptKind::Code,
                        sha256: "0123456789abcdef".to_owned(),
                        bytes: number,
                        text: prompt,
                    },
                    max_tokens: number,
                    outcome,
                    error,
                    status: chunk_tokens.is_some().then_some(599),
                    finish_reason,
                    stamps,
                    tokens,
                    gaps_us,
                    chunk_tokens,
                    channels: if usual { all_content } else { channels },
                    reads: number,
                    events: number,
                    text: text.map(|text| TextRef {
                        sha256: String::new(),
                        bytes: 9,
                        text: Some(text),
                    }),
                    server_decode_tok_s,
                }
            },
        )
}

proptest! {
    #[test]
    fn any_record_reads_back_as_it_was(records in prop::collection::vec(record(), 1..4)) {
        let dir = tempfile::tempdir().unwrap();
        let writer = Store::at(dir.path()).create(&sample::document("round")).unwrap();
        for record in &records {
            writer.append(record).unwrap();
        }
        let bytes = std::fs::read(writer.dir().join("requests.jsonl")).unwrap();
        prop_assert_eq!(bytes.split_inclusive(|&byte| byte == b'\n').count(), records.len());
        let read: Result<Vec<_>, _> = read_requests(bytes.as_slice(), Path::new("x")).collect();
        prop_assert_eq!(read.unwrap(), records);
    }

    #[test]
    fn any_bytes_give_records_or_errors(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let lines = bytes.split(|&byte| byte == b'\n').count();
        prop_assert!(read_requests(bytes.as_slice(), Path::new("x")).count() <= lines);
    }

    #[test]
    fn any_change_of_a_line_gives_a_record_or_an_error(
        record in record(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let writer = Store::at(dir.path()).create(&sample::document("change")).unwrap();
        writer.append(&record).unwrap();
        let mut bytes = std::fs::read(writer.dir().join("requests.jsonl")).unwrap();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        for read in read_requests(bytes.as_slice(), Path::new("x")) {
            if let Err(error) = read {
                prop_assert!(error.to_string().starts_with("read line "));
            }
        }
    }
}

fn one(line: &str) -> Result<RequestRecord, String> {
    use std::error::Error;
    let line = format!("{line}\n");
    let result = read_requests(line.as_bytes(), Path::new("x")).next().unwrap();
    result.map_err(|error| error.source().unwrap().to_string())
}

#[test]
fn figures_that_cannot_be_are_refused() {
    let line = |stamps: &str, gaps: &str| {
        format!(
            "{{\"id\":\"a\",\"trial\":1,\"stream\":0,\"prompt\":{{\"index\":0,\"kind\":\"chat\",\"sha256\":\"\",\
             \"bytes\":0}},\"max_tokens\":1,\"outcome\":\"ok\",\"stamps_us\":[{stamps}],\
             \"tokens\":{{\"source\":\"unknown\"}},\"gaps\":{gaps},\"reads\":1,\"events\":1}}"
        )
    };
    let stamps = "100,0,null,null,null,5,6,6,7,7,7,8,9";
    let record = one(&line(stamps, "{\"base_us\":10,\"offsets_us\":[-10,5]}")).unwrap();
    assert_eq!(record.gaps_us, [0, 15]);
    assert_eq!(record.stamps.sent, Some(105));
    assert_eq!(record.stamps.end, 109);
    assert_eq!(record.channels, [(Channel::Content, 2)]);
    // A later version's further columns are passed over.
    one(&line(
        &format!("{stamps},77,null,\"x\""),
        "{\"base_us\":10,\"offsets_us\":[]}",
    ))
    .unwrap();

    let gaps = "{\"base_us\":10,\"offsets_us\":[0]}";
    for (stamps, gaps, fault) in [
        (
            stamps,
            "{\"base_us\":10,\"offsets_us\":[0,-11]}",
            "gap 1 is out of range",
        ),
        (
            stamps,
            "{\"base_us\":4294967295,\"offsets_us\":[1]}",
            "gap 0 is out of range",
        ),
        (
            stamps,
            "{\"base_us\":1,\"offsets_us\":[9223372036854775807]}",
            "gap 0 is out of range",
        ),
        (
            "100,0,null,null,null,-101,6,6,7,7,7,8,9",
            gaps,
            "stamp \"sent\" is before the run's origin",
        ),
        (
            "100,null,null,null,null,5,6,6,7,7,7,8,9",
            gaps,
            "stamp \"dequeued\" is null",
        ),
        ("100,0", gaps, "invalid length 2, expected a row of 13 stamps"),
        ("-1,0", gaps, "invalid value"),
    ] {
        let error = one(&line(stamps, gaps)).unwrap_err();
        assert!(error.contains(fault), "{error:?} should say {fault:?}");
    }
}

/// A reader that never ends its line.
struct Endless {
    left: usize,
}

impl std::io::Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let give = self.left.min(buffer.len());
        buffer[..give].fill(b'x');
        self.left -= give;
        Ok(give)
    }
}

#[test]
fn a_line_beyond_the_cap_is_passed_over() {
    let endless = Endless {
        left: shakedown_records::LINE_CAP * 2,
    };
    let mut bytes = Vec::new();
    std::io::Write::write_all(&mut bytes, b"\n{}").unwrap();
    let source = std::io::BufReader::new(std::io::Read::chain(endless, bytes.as_slice()));
    let mut lines = read_requests(source, Path::new("x"));
    let errors: Vec<String> = lines.by_ref().map(|line| line.unwrap_err().to_string()).collect();
    assert_eq!(errors, ["read line 1 of x"]);
    assert!(lines.torn(), "the line after it was reached");
}
