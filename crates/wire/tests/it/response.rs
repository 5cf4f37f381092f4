//! Any way of cutting the bytes gives the same response.

use proptest::prelude::*;
use shakedown_wire::request::Method;
use shakedown_wire::response::{Head, HttpError, Limits, Piece, ResponseReader};

/// All that a reader says of one response, and how many bytes it took.
pub(crate) type Outcome = Result<(Head, Vec<u8>, usize), HttpError>;

pub(crate) fn read(parts: &[&[u8]], method: Method) -> Outcome {
    let mut reader = ResponseReader::new(Limits::default()).answering(method);
    let mut body = Vec::new();
    let mut taken = 0;
    for part in parts {
        let mut rest = *part;
        loop {
            let (consumed, piece) = reader.read(rest)?;
            rest = &rest[consumed..];
            taken += consumed;
            match piece {
                Piece::NeedMore => {
                    assert!(rest.is_empty());
                    break;
                }
                Piece::Head => assert!(reader.head().is_some()),
                Piece::Body(bytes) => body.extend_from_slice(bytes),
                Piece::End => return Ok((reader.head().unwrap().clone(), body, taken)),
            }
        }
    }
    reader.eof()?;
    Ok((reader.head().unwrap().clone(), body, taken))
}

/// Of bytes that are no HTTP, one reader sees more before it says so than another.
fn alike(outcome: Outcome) -> Outcome {
    outcome.map_err(|error| match error {
        HttpError::NotHttp { .. } => HttpError::NotHttp {
            beginning: String::new(),
        },
        other => other,
    })
}

/// Cuts `bytes` at the given places, wherever they fall.
pub(crate) fn cut<'a>(bytes: &'a [u8], places: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place % (bytes.len() + 1)).collect();
    places.sort_unstable();
    let mut parts = Vec::new();
    let mut from = 0;
    for place in places {
        parts.push(&bytes[from..place]);
        from = place;
    }
    parts.push(&bytes[from..]);
    parts
}

fn framing() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        6 => Just("Transfer-Encoding: chunked\r\n"),
        2 => Just("transfer-encoding:chunked\r\n"),
        4 => Just("LENGTH"),
        2 => Just(""),
        1 => Just("Content-Length: 3\r\n"),
        1 => Just("Content-Length: 3\r\nContent-Length: 3\r\n"),
        1 => Just("Content-Length: 3\r\nContent-Length: 4\r\n"),
        1 => Just("Content-Length: 3, 3\r\n"),
        1 => Just("Content-Length: x\r\n"),
        1 => Just("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"),
        1 => Just("Transfer-Encoding: gzip, chunked\r\n"),
        1 => Just("Transfer-Encoding: identity\r\n"),
    ]
}

fn chunk() -> impl Strategy<Value = Vec<u8>> {
    let size = prop_oneof![5 => Just(""), 1 => Just("0"), 1 => Just("000")];
    let after = prop_oneof![
        6 => Just(""), 1 => Just(" "), 1 => Just("\t "), 1 => Just(";a=b"), 1 => Just(" ; a=\"x;y\"")
    ];
    (
        size,
        after,
        prop::collection::vec(any::<u8>(), 1..40),
        any::<bool>(),
    )
        .prop_map(|(zeros, after, data, upper)| {
            let size = if upper {
                format!("{:X}", data.len())
            } else {
                format!("{:x}", data.len())
            };
            let mut bytes = format!("{zeros}{size}{after}\r\n").into_bytes();
            bytes.extend_from_slice(&data);
            bytes.extend_from_slice(b"\r\n");
            bytes
        })
}

fn body(framing: &'static str) -> BoxedStrategy<Vec<u8>> {
    if framing.to_ascii_lowercase().contains("chunked") {
        let last = prop_oneof![
            6 => Just("0\r\n\r\n"), 1 => Just("0\r\nX: y\r\n\r\n"), 1 => Just("00;x\r\nX: y\r\nZ:\r\n\r\n"),
            1 => Just("0\r\nno colon\r\n\r\n"), 1 => Just("0\r\n"), 1 => Just("")
        ];
        (prop::collection::vec(chunk(), 0..6), last)
            .prop_map(|(chunks, last)| [chunks.concat(), last.as_bytes().to_vec()].concat())
            .boxed()
    } else {
        prop::collection::vec(any::<u8>(), 0..40).boxed()
    }
}

/// Responses: most are valid, some are odd, and some are broken by one random edit.
pub(crate) fn response() -> impl Strategy<Value = Vec<u8>> {
    let interim = prop_oneof![
        8 => Just(""), 1 => Just("HTTP/1.1 100 Continue\r\n\r\n"), 1 => Just("HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n")
    ];
    let version = prop_oneof![8 => Just("1.1"), 1 => Just("1.0"), 1 => Just("1.2")];
    let status = prop_oneof![
        8 => Just("200 OK"), 1 => Just("200"), 1 => Just("204 No Content"), 1 => Just("304 Not Modified"),
        1 => Just("503 Busy"), 1 => Just("42 X"), 1 => Just("999 X")
    ];
    let other = prop_oneof![
        6 => Just(""), 1 => Just("Server: x\r\nX-Empty:\r\n"), 1 => Just("X-A: \x09 b c \r\n"), 1 => Just("X: y\n"),
        1 => Just("Connection: close\r\n"), 1 => Just("Bad Header: x\r\n"), 1 => Just("X: \u{e9}\r\n")
    ];
    let edit = prop::option::weighted(0.4, (any::<usize>(), any::<u8>(), 0..3_u8));
    let framed = framing().prop_flat_map(|framing| (Just(framing), body(framing)));
    (
        interim,
        version,
        status,
        other,
        framed,
        edit,
        prop::option::weighted(0.2, any::<usize>()),
    )
        .prop_map(|(interim, version, status, other, (framing, body), edit, end)| {
            let framing = match framing {
                "LENGTH" => format!("Content-Length: {}\r\n", body.len()),
                other => other.to_owned(),
            };
            let mut bytes = format!("{interim}HTTP/{version} {status}\r\n{other}{framing}\r\n").into_bytes();
            bytes.extend_from_slice(&body);
            if let Some((at, byte, kind)) = edit {
                let at = at % bytes.len();
                match kind {
                    0 => bytes[at] = byte,
                    1 => bytes.insert(at, byte),
                    _ => drop(bytes.remove(at)),
                }
            }
            if let Some(end) = end {
                bytes.truncate(end % (bytes.len() + 1));
            }
            bytes
        })
}

proptest! {
    #![proptest_config(super::cases(2000))]

    #[test]
    fn any_split_gives_the_same_response(
        bytes in response(),
        places in prop::collection::vec(any::<usize>(), 0..8),
        head in any::<bool>(),
    ) {
        let method = if head { Method::Head } else { Method::Get };
        let whole = alike(read(&[&bytes], method));
        prop_assert_eq!(&whole, &alike(read(&cut(&bytes, &places), method)));
        let singly: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&whole, &alike(read(&singly, method)));
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), places in prop::collection::vec(any::<usize>(), 0..4)) {
        let _outcome = read(&cut(&bytes, &places), Method::Get);
    }
}
