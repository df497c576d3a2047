//! The program `weir`, as chores run it.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::workspaces::HOST;

/// Builds `weir` and returns the program, wherever cargo is told to put it.
pub(crate) fn build() -> Result<PathBuf> {
    let built = HOST
        .cargo(&["build", "--locked", "--package", "weir", "--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("running cargo")?;
    ensure!(built.status.success(), "the host could not be built");
    String::from_utf8(built.stdout)?
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "weir")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .context("cargo built no program named weir")
}
