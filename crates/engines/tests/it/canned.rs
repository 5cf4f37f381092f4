//! A server that gives canned replies and remembers what it was asked.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use shakedown_wire::client::{Client, ClientOptions};
use shakedown_wire::target::Target;

/// One reply.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

pub fn reply(status: u16, body: &str) -> Reply {
    Reply {
        status,
        headers: Vec::new(),
        body: body.to_owned(),
    }
}

/// A recorded reply: `HTTP status`, headers, an empty line, the body; or a body alone.
pub fn recorded(text: &str) -> Reply {
    let Some(rest) = text.strip_prefix("HTTP ") else {
        return reply(200, text);
    };
    let (head, body) = rest.split_once("\n\n").unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().trim().parse().unwrap();
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .filter(|(name, _)| {
            !name.eq_ignore_ascii_case("content-length") && !name.eq_ignore_ascii_case("connection")
        })
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    Reply {
        status,
        headers,
        body: body.to_owned(),
    }
}

/// A running server. It answers paths that it does not know with `fallback`.
pub struct Canned {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Canned {
    pub fn start(replies: &[(&str, Reply)], fallback: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let replies: BTreeMap<String, Reply> = replies
            .iter()
            .map(|(path, reply)| ((*path).to_owned(), reply.clone()))
            .collect();
        let log = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, &replies, &fallback, &log);
            }
        });
        Self { address, asked }
    }

    /// Paths asked for so far, in order, with their methods.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    pub fn target(&self) -> Target {
        target(self.address)
    }
}

fn serve(
    mut stream: TcpStream,
    replies: &BTreeMap<String, Reply>,
    fallback: &Reply,
    log: &Mutex<Vec<String>>,
) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let mut words = head.split_whitespace();
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    log.lock().unwrap().push(format!("{method} {path}"));
    let reply = replies.get(path).unwrap_or(fallback);
    let headers: Vec<String> = reply
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let text = format!(
        "HTTP/1.1 {} x\r\n{}Content-Length: {}\r\nConnection: close\r\n\r\n{}",
        reply.status,
        headers.concat(),
        reply.body.len(),
        reply.body
    );
    let _ = stream.write_all(text.as_bytes());
}

pub fn target(address: SocketAddr) -> Target {
    Target::parse(&format!("http://{address}")).unwrap()
}

pub fn client() -> Client {
    Client::new(ClientOptions {
        timeout: Duration::from_secs(30),
        ..ClientOptions::default()
    })
}
