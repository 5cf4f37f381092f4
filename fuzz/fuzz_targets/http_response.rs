//! The response reader: no panic, and the same outcome however the bytes are cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shakedown_wire::request::Method;
use shakedown_wire::response::{Head, HttpError, Limits, Piece, ResponseReader};

/// Small caps, so that the fuzzer can reach them.
const LIMITS: Limits = Limits {
    head: 512,
    chunk_line: 32,
    interim: 3,
};

type Outcome = Result<(Head, Vec<u8>, usize), HttpError>;

fn read<'a>(parts: impl Iterator<Item = &'a [u8]>, method: Method) -> Outcome {
    let mut reader = ResponseReader::new(LIMITS).answering(method);
    let mut body = Vec::new();
    let mut taken = 0;
    for part in parts {
        let mut rest = part;
        loop {
            let (consumed, piece) = reader.read(rest)?;
            rest = &rest[consumed..];
            taken += consumed;
            match piece {
                Piece::NeedMore => {
                    assert!(rest.is_empty(), "all is consumed when more is needed");
                    break;
                }
                Piece::Head => assert!(reader.head().is_some()),
                Piece::Body(bytes) => {
                    assert!(!bytes.is_empty());
                    body.extend_from_slice(bytes);
                }
                Piece::End => {
                    assert!(reader.is_done());
                    return Ok((reader.head().cloned().expect("a head"), body, taken));
                }
            }
        }
    }
    reader.eof()?;
    Ok((reader.head().cloned().expect("a head"), body, taken))
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

fuzz_target!(|data: &[u8]| {
    let Some((&control, bytes)) = data.split_first() else {
        return;
    };
    let method = if control & 1 == 0 {
        Method::Get
    } else {
        Method::Head
    };
    let size = usize::from(control >> 1) + 1;
    let whole = alike(read(std::iter::once(bytes), method));
    assert_eq!(whole, alike(read(bytes.chunks(size), method)));
    assert_eq!(whole, alike(read(bytes.chunks(1), method)));
});
