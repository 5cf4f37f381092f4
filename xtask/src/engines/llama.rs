//! llama-server: the server target of llama.cpp alone, one static binary for any machine of this architecture.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};

use super::fetch::LLAMA;
use super::tools::Tools;

/// Compilers at once. More has frozen a machine with two cores: some files take over a GiB each.
const JOBS: &str = "2";

/// What is left out: TLS, the web interface and everything that is not the server. Without `GGML_NATIVE` a cache
/// that moves to an older CPU still runs; the threads of ggml's own pool do not spin as OpenMP's do.
const OPTIONS: [&str; 12] = [
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DGGML_NATIVE=OFF",
    "-DGGML_OPENMP=OFF",
    "-DGGML_CCACHE=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    "-DLLAMA_BUILD_COMMIT=source",
];

/// llama.cpp's build number: the package's major version.
pub(super) fn build_number() -> &'static str {
    LLAMA.version.split('.').next().unwrap_or(LLAMA.version)
}

/// Builds llama-server in `work` and moves it into the cache.
pub(super) fn build(tools: &Tools, work: &Path, cache: &Path) -> Result<PathBuf> {
    let home = cache.join(format!("llama.cpp-{}", build_number()));
    let server = home.join("llama-server");
    let source = unpack(tools, work)?;
    let build = work.join("build");

    let mut configure = tools.cmake();
    configure
        .arg("-S")
        .arg(&source)
        .arg("-B")
        .arg(&build)
        .args(OPTIONS)
        .arg(format!("-DLLAMA_BUILD_NUMBER={}", build_number()));
    tools.run(configure, work, "configure llama.cpp")?;

    println!(
        "engines: building llama-server b{} with {JOBS} jobs, 8 to 20 minutes of CPU time",
        build_number()
    );
    let mut make = tools.cmake();
    make.arg("--build")
        .arg(&build)
        .args(["--target", "llama-server", "--parallel", JOBS]);
    tools.run(make, work, "build llama-server")?;

    fs::create_dir_all(&home).with_context(|| format!("failed to create {}", home.display()))?;
    let built = build.join("bin/llama-server");
    fs::rename(&built, &server)
        .with_context(|| format!("failed to move {} to {}", built.display(), server.display()))?;
    Ok(server)
}

fn unpack(tools: &Tools, work: &Path) -> Result<PathBuf> {
    let stem = LLAMA
        .file
        .strip_suffix(".tar.gz")
        .ok_or_else(|| anyhow!("failed to name the directory of {}", LLAMA.file))?;
    let source = work.join(stem).join("llama.cpp");
    let whole = work.join("unpacked");
    if !whole.exists() {
        let mut command = tools.python();
        command
            .args(["-m", "tarfile", "-e"])
            .arg(work.join(LLAMA.file))
            .arg(work);
        tools.run(command, work, "unpack llama.cpp")?;
        fs::write(&whole, "").with_context(|| format!("failed to write {}", whole.display()))?;
    }
    Ok(source)
}
