//! The repository's cargo workspaces, and cargo in one of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The target that handlers are compiled for.
pub(crate) const GUEST_TARGET: &str = "wasm32-wasip2";

/// The host side, and the repository's root.
pub(crate) const HOST: Workspace = Workspace { dir: "" };

/// The SDK and the example handlers.
pub(crate) const GUEST_EXAMPLES: Workspace = Workspace { dir: "guest-examples" };

/// Handlers that exist to be tested against. They have no tests of their own.
pub(crate) const TEST_GUESTS: Workspace = Workspace { dir: "host/runtime/tests/guests" };

/// The workspaces whose members are compiled to WebAssembly.
pub(crate) const GUESTS: [Workspace; 2] = [GUEST_EXAMPLES, TEST_GUESTS];

/// A cargo workspace, by its folder below the root.
#[derive(Clone, Copy)]
pub(crate) struct Workspace {
    dir: &'static str,
}

impl Workspace {
    pub(crate) fn path(self) -> PathBuf {
        root().join(self.dir)
    }

    /// How to call it in a message.
    pub(crate) fn name(self) -> &'static str {
        if self.dir.is_empty() { "host" } else { self.dir }
    }

    /// Cargo in this workspace. It does not see what `cargo xtask` says of xtask itself: build scripts that
    /// watch those variables (ring's does) would run again at every change between xtask and plain cargo.
    pub(crate) fn cargo(self, arguments: &[&str]) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                cargo.env_remove(&*name);
            }
        }
        cargo.args(arguments).current_dir(self.path());
        cargo
    }

    /// Cargo in this workspace for code that becomes WebAssembly: free of flags that are meant for the
    /// host, with its output where everyone looks for it.
    pub(crate) fn guest_cargo(self, arguments: &[&str]) -> Command {
        let mut cargo = self.cargo(arguments);
        for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
            cargo.env_remove(name);
        }
        cargo.env("CARGO_TARGET_DIR", self.path().join("target"));
        cargo
    }
}

/// The repository's root.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// Runs a command to its end, with its output passed through.
pub(crate) fn passes(command: &mut Command) -> Result<()> {
    let shown = command_line(command);
    let status = command.status().with_context(|| format!("cannot run `{shown}`"))?;
    ensure!(status.success(), "`{shown}` failed ({status})");
    Ok(())
}

fn command_line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
