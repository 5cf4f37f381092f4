//! A file that only grows, by whole lines.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::WriteError;

/// What a log needs of a file.
pub(crate) trait Growing: Write {
    /// Cuts the file back to `length` bytes.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Growing for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

/// A file and the length up to which it holds whole lines.
#[derive(Debug)]
struct Whole<F> {
    file: F,
    length: u64,
}

impl<F: Growing> Whole<F> {
    /// One write of one whole line. Only if the system takes less than all of it is the rest written, or the part
    /// that went cut off again: the lines that follow stay whole.
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        match self.file.write_all(line) {
            Ok(()) => {
                self.length += line.len() as u64;
                Ok(())
            }
            Err(error) => {
                // Should the cut fail too, the error that matters is the first one.
                let _ = self.file.cut(self.length);
                Err(error)
            }
        }
    }
}

/// An append-only file of lines that any number of threads may write.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    whole: Mutex<Whole<File>>,
}

impl Log {
    /// Creates the file, which must not exist, readable by its owner only.
    pub(crate) fn create(path: PathBuf) -> Result<Self, WriteError> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|source| WriteError::io("create", &path, source))?;
        Ok(Self {
            path,
            whole: Mutex::new(Whole { file, length: 0 }),
        })
    }

    /// Appends `line`, which ends with its newline.
    pub(crate) fn append(&self, line: &[u8]) -> Result<(), WriteError> {
        self.whole
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(line)
            .map_err(|source| WriteError::io("write", &self.path, source))
    }

    /// Takes the lock that tells readers that the run is still going. Where the file system has no locks a
    /// running bundle cannot be told from a cut one, and nothing else depends on it.
    pub(crate) fn hold(&self) {
        let _ = self
            .whole
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .file
            .try_lock();
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk of `room` bytes that takes at most `most` bytes a write.
    #[derive(Debug)]
    struct Disk {
        content: Vec<u8>,
        room: usize,
        most: usize,
        writes: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.writes += 1;
            let takes = bytes.len().min(self.most).min(self.room - self.content.len());
            if takes == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.content.extend_from_slice(&bytes[..takes]);
            Ok(takes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Growing for Disk {
        fn cut(&mut self, length: u64) -> io::Result<()> {
            self.content.truncate(usize::try_from(length).unwrap());
            Ok(())
        }
    }

    fn on(room: usize, most: usize) -> Whole<Disk> {
        Whole {
            file: Disk {
                content: Vec::new(),
                room,
                most,
                writes: 0,
            },
            length: 0,
        }
    }

    #[test]
    fn one_write_a_line() {
        let mut log = on(1000, 1000);
        for _ in 0..3 {
            log.append(b"a whole line\n").unwrap();
        }
        assert_eq!(log.file.writes, 3);
        assert_eq!(log.file.content, b"a whole line\n".repeat(3));
    }

    #[test]
    fn what_did_not_fit_leaves_nothing_behind() {
        let mut log = on(20, 1000);
        log.append(b"first line\n").unwrap();
        let full = log.append(b"this one does not fit\n").unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        assert_eq!(log.file.content, b"first line\n");
        log.append(b"short\n").unwrap();
        assert_eq!(log.file.content, b"first line\nshort\n");
    }

    #[test]
    fn a_short_write_is_completed() {
        let mut log = on(1000, 5);
        log.append(b"a whole line\n").unwrap();
        assert_eq!(log.file.content, b"a whole line\n");
        assert_eq!(log.file.writes, 3);
    }

    #[test]
    fn a_full_disk_is_named() {
        let path = PathBuf::from("/dev/full");
        let file = OpenOptions::new().append(true).open(&path).unwrap();
        let log = Log {
            path,
            whole: Mutex::new(Whole { file, length: 0 }),
        };
        let error = log.append(b"{}\n").unwrap_err();
        assert!(matches!(error, WriteError::DiskFull { .. }));
        assert_eq!(error.to_string(), "write /dev/full: no space left");
    }
}
