use super::*;

/// An event as an owned value: `None` is a comment.
type Owned = Option<(String, Option<String>)>;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn owned(event: SseEvent<'_>) -> Owned {
    match event {
        SseEvent::Data { data, event } => Some((text(data), event.map(text))),
        SseEvent::Comment => None,
    }
}

fn read(pushes: &[&[u8]]) -> Vec<Owned> {
    let mut reader = SseReader::new(1024);
    let mut events = Vec::new();
    for bytes in pushes {
        reader
            .push(bytes, |event| {
                events.push(owned(event));
                ControlFlow::Continue(())
            })
            .unwrap();
    }
    events
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "it stands beside comments, which are none"
)]
fn data(text: &str) -> Owned {
    Some((text.to_owned(), None))
}

#[test]
fn line_ends_and_spaces() {
    assert_eq!(
        read(&[b"data: a\n\ndata:b\r\n\r\ndata:  c\r\rdata\n\ndata:\n\n"]),
        [data("a"), data("b"), data(" c"), data(""), data("")]
    );
}

#[test]
fn several_data_lines_are_one_event() {
    assert_eq!(read(&[b"data: a\ndata\ndata: b\n\n"]), [data("a\n\nb")]);
}

#[test]
fn types_comments_and_other_fields() {
    assert_eq!(
        read(&[b": ping\nid: 7\nretry: 10\nevent: message\ndata: x\nunknown\nunknown: y\n\ndata: z\n\n"]),
        [
            None,
            Some(("x".to_owned(), Some("message".to_owned()))),
            data("z")
        ]
    );
    // A type without data is no event, and does not stick to the next one.
    assert_eq!(read(&[b"event: e\n\ndata: x\n\n"]), [data("x")]);
    // "dataset:" and "events:" are other fields.
    assert_eq!(read(&[b"dataset: x\nevents: y\n\n"]), []);
}

#[test]
fn error_lines_are_error_events() {
    assert_eq!(
        read(&[b"error: {\"message\":\"m\"}\n\n"]),
        [Some(("{\"message\":\"m\"}".to_owned(), Some("error".to_owned())))]
    );
}

#[test]
fn byte_order_mark_at_the_start_only() {
    assert_eq!(
        read(&[b"\xEF\xBB\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\n"]),
        [data("a")]
    );
    assert_eq!(read(&[b"\xEF", b"\xBB", b"\xBFdata: a\n\n"]), [data("a")]);
}

#[test]
fn an_event_is_handed_on_when_its_blank_line_has_come() {
    assert_eq!(read(&[b"data: a\n"]), []);
    assert_eq!(read(&[b"data: a\n\n"]), [data("a")]);
    // CR CR ends the event without waiting for a LF.
    assert_eq!(read(&[b"data: a\r\r"]), [data("a")]);
    assert_eq!(
        read(&[b"data: a\r", b"\n\r", b"\ndata: b\r\n\r\n"]),
        [data("a"), data("b")]
    );
}

#[test]
fn whole_events_are_borrowed() {
    let bytes = b"data: a\n\ndata: b\n\n".as_slice();
    let range = bytes.as_ptr_range();
    let mut count = 0;
    SseReader::new(64)
        .push(bytes, |event| {
            if let SseEvent::Data { data, .. } = event {
                assert!(range.contains(&data.as_ptr()));
                count += 1;
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(count, 2);
}

#[test]
fn long_lines_are_refused_not_kept() {
    let mut reader = SseReader::new(16);
    let mut seen = 0;
    let long = [b'x'; 11];
    let mut push = |reader: &mut SseReader, bytes: &[u8]| {
        reader.push(bytes, |_| {
            seen += 1;
            ControlFlow::Continue(())
        })
    };
    push(&mut reader, b"data: ok\n\ndata: ").unwrap();
    push(&mut reader, &long[..10]).unwrap();
    assert_eq!(
        push(&mut reader, &long[..1]),
        Err(SseError::LineTooLong { cap: 16 })
    );
    assert!(reader.partial.capacity() < 64);
    // It stays so: nothing is read from the middle of a line.
    push(&mut reader, b"\n\ndata: x\n\n").unwrap();
    assert_eq!(seen, 1);

    // Many short data lines of one event count together.
    let mut reader = SseReader::new(16);
    let error = reader.push(&b"data: x\n".repeat(20), |_| ControlFlow::Continue(()));
    assert_eq!(error, Err(SseError::LineTooLong { cap: 16 }));
}

#[test]
fn breaking_stops_the_stream() {
    let mut reader = SseReader::new(64);
    let mut seen = Vec::new();
    let mut push = |bytes: &[u8]| {
        reader
            .push(bytes, |event| {
                seen.push(owned(event));
                ControlFlow::Break(())
            })
            .unwrap();
    };
    push(b"data: a\n\ndata: b\n\n");
    push(b"data: c\n\n");
    assert_eq!(seen, [data("a")]);
}

#[test]
fn finish_takes_the_unfinished_for_finished() {
    for (bytes, unfinished_line) in [
        (b"data: a\n\ndata: [DONE]".as_slice(), true),
        (b"data: a\n\ndata: [DONE]\n", false),
        (b"data: a\n\ndata: [DONE]\r", false),
    ] {
        let mut reader = SseReader::new(64);
        let mut events = Vec::new();
        reader
            .push(bytes, |event| {
                events.push(owned(event));
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(events, [data("a")]);
        assert!(reader.has_unfinished_event());
        assert_eq!(reader.has_unfinished_line(), unfinished_line);
        reader
            .finish(|event| {
                events.push(owned(event));
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(events, [data("a"), data("[DONE]")]);
    }
}

#[test]
fn reset_forgets_the_stream_before() {
    let mut reader = SseReader::new(64);
    reader
        .push(b"event: e\ndata: a", |_| ControlFlow::Continue(()))
        .unwrap();
    reader.reset();
    let mut events = Vec::new();
    reader
        .push(b"\xEF\xBB\xBFdata: b\n\n", |event| {
            events.push(owned(event));
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(events, [data("b")]);
}
