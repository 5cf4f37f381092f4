//! The machine, as far as serving on it is concerned, from its files.

use std::collections::BTreeMap;
use std::path::Path;

use shakedown_model::StackHost;

use crate::root::Root;

/// The C library's version: from the name in its file, else from its dynamic symbols' newest `GLIBC_` version.
fn glibc(root: &Root) -> Option<String> {
    let places = [
        "/lib/x86_64-linux-gnu",
        "/lib/aarch64-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
    ];
    let path = places
        .iter()
        .map(|p| Path::new(p).join("libc.so.6"))
        .find(|p| root.is_file(p))?;
    let image = crate::elf::Image::read(root.open(&path).ok()?).ok()?;
    let newest = image
        .defined_versions()
        .filter_map(|v| {
            let (major, minor) = v.strip_prefix("GLIBC_")?.split_once('.')?;
            Some((
                major.parse::<u32>().ok()?,
                minor.split('.').next()?.parse::<u32>().ok()?,
            ))
        })
        .max()?;
    Some(format!("{}.{}", newest.0, newest.1))
}

fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|l| l.strip_prefix(key))
        .map(|v| v.trim_start_matches([':', ' ', '\t']).trim())
}

/// Reads the machine. `limits` is `/proc/PID/limits` of the server, or of this process.
pub fn read_host(root: &Root, pid: Option<u32>) -> StackHost {
    // A container shows the machine's own /proc and /sys; a fixture has those that it was given.
    let proc = |name: &str| {
        root.read_text(&Path::new("/proc").join(name), 16 << 20)
            .unwrap_or_default()
    };
    let cpuinfo = proc("cpuinfo");
    let memory = proc("meminfo");
    let limits = proc(&pid.map_or("self/limits".to_owned(), |p| format!("{p}/limits")));
    let os = root
        .read_text(Path::new("/etc/os-release"), 65_536)
        .unwrap_or_default();
    let cpus = cpuinfo.lines().filter(|l| l.starts_with("processor")).count() as u32;
    let nodes = root.matching(Path::new("/sys/devices/system/node"), "node*");
    let nodes = nodes
        .iter()
        .filter(|n| n.to_string_lossy().ends_with(|c: char| c.is_ascii_digit()))
        .count() as u32;
    let mut kept = BTreeMap::new();
    for (name, key) in [
        ("open files", "Max open files"),
        ("locked memory", "Max locked memory"),
        ("processes", "Max processes"),
    ] {
        if let Some(soft) = field(&limits, key).and_then(|v| v.split_whitespace().next()) {
            kept.insert(name.to_owned(), soft.to_owned());
        }
    }
    let shm = root
        .locate(Path::new("/dev/shm"))
        .ok()
        .and_then(|p| nix::sys::statvfs::statvfs(&p).ok());
    let groups = root.list(Path::new("/sys/kernel/iommu_groups")).ok();
    StackHost {
        os: field(&os, "PRETTY_NAME=").map(|v| v.trim_matches('"').to_owned()),
        kernel: root.line("/proc/sys/kernel/osrelease"),
        machine: if cfg!(target_arch = "aarch64") {
            "aarch64"
        } else {
            "x86_64"
        }
        .to_owned(),
        glibc: glibc(root),
        cpu: field(&cpuinfo, "model name").map(str::to_owned),
        cpus,
        numa_nodes: nodes,
        governor: root.line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        memory_mib: field(&memory, "MemTotal")
            .and_then(|v| v.split_whitespace().next()?.parse::<u64>().ok())
            .unwrap_or(0)
            / 1024,
        shm_mib: shm.map(|s| s.blocks().saturating_mul(s.fragment_size()) >> 20),
        iommu: groups.map(|g| !g.is_empty()),
        limits: kept,
        container: container(root),
    }
}

fn container(root: &Root) -> Option<String> {
    if root.is_file(Path::new("/.dockerenv")) {
        return Some("docker".to_owned());
    }
    if root.is_file(Path::new("/run/.containerenv")) {
        return Some("podman".to_owned());
    }
    if root.metadata(Path::new("/singularity")).is_ok() || root.metadata(Path::new("/.singularity.d")).is_ok()
    {
        return Some("apptainer".to_owned());
    }
    root.is_dir(Path::new("/var/run/secrets/kubernetes.io"))
        .then(|| "kubernetes".to_owned())
}
