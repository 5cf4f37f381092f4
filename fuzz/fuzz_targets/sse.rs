//! The event reader: no panic, and the same events however the bytes are cut, caps included.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use shakedown_wire::sse::{SseError, SseEvent, SseReader};

type Owned = Option<(Vec<u8>, Option<Vec<u8>>)>;

fn read<'a>(
    parts: impl Iterator<Item = &'a [u8]>,
    cap: usize,
    stop_after: usize,
) -> (Vec<Owned>, Result<(), SseError>) {
    let mut reader = SseReader::new(cap);
    let mut events = Vec::new();
    let mut on = |event: SseEvent<'_>| {
        events.push(match event {
            SseEvent::Data { data, event } => {
                assert!(data.len() <= cap);
                Some((data.to_vec(), event.map(<[u8]>::to_vec)))
            }
            SseEvent::Comment => None,
        });
        if events.len() > stop_after {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    for part in parts {
        if let Err(error) = reader.push(part, &mut on) {
            return (events, Err(error));
        }
    }
    let result = reader.finish(&mut on);
    (events, result)
}

fuzz_target!(|data: &[u8]| {
    let [size, cap, stop, bytes @ ..] = data else {
        return;
    };
    let (cap, stop) = (usize::from(*cap), usize::from(*stop));
    let whole = read(std::iter::once(bytes), cap, stop);
    assert_eq!(whole, read(bytes.chunks(usize::from(*size) + 1), cap, stop));
    assert_eq!(whole, read(bytes.chunks(1), cap, stop));
});
