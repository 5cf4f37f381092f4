//! The open files of a process.

use crate::error::HostError;
use crate::parse;
use crate::process::of;
use crate::root::Host;

/// Descriptors of one process that are looked at: more hold nothing that is asked here.
const FILES_CAP: usize = 100_000;
/// Longest `fdinfo`, in bytes.
const INFO_CAP: usize = 4096;
/// What the kernel writes behind the path of a removed file.
const DELETED: &str = " (deleted)";

/// What a descriptor is open on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenTarget {
    /// A file by its path, as the process sees it.
    File {
        /// The path.
        path: String,
        /// It was removed since.
        deleted: bool,
    },
    /// A file below `/dev`.
    Device(String),
    /// A socket by its inode.
    Socket(u64),
    /// A pipe by its inode.
    Pipe(u64),
    /// Anything else, in the kernel's words.
    Other(String),
}

impl OpenTarget {
    /// Reads where the link of a descriptor points.
    pub fn parse(link: &str) -> Self {
        let inode = |kind: &str| {
            link.strip_prefix(kind)?
                .strip_prefix(":[")?
                .strip_suffix(']')?
                .parse::<u64>()
                .ok()
        };
        if let Some(inode) = inode("socket") {
            Self::Socket(inode)
        } else if let Some(inode) = inode("pipe") {
            Self::Pipe(inode)
        } else if link.starts_with("/dev/") && !link.starts_with("/dev/shm/") {
            Self::Device(link.to_owned())
        } else if link.starts_with('/') && !link.starts_with("/memfd:") {
            match link.strip_suffix(DELETED) {
                Some(path) => Self::File {
                    path: path.to_owned(),
                    deleted: true,
                },
                None => Self::File {
                    path: link.to_owned(),
                    deleted: false,
                },
            }
        } else {
            Self::Other(link.to_owned())
        }
    }
}

/// An open descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFile {
    /// Its number.
    pub number: u32,
    /// What it is open on.
    pub target: OpenTarget,
}

impl Host {
    /// The open files of `pid`, by number.
    ///
    /// # Errors
    /// [`HostError`]; it is denied for processes of other users.
    pub fn files(&self, pid: u32) -> Result<Vec<OpenFile>, HostError> {
        let directory = of(pid, "fd");
        let mut numbers: Vec<u32> = self
            .list(&directory)?
            .iter()
            .filter_map(|name| name.parse().ok())
            .take(FILES_CAP)
            .collect();
        numbers.sort_unstable();
        Ok(numbers
            .into_iter()
            .filter_map(|number| {
                let link = self.read_link(&format!("{directory}/{number}")).ok()?;
                Some(OpenFile {
                    number,
                    target: OpenTarget::parse(&link),
                })
            })
            .collect())
    }

    /// One open file of `pid`.
    ///
    /// # Errors
    /// As [`Self::files`], and where the descriptor is not open.
    pub fn file(&self, pid: u32, number: u32) -> Result<OpenTarget, HostError> {
        Ok(OpenTarget::parse(
            &self.read_link(&format!("{}/{number}", of(pid, "fd")))?,
        ))
    }

    /// Whether descriptor `number` of `pid` is open for writing; `None` where that cannot be read.
    pub fn is_written(&self, pid: u32, number: u32) -> Option<bool> {
        let info = self
            .read_text(&format!("{}/{number}", of(pid, "fdinfo")), INFO_CAP)
            .ok()?;
        Some(parse::fdinfo_flags(&info)? & 3 != 0)
    }

    /// The terminal whose master descriptor `number` of `pid` is: 3 is `/dev/pts/3`.
    pub fn terminal_of_master(&self, pid: u32, number: u32) -> Option<u32> {
        let info = self
            .read_text(&format!("{}/{number}", of(pid, "fdinfo")), INFO_CAP)
            .ok()?;
        parse::tty_index(&info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links() {
        assert_eq!(OpenTarget::parse("socket:[12]"), OpenTarget::Socket(12));
        assert_eq!(OpenTarget::parse("pipe:[7]"), OpenTarget::Pipe(7));
        assert_eq!(
            OpenTarget::parse("/dev/pts/3"),
            OpenTarget::Device("/dev/pts/3".to_owned())
        );
        assert_eq!(
            OpenTarget::parse("/var/log/a b.log (deleted)"),
            OpenTarget::File {
                path: "/var/log/a b.log".to_owned(),
                deleted: true
            }
        );
        assert_eq!(
            OpenTarget::parse("anon_inode:[eventpoll]"),
            OpenTarget::Other("anon_inode:[eventpoll]".to_owned())
        );
        assert_eq!(
            OpenTarget::parse("socket:[x]"),
            OpenTarget::Other("socket:[x]".to_owned())
        );
        assert!(matches!(
            OpenTarget::parse("/memfd:x (deleted)"),
            OpenTarget::Other(_)
        ));
    }
}
