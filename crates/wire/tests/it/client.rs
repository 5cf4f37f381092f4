//! The probe client against servers that behave and servers that do not.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use shakedown_wire::client::{Client, ClientError, ClientOptions, Reply};
use shakedown_wire::request::Headers;
use shakedown_wire::response::HttpError;
use shakedown_wire::target::Target;

/// A server for one connection; returns its address. `serve` gets the request's bytes up to the end of its head.
fn server(serve: impl FnOnce(TcpStream, String) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if stream.read(&mut byte).unwrap_or(0) == 0 {
                break;
            }
            request.push(byte[0]);
        }
        serve(stream, String::from_utf8(request).unwrap());
    });
    address
}

fn says(bytes: impl Into<Vec<u8>>) -> SocketAddr {
    let bytes = bytes.into();
    server(move |mut stream, _| stream.write_all(&bytes).unwrap())
}

fn options() -> ClientOptions {
    ClientOptions {
        timeout: Duration::from_mins(1),
        max_body: 1000,
        headers: Headers::new(),
    }
}

fn get(address: SocketAddr) -> Result<Reply, ClientError> {
    let target = Target::parse(&format!("http://{address}")).unwrap();
    Client::new(options()).get(&target, None, "/x")
}

#[test]
fn an_answer_has_its_stamps_in_order() {
    let address =
        says("HTTP/1.1 503 Busy\r\nServer: s\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
    let reply = get(address).unwrap();
    assert_eq!(
        (reply.status, reply.body.as_slice(), reply.address),
        (503, b"hi".as_slice(), address)
    );
    assert!(!reply.is_success());
    assert_eq!(reply.head.server.as_deref(), Some("s"));
    let stamps = reply.stamps;
    let order = [
        stamps.connect_start,
        stamps.connected,
        stamps.sent,
        stamps.first_byte,
        stamps.end,
    ];
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn the_request_is_whole_and_carries_the_headers() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let address = server(move |mut stream, request| {
        let mut body = vec![0; 7];
        stream.read_exact(&mut body).unwrap();
        sender.send((request, body)).unwrap();
        stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nall of it").unwrap();
    });
    let mut headers = Headers::new();
    headers.set("Authorization", "Bearer k").unwrap();
    let client = Client::new(ClientOptions { headers, ..options() });
    let target = Target::parse(&format!("http://localhost:{}/llm/v1", address.port())).unwrap();
    let reply = client
        .post_json(&target, Some(address), "/v1/x", b"{\"a\":1}")
        .unwrap();
    assert_eq!(reply.text(), "all of it");
    let (request, body) = receiver.recv().unwrap();
    assert_eq!(body, b"{\"a\":1}");
    assert!(request.starts_with("POST /llm/v1/x HTTP/1.1\r\n"), "{request}");
    for line in [
        format!("Host: localhost:{}", address.port()).as_str(),
        "Authorization: Bearer k",
        "Connection: close",
        "Accept-Encoding: identity",
        "Content-Type: application/json",
        "Content-Length: 7",
    ] {
        assert_eq!(
            request.matches(&format!("\r\n{line}\r\n")).count(),
            1,
            "{line} in {request}"
        );
    }
}

#[test]
fn redirects_are_answers() {
    let reply = get(says(
        "HTTP/1.1 307 X\r\nLocation: http://other/\r\nContent-Length: 0\r\n\r\n",
    ))
    .unwrap();
    assert_eq!(
        (reply.status, reply.head.location.as_deref()),
        (307, Some("http://other/"))
    );
}

#[test]
fn every_failure_has_its_kind_and_address() {
    type Check = fn(&ClientError) -> bool;
    let long = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(2000));
    let cases: [(SocketAddr, Check); 7] = [
        (says(long), |e| {
            matches!(e, ClientError::BodyTooLarge { limit: 1000, .. })
        }),
        (
            says("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"),
            |e| matches!(e, ClientError::ContentEncoding { coding, .. } if coding == "gzip"),
        ),
        (says("SSH-2.0-x\r\n"), |e| {
            matches!(
                e,
                ClientError::Http {
                    source: HttpError::NotHttp { .. },
                    ..
                }
            )
        }),
        (says(""), |e| {
            matches!(
                e,
                ClientError::Http {
                    source: HttpError::Closed,
                    ..
                }
            )
        }),
        (says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"), |e| {
            matches!(
                e,
                ClientError::Http {
                    source: HttpError::TruncatedBody { missing: Some(8) },
                    ..
                }
            )
        }),
        (server(|stream, _| reset(&stream)), |e| {
            matches!(e, ClientError::Reset { begun: false, .. })
        }),
        (
            {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                listener.local_addr().unwrap()
            },
            |e| matches!(e, ClientError::Refused { .. }),
        ),
    ];
    for (address, check) in cases {
        let error = get(address).unwrap_err();
        assert!(check(&error), "{error:?}");
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    }
}

fn reset(stream: &TcpStream) {
    let now = nix::libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    nix::sys::socket::setsockopt(stream, nix::sys::socket::sockopt::Linger, &now).unwrap();
}

#[test]
fn a_dripping_server_does_not_move_the_deadline() {
    let address = server(|mut stream, _| {
        // It drips until the client has gone; a client that waited for an end would wait for ever.
        while stream.write_all(b"H").and_then(|()| stream.flush()).is_ok() {
            thread::sleep(Duration::from_millis(2));
        }
    });
    let endless = server(|mut stream, _| {
        drop(stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n"));
        while stream.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(2));
        }
    });
    let quiet = server(|stream, _| {
        thread::sleep(Duration::from_mins(1));
        drop(stream);
    });
    let client = Client::new(ClientOptions {
        timeout: Duration::from_millis(300),
        ..options()
    });
    for (address, begun) in [(address, true), (endless, true), (quiet, false)] {
        let target = Target::parse(&format!("http://{address}")).unwrap();
        let error = client.get(&target, None, "/").unwrap_err();
        match error {
            ClientError::Timeout { begun: seen, .. } => assert_eq!(seen, begun),
            // "HH" is no HTTP, and that may be seen before the time is over.
            ClientError::Http {
                source: HttpError::NotHttp { .. },
                ..
            } => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_early_answer_to_a_large_body_is_heard() {
    // The server answers on the head alone and never reads the body.
    let address = server(|mut stream, _| {
        stream
            .write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
            .unwrap();
        thread::sleep(Duration::from_millis(200));
    });
    let target = Target::parse(&format!("http://{address}")).unwrap();
    let body = vec![b'x'; 64 << 20];
    match Client::new(options()).post_json(&target, None, "/", &body) {
        Ok(reply) => assert_eq!(reply.status, 413),
        // The kernel may throw the answer away together with the connection.
        Err(error) => assert!(matches!(error, ClientError::Reset { .. }), "{error:?}"),
    }
}

#[test]
fn a_name_with_several_addresses_is_tried_in_turn() {
    let address = says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    // localhost is ::1 first on many machines, and nobody listens there.
    let target = Target::parse(&format!("http://localhost:{}", address.port())).unwrap();
    let reply = Client::new(options()).get(&target, None, "/").unwrap();
    assert_eq!(reply.address, address);
}

#[test]
fn connecting_alone_says_whether_anybody_accepts() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    Client::new(options()).connect(address).unwrap();
    drop(listener);
    let error = Client::new(options()).connect(address).unwrap_err();
    assert!(matches!(error, ClientError::Refused { .. }), "{error:?}");
}

#[test]
fn https_is_refused_in_words() {
    let target = Target::parse("https://u:p@h:1").unwrap();
    let error = Client::default().get(&target, None, "/").unwrap_err();
    assert!(
        matches!(&error, ClientError::Https { target } if target == "https://***@h:1"),
        "{error:?}"
    );
}
