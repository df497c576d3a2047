//! The host of the show: a `weir dev` of its own, in a temporary place, that leaves nothing behind.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use tempfile::TempDir;
use weir_postgres::{Binaries, Server, Settings};

use crate::host_process::HostProcess;
use crate::interrupt::Interrupt;
use crate::progress::step;

pub(super) struct Host {
    program: PathBuf,
    handler: PathBuf,
    process: HostProcess,
    place: TempDir,
}

impl Host {
    /// Starts a host on a free port, with the handler deployed, and waits until it is ready.
    pub(super) fn start(program: &Path, handler: &Path, interrupt: &Interrupt) -> Result<Self> {
        let place = tempfile::Builder::new().prefix("weir-demo-").tempdir()?;
        // PostgreSQL does not run as root. Started by root, it runs as another user, who has to get in here.
        fs::set_permissions(place.path(), Permissions::from_mode(0o755))?;
        let command = command(program, handler, place.path(), "127.0.0.1:0");
        let started = HostProcess::start(command, place.path(), "host", interrupt);
        let process = started.inspect_err(|_| remove_postgres(place.path()))?;
        Ok(Self { program: program.to_owned(), handler: handler.to_owned(), process, place })
    }

    /// `http://`, the host and the port.
    pub(super) fn address(&self) -> &str {
        self.process.address()
    }

    /// `kill -9`: the host has no chance to finish anything.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Starts the host again where it was: same place, same port. Its PostgreSQL has been running all along.
    pub(super) fn start_again(&mut self, interrupt: &Interrupt) -> Result<()> {
        let command = command(&self.program, &self.handler, self.place.path(), self.process.listens_on());
        self.process = HostProcess::start(command, self.place.path(), "host", interrupt)?;
        Ok(())
    }

    /// Stops the host as Ctrl-C would, and says so if it did not end well.
    pub(super) fn stop(mut self) -> Result<()> {
        self.process.end()
    }

    pub(super) fn check_alive(&mut self) -> Result<()> {
        self.process.check_alive()
    }

    pub(super) fn log_tail(&self) -> String {
        self.process.log_tail()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.process.end();
        remove_postgres(self.place.path());
    }
}

/// Stops the server that a killed host has left running, and removes its data, which are elsewhere if the
/// account that runs PostgreSQL cannot get into the temporary place. To get hold of it is to start it.
fn remove_postgres(place: &Path) {
    let dir = place.join(".weir/postgres");
    let data = dir.join("data");
    if data.is_dir() && !data.join("postmaster.pid").exists() {
        return;
    }
    let settings = Settings { dir, durable: false, extra: Vec::new() };
    let removed = Binaries::find().map_err(anyhow::Error::from).and_then(|binaries| {
        let server = Server::start(&binaries, &settings, &mut |_| {})?;
        Ok(server.stop_and_remove()?)
    });
    if let Err(error) = removed {
        step(&format!("PostgreSQL may have been left in {}: {error:#}", settings.dir.display()));
    }
}

fn command(program: &Path, handler: &Path, place: &Path, listen: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["dev", "--listen", listen, "--project"]).arg(place).arg(handler);
    // The show has a database of its own and leaves others alone.
    command.env_remove("DATABASE_URL");
    command
}
