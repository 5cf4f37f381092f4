//! Every file of every RECORD: stat all, hash what is not known, list what belongs to nobody.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::fcntl::AtFlags;
use nix::sys::stat::{SFlag, fstatat};
use sha2::{Digest, Sha256};
use shakedown_model::{ChangeKind, StackChange, Unread};

use super::cache::{HashCache, Remembered, Stamp, State};
use super::record::hex;
use super::{MAX_RECORD, Record};
use crate::python::Distribution;
use crate::root::Root;

/// Files of one directory tree that belong to nobody, beyond which the rest is only counted.
const MAX_ADDED: usize = 1000;
/// Bytes of such a file above which it is not hashed.
const MAX_ADDED_BYTES: u64 = 64 << 20;
/// Depth of such a tree.
const MAX_DEPTH: u32 = 12;
/// A file changed this shortly before it was hashed may change again within the same time stamp.
const RACY_NS: i64 = 2_000_000_000;
/// Bytes hashed at a time.
const CHUNK: usize = 1 << 20;
/// Files that installers write without listing them.
const UNLISTED: [&str; 8] = [
    "INSTALLER",
    "REQUESTED",
    "RECORD",
    "direct_url.json",
    "uv_cache.json",
    "uv_build.json",
    "RECORD.jws",
    "RECORD.p7s",
];
/// Files in a site directory that belong to the environment's maker.
const OF_THE_ENVIRONMENT: [&str; 5] = [
    "_virtualenv.pth",
    "_virtualenv.py",
    "easy-install.pth",
    "README.txt",
    "conda-site.pth",
];

/// Two packages that list the same file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// The packages, by name.
    pub packages: Vec<String>,
    /// One such file.
    pub example: String,
    /// Number of such files.
    pub files: u64,
}

/// What came out.
#[derive(Debug, Default)]
pub struct Verification {
    /// Files that are not as their package installed them.
    pub changes: Vec<StackChange>,
    /// Packages that own the same paths.
    pub overlaps: Vec<Overlap>,
    /// RECORD lines that lead out of the environment, which were not followed: package and path.
    pub outside: Vec<(String, String)>,
    /// Packages without a RECORD: their files cannot be checked.
    pub without_record: Vec<String>,
    /// Files that were hashed in this run, and their bytes.
    pub hashed: u64,
    /// Bytes of these.
    pub hashed_bytes: u64,
    /// The RECORDs, by metadata directory.
    pub records: HashMap<PathBuf, Record>,
    /// Files of which the cache knew.
    pub remembered: u64,
    /// Files that belong to nobody.
    pub added: u64,
    /// Files that belong to nobody beyond those that are listed.
    pub more_added: u64,
    /// What could not be read.
    pub unread: Vec<Unread>,
}

/// Verifies the distributions of one environment.
#[derive(Debug)]
pub struct Verifier<'a> {
    root: &'a Root,
    prefix: &'a Path,
    threads: usize,
}

struct Listed<'a> {
    distribution: &'a Distribution,
    record: Record,
    remembered: Option<Remembered>,
    now: Remembered,
}

struct Owned {
    directory: u32,
    distribution: u32,
    entry: u32,
    /// Where the file's name begins in its path.
    name: u32,
}

struct Job {
    distribution: u32,
    entry: u32,
    path: PathBuf,
    stamp: Stamp,
}

impl<'a> Verifier<'a> {
    /// A verifier for the environment at `prefix`, hashing on this many threads.
    pub fn new(root: &'a Root, prefix: &'a Path, threads: usize) -> Self {
        Self {
            root,
            prefix,
            threads: threads.max(1),
        }
    }

    /// Verifies everything. What is hashed goes into the cache.
    pub fn run(&self, distributions: &[&Distribution], cache: &mut HashCache) -> Verification {
        let mut out = Verification::default();
        let mut listed: Vec<Listed<'_>> = Vec::new();
        for distribution in distributions {
            if let Some(entry) = self.list(distribution, cache, &mut out) {
                listed.push(entry);
            }
        }
        let mut directories: Vec<PathBuf> = Vec::new();
        let mut owned = self.sort(&listed, &mut directories, &mut out);
        owned.sort_unstable_by(|a, b| {
            let name = |o: &Owned| {
                listed[o.distribution as usize].record.entries[o.entry as usize]
                    .path
                    .get(o.name as usize..)
            };
            a.directory
                .cmp(&b.directory)
                .then_with(|| name(a).cmp(&name(b)))
                .then(a.distribution.cmp(&b.distribution))
        });
        let base = match self.root.open_dir(self.prefix) {
            Ok(base) => base,
            Err(error) => {
                out.unread.push(Unread {
                    what: self.prefix.display().to_string(),
                    why: error.to_string(),
                });
                return out;
            }
        };
        let mut jobs = Vec::new();
        let sites: BTreeSet<PathBuf> = listed.iter().map(|l| l.distribution.site.clone()).collect();
        // Directories that hold something of a package, at any depth.
        let mut known: HashSet<&Path> = HashSet::new();
        for directory in &directories {
            for place in directory.ancestors() {
                if !known.insert(place) {
                    break;
                }
            }
        }
        // What belongs to whom is as it was as long as every RECORD is.
        let as_before = listed.iter().all(|l| l.remembered.is_some());
        for group in owned.chunk_by(|a, b| a.directory == b.directory) {
            let Some(directory) = group.first().and_then(|o| directories.get(o.directory as usize)) else {
                continue;
            };
            let handle = self.look(&base, directory, group, &mut listed, &mut jobs, &mut out);
            Self::overlaps(group, &listed, &mut out);
            let Some(handle) = handle.filter(|_| sites.iter().any(|s| directory.starts_with(s))) else {
                continue;
            };
            // A directory in which there was no stranger, and in which nothing came or went since, has none.
            let stamp = handle.metadata().map(|m| stamp_of(&m)).unwrap_or_default();
            let key = format!("dir {}", directory.display());
            if as_before && cache.note(&key, stamp).is_some() {
                continue;
            }
            let before = out.changes.len() as u64 + out.more_added;
            let plain = self.strangers(directory, &sites, group, &listed, &known, &mut out);
            if plain && before == out.changes.len() as u64 + out.more_added && !racy(stamp) {
                cache.set_note(key, stamp, String::new());
            }
        }
        self.hash(jobs, &mut listed, &mut out);
        Self::conclude(&mut listed, cache, &mut out);
        out
    }

    fn list<'d>(
        &self,
        distribution: &'d Distribution,
        cache: &HashCache,
        out: &mut Verification,
    ) -> Option<Listed<'d>> {
        if !distribution.has_record {
            out.without_record.push(distribution.name.clone());
            return None;
        }
        let path = distribution.info.join("RECORD");
        let bytes = match self.root.read(&path, MAX_RECORD) {
            Ok(bytes) => bytes,
            Err(error) => {
                out.unread.push(Unread {
                    what: path.display().to_string(),
                    why: error.to_string(),
                });
                return None;
            }
        };
        let stamp = self
            .root
            .metadata(&path)
            .map(|m| stamp_of(&m))
            .unwrap_or_default();
        let record = Record::parse(&bytes);
        if record.unreadable > 0 {
            out.unread.push(Unread {
                what: path.display().to_string(),
                why: format!("{} lines are not of a RECORD", record.unreadable),
            });
        }
        let key = distribution.info.display().to_string();
        let remembered = cache.get(&key, stamp, record.entries.len()).cloned();
        let files = vec![(Stamp::default(), State::Unknown); record.entries.len()];
        Some(Listed {
            distribution,
            record,
            remembered,
            now: Remembered { record: stamp, files },
        })
    }

    /// Assigns every entry to its directory; entries that lead out of the environment are set aside.
    fn sort(
        &self,
        listed: &[Listed<'_>],
        directories: &mut Vec<PathBuf>,
        out: &mut Verification,
    ) -> Vec<Owned> {
        let mut owned = Vec::with_capacity(listed.iter().map(|l| l.record.entries.len()).sum());
        let mut numbers: HashMap<PathBuf, u32> = HashMap::new();
        for (number, list) in listed.iter().enumerate() {
            let mut local: HashMap<&str, Option<u32>> = HashMap::new();
            let mut last: Option<(&str, Option<u32>)> = None;
            for (index, entry) in list.record.entries.iter().enumerate() {
                let (directory, name) = match entry.path.rfind('/') {
                    Some(slash) => (&entry.path[..slash], slash + 1),
                    None => ("", 0),
                };
                let place = match last {
                    Some((d, place)) if d == directory => place,
                    _ => *local.entry(directory).or_insert_with(|| {
                        let joined = list.distribution.site.join(directory);
                        let full = if directory.contains("..") {
                            crate::python::lexical(&joined)
                        } else {
                            joined
                        };
                        if !full.starts_with(self.prefix) && !full.starts_with(&list.distribution.site) {
                            return None;
                        }
                        let next = directories.len() as u32;
                        Some(*numbers.entry(full.clone()).or_insert_with(|| {
                            directories.push(full);
                            next
                        }))
                    }),
                };
                last = Some((directory, place));
                match place {
                    Some(directory) if !matches!(&entry.path[name..], "" | "." | "..") => owned.push(Owned {
                        directory,
                        distribution: number as u32,
                        entry: index as u32,
                        name: name as u32,
                    }),
                    _ => out
                        .outside
                        .push((list.distribution.name.clone(), entry.path.clone())),
                }
            }
        }
        owned
    }

    /// Stats the files of one directory; those of which nothing is known become jobs.
    fn look(
        &self,
        base: &File,
        directory: &Path,
        group: &[Owned],
        listed: &mut [Listed<'_>],
        jobs: &mut Vec<Job>,
        out: &mut Verification,
    ) -> Option<File> {
        let handle = match directory.strip_prefix(self.prefix) {
            Ok(relative) => Root::dir_beneath(base, relative),
            Err(_) => self
                .root
                .open_dir(directory)
                .map_err(|e| std::io::Error::other(e.to_string())),
        };
        let handle = match handle {
            Ok(handle) => Some(handle),
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                None
            }
            Err(error) => {
                out.unread.push(Unread {
                    what: directory.display().to_string(),
                    why: error.to_string(),
                });
                return None;
            }
        };
        for item in group {
            let Some(list) = listed.get_mut(item.distribution as usize) else {
                continue;
            };
            let (index, Some(entry)) = (item.entry as usize, list.record.entries.get(item.entry as usize))
            else {
                continue;
            };
            let name = &entry.path[item.name as usize..];
            let found = handle
                .as_ref()
                .map(|h| fstatat(h, name, AtFlags::AT_SYMLINK_NOFOLLOW));
            let (stamp, is_link) = match found {
                Some(Ok(stat)) => {
                    let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
                    let stamp = Stamp {
                        size: stat.st_size as u64,
                        mtime_ns: stat.st_mtime * 1_000_000_000 + stat.st_mtime_nsec,
                        inode: stat.st_ino,
                    };
                    (stamp, kind == SFlag::S_IFLNK)
                }
                Some(Err(nix::errno::Errno::ENOENT | nix::errno::Errno::ENOTDIR)) | None => {
                    if !is_bytecode(&entry.path) {
                        out.changes
                            .push(change(list.distribution, &entry.path, ChangeKind::Missing));
                    }
                    continue;
                }
                Some(Err(error)) => {
                    out.unread.push(Unread {
                        what: directory.join(name).display().to_string(),
                        why: error.desc().to_owned(),
                    });
                    continue;
                }
            };
            if entry.sha256.is_none() {
                continue;
            }
            let path = directory.join(name);
            let stamp = if is_link {
                match self.root.metadata(&path) {
                    Ok(meta) => stamp_of(&meta),
                    Err(_) => {
                        out.changes
                            .push(change(list.distribution, &entry.path, ChangeKind::Missing));
                        continue;
                    }
                }
            } else {
                stamp
            };
            let known = list
                .remembered
                .as_ref()
                .and_then(|r| r.files.get(index))
                .filter(|(s, _)| *s == stamp);
            match known {
                Some((_, state @ (State::Same | State::Other(_)))) => {
                    out.remembered += 1;
                    if let Some(slot) = list.now.files.get_mut(index) {
                        *slot = (stamp, *state);
                    }
                }
                _ => jobs.push(Job {
                    distribution: item.distribution,
                    entry: item.entry,
                    path,
                    stamp,
                }),
            }
        }
        handle
    }

    fn overlaps(group: &[Owned], listed: &[Listed<'_>], out: &mut Verification) {
        let entry = |o: &Owned| &listed[o.distribution as usize].record.entries[o.entry as usize];
        for pair in group.windows(2) {
            let [a, b] = pair else {
                continue;
            };
            let (one, other) = (entry(a), entry(b));
            if a.distribution == b.distribution
                || one.path[a.name as usize..] != other.path[b.name as usize..]
            {
                continue;
            }
            // The same bytes in both, such as the empty `__init__.py` of a shared namespace, harm nobody.
            if one.sha256 == other.sha256 && one.sha256.is_some() {
                continue;
            }
            if is_bytecode(&one.path) {
                continue;
            }
            let name = |o: &Owned| listed[o.distribution as usize].distribution.name.clone();
            let packages = vec![name(a), name(b)];
            match out.overlaps.iter_mut().find(|o| o.packages == packages) {
                Some(known) => known.files += 1,
                None => out.overlaps.push(Overlap {
                    packages,
                    example: one.path.clone(),
                    files: 1,
                }),
            }
        }
    }

    /// Lists what is in a directory of packages and in no RECORD. Says whether there was no directory of nobody's,
    /// in which more could come without this one's changing.
    fn strangers(
        &self,
        directory: &Path,
        sites: &BTreeSet<PathBuf>,
        group: &[Owned],
        listed: &[Listed<'_>],
        known: &HashSet<&Path>,
        out: &mut Verification,
    ) -> bool {
        let is_site = sites.contains(directory);
        if directory.file_name().is_some_and(|n| n == "__pycache__") {
            return true;
        }
        let mut plain = true;
        let Ok(place) = self.root.locate(directory) else {
            return false;
        };
        let Ok(entries) = std::fs::read_dir(place) else {
            return false;
        };
        let name_of = |o: &Owned| {
            let list = listed.get(o.distribution as usize)?;
            list.record
                .entries
                .get(o.entry as usize)?
                .path
                .get(o.name as usize..)
        };
        let is_info = directory.extension().is_some_and(|e| e == "dist-info");
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if is_bytecode(&name) || name == "__pycache__" || is_info && UNLISTED.contains(&name.as_str()) {
                continue;
            }
            if group
                .binary_search_by(|o| name_of(o).unwrap_or_default().cmp(&name))
                .is_ok()
            {
                continue;
            }
            let path = directory.join(&name);
            let is_dir = entry.file_type().is_ok_and(|t| t.is_dir());
            if is_dir && known.contains(path.as_path()) {
                continue;
            }
            plain &= !is_dir;
            let owner = group
                .first()
                .and_then(|o| listed.get(o.distribution as usize))
                .map(|l| l.distribution);
            let site = sites
                .iter()
                .rev()
                .find(|s| directory.starts_with(s))
                .map_or(directory, PathBuf::as_path);
            let owner = if is_site { None } else { owner };
            if is_site {
                self.stranger_of_site(&path, &name, is_dir, site, out);
            } else if is_dir {
                self.tree(&path, site, owner, 0, out);
            } else {
                self.added(&path, site, owner, out);
            }
        }
        plain
    }

    /// Something beside the packages: a module or package of nobody's. Other files do nothing there.
    fn stranger_of_site(&self, path: &Path, name: &str, is_dir: bool, site: &Path, out: &mut Verification) {
        if is_dir {
            let is_package = self.root.is_file(&path.join("__init__.py"));
            if is_package && out.without_record.is_empty() && !name.ends_with(".egg-info") {
                self.tree(path, site, None, 0, out);
            }
        } else {
            let code = [".py", ".so", ".pth"].iter().any(|e| name.ends_with(e));
            if code && !OF_THE_ENVIRONMENT.contains(&name) && !name.starts_with("__editable__") {
                self.added(path, site, None, out);
            }
        }
    }

    fn tree(
        &self,
        directory: &Path,
        site: &Path,
        owner: Option<&Distribution>,
        depth: u32,
        out: &mut Verification,
    ) {
        let Ok(place) = self.root.locate(directory) else {
            return;
        };
        let Ok(entries) = std::fs::read_dir(place) else {
            return;
        };
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let path = directory.join(&name);
            let is_dir = entry.file_type().is_ok_and(|t| t.is_dir());
            if is_dir && name != "__pycache__" && depth < MAX_DEPTH {
                self.tree(&path, site, owner, depth + 1, out);
            } else if !is_dir && !is_bytecode(&name) {
                self.added(&path, site, owner, out);
            }
        }
    }

    /// Notes a file that belongs to nobody.
    fn added(&self, path: &Path, site: &Path, owner: Option<&Distribution>, out: &mut Verification) {
        out.added += 1;
        if out.added > MAX_ADDED as u64 {
            out.more_added += 1;
            return;
        }
        let small = self.root.metadata(path).is_ok_and(|m| m.len() < MAX_ADDED_BYTES);
        let hash = small
            .then(|| self.hash_one(path, &mut vec![0; 64 << 10]).ok())
            .flatten();
        out.changes.push(StackChange {
            package: owner.map(|d| d.name.clone()),
            path: path.strip_prefix(site).unwrap_or(path).display().to_string(),
            kind: ChangeKind::Added,
            sha256: hash.map(|h| hex(&h)),
            added: None,
            removed: None,
            diff: None,
        });
    }

    /// Hashes the jobs, the largest first, on all threads.
    fn hash(&self, mut jobs: Vec<Job>, listed: &mut [Listed<'_>], out: &mut Verification) {
        jobs.sort_by_key(|j| std::cmp::Reverse(j.stamp.size));
        let next = AtomicUsize::new(0);
        let bytes = AtomicU64::new(0);
        let results = Mutex::new(Vec::with_capacity(jobs.len()));
        std::thread::scope(|scope| {
            for _ in 0..self.threads.min(jobs.len()) {
                scope.spawn(|| {
                    let mut buffer = vec![0; CHUNK];
                    let mut mine = Vec::new();
                    while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let hash = self.hash_one(&job.path, &mut buffer);
                        bytes.fetch_add(job.stamp.size, Ordering::Relaxed);
                        mine.push((job, hash));
                    }
                    results
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .append(&mut mine);
                });
            }
        });
        out.hashed = jobs.len() as u64;
        out.hashed_bytes = bytes.into_inner();
        for (job, hash) in results.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let Some(list) = listed.get_mut(job.distribution as usize) else {
                continue;
            };
            let expected = list.record.entries.get(job.entry as usize).and_then(|e| e.sha256);
            match hash {
                Ok(hash) => {
                    let state = if expected == Some(hash) {
                        State::Same
                    } else {
                        State::Other(hash)
                    };
                    let mut stamp = job.stamp;
                    if racy(stamp) {
                        stamp.inode = 0;
                    }
                    if let Some(slot) = list.now.files.get_mut(job.entry as usize) {
                        *slot = (stamp, state);
                    }
                }
                Err(why) => out.unread.push(Unread {
                    what: job.path.display().to_string(),
                    why,
                }),
            }
        }
    }

    fn hash_one(&self, path: &Path, buffer: &mut [u8]) -> Result<[u8; 32], String> {
        let mut file = self.root.open(path).map_err(|e| e.to_string())?;
        let mut hasher = Sha256::new();
        loop {
            match file.read(buffer) {
                Ok(0) => return Ok(hasher.finalize().into()),
                Ok(n) => hasher.update(buffer.get(..n).unwrap_or_default()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn conclude(listed: &mut [Listed<'_>], cache: &mut HashCache, out: &mut Verification) {
        for list in listed {
            for (entry, (_, state)) in list.record.entries.iter().zip(&list.now.files) {
                if let State::Other(hash) = state {
                    let mut found = change(list.distribution, &entry.path, ChangeKind::Modified);
                    found.sha256 = Some(hex(hash));
                    out.changes.push(found);
                }
            }
            let key = list.distribution.info.display().to_string();
            cache.put(key, std::mem::take(&mut list.now));
            out.records
                .insert(list.distribution.info.clone(), std::mem::take(&mut list.record));
        }
        out.changes
            .sort_by(|a, b| (&a.package, &a.path).cmp(&(&b.package, &b.path)));
        // Two packages that list one file both see it changed: one line is enough.
        out.changes.dedup_by(|a, b| a.path == b.path && a.kind == b.kind);
    }
}

/// Whether a change right after this one could bear the same time.
fn racy(stamp: Stamp) -> bool {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos() as i64);
    now - stamp.mtime_ns < RACY_NS
}

fn stamp_of(meta: &std::fs::Metadata) -> Stamp {
    Stamp {
        size: meta.len(),
        mtime_ns: meta.mtime() * 1_000_000_000 + meta.mtime_nsec(),
        inode: meta.ino(),
    }
}

/// What identifies the contents of the file at `path`.
pub(crate) fn stamp(root: &Root, path: &Path) -> Option<Stamp> {
    root.metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file)
        .map(|m| stamp_of(&m))
}

fn is_bytecode(path: &str) -> bool {
    path.ends_with(".pyc") || path.contains("__pycache__/")
}

fn change(distribution: &Distribution, path: &str, kind: ChangeKind) -> StackChange {
    StackChange {
        package: Some(distribution.name.clone()),
        path: path.to_owned(),
        kind,
        sha256: None,
        added: None,
        removed: None,
        diff: None,
    }
}
