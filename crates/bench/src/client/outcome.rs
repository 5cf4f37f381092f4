//! Decides how a request ended: pure, from what was seen of it.

use shakedown_model::{FinishReason, RequestOutcome};

/// What ended the exchange on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// The answer ended as HTTP says it should.
    Complete,
    /// The peer closed before the answer was complete.
    Closed,
    /// The connection broke.
    Reset(String),
    /// Nobody accepted the connection.
    Refused(String),
    /// The connection could not be made for another reason.
    ConnectFailed(String),
    /// A limit passed.
    Timeout(Timeout),
    /// A line of the stream was over the cap.
    LineTooLong,
    /// The answer was over the cap.
    TooLarge,
    /// Not HTTP, not an event stream, or not the dialect's JSON.
    Malformed(String),
    /// We stopped it.
    Cancelled,
}

/// The limit that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timeout {
    Connect,
    FirstToken,
    Idle,
    Total,
}

/// What was seen of an exchange.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    pub(super) ending: &'a Ending,
    pub(super) status: Option<u16>,
    pub(super) content_encoding: Option<&'a str>,
    pub(super) location: Option<&'a str>,
    /// The connection had served a request before this one.
    pub(super) reused: bool,
    pub(super) streamed: bool,
    pub(super) any_byte: bool,
    pub(super) any_token: bool,
    pub(super) error_in_stream: Option<&'a str>,
    pub(super) error_body: Option<&'a str>,
    pub(super) finish: Option<&'a FinishReason>,
    pub(super) done: bool,
    pub(super) tokens: Option<u64>,
    /// Fewer tokens than this means that the server stopped short.
    pub(super) least: Option<u64>,
}

/// The outcome and, where there is something to say, one line about it.
pub(super) fn judge(seen: &Seen<'_>) -> (RequestOutcome, Option<String>) {
    use RequestOutcome as Outcome;
    if let Some(verdict) = by_status(seen) {
        return verdict;
    }
    if let Some(encoding) = seen.content_encoding {
        return (
            Outcome::UnexpectedEncoding,
            Some(format!("Content-Encoding: {encoding}, which was not asked for")),
        );
    }
    if let Some(error) = seen.error_in_stream {
        return (Outcome::ErrorInStream, Some(error.to_owned()));
    }
    // After the finish reason and the terminator nothing is missing, however the connection then ended.
    let whole = if seen.streamed {
        seen.finish.is_some() && seen.done
    } else {
        false
    };
    match seen.ending {
        Ending::Cancelled => (Outcome::Cancelled, None),
        Ending::Complete => complete(seen),
        _ if whole => complete(seen),
        Ending::Refused(error) => (Outcome::Refused, Some(error.clone())),
        Ending::ConnectFailed(error) => (Outcome::ConnectFailed, Some(error.clone())),
        Ending::Closed | Ending::Reset(_) if !seen.any_byte && seen.reused => (
            Outcome::StaleConnection,
            Some("the server had closed the reused connection; the request was not repeated".to_owned()),
        ),
        Ending::Closed if !seen.any_byte => (
            Outcome::ResetBeforeFirstByte,
            Some("closed before the first byte of the answer".to_owned()),
        ),
        Ending::Closed => (
            Outcome::Truncated,
            Some(format!("the connection was closed {}", missing(seen))),
        ),
        Ending::Reset(error) if !seen.any_byte => (Outcome::ResetBeforeFirstByte, Some(error.clone())),
        Ending::Reset(error) => (Outcome::ResetAfterFirstByte, Some(error.clone())),
        Ending::Timeout(timeout) => by_timeout(*timeout),
        Ending::LineTooLong => (
            Outcome::LineTooLong,
            Some("a line of the stream was longer than the cap".to_owned()),
        ),
        Ending::TooLarge => (
            Outcome::TooLarge,
            Some("the answer was larger than the cap".to_owned()),
        ),
        Ending::Malformed(error) => (Outcome::Malformed, Some(error.clone())),
    }
}

fn by_status(seen: &Seen<'_>) -> Option<(RequestOutcome, Option<String>)> {
    use RequestOutcome as Outcome;
    let status = seen.status.filter(|status| *status != 200)?;
    let outcome = match status {
        300..=399 => Outcome::Redirect,
        429 => Outcome::RateLimited,
        400..=499 => Outcome::Http4xx,
        500..=599 => Outcome::Http5xx,
        _ => Outcome::Malformed,
    };
    let detail = match (outcome, seen.location, seen.error_body) {
        (Outcome::Redirect, Some(location), _) => {
            format!("HTTP {status} to {location}; redirects are not followed")
        }
        (_, _, Some(body)) => format!("HTTP {status}: {body}"),
        _ => format!("HTTP {status}"),
    };
    Some((outcome, Some(detail)))
}

fn by_timeout(timeout: Timeout) -> (RequestOutcome, Option<String>) {
    let (outcome, what) = match timeout {
        Timeout::Connect => (RequestOutcome::TimeoutConnect, "no connection within the limit"),
        Timeout::FirstToken => (RequestOutcome::TimeoutFirstToken, "no token within the limit"),
        Timeout::Idle => (
            RequestOutcome::TimeoutIdle,
            "the stream fell silent for longer than the limit",
        ),
        Timeout::Total => (RequestOutcome::TimeoutTotal, "not finished within the limit"),
    };
    (outcome, Some(what.to_owned()))
}

/// The verdict on an answer that HTTP calls complete.
fn complete(seen: &Seen<'_>) -> (RequestOutcome, Option<String>) {
    use RequestOutcome as Outcome;
    if seen.finish.is_none() || (seen.streamed && !seen.done) {
        return (
            Outcome::Truncated,
            Some(format!("the answer ended {}", missing(seen))),
        );
    }
    if seen.finish == Some(&FinishReason::Abort) {
        return (
            Outcome::ErrorInStream,
            Some("the engine gave the request up (finish reason abort)".to_owned()),
        );
    }
    if seen.tokens == Some(0) || (!seen.any_token && seen.tokens.is_none()) {
        return (Outcome::Empty, Some("finished without a single token".to_owned()));
    }
    match (seen.tokens, seen.least) {
        (Some(tokens), Some(least)) if tokens < least => (
            Outcome::OkShort,
            Some(format!(
                "stopped at {tokens} tokens where at least {least} were asked for"
            )),
        ),
        _ => (Outcome::Ok, None),
    }
}

fn missing(seen: &Seen<'_>) -> &'static str {
    match (seen.finish.is_some(), seen.done || !seen.streamed) {
        (false, false) => "without a finish reason and without [DONE]",
        (false, true) => "without a finish reason",
        (true, _) => "without [DONE]",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(ending: &Ending) -> Seen<'_> {
        Seen {
            ending,
            status: Some(200),
            content_encoding: None,
            location: None,
            reused: false,
            streamed: true,
            any_byte: true,
            any_token: true,
            error_in_stream: None,
            error_body: None,
            finish: Some(&FinishReason::Stop),
            done: true,
            tokens: Some(12),
            least: None,
        }
    }

    fn outcome(seen: &Seen<'_>) -> RequestOutcome {
        judge(seen).0
    }

    #[test]
    fn a_stream_needs_its_finish_and_its_terminator() {
        let ending = Ending::Complete;
        assert_eq!(outcome(&seen(&ending)), RequestOutcome::Ok);
        assert_eq!(
            outcome(&Seen {
                finish: None,
                ..seen(&ending)
            }),
            RequestOutcome::Truncated
        );
        assert_eq!(
            outcome(&Seen {
                done: false,
                ..seen(&ending)
            }),
            RequestOutcome::Truncated
        );
        // A whole answer has no terminator.
        assert_eq!(
            outcome(&Seen {
                done: false,
                streamed: false,
                ..seen(&ending)
            }),
            RequestOutcome::Ok
        );
    }

    #[test]
    fn an_error_inside_wins_over_a_good_ending() {
        let ending = Ending::Complete;
        let seen = Seen {
            error_in_stream: Some("out of memory"),
            ..seen(&ending)
        };
        assert_eq!(
            judge(&seen),
            (RequestOutcome::ErrorInStream, Some("out of memory".to_owned()))
        );
    }

    #[test]
    fn nothing_is_missing_after_the_terminator() {
        for ending in [
            Ending::Closed,
            Ending::Reset("reset".to_owned()),
            Ending::Timeout(Timeout::Idle),
        ] {
            assert_eq!(outcome(&seen(&ending)), RequestOutcome::Ok);
            assert_ne!(
                outcome(&Seen {
                    done: false,
                    ..seen(&ending)
                }),
                RequestOutcome::Ok
            );
        }
    }

    #[test]
    fn before_and_after_the_first_byte() {
        let ending = Ending::Reset("connection reset".to_owned());
        let cut = || Seen {
            finish: None,
            done: false,
            tokens: None,
            ..seen(&ending)
        };
        assert_eq!(outcome(&cut()), RequestOutcome::ResetAfterFirstByte);
        let before = || Seen {
            status: None,
            any_byte: false,
            any_token: false,
            ..cut()
        };
        assert_eq!(outcome(&before()), RequestOutcome::ResetBeforeFirstByte);
        assert_eq!(
            outcome(&Seen {
                reused: true,
                ..before()
            }),
            RequestOutcome::StaleConnection
        );
    }

    #[test]
    fn short_only_where_more_was_asked_for() {
        let ending = Ending::Complete;
        assert_eq!(
            outcome(&Seen {
                least: Some(128),
                ..seen(&ending)
            }),
            RequestOutcome::OkShort
        );
        assert_eq!(
            outcome(&Seen {
                least: Some(12),
                ..seen(&ending)
            }),
            RequestOutcome::Ok
        );
        assert_eq!(
            outcome(&Seen {
                least: Some(128),
                tokens: None,
                ..seen(&ending)
            }),
            RequestOutcome::Ok
        );
    }

    #[test]
    fn statuses() {
        let ending = Ending::Complete;
        for (status, expected) in [
            (302, RequestOutcome::Redirect),
            (400, RequestOutcome::Http4xx),
            (429, RequestOutcome::RateLimited),
            (503, RequestOutcome::Http5xx),
            (204, RequestOutcome::Malformed),
        ] {
            assert_eq!(
                outcome(&Seen {
                    status: Some(status),
                    ..seen(&ending)
                }),
                expected
            );
        }
    }
}
