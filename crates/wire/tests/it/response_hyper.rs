//! The response reader against hyper: the same bytes, the same answer.
//!
//! Where this reader is stricter on purpose, the list is in `stricter`; it is nowhere laxer.

use std::cell::Cell;

use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use shakedown_wire::request::Method;
use shakedown_wire::response::HttpError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::response::{cut, read, response};

/// What hyper makes of the bytes: status, headers and body.
async fn hyper_reads(parts: Vec<Vec<u8>>) -> Result<(u16, Vec<(String, Vec<u8>)>, Vec<u8>), String> {
    let (client, mut server) = tokio::io::duplex(64 * 1024);
    let serve = async move {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            server.read_exact(&mut byte).await?;
            request.push(byte[0]);
        }
        for part in parts {
            server.write_all(&part).await?;
            tokio::task::yield_now().await;
        }
        server.shutdown().await
    };
    let ask = async {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(client))
            .await
            .map_err(|e| e.to_string())?;
        let request = hyper::Request::get("/")
            .header("host", "h")
            .body(Empty::<Bytes>::new())
            .unwrap();
        let exchange = async {
            let response = sender.send_request(request).await.map_err(|e| e.to_string())?;
            let status = response.status().as_u16();
            let headers = response
                .headers()
                .iter()
                .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
                .collect();
            let body = response.into_body().collect().await.map_err(|e| e.to_string())?;
            Ok((status, headers, body.to_bytes().to_vec()))
        };
        tokio::pin!(exchange);
        tokio::pin!(connection);
        let mut running = true;
        loop {
            tokio::select! {
                answer = &mut exchange => break answer,
                _ended = &mut connection, if running => running = false,
            }
        }
    };
    let (answer, _served) = tokio::join!(ask, serve);
    answer
}

/// Where we refuse what hyper takes, and why.
fn stricter(error: &HttpError) -> bool {
    match error {
        // hyper lets the Transfer-Encoding win; two framings at once are a smuggling attempt or a broken proxy.
        HttpError::LengthAndTransferEncoding
        // hyper hands on "gzip, chunked" undecoded and reads other codings until the close.
        | HttpError::TransferEncoding { .. }
        // A lone LF in trailers, which hyper takes where it does not upset its count of lines.
        | HttpError::BadTrailers { reason: "a line does not end with CRLF" }
        // An upgrade that was not asked for.
        | HttpError::SwitchingProtocols => true,
        _ => false,
    }
}

#[test]
fn agrees_with_hyper() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (both_read, both_refuse, we_refuse) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let strategy = (response(), prop::collection::vec(any::<usize>(), 0..4));
    let config = ProptestConfig {
        failure_persistence: None,
        ..super::cases(4000)
    };
    TestRunner::new(config)
        .run(&strategy, |(bytes, places)| {
            let parts = cut(&bytes, &places);
            let ours = read(&parts, Method::Get);
            let owned = parts.iter().map(|part| part.to_vec()).collect();
            let theirs = runtime.block_on(hyper_reads(owned));
            match (&ours, &theirs) {
                (Ok((head, body, _)), Ok((status, headers, their_body))) => {
                    both_read.set(both_read.get() + 1);
                    prop_assert_eq!(head.status, *status);
                    prop_assert_eq!(body, their_body);
                    for (name, _) in headers {
                        let theirs: Vec<String> = headers
                            .iter()
                            .filter(|(known, _)| known == name)
                            .map(|(_, value)| String::from_utf8_lossy(value).trim().to_owned())
                            .collect();
                        let ours: Vec<&str> = head
                            .headers()
                            .filter(|(known, _)| known.eq_ignore_ascii_case(name))
                            .map(|(_, value)| value)
                            .collect();
                        prop_assert_eq!(ours, theirs, "{}", name);
                    }
                }
                (Err(_), Err(_)) => both_refuse.set(both_refuse.get() + 1),
                (Err(error), Ok(_)) if stricter(error) => we_refuse.set(we_refuse.get() + 1),
                _ => {
                    let shown = bytes.escape_ascii().to_string();
                    prop_assert!(false, "{}\nours {:?}\nhyper {:?}", shown, ours, theirs);
                }
            }
            Ok(())
        })
        .unwrap();
    let counts = [both_read.get(), both_refuse.get(), we_refuse.get()];
    eprintln!(
        "both read {}, both refuse {}, only we refuse {}",
        counts[0], counts[1], counts[2]
    );
    assert!(
        counts.iter().all(|count| *count > 50),
        "the sample has all three kinds: {counts:?}"
    );
}
