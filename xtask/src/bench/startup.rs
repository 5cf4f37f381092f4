//! From exec to the first byte sent.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::figures::Check;
use super::interleave::{Side, interleave};
use super::process::{Background, CpuMeter, millis_since};
use super::{Context, cost};
use crate::engines::peers;

/// CPU time that starting may take, in milliseconds.
const CPU_LIMIT: f64 = 15.0;
/// A client that has sent nothing after so long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// Measures start-up.
pub(super) fn run(context: &Context) -> Result<Vec<Check>> {
    let mut sides = vec![Side {
        name: "shakedown",
        take: Box::new(|| {
            start(|url| {
                let mut command = Command::new(&context.shakedown);
                command
                    .args(["bench", url, "--requests", "1", "--store"])
                    .arg(context.store());
                command
            })
        }),
    }];
    match peers::oha(&context.engines) {
        Some(oha) => sides.push(Side {
            name: "oha",
            take: Box::new(move || {
                start(|url| {
                    let mut command = Command::new(&oha);
                    command.args(["-n", "1", "-c", "1", "--no-tui", url]);
                    command
                })
            }),
        }),
        None => println!("  no oha: `cargo xtask engines --peers` installs it"),
    }
    match peers::vllm(&context.engines) {
        Some(vllm) => {
            let tokenizer = cost::smallest_tokenizer(&context.scratch)?;
            sides.push(Side {
                name: "vLLM Rust",
                take: Box::new(move || start(|url| cost::vllm(&vllm, url, &tokenizer, 1, 1))),
            });
        }
        None => println!("  no vLLM client: `cargo xtask engines --peers` installs it"),
    }
    let columns = ["CPU, exec to first byte, ms", "wall, exec to first byte, ms"];
    let table = interleave(context.rounds, &columns, sides)?;
    table.print();
    Ok(vec![Check::at_most(
        "CPU of start-up",
        table.median(0, 0),
        CPU_LIMIT,
        "ms",
    )])
}

/// Starts a client that is to call a socket of ours, and ends it at the first byte that arrives.
fn start(command: impl FnOnce(&str) -> Command) -> Result<Vec<f64>> {
    let listener = TcpListener::bind("127.0.0.1:0").context("failed to listen")?;
    let address = listener.local_addr().context("failed to listen")?;
    let mut command = command(&format!("http://{address}"));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());

    let meter = CpuMeter::start()?;
    let started = Instant::now();
    let mut child = Background(
        command
            .spawn()
            .with_context(|| format!("failed to run {}", command.get_program().display()))?,
    );
    wait_for_a_byte(&listener).with_context(|| {
        format!(
            "failed to wait for {} ({:?})",
            command.get_program().display(),
            child.0.try_wait()
        )
    })?;
    let wall = millis_since(started);
    drop(child);
    let cpu = meter.stop()?.as_secs_f64() * 1e3;
    Ok(vec![cpu, wall])
}

/// Waits for the first byte on any connection. A client may only try whether somebody listens, and hang up.
fn wait_for_a_byte(listener: &TcpListener) -> Result<()> {
    loop {
        let mut byte = [0];
        let read = accept(listener)?
            .read(&mut byte)
            .context("failed to read the first byte")?;
        if read > 0 {
            return Ok(());
        }
    }
}

fn accept(listener: &TcpListener) -> Result<TcpStream> {
    let timeout = PollTimeout::try_from(PATIENCE).context("failed to set a timeout")?;
    let mut fds = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    if poll(&mut fds, timeout).context("failed to wait")? == 0 {
        bail!("nobody connected in {} s", PATIENCE.as_secs());
    }
    let (stream, _) = listener.accept().context("failed to accept")?;
    stream
        .set_read_timeout(Some(PATIENCE))
        .context("failed to set a timeout")?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_timed_to_its_first_byte_and_ended() {
        let figures = start(|url| {
            let port = url.rsplit(':').next().unwrap().to_owned();
            let mut command = Command::new("bash");
            command.args([
                "-c",
                &format!(
                    "a=/dev/tcp/127.0.0.1/{port}; exec 3<>$a; exec 3>&-; exec 3<>$a; echo x >&3; sleep 60"
                ),
            ]);
            command
        })
        .unwrap();
        assert!(
            figures[0] > 0.0 && figures[1] > 0.0 && figures[1] < 60_000.0,
            "{figures:?}"
        );
    }
}
