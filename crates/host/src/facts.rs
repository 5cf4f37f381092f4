//! What the machine is, and what it is doing.

use crate::error::HostError;
use crate::parse;
use crate::process::TICKS_PER_SECOND;
use crate::root::Host;

/// Longest of the files of facts, in bytes: `cpuinfo` of a thousand CPUs is about 1.5 MB.
const FACTS_CAP: usize = 4 * 1024 * 1024;

/// What a machine is. What cannot be read is absent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// Host name.
    pub name: Option<String>,
    /// Kernel name and release.
    pub kernel: Option<String>,
    /// CPU model of the first CPU.
    pub cpu_model: Option<String>,
    /// CPUs that are online.
    pub cpus: Option<u32>,
    /// CPUs that we may use by affinity.
    pub cpus_allowed: Option<u32>,
    /// CPUs that our control group may use by quota.
    pub cpu_quota: Option<f64>,
    /// Boot id.
    pub boot_id: Option<String>,
    /// Time of boot in seconds since the epoch.
    pub boot_s: Option<u64>,
    /// Memory in KiB.
    pub memory_kib: Option<u64>,
    /// Memory that programs could still take, in KiB.
    pub memory_available_kib: Option<u64>,
    /// Load average of the last minute.
    pub load: Option<f64>,
}

/// CPU time of the whole machine since boot, in ticks of 1/100 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTimes {
    /// All of it.
    pub total: u64,
    /// Idle, waiting for disks included.
    pub idle: u64,
    /// Taken by the hypervisor for others.
    pub steal: u64,
}

impl CpuTimes {
    /// Reads the first line of `/proc/stat`.
    pub fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // user nice system idle iowait irq softirq steal; guest times are within user and nice.
        let fields: Vec<u64> = line
            .split_ascii_whitespace()
            .take(8)
            .map_while(|field| field.parse().ok())
            .collect();
        if fields.len() < 4 {
            return None;
        }
        let at = |index: usize| fields.get(index).copied().unwrap_or(0);
        Some(Self {
            total: fields
                .iter()
                .fold(0, |sum: u64, field| sum.saturating_add(*field)),
            idle: at(3).saturating_add(at(4)),
            steal: at(7),
        })
    }

    /// The share of CPU time that the hypervisor took since `earlier`, 0 to 1; `None` where no time passed.
    pub fn steal_since(&self, earlier: &Self) -> Option<f64> {
        self.share_since(earlier, self.steal.saturating_sub(earlier.steal))
    }

    /// The share of CPU time that was used since `earlier`, 0 to 1; `None` where no time passed.
    pub fn busy_since(&self, earlier: &Self) -> Option<f64> {
        let total = self.total.saturating_sub(earlier.total);
        self.share_since(
            earlier,
            total.saturating_sub(self.idle.saturating_sub(earlier.idle)),
        )
    }

    fn share_since(&self, earlier: &Self, part: u64) -> Option<f64> {
        let total = self.total.checked_sub(earlier.total).filter(|total| *total > 0)?;
        Some(part as f64 / total as f64)
    }
}

impl Host {
    /// What this machine is.
    pub fn facts(&self) -> Facts {
        let line = |path: &str| {
            let text = self.read_text(path, FACTS_CAP).ok()?;
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let kernel = match (
            line("/proc/sys/kernel/ostype"),
            line("/proc/sys/kernel/osrelease"),
        ) {
            (Some(name), Some(release)) => Some(format!("{name} {release}")),
            (None, release) => release,
            (name, None) => name,
        };
        let cpuinfo = self.read_text("/proc/cpuinfo", FACTS_CAP).unwrap_or_default();
        let meminfo = self.read_text("/proc/meminfo", FACTS_CAP).unwrap_or_default();
        Facts {
            name: line("/proc/sys/kernel/hostname"),
            kernel,
            cpu_model: cpu_model(&cpuinfo),
            cpus: line("/sys/devices/system/cpu/online").and_then(|list| parse::cpu_list(&list)),
            cpus_allowed: self
                .read_text("/proc/self/status", FACTS_CAP)
                .ok()
                .and_then(|text| parse::cpu_list(parse::status_field(&text, "Cpus_allowed_list")?)),
            cpu_quota: self.own_cpu_quota(),
            boot_id: line("/proc/sys/kernel/random/boot_id"),
            boot_s: self.boot_time().ok(),
            memory_kib: parse::meminfo_kib(&meminfo, "MemTotal"),
            memory_available_kib: parse::meminfo_kib(&meminfo, "MemAvailable"),
            load: line("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
        }
    }

    /// Time of boot in seconds since the epoch, as the kernel counts it.
    ///
    /// # Errors
    /// [`HostError`] where `/proc/stat` cannot be read or does not say.
    pub fn boot_time(&self) -> Result<u64, HostError> {
        const PATH: &str = "/proc/stat";
        self.read_text(PATH, FACTS_CAP)?
            .lines()
            .find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())
            .ok_or_else(|| HostError::malformed(PATH, "it does not say when the machine booted"))
    }

    /// The start of a process in seconds since the epoch, from its ticks; exact to about a second, as the time of
    /// boot is. Equality of launches is for the ticks.
    pub fn started_s(boot_s: u64, start_ticks: u64) -> f64 {
        boot_s as f64 + start_ticks as f64 / TICKS_PER_SECOND
    }

    /// CPU time of the whole machine.
    ///
    /// # Errors
    /// [`HostError`] where `/proc/stat` cannot be read.
    pub fn cpu_times(&self) -> Result<CpuTimes, HostError> {
        const PATH: &str = "/proc/stat";
        CpuTimes::parse(&self.read_text(PATH, FACTS_CAP)?)
            .ok_or_else(|| HostError::malformed(PATH, "it has no line of all CPUs"))
    }

    fn own_cpu_quota(&self) -> Option<f64> {
        let group = parse::cgroup(&self.read_text("/proc/self/cgroup", FACTS_CAP).ok()?)?;
        let path = format!("/sys/fs/cgroup{}/cpu.max", group.path.trim_end_matches('/'));
        parse::cpu_max(&self.read_text(&path, FACTS_CAP).ok()?)
    }
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "model name").then(|| value.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_cpu_time() {
        let before = CpuTimes::parse("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3 4\n").unwrap();
        let after = CpuTimes::parse("cpu  130 0 60 840 60 0 0 10 0 0\n").unwrap();
        assert_eq!(
            before,
            CpuTimes {
                total: 1000,
                idle: 850,
                steal: 0
            }
        );
        // 100 ticks passed: 10 stolen, 50 idle.
        assert_eq!(after.steal_since(&before), Some(0.1));
        assert_eq!(after.busy_since(&before), Some(0.5));
        assert_eq!(before.steal_since(&before), None);
        assert_eq!(before.steal_since(&after), None);
        assert_eq!(CpuTimes::parse("cpu  1 2\n"), None);
    }

    #[test]
    fn starts() {
        assert!((Host::started_s(1_700_000_000, 12_345) - 1_700_000_123.45).abs() < 1e-6);
    }
}
