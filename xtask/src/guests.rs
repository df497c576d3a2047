//! `cargo xtask guests`: the handlers that come with the repository, as WebAssembly components.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::workspaces::{GUEST_EXAMPLES, GUEST_TARGET, GUESTS, HOST, Workspace, passes};

/// Builds every guest. Examples and tests find the components in `target/wasm32-wasip2/release` of the
/// guest's workspace.
pub(crate) fn build_all() -> Result<()> {
    ensure_target()?;
    for workspace in GUESTS {
        eprintln!("Building the handlers in {}", workspace.name());
        passes(&mut release_build(workspace))?;
    }
    Ok(())
}

/// Builds one example handler and returns its component.
pub(crate) fn build(example: &str) -> Result<PathBuf> {
    ensure_target()?;
    passes(release_build(GUEST_EXAMPLES).args(["--package", example]))?;
    let file = format!("target/{GUEST_TARGET}/release/{}.wasm", example.replace('-', "_"));
    let component = GUEST_EXAMPLES.path().join(file);
    ensure!(component.is_file(), "{example} was built, but there is no {}", component.display());
    Ok(component)
}

/// `--locked`: the same sources give the same component.
fn release_build(workspace: Workspace) -> Command {
    workspace.guest_cargo(&["build", "--release", "--locked", "--target", GUEST_TARGET])
}

/// Makes sure that this toolchain can compile for the guests' target.
pub(crate) fn ensure_target() -> Result<()> {
    if has_target()? {
        return Ok(());
    }
    eprintln!("Adding the target {GUEST_TARGET} to the toolchain");
    let added = Command::new("rustup")
        .args(["target", "add", GUEST_TARGET])
        .current_dir(HOST.path())
        .stdin(Stdio::null())
        .status();
    match added {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => bail!("the target {GUEST_TARGET} is missing, and `rustup target add {GUEST_TARGET}` failed"),
        Err(_) => bail!(
            "the target {GUEST_TARGET} is missing, and there is no rustup to add it: install the \
             {GUEST_TARGET} standard library of this Rust version"
        ),
    }
}

fn has_target() -> Result<bool> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--print", "target-libdir", "--target", GUEST_TARGET])
        .current_dir(HOST.path())
        .output()
        .context("cannot run rustc")?;
    ensure!(output.status.success(), "rustc does not know the target {GUEST_TARGET}");
    Ok(Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}
