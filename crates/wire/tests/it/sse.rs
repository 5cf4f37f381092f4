//! The event reader against a literal reading of the standard, on any bytes and any split.

use std::ops::ControlFlow;

use proptest::prelude::*;
use shakedown_wire::sse::{SseError, SseEvent, SseReader};

use super::response::cut;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Owned {
    Data(Vec<u8>, Option<Vec<u8>>),
    Comment,
}

fn owned(event: SseEvent<'_>) -> Owned {
    match event {
        SseEvent::Data { data, event } => Owned::Data(data.to_vec(), event.map(<[u8]>::to_vec)),
        SseEvent::Comment => Owned::Comment,
    }
}

fn read(parts: &[&[u8]], cap: usize, finish: bool) -> (Vec<Owned>, Result<(), SseError>) {
    let mut reader = SseReader::new(cap);
    let mut events = Vec::new();
    for part in parts {
        let mut on = |event: SseEvent<'_>| {
            events.push(owned(event));
            ControlFlow::Continue(())
        };
        if let Err(error) = reader.push(part, &mut on) {
            return (events, Err(error));
        }
    }
    let mut result = Ok(());
    if finish {
        result = reader.finish(|event| {
            events.push(owned(event));
            ControlFlow::Continue(())
        });
    }
    (events, result)
}

/// The standard's algorithm, word by word, on the whole stream; `error:` lines as this crate defines them.
fn by_the_standard(bytes: &[u8]) -> Vec<Owned> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let mut lines = Vec::new();
    let mut line = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\r' => {
                if bytes.get(at + 1) == Some(&b'\n') {
                    at += 1;
                }
                lines.push(std::mem::take(&mut line));
            }
            b'\n' => lines.push(std::mem::take(&mut line)),
            byte => line.push(byte),
        }
        at += 1;
    }
    let mut events = Vec::new();
    let mut data: Vec<u8> = Vec::new();
    let mut kind = Vec::new();
    for line in lines {
        if line.is_empty() {
            if data.is_empty() {
                kind.clear();
                continue;
            }
            data.pop();
            let kind = std::mem::take(&mut kind);
            events.push(Owned::Data(
                std::mem::take(&mut data),
                (!kind.is_empty()).then_some(kind),
            ));
            continue;
        }
        if line[0] == b':' {
            events.push(Owned::Comment);
            continue;
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line.as_slice(), b"".as_slice()),
        };
        match field {
            b"event" => kind = value.to_vec(),
            b"data" => {
                data.extend_from_slice(value);
                data.push(b'\n');
            }
            b"error" if line.contains(&b':') => {
                kind = b"error".to_vec();
                data.extend_from_slice(value);
                data.push(b'\n');
            }
            _ => {}
        }
    }
    events
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        4 => Just(b"\n".to_vec()),
        3 => Just(b"\r\n".to_vec()),
        2 => Just(b"\r".to_vec()),
        6 => Just(b"data: ".to_vec()),
        2 => Just(b"data:".to_vec()),
        1 => Just(b"data".to_vec()),
        1 => Just(b"event: ".to_vec()),
        1 => Just(b"event".to_vec()),
        1 => Just(b"error: ".to_vec()),
        1 => Just(b"id: 1".to_vec()),
        1 => Just(b": ping".to_vec()),
        1 => Just(b"\xEF\xBB\xBF".to_vec()),
        3 => Just("{\"a\":\"é\"}".as_bytes().to_vec()),
        2 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

proptest! {
    #![proptest_config(super::cases(4000))]

    #[test]
    fn any_split_gives_the_events_of_the_standard(
        bytes in stream(),
        places in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let expected = (by_the_standard(&bytes), Ok(()));
        prop_assert_eq!(&read(&[&bytes], 1 << 20, false), &expected);
        prop_assert_eq!(&read(&cut(&bytes, &places), 1 << 20, false), &expected);
        let singly: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&read(&singly, 1 << 20, false), &expected);
    }

    #[test]
    fn finishing_is_like_two_more_line_ends(bytes in stream(), places in prop::collection::vec(any::<usize>(), 0..4)) {
        let mut ended = bytes.clone();
        // After a CR the first LF belongs to it.
        ended.extend_from_slice(b"\n\n\n");
        let expected = (by_the_standard(&ended), Ok(()));
        prop_assert_eq!(read(&cut(&bytes, &places), 1 << 20, true), expected);
    }

    #[test]
    fn caps_do_not_depend_on_the_split(
        bytes in stream(),
        places in prop::collection::vec(any::<usize>(), 0..8),
        cap in 0_usize..24,
    ) {
        let whole = read(&[&bytes], cap, true);
        prop_assert_eq!(&whole, &read(&cut(&bytes, &places), cap, true));
        let singly: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&whole, &read(&singly, cap, true));
    }
}
