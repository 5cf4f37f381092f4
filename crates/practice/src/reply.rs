//! Heads of answers and small whole answers, with the headers of each engine.

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::clock;
use crate::options::{Manners, Options};
use crate::shape::escape;

/// The header by which the practice server is known whatever manners it wears.
const MARK: &str = concat!("X-Practice: shakedown/", env!("CARGO_PKG_VERSION"), "\r\n");

/// How the length of an answer's body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// In bytes.
    Length(usize),
    /// In a `Content-Length:` that the caller completes, behind everything else.
    Open,
    /// By its last chunk.
    Chunked,
    /// By the end of the connection.
    UntilClose,
}

/// Idle time after which a connection is closed, in nanoseconds.
pub(crate) fn keep_alive(options: &Options) -> u64 {
    match (options.keep_alive, options.engine) {
        (Some(time), _) => clock::nanos(time),
        (None, Manners::Plain) => 75_000_000_000,
        // uvicorn's and llama-server's defaults.
        (None, _) => 5_000_000_000,
    }
}

/// The head of an answer.
pub(crate) fn head(
    options: &Options,
    status: u16,
    kind: &str,
    extra: &str,
    body: Body,
    keep: bool,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(320);
    let reason = reason(status);
    let engine = options.engine;
    let uvicorn = matches!(engine, Manners::Sglang | Manners::Vllm);
    let _ = write!(out, "HTTP/1.1 {status} {reason}\r\n");
    match engine {
        Manners::Plain => out.extend_from_slice(b"Server: shakedown-practice\r\n"),
        Manners::LlamaCpp => out.extend_from_slice(b"Server: llama.cpp\r\nAccess-Control-Allow-Origin: \r\n"),
        Manners::Sglang | Manners::Vllm => {
            let _ = write!(
                out,
                "date: {}\r\nserver: uvicorn\r\n",
                http_date(SystemTime::now())
            );
        }
    }
    out.extend_from_slice(MARK.as_bytes());
    out.extend_from_slice(extra.as_bytes());
    if !kind.is_empty() {
        let name = if uvicorn { "content-type" } else { "Content-Type" };
        let _ = write!(out, "{name}: {kind}\r\n");
    }
    if !keep || body == Body::UntilClose {
        out.extend_from_slice(if uvicorn {
            b"connection: close\r\n"
        } else {
            b"Connection: close\r\n"
        });
    } else if engine == Manners::LlamaCpp {
        out.extend_from_slice(b"Keep-Alive: timeout=5, max=100\r\n");
    }
    let length = if uvicorn {
        "content-length"
    } else {
        "Content-Length"
    };
    match body {
        Body::Length(bytes) => {
            let _ = write!(out, "{length}: {bytes}\r\n\r\n");
        }
        Body::Open => {
            let _ = write!(out, "{length}: ");
        }
        Body::Chunked => out.extend_from_slice(if uvicorn {
            b"transfer-encoding: chunked\r\n\r\n"
        } else {
            b"Transfer-Encoding: chunked\r\n\r\n"
        }),
        Body::UntilClose => out.extend_from_slice(b"\r\n"),
    }
    out
}

/// The content type of JSON, as the engine spells it.
pub(crate) const fn json_type(engine: Manners) -> &'static str {
    match engine {
        Manners::LlamaCpp => "application/json; charset=utf-8",
        _ => "application/json",
    }
}

/// A whole answer.
pub(crate) fn whole(
    options: &Options,
    status: u16,
    kind: &str,
    extra: &str,
    body: &[u8],
    keep: bool,
) -> Vec<u8> {
    let mut out = head(options, status, kind, extra, Body::Length(body.len()), keep);
    out.extend_from_slice(body);
    out
}

/// A whole answer in JSON.
pub(crate) fn json(options: &Options, status: u16, body: &str, keep: bool) -> Vec<u8> {
    whole(
        options,
        status,
        json_type(options.engine),
        "",
        body.as_bytes(),
        keep,
    )
}

/// An error, in the engine's shape.
pub(crate) fn error(options: &Options, status: u16, why: &str, keep: bool) -> Vec<u8> {
    json(
        options,
        status,
        &error_body(options.engine, status, why, None),
        keep,
    )
}

/// The JSON of an error; `param` is the request member that is wrong, where one is.
pub(crate) fn error_body(engine: Manners, status: u16, why: &str, param: Option<&str>) -> String {
    let why = escape(why);
    let kind = match (engine, status) {
        (Manners::Plain | Manners::LlamaCpp, 401) => "authentication_error",
        (Manners::Plain, 429) => "rate_limit_exceeded",
        (Manners::LlamaCpp, 404) => "not_found_error",
        (Manners::LlamaCpp, 501) => "not_supported_error",
        (Manners::LlamaCpp, 503) => "unavailable_error",
        (Manners::Plain | Manners::LlamaCpp, 500..) => "server_error",
        (Manners::Plain | Manners::LlamaCpp, _) => "invalid_request_error",
        (_, 404) => "NotFoundError",
        (_, 429) => "RateLimitError",
        (_, 500..) => "InternalServerError",
        (_, _) => "BadRequestError",
    };
    let param = param.map_or_else(|| "null".to_owned(), |param| format!("\"{param}\""));
    match engine {
        Manners::Plain | Manners::Vllm => {
            format!(r#"{{"error":{{"message":"{why}","type":"{kind}","param":{param},"code":{status}}}}}"#)
        }
        Manners::Sglang => {
            format!(
                r#"{{"object":"error","message":"{why}","type":"{kind}","param":{param},"code":{status}}}"#
            )
        }
        Manners::LlamaCpp => format!(r#"{{"error":{{"code":{status},"message":"{why}","type":"{kind}"}}}}"#),
    }
}

/// The head of a stream of events.
pub(crate) fn stream_head(options: &Options, body: Body, keep: bool) -> Vec<u8> {
    let (kind, extra) = match options.engine {
        Manners::Plain => ("text/event-stream", "Cache-Control: no-cache\r\n"),
        Manners::LlamaCpp => ("text/event-stream", "X-Accel-Buffering: no\r\n"),
        Manners::Sglang | Manners::Vllm => ("text/event-stream; charset=utf-8", ""),
    };
    head(options, 200, kind, extra, body, keep)
}

/// The reason phrase of a status.
pub(crate) const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Found",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Payload Too Large",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}

/// A time as HTTP writes it (RFC 9110, 5.6.7).
fn http_date(time: SystemTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let days = seconds / 86_400;
    let of_day = seconds % 86_400;
    // Civil date from days since 1970, in the proleptic Gregorian calendar, with years that begin in March.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 2
    } else {
        march_month - 10
    };
    let year = year_of_era + era * 400 + u64::from(month < 2);
    format!(
        "{}, {day:02} {} {year} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        MONTHS[month as usize],
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let at = |seconds| http_date(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(at(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(at(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(at(1_796_081_784), "Mon, 30 Nov 2026 23:36:24 GMT");
    }

    #[test]
    fn errors_are_json_in_every_shape() {
        for engine in [Manners::Plain, Manners::Sglang, Manners::Vllm, Manners::LlamaCpp] {
            let body = error_body(engine, 400, "a \"quoted\"\nreason\u{1}", Some("max_tokens"));
            let value: serde_json::Value = serde_json::from_str(&body).unwrap();
            let error = value.get("error").unwrap_or(&value);
            assert_eq!(error["message"], "a \"quoted\"\nreason\u{1}");
            assert_eq!(error["code"], 400);
        }
    }
}
