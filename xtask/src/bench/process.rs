//! Child processes and the CPU time that they used.

use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// A child that has ended.
pub(super) struct Finished {
    /// How it ended.
    pub(super) status: ExitStatus,
    /// What it printed as data.
    pub(super) stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// CPU time that it used, user and system.
    pub(super) cpu: Duration,
}

impl Finished {
    /// The end of what it said on standard error.
    pub(super) fn talk(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(8)..].join("\n")
    }
}

/// Runs `command` to its end.
pub(super) fn run(mut command: Command) -> Result<Finished> {
    let meter = CpuMeter::start()?;
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("failed to run {}", command.get_program().display()))?;
    Ok(Finished {
        status: output.status,
        stdout: output.stdout,
        stderr: output.stderr,
        cpu: meter.stop()?,
    })
}

/// CPU time of the children that are waited for while it runs.
///
/// This is what `wait4` would say of a child: the kernel adds its usage to the parent's account when it is waited
/// for. It holds as long as one thread alone waits for children.
pub(super) struct CpuMeter(Duration);

impl CpuMeter {
    /// Starts to count.
    pub(super) fn start() -> Result<Self> {
        children_cpu().map(Self)
    }

    /// CPU time of the children waited for since.
    pub(super) fn stop(self) -> Result<Duration> {
        Ok(children_cpu()?.saturating_sub(self.0))
    }
}

fn children_cpu() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("failed to read the usage of children")?;
    Ok(duration(usage.user_time()) + duration(usage.system_time()))
}

fn duration(time: TimeVal) -> Duration {
    let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}

/// A child that is killed when it is no longer needed.
pub(super) struct Background(pub(super) std::process::Child);

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left of it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Milliseconds since `start`.
pub(super) fn millis_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_children_that_ended_are_counted() {
        let mut busy = Command::new("sh");
        busy.args([
            "-c",
            "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo done",
        ]);
        let busy = run(busy).unwrap();
        assert_eq!(busy.stdout, b"done\n");
        let idle = run(Command::new("true")).unwrap();
        assert!(busy.cpu > idle.cpu, "{:?} and {:?}", busy.cpu, idle.cpu);
        assert!(run(Command::new("no-such-program-here")).is_err());
    }
}
