//! `/proc/PID/limits`, `/proc/meminfo`, `cpu.max`.

/// The limits of a process that matter to a server; `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Open files, soft.
    pub open_files: Option<u64>,
    /// Open files, hard.
    pub open_files_hard: Option<u64>,
    /// Locked memory in bytes, soft.
    pub locked_memory: Option<u64>,
    /// Stack in bytes, soft.
    pub stack: Option<u64>,
    /// Processes, soft.
    pub processes: Option<u64>,
    /// Core file in bytes, soft.
    pub core: Option<u64>,
}

/// Reads `/proc/PID/limits`.
pub fn limits(text: &str) -> Limits {
    let values = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let mut fields = line.split_ascii_whitespace();
        Some((fields.next()?, fields.next()?))
    };
    let soft = |name: &str| values(name)?.0.parse().ok();
    Limits {
        open_files: soft("Max open files"),
        open_files_hard: values("Max open files").and_then(|(_, hard)| hard.parse().ok()),
        locked_memory: soft("Max locked memory"),
        stack: soft("Max stack size"),
        processes: soft("Max processes"),
        core: soft("Max core file size"),
    }
}

/// A field of `/proc/meminfo` in KiB.
pub fn meminfo_kib(text: &str, field: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?
        .trim()
        .strip_suffix("kB")?
        .trim()
        .parse()
        .ok()
}

/// The CPUs that a `cpu.max` allows: `150000 100000` are 1.5; `None` for no bound.
pub fn cpu_max(text: &str) -> Option<f64> {
    let mut fields = text.split_ascii_whitespace();
    let quota: f64 = fields.next()?.parse().ok()?;
    let period: f64 = fields.next()?.parse().ok()?;
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_a_process() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \nMax stack size            8388608              unlimited            bytes     \nMax core file size        0                    unlimited            bytes     \nMax processes             95966                95966                processes \nMax open files            1024                 20000                files     \nMax locked memory         unlimited            unlimited            bytes     \n";
        let found = limits(text);
        assert_eq!(
            (found.open_files, found.open_files_hard),
            (Some(1024), Some(20_000))
        );
        assert_eq!(
            (found.locked_memory, found.core, found.stack),
            (None, Some(0), Some(8_388_608))
        );
        assert_eq!(limits("nonsense"), Limits::default());
    }

    #[test]
    fn memory_and_quota() {
        assert_eq!(
            meminfo_kib("MemTotal:       24589372 kB\nMemAvailable:    1 kB\n", "MemTotal"),
            Some(24_589_372)
        );
        assert_eq!(meminfo_kib("MemTotal: x kB", "MemTotal"), None);
        assert_eq!(cpu_max("150000 100000\n"), Some(1.5));
        assert_eq!(cpu_max("max 100000"), None);
        assert_eq!(cpu_max(""), None);
    }
}
