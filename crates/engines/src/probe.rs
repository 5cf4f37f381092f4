//! The one place that asks a server anything: GET, from the allow-list, each path once.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use shakedown_wire::client::{Client, ClientError, Reply};
use shakedown_wire::target::Target;

use crate::catalog::{Catalog, ReplyView};

/// Requests without an answer after which nothing more is asked.
const FAILURES_CAP: usize = 2;

/// One path that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The path.
    pub path: String,
    /// The status.
    pub status: u16,
    /// From the request sent to the end of the answer.
    pub took: Duration,
}

/// An answer, read once for all rules.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) took: Duration,
    headers: Vec<(String, String)>,
    pub(crate) text: String,
    pub(crate) json: Option<Value>,
}

impl Answer {
    fn of(reply: &Reply) -> Self {
        let text = reply.text().into_owned();
        let json = serde_json::from_str(&text).ok();
        Self {
            status: reply.status,
            took: reply.stamps.end.since(reply.stamps.sent),
            headers: reply
                .head
                .headers()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            text,
            json,
        }
    }

    pub(crate) fn view(&self) -> ReplyView<'_> {
        ReplyView {
            status: self.status,
            headers: &self.headers,
            text: &self.text,
            json: self.json.as_ref(),
        }
    }
}

/// Asks one server.
pub(crate) struct Prober<'a> {
    catalog: &'a Catalog,
    client: &'a Client,
    target: &'a Target,
    addr: Option<SocketAddr>,
    answers: BTreeMap<String, Option<Answer>>,
    order: Vec<Answered>,
    failures: usize,
    first_failure: Option<ClientError>,
}

impl<'a> Prober<'a> {
    pub(crate) fn new(
        catalog: &'a Catalog,
        client: &'a Client,
        target: &'a Target,
        addr: Option<SocketAddr>,
    ) -> Self {
        Self {
            catalog,
            client,
            target,
            addr,
            answers: BTreeMap::new(),
            order: Vec::new(),
            failures: 0,
            first_failure: None,
        }
    }

    /// The answer of `path`: asked for once, and then remembered. `None` where there is none.
    pub(crate) fn get(&mut self, path: &str) -> Option<&Answer> {
        self.get_within(path, None)
    }

    /// The same, with another time allowed than the client's own.
    pub(crate) fn get_within(&mut self, path: &str, deadline: Option<Duration>) -> Option<&Answer> {
        if !self.answers.contains_key(path) {
            let answer = self.ask(path, deadline);
            self.answers.insert(path.to_owned(), answer);
        }
        self.answers.get(path).and_then(Option::as_ref)
    }

    fn ask(&mut self, path: &str, deadline: Option<Duration>) -> Option<Answer> {
        if !self.catalog.allows(path) || self.failures >= FAILURES_CAP {
            return None;
        }
        let reply = match deadline {
            Some(deadline) => self
                .client
                .with_timeout(deadline)
                .get(self.target, self.addr, path),
            None => self.client.get(self.target, self.addr, path),
        };
        match reply {
            Ok(reply) => {
                let answer = Answer::of(&reply);
                self.order.push(Answered {
                    path: path.to_owned(),
                    status: answer.status,
                    took: answer.took,
                });
                Some(answer)
            }
            Err(failure) => {
                self.failures += 1;
                self.first_failure.get_or_insert(failure);
                None
            }
        }
    }

    /// What answered, in order, and why the first request without an answer had none.
    pub(crate) fn into_parts(self) -> (Vec<Answered>, Option<ClientError>) {
        (self.order, self.first_failure)
    }

    /// Whether some answer refused for want of a key.
    pub(crate) fn needs_key(&self) -> bool {
        self.order
            .iter()
            .any(|answered| matches!(answered.status, 401 | 403))
    }
}
