use super::*;

/// What a response came to: status, framing, body.
fn read_all(pieces: &[&[u8]], method: Method) -> Result<(u16, Framing, Vec<u8>), HttpError> {
    let mut reader = ResponseReader::new(Limits::default()).answering(method);
    let mut body = Vec::new();
    for bytes in pieces {
        let mut rest = *bytes;
        loop {
            let (consumed, piece) = reader.read(rest)?;
            rest = &rest[consumed..];
            match piece {
                Piece::NeedMore => {
                    assert!(rest.is_empty(), "all is consumed when more is needed");
                    break;
                }
                Piece::Head => {}
                Piece::Body(part) => {
                    assert!(!part.is_empty());
                    body.extend_from_slice(part);
                }
                Piece::End => {
                    assert!(reader.is_done());
                    let head = reader.head().unwrap();
                    return Ok((head.status, head.framing, body));
                }
            }
        }
    }
    reader.eof()?;
    assert!(reader.is_done());
    let head = reader.head().unwrap();
    Ok((head.status, head.framing, body))
}

fn read(text: &str) -> Result<(u16, Framing, Vec<u8>), HttpError> {
    read_all(&[text.as_bytes()], Method::Get)
}

fn head_of(text: &str) -> Head {
    let mut reader = ResponseReader::new(Limits::default());
    let (_, piece) = reader.read(text.as_bytes()).unwrap();
    assert_eq!(piece, Piece::Head);
    reader.head().unwrap().clone()
}

#[test]
fn the_three_framings() {
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(read(length), Ok((200, Framing::Length(5), b"hello".to_vec())));
    let close = "HTTP/1.0 200 OK\r\n\r\nhello";
    assert_eq!(read(close), Ok((200, Framing::UntilClose, b"hello".to_vec())));
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=\"b;c\"\r\nhel\r\n002 \r\nlo\r\n0\r\nX: y\r\n\r\n";
    assert_eq!(read(chunked), Ok((200, Framing::Chunked, b"hello".to_vec())));
    let empty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(read(empty), Ok((200, Framing::Length(0), vec![])));
}

#[test]
fn answers_without_a_body() {
    for status in [204, 304] {
        let text = format!("HTTP/1.1 {status} X\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(read(&text), Ok((status, Framing::None, vec![])));
    }
    let text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(read_all(&[text], Method::Head), Ok((200, Framing::None, vec![])));
}

#[test]
fn interim_answers_are_skipped_but_not_for_ever() {
    let text =
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 X\r\n\r\n";
    assert_eq!(read(text), Ok((204, Framing::None, vec![])));
    let text = "HTTP/1.1 100 Continue\r\n\r\n".repeat(17);
    assert_eq!(read(&text), Err(HttpError::TooManyInterim { limit: 16 }));
    assert_eq!(
        read("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        Err(HttpError::SwitchingProtocols)
    );
}

#[test]
fn head_members() {
    let head = head_of(
        "HTTP/1.1 429 Too Many\r\nserver: uvicorn\r\nContent-Type: text/event-stream\r\nRetry-After: 7\r\n\
         Location: /x\r\ncontent-encoding: GZIP\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 3\r\n\r\n",
    );
    assert_eq!(head.status, 429);
    assert_eq!(head.version, Version::Http11);
    assert_eq!(head.server.as_deref(), Some("uvicorn"));
    assert_eq!(head.content_type.as_deref(), Some("text/event-stream"));
    assert_eq!(head.retry_after.as_deref(), Some("7"));
    assert_eq!(head.location.as_deref(), Some("/x"));
    assert_eq!(head.content_encoding.as_deref(), Some("GZIP"));
    assert_eq!(head.header("X-a"), Some("1"));
    assert_eq!(head.headers().count(), 8);
    assert!(head.keep_alive);
    let identity = head_of("HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(identity.content_encoding, None);
}

#[test]
fn keep_alive_by_version_and_connection() {
    for (version, header, keep) in [
        ("1.1", "", true),
        ("1.1", "Connection: Close\r\n", false),
        ("1.1", "Connection: x, close\r\n", false),
        ("1.0", "", false),
        ("1.0", "Connection: keep-alive\r\n", true),
    ] {
        let text = format!("HTTP/{version} 200 OK\r\nContent-Length: 0\r\n{header}\r\n");
        assert_eq!(head_of(&text).keep_alive, keep, "{text}");
    }
    assert!(!head_of("HTTP/1.1 200 OK\r\n\r\n").keep_alive, "until close");
}

#[test]
fn lengths_that_are_none() {
    let with = |headers: &str| read(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\nhello"));
    assert!(with("Content-Length: 5\r\nContent-Length: 5").is_ok());
    assert!(with("Content-Length: 5, 5").is_ok());
    assert_eq!(
        with("Content-Length: 5\r\nContent-Length: 6"),
        Err(HttpError::ConflictingLengths { first: 5, second: 6 })
    );
    for value in ["", "+5", "-5", "5x", "0x5", "5,", "5 5", "18446744073709551616"] {
        let error = with(&format!("Content-Length: {value}")).unwrap_err();
        assert!(
            matches!(error, HttpError::ContentLength { .. }),
            "{value:?}: {error:?}"
        );
    }
    assert_eq!(
        with("Content-Length: 5\r\nTransfer-Encoding: chunked"),
        Err(HttpError::LengthAndTransferEncoding)
    );
    for value in [
        "gzip, chunked",
        "chunked, gzip",
        "identity",
        "xchunked",
        "chunked\r\nTransfer-Encoding: chunked",
    ] {
        let error = with(&format!("Transfer-Encoding: {value}")).unwrap_err();
        assert!(
            matches!(error, HttpError::TransferEncoding { .. }),
            "{value:?}: {error:?}"
        );
    }
    let old = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert!(matches!(read(old), Err(HttpError::TransferEncoding { .. })));
}

#[test]
fn cut_answers_are_told_apart() {
    assert_eq!(read(""), Err(HttpError::Closed));
    assert_eq!(read("HTT"), Err(HttpError::TruncatedHead));
    assert_eq!(read("HTTP/1.1 200 OK\r\nX: y\r\n"), Err(HttpError::TruncatedHead));
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello";
    assert_eq!(read(length), Err(HttpError::TruncatedBody { missing: Some(4) }));
    let all = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let head = all.find("\r\n\r\n").unwrap() + 4;
    for end in head..all.len() {
        assert_eq!(
            read(&all[..end]),
            Err(HttpError::TruncatedBody { missing: None }),
            "{end}"
        );
    }
    assert!(read(all).is_ok());
}

#[test]
fn bad_chunks() {
    let with = |body: &str| {
        read(&format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
        ))
    };
    for body in [
        "\r\n",
        " 5\r\n",
        "x\r\n",
        "5\nhello",
        "-1\r\n",
        "0x5\r\n",
        "5 5\r\n",
        "5;a\nb\r\n",
    ] {
        assert!(matches!(with(body), Err(HttpError::ChunkSize { .. })), "{body:?}");
    }
    assert_eq!(with("10000000000000000\r\n"), Err(HttpError::ChunkSizeOverflow));
    assert!(with("0000000000000000000005\r\nhello\r\n0\r\n\r\n").is_ok());
    assert_eq!(with("5\r\nhelloX"), Err(HttpError::ChunkEnd));
    assert_eq!(with("5\r\nhello\n"), Err(HttpError::ChunkEnd));
    assert_eq!(
        with(&format!("5;{}", "x".repeat(20_000))),
        Err(HttpError::ChunkLineTooLong { limit: 16 * 1024 })
    );
    for trailers in ["no colon\r\n\r\n", ": x\r\n\r\n", "a b: c\r\n\r\n", "X: y\rZ"] {
        assert!(
            matches!(
                with(&format!("0\r\n{trailers}")),
                Err(HttpError::BadTrailers { .. })
            ),
            "{trailers:?}"
        );
    }
    assert_eq!(
        with(&format!("0\r\nX: {}", "y".repeat(70_000))),
        Err(HttpError::TrailersTooLarge { limit: 64 * 1024 })
    );
}

#[test]
fn not_http_is_said_at_once() {
    for text in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "\x15\x03\x03",
        "HTTP/2 200\r\n",
        "<html>",
        "ICY 200 OK\r\n",
        "H\r\n",
    ] {
        let mut reader = ResponseReader::new(Limits::default());
        let error = reader.read(text.as_bytes()).unwrap_err();
        assert!(matches!(error, HttpError::NotHttp { .. }), "{text:?}: {error:?}");
        assert_eq!(reader.read(b"").unwrap_err(), error, "the error stays");
        assert_eq!(reader.eof().unwrap_err(), error);
        assert!(!reader.is_done());
    }
}

#[test]
fn heads_are_bounded() {
    for text in [
        format!("HTTP/1.1 200 {}", "x".repeat(70_000)),
        format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(70_000)),
        "\r\n".repeat(40_000),
    ] {
        let too_large = Err(HttpError::HeadTooLarge { limit: 64 * 1024 });
        assert_eq!(read(&text), too_large);
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(1000).collect();
        assert_eq!(read_all(&pieces, Method::Get), too_large);
    }
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(129));
    assert_eq!(read(&many), Err(HttpError::TooManyHeaders { limit: 128 }));
    let mut reader = ResponseReader::new(Limits::default());
    let endless = vec![b'x'; 10_000_000];
    reader.read(b"HTTP/1.1 200 OK\r\nX: ").unwrap();
    reader.read(&endless).unwrap_err();
    assert!(reader.partial.capacity() <= 256 * 1024);
}

#[test]
fn bare_line_feeds_and_empty_lines_before_a_head() {
    let text = "\r\n\nHTTP/1.1 200 OK\nContent-Length: 2\n\nhi";
    assert_eq!(read(text), Ok((200, Framing::Length(2), b"hi".to_vec())));
    let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
    assert_eq!(
        read_all(&bytes, Method::Get),
        Ok((200, Framing::Length(2), b"hi".to_vec()))
    );
}

#[test]
fn what_follows_belongs_to_the_next_response() {
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 204 X\r\n\r\n";
    let mut reader = ResponseReader::new(Limits::default());
    let mut rest = text.as_slice();
    let mut seen = Vec::new();
    loop {
        let (consumed, piece) = reader.read(rest).unwrap();
        rest = &rest[consumed..];
        match piece {
            Piece::Body(part) => assert_eq!(part, b"hi"),
            Piece::Head => seen.push(reader.head().unwrap().status),
            Piece::End if rest.is_empty() => break,
            Piece::End => {
                assert_eq!(rest, b"HTTP/1.1 204 X\r\n\r\n");
                assert_eq!(reader.read(rest), Ok((0, Piece::End)), "nothing more is taken");
                reader.reset();
                assert!(!reader.has_begun());
            }
            Piece::NeedMore => panic!("nothing is missing"),
        }
    }
    assert_eq!(seen, [200, 204]);
}

#[test]
fn the_body_is_borrowed() {
    let text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n".as_slice();
    let mut reader = ResponseReader::new(Limits::default());
    let (head, _) = reader.read(text).unwrap();
    let (_, piece) = reader.read(&text[head..]).unwrap();
    let Piece::Body(part) = piece else {
        panic!("{piece:?}")
    };
    assert_eq!(part, b"hello");
    assert!(text.as_ptr_range().contains(&part.as_ptr()));
}
