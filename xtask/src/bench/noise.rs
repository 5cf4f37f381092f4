//! What else the machine did meanwhile.

use std::fmt;
use std::fs;

use anyhow::{Context, Result};

/// Counters at the start of a measurement.
pub(super) struct Noise {
    start: Cpu,
    load: f64,
}

/// What was seen.
pub(super) struct Seen {
    /// Share of CPU time that the hypervisor took away.
    steal: f64,
    /// Share of CPU time that was not idle.
    busy: f64,
    /// Load over the last minute, before and after.
    load: [f64; 2],
}

/// The first line of `/proc/stat`, in clock ticks over all CPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cpu {
    total: f64,
    idle: f64,
    steal: f64,
}

impl Noise {
    /// Starts to watch.
    pub(super) fn start() -> Result<Self> {
        Ok(Self {
            start: cpu()?,
            load: load()?,
        })
    }

    /// What was seen since.
    pub(super) fn stop(self) -> Result<Seen> {
        let end = cpu()?;
        let total = (end.total - self.start.total).max(1.0);
        Ok(Seen {
            steal: (end.steal - self.start.steal) / total,
            busy: 1.0 - (end.idle - self.start.idle) / total,
            load: [self.load, load()?],
        })
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "machine: steal {:.1}%, CPUs {:.0}% busy, load {:.2} before and {:.2} after",
            self.steal * 100.0,
            self.busy * 100.0,
            self.load[0],
            self.load[1]
        )
    }
}

fn cpu() -> Result<Cpu> {
    let text = fs::read_to_string("/proc/stat").context("failed to read /proc/stat")?;
    parse_cpu(&text).context("failed to understand /proc/stat")
}

/// user, nice, system, idle, iowait, irq, softirq, steal; guest time is in user already.
fn parse_cpu(text: &str) -> Option<Cpu> {
    let ticks: Vec<f64> = text
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace()
        .take(8)
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    Some(Cpu {
        total: ticks.iter().sum(),
        idle: ticks.get(3)? + ticks.get(4)?,
        steal: *ticks.get(7)?,
    })
}

fn load() -> Result<f64> {
    let text = fs::read_to_string("/proc/loadavg").context("failed to read /proc/loadavg")?;
    text.split(' ')
        .next()
        .and_then(|word| word.parse().ok())
        .context("failed to understand /proc/loadavg")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_all_cpus_are_read() {
        let text = "cpu  10 1 5 80 4 0 0 7 3 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        let expected = Cpu {
            total: 107.0,
            idle: 84.0,
            steal: 7.0,
        };
        assert_eq!(parse_cpu(text), Some(expected));
        assert_eq!(parse_cpu("cpu  10 1 5\n"), None);
        assert_eq!(parse_cpu(""), None);
    }
}
