//! The NVIDIA driver, from the kernel's files and the names of its libraries.

use std::path::{Path, PathBuf};

use shakedown_model::StackDriver;

use crate::catalog::Catalog;
use crate::loader::Search;
use crate::python::Variables;
use crate::root::Root;

/// The version in the NVRM line of `/proc/driver/nvidia/version`.
fn nvrm(text: &str) -> Option<String> {
    let line = text.lines().find(|l| l.starts_with("NVRM version:"))?;
    line.split_whitespace()
        .find(|w| w.contains('.') && w.chars().all(|c| c.is_ascii_digit() || c == '.'))
        .map(str::to_owned)
}

/// The version in the name of the file behind `libcuda.so.1`: `libcuda.so.570.124.06`.
fn suffix(path: &Path) -> Option<String> {
    let version = path.file_name()?.to_str()?.strip_prefix("libcuda.so.")?;
    version.contains('.').then(|| version.to_owned())
}

/// Reads what is known of the driver; a machine without one gives nothing.
pub fn read_driver(root: &Root, variables: &Variables, machine: u16) -> StackDriver {
    let module = root
        .read_text(Path::new("/proc/driver/nvidia/version"), 4096)
        .ok()
        .and_then(|t| nvrm(&t))
        .or_else(|| root.line("/sys/module/nvidia/version"));
    let search = Search::of_root(
        root,
        machine,
        variables.get("LD_LIBRARY_PATH").map(String::as_str),
    );
    let name = "libcuda.so.1";
    let mut places: Vec<PathBuf> = search.library_path.iter().map(|d| d.join(name)).collect();
    if let Some(cache) = &search.cache {
        places.extend(
            cache
                .find(name, machine, &search.hwcaps)
                .iter()
                .map(PathBuf::from),
        );
    }
    places.extend(search.defaults.iter().map(|d| d.join(name)));
    let found = places.into_iter().find(|p| root.is_file(p));
    let library = found
        .as_deref()
        .and_then(|p| root.resolve(p).ok())
        .and_then(|p| suffix(&p));
    let branch = module
        .as_deref()
        .or(library.as_deref())
        .and_then(|v| v.split('.').next()?.parse().ok());
    StackDriver {
        cuda: branch
            .and_then(|b| Catalog::get().cuda_of_driver(b))
            .map(str::to_owned),
        module,
        library,
        library_path: found.map(|p| p.display().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_module() {
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.124.06  Wed Feb 26 01:38:10 UTC 2025\nGCC version:  gcc 12";
        let open =
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root@)\n";
        assert_eq!(nvrm(closed).as_deref(), Some("570.124.06"));
        assert_eq!(nvrm(open).as_deref(), Some("580.65.06"));
    }
}
