//! A plain client that judges a stream by the rules of the product, written for these tests alone: read
//! everything, then look at the bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;
use shakedown_model::{RequestOutcome as Outcome, TokenSource};
use shakedown_practice::{Needs, Practice};

/// Longest line and longest body that this client takes.
const LINE_CAP: usize = 8 << 20;
const BODY_CAP: usize = 32 << 20;

/// How the connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Closed,
    Reset,
    Whole,
    Silent,
    TotalTime,
    LongLine,
    TooLarge,
}

/// What was seen of one answer.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) bytes: Vec<u8>,
    pub(crate) end: End,
}

/// Sends `body` on a new connection and reads the answer to its end, whatever that is.
pub(crate) fn exchange(server: &Practice, headers: &str, body: &Value, needs: &Needs) -> Seen {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let body = body.to_string();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let idle = needs
        .idle_timeout_ms
        .or(needs.first_token_timeout_ms)
        .unwrap_or(20_000);
    let total = Duration::from_millis(needs.total_timeout_ms.unwrap_or(30_000));
    stream
        .set_read_timeout(Some(Duration::from_millis(idle)))
        .unwrap();
    let begun = Instant::now();
    let mut bytes = Vec::new();
    let mut scratch = vec![0; 1 << 16];
    let mut line = 0;
    let end = loop {
        if begun.elapsed() > total {
            break End::TotalTime;
        }
        match stream.read(&mut scratch) {
            Ok(0) => break End::Closed,
            Ok(length) => {
                bytes.extend_from_slice(&scratch[..length]);
                match scratch[..length].iter().rposition(|byte| *byte == b'\n') {
                    // Chunk sizes end lines too: what counts is the distance between the stream's own.
                    Some(_) if !scratch[..length].windows(32).any(|window| window == [b'x'; 32]) => line = 0,
                    _ => line += length,
                }
                if line > LINE_CAP {
                    break End::LongLine;
                }
                if bytes.len() > BODY_CAP {
                    break End::TooLarge;
                }
                if whole(&bytes) {
                    break End::Whole;
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                break End::Silent;
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break End::Reset,
            Err(error) => panic!("{error}"),
        }
    };
    Seen { bytes, end }
}

fn split_head(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let at = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    Some((std::str::from_utf8(&bytes[..at]).ok()?, &bytes[at + 4..]))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn whole(bytes: &[u8]) -> bool {
    if bytes.len() > 1 << 20 {
        return false;
    }
    let Some((head, body)) = split_head(bytes) else {
        return false;
    };
    if let Some(length) = header(head, "content-length") {
        return body.len() >= length.parse().unwrap();
    }
    header(head, "transfer-encoding").is_some() && body.ends_with(b"\r\n0\r\n\r\n")
}

/// The body without its framing; none where that is broken.
fn dechunk(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    while let Some(line) = body.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&body[..line])
            .ok()
            .and_then(|text| usize::from_str_radix(text, 16).ok())?;
        body = &body[line + 2..];
        if size == 0 {
            break;
        }
        let take = size.min(body.len());
        out.extend_from_slice(&body[..take]);
        body = body.get(size + 2..).unwrap_or_default();
    }
    Some(out)
}

/// The verdict on what was seen: outcome, tokens, their source.
pub(crate) fn judge(
    seen: &Seen,
    ignore_eos: bool,
    max_tokens: Option<u32>,
) -> (Outcome, Option<u64>, TokenSource) {
    let nothing = |outcome| (outcome, None, TokenSource::Unknown);
    match seen.end {
        End::LongLine => return nothing(Outcome::LineTooLong),
        End::TooLarge => return nothing(Outcome::TooLarge),
        End::TotalTime => return nothing(Outcome::TimeoutTotal),
        _ => {}
    }
    if seen.bytes.is_empty() {
        return nothing(match seen.end {
            End::Silent => Outcome::TimeoutFirstToken,
            _ => Outcome::ResetBeforeFirstByte,
        });
    }
    let Some((head, body)) = split_head(&seen.bytes).filter(|(head, _)| head.starts_with("HTTP/1.1 ")) else {
        return nothing(Outcome::Malformed);
    };
    match head[9..12].parse::<u16>().unwrap() {
        300..=399 => return nothing(Outcome::Redirect),
        429 => return nothing(Outcome::RateLimited),
        400..=499 => return nothing(Outcome::Http4xx),
        500.. => return nothing(Outcome::Http5xx),
        _ => {}
    }
    if header(head, "content-encoding").is_some() {
        return nothing(Outcome::UnexpectedEncoding);
    }
    if !header(head, "content-type")
        .unwrap_or_default()
        .starts_with("text/event-stream")
    {
        return nothing(Outcome::Malformed);
    }
    let body = if header(head, "transfer-encoding").is_some() {
        match dechunk(body) {
            Some(body) => body,
            None => return nothing(Outcome::Malformed),
        }
    } else {
        body.to_vec()
    };
    let (mut text, mut finish, mut done, mut error, mut continuous, mut last) =
        (0, None, false, false, None, None);
    for line in body.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(data) = line.strip_prefix(b"data:") else {
            continue;
        };
        let data = data.strip_prefix(b" ").unwrap_or(data);
        if data == b"[DONE]" {
            done = true;
            continue;
        }
        let Ok(event) = serde_json::from_slice::<Value>(data) else {
            return nothing(Outcome::Malformed);
        };
        if event.get("error").is_some() {
            error = true;
        }
        let usage = event["usage"]["completion_tokens"].as_u64();
        match event["choices"].as_array().map(Vec::as_slice) {
            Some([choice, ..]) => {
                let delta = &choice["delta"];
                let said = ["content", "reasoning", "reasoning_content"]
                    .iter()
                    .any(|name| delta[name].as_str().is_some_and(|text| !text.is_empty()));
                text += u64::from(said || delta["tool_calls"].is_array());
                if let Some(reason) = choice["finish_reason"].as_str() {
                    finish = Some(reason.to_owned());
                }
                continuous = usage.or(continuous);
            }
            _ => last = usage.or(last),
        }
    }
    let tokens = last.or(continuous);
    let source = match (last, continuous) {
        (Some(_), _) => TokenSource::ServerUsage,
        (None, Some(_)) => TokenSource::ContinuousUsage,
        (None, None) => TokenSource::Unknown,
    };
    let outcome = if error {
        Outcome::ErrorInStream
    } else if seen.end == End::Reset {
        Outcome::ResetAfterFirstByte
    } else if seen.end == End::Silent {
        if text == 0 {
            Outcome::TimeoutFirstToken
        } else {
            Outcome::TimeoutIdle
        }
    } else if finish.is_none() || !done {
        Outcome::Truncated
    } else if text == 0 {
        Outcome::Empty
    } else if ignore_eos && tokens < max_tokens.map(u64::from) {
        Outcome::OkShort
    } else {
        Outcome::Ok
    };
    (outcome, tokens, source)
}
