//! Name resolution with a timeout that holds.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Why a host has no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The system's resolver said no.
    #[error("resolve {host}: {reason}")]
    Failed {
        /// The host asked for.
        host: String,
        /// The resolver's words.
        reason: String,
    },
    /// No answer in time.
    #[error("resolve {host}: no answer within {} ms", after.as_millis())]
    Timeout {
        /// The host asked for.
        host: String,
        /// The time allowed.
        after: Duration,
    },
}

/// Asks the system's resolver (files, DNS, whatever it is set up to ask) on a thread of its own.
pub(super) fn look_up(host: &str, port: u16, timeout: Duration) -> Result<Vec<SocketAddr>, ResolveError> {
    let failed = |reason: String| ResolveError::Failed {
        host: host.to_owned(),
        reason,
    };
    let (sender, receiver) = sync_channel(1);
    let name = host.to_owned();
    std::thread::Builder::new()
        .name("resolve".to_owned())
        .spawn(move || {
            let found = (name.as_str(), port)
                .to_socket_addrs()
                .map(Iterator::collect::<Vec<_>>);
            // Nobody listens any more when the timeout was quicker.
            drop(sender.try_send(found));
        })
        .map_err(|error| failed(error.to_string()))?;
    match receiver.recv_timeout(timeout) {
        Ok(Ok(mut found)) => {
            // getaddrinfo can name one address twice (once per line of /etc/hosts).
            let mut seen = Vec::new();
            found.retain(|address| {
                let new = !seen.contains(address);
                seen.push(*address);
                new
            });
            if found.is_empty() {
                return Err(failed("the name has no address".to_owned()));
            }
            Ok(found)
        }
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(RecvTimeoutError::Timeout) => Err(ResolveError::Timeout {
            host: host.to_owned(),
            after: timeout,
        }),
        Err(RecvTimeoutError::Disconnected) => Err(failed("the resolver's thread died".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Target;
    use super::*;

    #[test]
    fn literals_need_no_resolver() {
        let target = Target::parse("http://[::1]:9").unwrap();
        assert_eq!(
            target.resolve(Duration::ZERO).unwrap(),
            ["[::1]:9".parse().unwrap()]
        );
    }

    #[test]
    fn localhost_is_loopback() {
        let found = look_up("localhost", 7, Duration::from_secs(30)).unwrap();
        assert!(
            found
                .iter()
                .all(|address| address.ip().is_loopback() && address.port() == 7)
        );
    }

    #[test]
    fn a_timeout_of_nothing_times_out_or_answers() {
        // A resolver may be quicker than the check; it must not be slower than the timeout.
        match look_up("localhost", 7, Duration::ZERO) {
            Ok(found) => assert!(!found.is_empty()),
            Err(error) => assert!(matches!(error, ResolveError::Timeout { .. }), "{error}"),
        }
    }

    #[test]
    fn unknown_names_fail_with_the_name() {
        let error = look_up("no-such-host.invalid", 7, Duration::from_secs(30)).unwrap_err();
        assert!(error.to_string().contains("no-such-host.invalid"));
    }
}
