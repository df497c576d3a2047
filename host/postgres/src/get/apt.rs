//! Installs the distribution's package, as root on Debian and Ubuntu.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Read by the package when it is installed: without it, the package makes a cluster of its own on port
/// 5432 and starts it, which nobody asked for.
const NO_CLUSTER: &str = "/etc/postgresql-common/createcluster.d/weir.conf";

/// Whether this machine installs packages with apt.
pub(super) fn is_here() -> bool {
    Path::new("/usr/bin/apt-get").exists()
}

/// Installs the package `postgresql`. The error is one line.
pub(super) fn install(say: &mut dyn FnMut(&str)) -> Result<(), String> {
    say(
        "No PostgreSQL server here: installing the package `postgresql` with apt-get, without a cluster of its own",
    );
    let folder = Path::new(NO_CLUSTER).parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(NO_CLUSTER, "create_main_cluster = false\n"))
        .map_err(|error| format!("apt-get install postgresql: cannot write {NO_CLUSTER}: {error}"))?;
    let installed = apt_get(&["update", "-qq"])
        .and_then(|()| apt_get(&["install", "-y", "-qq", "--no-install-recommends", "postgresql"]));
    // A cluster that the machine's owner wants later is not for this crate to prevent.
    let _ = fs::remove_file(NO_CLUSTER);
    installed
}

fn apt_get(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("/usr/bin/apt-get")
        .args(arguments)
        .args([
            "-o",
            "Acquire::Retries=1",
            "-o",
            "Acquire::http::Timeout=20",
            "-o",
            "DPkg::Lock::Timeout=120",
        ])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("apt-get: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().rfind(|line| line.starts_with("E:")).unwrap_or("it gave no reason");
    Err(format!("apt-get {}: {line}", arguments[0]))
}
