//! Where the loader looks for a library, in order.

use std::path::{Path, PathBuf};

use super::Cache;
use crate::root::Root;

/// Bytes of `/etc/ld.so.cache` that anything real has fewer of.
const MAX_CACHE: u64 = 64 << 20;

/// Which rule led to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// Named by a path.
    Path,
    /// Named in `LD_PRELOAD`.
    Preload,
    /// `DT_RPATH` of the file that needs it, or of one that brought that file in.
    Rpath,
    /// `LD_LIBRARY_PATH`.
    LibraryPath,
    /// `DT_RUNPATH` of the file that needs it.
    Runpath,
    /// The cache of `ldconfig`.
    Cache,
    /// A default directory.
    Default,
    /// Not a file: what a driver that is absent here would supply.
    Driver,
}

/// What the loader of a root knows before it opens anything.
#[derive(Debug, Clone)]
pub struct Search {
    /// `LD_LIBRARY_PATH`, in order.
    pub library_path: Vec<PathBuf>,
    /// The cache, where there is one.
    pub cache: Option<Cache>,
    /// Default directories, in order.
    pub defaults: Vec<PathBuf>,
    /// Subdirectories of `glibc-hwcaps` that the CPU supports, best first.
    pub hwcaps: Vec<String>,
    /// `e_machine` of what can be loaded.
    pub machine: u16,
}

/// The hwcaps levels of x86-64 and the CPU flags that each adds, as the kernel spells them.
const X86_64_LEVELS: [(&str, &[&str]); 3] = [
    (
        "x86-64-v2",
        &["cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"],
    ),
    (
        "x86-64-v3",
        &[
            "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave",
        ],
    ),
    (
        "x86-64-v4",
        &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"],
    ),
];

fn hwcaps_of(cpuinfo: &str) -> Vec<String> {
    let flags: Vec<&str> = cpuinfo
        .lines()
        .find_map(|l| l.strip_prefix("flags"))
        .map(|l| l.split_whitespace().collect())
        .unwrap_or_default();
    let mut levels = Vec::new();
    for (level, needs) in X86_64_LEVELS {
        if !needs.iter().all(|n| flags.contains(n)) {
            break;
        }
        levels.insert(0, level.to_owned());
    }
    levels
}

impl Search {
    /// What the loader of `root` knows, for programs of `machine`, with this `LD_LIBRARY_PATH`.
    pub fn of_root(root: &Root, machine: u16, library_path: Option<&str>) -> Self {
        let cache = root
            .read(Path::new("/etc/ld.so.cache"), MAX_CACHE)
            .ok()
            .and_then(|bytes| Cache::parse(&bytes));
        let triplet = if machine == 183 {
            "aarch64-linux-gnu"
        } else {
            "x86_64-linux-gnu"
        };
        let multiarch = root.is_dir(&Path::new("/usr/lib").join(triplet));
        let defaults = if multiarch {
            vec![
                PathBuf::from(format!("/lib/{triplet}")),
                PathBuf::from(format!("/usr/lib/{triplet}")),
                PathBuf::from("/lib"),
                PathBuf::from("/usr/lib"),
            ]
        } else {
            vec![PathBuf::from("/lib64"), PathBuf::from("/usr/lib64")]
        };
        let cpuinfo = root
            .read_text(Path::new("/proc/cpuinfo"), 16 << 20)
            .or_else(|_| Root::new("/").read_text(Path::new("/proc/cpuinfo"), 16 << 20))
            .unwrap_or_default();
        Self {
            // Both separators count, and an empty part is the working directory, which a server's start does not
            // tell: it is left out.
            library_path: library_path
                .unwrap_or_default()
                .split([':', ';'])
                .filter(|p| !p.is_empty())
                .map(PathBuf::from)
                .collect(),
            cache,
            defaults,
            hwcaps: if machine == 62 {
                hwcaps_of(&cpuinfo)
            } else {
                Vec::new()
            },
            machine,
        }
    }

    /// The files that `name` could be in `dirs`, in order: the subdirectories of a directory before itself.
    pub(crate) fn in_dirs<'a>(
        &'a self,
        dirs: &'a [PathBuf],
        name: &'a str,
    ) -> impl Iterator<Item = PathBuf> + 'a {
        dirs.iter().flat_map(move |dir| {
            self.hwcaps
                .iter()
                .map(move |h| dir.join("glibc-hwcaps").join(h).join(name))
                .chain(std::iter::once(dir.join(name)))
        })
    }
}

/// A search path with `$ORIGIN`, `$LIB` and `$PLATFORM` filled in; empty parts are dropped.
pub(crate) fn expand(paths: &str, origin: &Path, machine: u16) -> Vec<PathBuf> {
    paths
        .split(':')
        .filter(|p| !p.is_empty())
        .map(|p| PathBuf::from(expand_one(p, origin, machine)))
        .collect()
}

pub(crate) fn expand_one(path: &str, origin: &Path, machine: u16) -> String {
    if !path.contains('$') {
        return path.to_owned();
    }
    let platform = if machine == 183 { "aarch64" } else { "x86_64" };
    let lib = if machine == 183 {
        "lib/aarch64-linux-gnu"
    } else {
        "lib/x86_64-linux-gnu"
    };
    let origin = origin.to_string_lossy();
    path.replace("${ORIGIN}", &origin)
        .replace("$ORIGIN", &origin)
        .replace("${PLATFORM}", platform)
        .replace("$PLATFORM", platform)
        .replace("${LIB}", lib)
        .replace("$LIB", lib)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_in_both_spellings() {
        let dirs = expand("$ORIGIN/../lib::${ORIGIN}:/opt", Path::new("/a/b"), 62);
        assert_eq!(dirs, ["/a/b/../lib", "/a/b", "/opt"].map(PathBuf::from));
    }

    #[test]
    fn levels_build_on_each_other() {
        let v2 = "flags\t\t: fpu cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3";
        assert_eq!(hwcaps_of(v2), ["x86-64-v2"]);
        let gap = "flags : avx avx2 bmi1 bmi2 f16c fma abm movbe xsave";
        assert!(hwcaps_of(gap).is_empty(), "v3 without v2");
    }
}
