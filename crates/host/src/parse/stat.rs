//! `/proc/PID/stat` and `/proc/PID/status`.

/// Set on threads of the kernel itself.
const PF_KTHREAD: u64 = 0x0020_0000;

/// What `/proc/PID/stat` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Process id.
    pub pid: u32,
    /// Command name, at most 15 bytes.
    pub name: String,
    /// State letter: R, S, D, Z, T, …
    pub state: char,
    /// Parent's process id.
    pub parent: u32,
    /// Process group.
    pub group: i32,
    /// Session.
    pub session: i32,
    /// Whether it is a thread of the kernel.
    pub kernel: bool,
    /// Start in clock ticks (1/100 s) since boot.
    pub start_ticks: u64,
}

impl Stat {
    /// Reads the one line. The name stands in parentheses and may hold anything, parentheses and line ends too.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let open = text.iter().position(|byte| *byte == b'(')?;
        let close = text.iter().rposition(|byte| *byte == b')')?;
        if close <= open {
            return None;
        }
        let pid = std::str::from_utf8(&text[..open]).ok()?.trim().parse().ok()?;
        let name = String::from_utf8_lossy(&text[open + 1..close]).into_owned();
        let rest = std::str::from_utf8(&text[close + 1..]).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        // tty, foreground group, flags
        let flags: u64 = fields.nth(2)?.parse().ok()?;
        // Twelve fields on, from minflt to itrealvalue; starttime is field 22.
        let start_ticks = fields.nth(12)?.parse().ok()?;
        Some(Self {
            pid,
            name,
            state,
            parent,
            group,
            session,
            kernel: flags & PF_KTHREAD != 0,
            start_ticks,
        })
    }
}

/// The value of a field of `/proc/PID/status`, white space around it removed.
pub fn status_field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let value = line.strip_prefix(name)?.strip_prefix(':')?;
        Some(value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_real_process() {
        let line = b"4242 (sglang::schedul) S 4200 4100 4000 34816 4100 4194560 12 0 3 0 150 30 0 0 20 0 9 0 987654 1000 20 18446744073709551615 1 1 0\n";
        let stat = Stat::parse(line).unwrap();
        assert_eq!(stat.pid, 4242);
        assert_eq!(stat.name, "sglang::schedul");
        assert_eq!(
            (stat.state, stat.parent, stat.group, stat.session),
            ('S', 4200, 4100, 4000)
        );
        assert_eq!(stat.start_ticks, 987_654);
        assert!(!stat.kernel);
    }

    #[test]
    fn names_that_try_to_confuse() {
        let line = b"7 (a) R 1 (b\n) S 1 7 7 0 -1 2097152 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0\n";
        let stat = Stat::parse(line).unwrap();
        assert_eq!(stat.name, "a) R 1 (b\n");
        assert_eq!(stat.parent, 1);
        assert!(stat.kernel);
        assert_eq!(Stat::parse(b"7 )("), None);
        assert_eq!(Stat::parse(b"7 (x) S 1"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    #[test]
    fn status() {
        let text = "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nCpus_allowed_list:\t0-3,8\n";
        assert_eq!(status_field(text, "Uid"), Some("1000\t1000\t1000\t1000"));
        assert_eq!(status_field(text, "Ui"), None);
    }
}
