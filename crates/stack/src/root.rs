//! A file system seen from a root: the machine itself, a container's `/proc/PID/root`, a fixture directory.
//!
//! Paths are those of the inside. Links are resolved against the root, and nothing outside it is opened,
//! whatever a link says. Only regular files are read, and never more than the caller allows.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use thiserror::Error;

/// Links followed in one path before it counts as a loop; the kernel's own bound.
const MAX_LINKS: u32 = 40;

/// Why something under a root could not be read.
#[derive(Debug, Error)]
pub enum RootError {
    /// The system refused.
    #[error("read {path}: {source}", path = path.display())]
    Io {
        /// The path, as seen inside the root.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Too many links.
    #[error("read {path}: links go in a circle", path = path.display())]
    Loop {
        /// The path, as seen inside the root.
        path: PathBuf,
    },
    /// Larger than anything real of its kind.
    #[error("read {path}: {size} bytes are more than the {limit} allowed for it", path = path.display())]
    TooLarge {
        /// The path, as seen inside the root.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// The bound in bytes.
        limit: u64,
    },
    /// A directory, a device, a socket or a pipe.
    #[error("read {path}: not a regular file", path = path.display())]
    NotAFile {
        /// The path, as seen inside the root.
        path: PathBuf,
    },
}

impl RootError {
    /// Whether there is simply nothing there.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Io { source, .. }
            if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
    }
}

/// The root of a file system.
#[derive(Debug, Clone)]
pub struct Root {
    base: PathBuf,
    is_host: bool,
}

impl Root {
    /// The file system under `base`: `/` for this machine.
    pub fn new(base: impl Into<PathBuf>) -> Self {
        let base = base.into();
        let is_host = base == Path::new("/");
        Self { base, is_host }
    }

    /// Where the root lies on this machine.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Whether this is the machine itself.
    pub fn is_host(&self) -> bool {
        self.is_host
    }

    /// The real path, as seen inside the root, that `path` leads to. Every link is followed.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf, RootError> {
        if self.is_host {
            return std::fs::canonicalize(path).map_err(|source| RootError::Io {
                path: path.to_owned(),
                source,
            });
        }
        self.walk(path)
    }

    fn walk(&self, path: &Path) -> Result<PathBuf, RootError> {
        let mut pending: Vec<std::ffi::OsString> = Vec::new();
        let push = |pending: &mut Vec<std::ffi::OsString>, path: &Path| {
            for part in path.components().rev() {
                match part {
                    Component::Normal(name) => pending.push(name.to_owned()),
                    Component::ParentDir => pending.push("..".into()),
                    _ => {}
                }
            }
        };
        push(&mut pending, path);
        let mut real = PathBuf::from("/");
        let mut links = 0;
        while let Some(part) = pending.pop() {
            if part == ".." {
                real.pop();
                continue;
            }
            let next = real.join(&part);
            let seen = std::fs::symlink_metadata(self.outside(&next)).map_err(|source| RootError::Io {
                path: path.to_owned(),
                source,
            })?;
            if !seen.file_type().is_symlink() {
                real = next;
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(RootError::Loop {
                    path: path.to_owned(),
                });
            }
            let target = std::fs::read_link(self.outside(&next)).map_err(|source| RootError::Io {
                path: path.to_owned(),
                source,
            })?;
            if target.is_absolute() {
                real = PathBuf::from("/");
            }
            push(&mut pending, &target);
        }
        Ok(real)
    }

    /// Where an already resolved inside path lies on this machine.
    fn outside(&self, real: &Path) -> PathBuf {
        if self.is_host {
            return real.to_owned();
        }
        self.base.join(real.strip_prefix("/").unwrap_or(real))
    }

    /// Where `path` lies on this machine, links followed.
    pub fn locate(&self, path: &Path) -> Result<PathBuf, RootError> {
        Ok(self.outside(&self.resolve(path)?))
    }

    /// Metadata of what `path` leads to.
    pub fn metadata(&self, path: &Path) -> Result<Metadata, RootError> {
        let found = if self.is_host {
            std::fs::metadata(path)
        } else {
            std::fs::symlink_metadata(self.locate(path)?)
        };
        found.map_err(|source| RootError::Io {
            path: path.to_owned(),
            source,
        })
    }

    /// Whether `path` leads to a regular file.
    pub fn is_file(&self, path: &Path) -> bool {
        self.metadata(path).is_ok_and(|m| m.is_file())
    }

    /// Whether `path` leads to a directory.
    pub fn is_dir(&self, path: &Path) -> bool {
        self.metadata(path).is_ok_and(|m| m.is_dir())
    }

    /// Whether `path` itself is a link.
    pub fn is_link(&self, path: &Path) -> bool {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return false;
        };
        self.locate(parent)
            .and_then(|p| {
                std::fs::symlink_metadata(p.join(name)).map_err(|source| RootError::Io {
                    path: path.to_owned(),
                    source,
                })
            })
            .is_ok_and(|m| m.file_type().is_symlink())
    }

    /// Opens a regular file for reading. Pipes and devices are refused without waiting for them.
    pub fn open(&self, path: &Path) -> Result<File, RootError> {
        let fail = |source| RootError::Io {
            path: path.to_owned(),
            source,
        };
        let file = if self.is_host {
            OpenOptions::new()
                .read(true)
                .custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits())
                .open(path)
                .map_err(fail)?
        } else {
            self.open_inside(&self.resolve(path)?).map_err(fail)?
        };
        if !file.metadata().map_err(fail)?.is_file() {
            return Err(RootError::NotAFile {
                path: path.to_owned(),
            });
        }
        Ok(file)
    }

    /// The kernel itself holds the path inside the root, so that a link changed meanwhile leads nowhere else.
    #[cfg(target_os = "linux")]
    fn open_inside(&self, real: &Path) -> io::Result<File> {
        use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
        let base = File::open(&self.base)?;
        let how = OpenHow::new()
            .flags(OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)
            .resolve(ResolveFlag::RESOLVE_IN_ROOT);
        match openat2(&base, real, how) {
            Ok(fd) => Ok(File::from(fd)),
            Err(nix::errno::Errno::ENOSYS | nix::errno::Errno::EPERM) => self.open_plain(real),
            Err(other) => Err(other.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn open_inside(&self, real: &Path) -> io::Result<File> {
        self.open_plain(real)
    }

    fn open_plain(&self, real: &Path) -> io::Result<File> {
        use nix::fcntl::OFlag;
        OpenOptions::new()
            .read(true)
            .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW).bits())
            .open(self.outside(real))
    }

    /// Opens the directory `relative` under an open one, never leading out of that, whatever links say.
    #[cfg(target_os = "linux")]
    pub(crate) fn dir_beneath(base: &File, relative: &Path) -> io::Result<File> {
        use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
        let how = OpenHow::new()
            .flags(OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_DIRECTORY)
            .resolve(ResolveFlag::RESOLVE_BENEATH);
        let relative = if relative.as_os_str().is_empty() {
            Path::new(".")
        } else {
            relative
        };
        openat2(base, relative, how)
            .map(File::from)
            .map_err(io::Error::from)
    }

    /// Opens the directory `relative` under an open one; links on the way are refused.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn dir_beneath(base: &File, relative: &Path) -> io::Result<File> {
        use nix::fcntl::{OFlag, openat};
        use nix::sys::stat::Mode;
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
        let mut dir = base.try_clone()?;
        for part in relative.components() {
            dir = File::from(openat(&dir, part.as_os_str(), flags, Mode::empty())?);
        }
        Ok(dir)
    }

    /// Opens a directory, links followed.
    pub(crate) fn open_dir(&self, path: &Path) -> Result<File, RootError> {
        let place = if self.is_host {
            path.to_owned()
        } else {
            self.locate(path)?
        };
        File::open(place).map_err(|source| RootError::Io {
            path: path.to_owned(),
            source,
        })
    }

    /// The bytes of a file of at most `limit` bytes. Works for files of `/proc`, whose size reads 0.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, RootError> {
        let file = self.open(path)?;
        let size = file.metadata().map_or(0, |m| m.len());
        if size > limit {
            return Err(RootError::TooLarge {
                path: path.to_owned(),
                size,
                limit,
            });
        }
        let mut bytes = Vec::with_capacity(size.min(limit) as usize + 1);
        file.take(limit + 1)
            .read_to_end(&mut bytes)
            .map_err(|source| RootError::Io {
                path: path.to_owned(),
                source,
            })?;
        if bytes.len() as u64 > limit {
            return Err(RootError::TooLarge {
                path: path.to_owned(),
                size: bytes.len() as u64,
                limit,
            });
        }
        Ok(bytes)
    }

    /// The text of a file of at most `limit` bytes; bytes that are not UTF-8 are replaced.
    pub fn read_text(&self, path: &Path, limit: u64) -> Result<String, RootError> {
        let bytes = self.read(path, limit)?;
        Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }

    /// A small text file without its surrounding white space; `None` if it cannot be read.
    pub fn line(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.read_text(path.as_ref(), 64 << 10).ok()?;
        Some(text.trim().to_owned())
    }

    /// Names in a directory, sorted; names that are not UTF-8 are left out.
    pub fn list(&self, path: &Path) -> Result<Vec<String>, RootError> {
        let fail = |source| RootError::Io {
            path: path.to_owned(),
            source,
        };
        let place = if self.is_host {
            path.to_owned()
        } else {
            self.locate(path)?
        };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(place).map_err(fail)? {
            if let Ok(name) = entry.map_err(fail)?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Files of one directory whose names match a pattern with `*`, sorted, as inside paths.
    pub fn matching(&self, dir: &Path, pattern: &str) -> Vec<PathBuf> {
        let names = self.list(dir).unwrap_or_default();
        names
            .iter()
            .filter(|n| wildcard(pattern, n))
            .map(|n| dir.join(n))
            .collect()
    }

    /// Paths under `dir` that match a relative pattern, whose parts may hold `*`, sorted.
    pub fn glob(&self, dir: &Path, pattern: &str) -> Vec<PathBuf> {
        let mut found = vec![dir.to_owned()];
        for part in pattern.split('/') {
            let mut next = Vec::new();
            for place in found {
                if part.contains('*') {
                    next.extend(self.matching(&place, part));
                } else {
                    let path = place.join(part);
                    if self.metadata(&path).is_ok() {
                        next.push(path);
                    }
                }
            }
            found = next;
        }
        found
    }
}

/// Whether `name` matches `pattern`, in which `*` stands for any run of characters.
pub(crate) fn wildcard(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(head) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = name.find(part) else {
            return false;
        };
        name = &name[at + part.len()..];
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn fixture() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("etc")).unwrap();
        std::fs::write(dir.path().join("etc/passwd"), "inside").unwrap();
        dir
    }

    #[test]
    fn absolute_links_stay_inside() {
        let dir = fixture();
        symlink("/etc/passwd", dir.path().join("link")).unwrap();
        symlink("../../../../etc/passwd", dir.path().join("up")).unwrap();
        let root = Root::new(dir.path());
        assert_eq!(root.read_text(Path::new("/link"), 100).unwrap(), "inside");
        assert_eq!(root.read_text(Path::new("/up"), 100).unwrap(), "inside");
        assert_eq!(
            root.read_text(Path::new("/../../etc/passwd"), 100).unwrap(),
            "inside"
        );
    }

    #[test]
    fn circles_and_pipes_are_errors() {
        let dir = fixture();
        symlink("b", dir.path().join("a")).unwrap();
        symlink("a", dir.path().join("b")).unwrap();
        let root = Root::new(dir.path());
        assert!(matches!(
            root.read(Path::new("/a"), 10),
            Err(RootError::Loop { .. })
        ));
        assert!(matches!(
            root.read(Path::new("/etc"), 10),
            Err(RootError::NotAFile { .. })
        ));
        assert!(root.read(Path::new("/none"), 10).unwrap_err().is_absent());
    }

    #[test]
    fn bounded() {
        let dir = fixture();
        let root = Root::new(dir.path());
        assert!(matches!(
            root.read(Path::new("/etc/passwd"), 5),
            Err(RootError::TooLarge { .. })
        ));
        assert_eq!(
            Root::new("/").line("/proc/sys/kernel/ostype").as_deref(),
            Some("Linux")
        );
    }

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("libcudart.so.*", "libcudart.so.12", true),
            ("libcudart.so.*", "libcudart.so", false),
            ("*.abi3.so", "common_ops.abi3.so", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "ac", false),
            ("abc", "abcd", false),
        ] {
            assert_eq!(wildcard(pattern, name), expected, "{pattern} {name}");
        }
    }
}
