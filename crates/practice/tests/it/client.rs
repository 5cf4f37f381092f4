//! A tiny HTTP client over `std::net`, written for these tests alone.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use shakedown_practice::Practice;

/// Nanoseconds on the server's clock.
pub(crate) fn now() -> u64 {
    let spec = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    spec.tv_sec() as u64 * 1_000_000_000 + spec.tv_nsec() as u64
}

/// An answer, body decoded from its framing.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The body's end was told (last chunk, length) and not only the connection's.
    pub(crate) whole: bool,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The value of a header, its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }

    /// The data of the stream's events.
    pub(crate) fn data(&self) -> Vec<String> {
        self.text()
            .split("\n\n")
            .filter_map(|event| event.strip_prefix("data: ").map(str::to_owned))
            .collect()
    }

    /// The events that are JSON.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.data()
            .iter()
            .filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}")))
            .collect()
    }
}

/// A connection that may carry several requests.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) fn new(server: &Practice) -> Self {
        let stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) {
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: test\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    /// Reads once more; false at the end of the connection.
    fn more(&mut self) -> bool {
        let mut scratch = [0; 16 * 1024];
        match self.stream.read(&mut scratch) {
            Ok(0) => false,
            Ok(length) => {
                self.buffer.extend_from_slice(&scratch[..length]);
                true
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => false,
            Err(error) => panic!("read: {error}"),
        }
    }

    fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < length {
            if !self.more() {
                return None;
            }
        }
        Some(self.buffer.drain(..length).collect())
    }

    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(String::from_utf8(line).unwrap().trim_end().to_owned());
            }
            if !self.more() {
                return None;
            }
        }
    }

    /// Reads an answer; absent when the connection ends before its head is whole.
    pub(crate) fn receive(&mut self) -> Option<Answer> {
        let mut head = String::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            head.push_str(&line);
            head.push('\n');
        }
        let mut answer = Answer {
            status: head.split(' ').nth(1)?.parse().unwrap(),
            head,
            body: Vec::new(),
            whole: false,
        };
        if answer.status == 100 {
            return self.receive();
        }
        if let Some(length) = answer.header("content-length") {
            let length: usize = length.parse().unwrap();
            while self.buffer.len() < length {
                if !self.more() {
                    answer.body = std::mem::take(&mut self.buffer);
                    return Some(answer);
                }
            }
            answer.body = self.take(length)?;
            answer.whole = true;
        } else if answer.header("transfer-encoding").as_deref() == Some("chunked") {
            while let Some(size) = self.line() {
                let size = usize::from_str_radix(&size, 16).unwrap();
                if size == 0 {
                    answer.whole = self.line().as_deref() == Some("");
                    break;
                }
                let Some(mut data) = self.take(size + 2) else {
                    break;
                };
                assert_eq!(data.split_off(size), b"\r\n");
                answer.body.extend(data);
            }
        } else {
            while self.more() {}
            answer.body = std::mem::take(&mut self.buffer);
        }
        Some(answer)
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.post_with(path, "", body)
    }

    pub(crate) fn post_with(&mut self, path: &str, headers: &str, body: &Value) -> Answer {
        self.send("POST", path, headers, &body.to_string());
        self.receive().expect("an answer")
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path, "", "");
        self.receive().expect("an answer")
    }
}

pub(crate) fn get(server: &Practice, path: &str) -> Answer {
    Client::new(server).get(path)
}

pub(crate) fn post(server: &Practice, path: &str, body: &Value) -> Answer {
    Client::new(server).post(path, body)
}
