//! The practice server in a process of its own.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::Context;
use super::process::Background;

/// A running practice server; it ends with this value.
pub(super) struct Practice {
    /// Where it listens.
    pub(super) url: String,
    _server: Background,
    /// Kept open: the server must not fail for want of a reader.
    _stdout: BufReader<ChildStdout>,
}

impl Practice {
    /// Starts one on a free port with these options.
    pub(super) fn start(context: &Context, args: &[&str]) -> Result<Self> {
        let log = context.scratch.join("practice.log");
        let talk = File::create(&log).with_context(|| format!("failed to create {}", log.display()))?;
        let mut child = Command::new(&context.shakedown)
            .args(["practice", "--port", "0"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(talk)
            .spawn()
            .with_context(|| format!("failed to run {}", context.shakedown.display()))?;
        let stdout = child
            .stdout
            .take()
            .context("failed to take the practice server's output")?;
        let server = Background(child);
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        loop {
            line.clear();
            let read = stdout
                .read_line(&mut line)
                .context("failed to read the practice server's output")?;
            if read == 0 {
                bail!(
                    "the practice server ended without saying where it listens: see {}",
                    log.display()
                );
            }
            if let Some(url) = find_url(&line) {
                return Ok(Self {
                    url: url.to_owned(),
                    _server: server,
                    _stdout: stdout,
                });
            }
        }
    }
}

/// The first URL in a line.
fn find_url(line: &str) -> Option<&str> {
    let start = line.find("http://")?;
    line[start..]
        .split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '<' | '>'))
        .next()
        .map(|url| url.trim_end_matches(['/', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_is_found_in_what_is_printed() {
        assert_eq!(find_url("http://127.0.0.1:4711\n"), Some("http://127.0.0.1:4711"));
        assert_eq!(
            find_url("listening on http://127.0.0.1:9/, model practice\n"),
            Some("http://127.0.0.1:9")
        );
        assert_eq!(
            find_url(r#"{"url":"http://[::1]:80","pid":7}"#),
            Some("http://[::1]:80")
        );
        assert_eq!(find_url("starting"), None);
    }
}
