//! The hosts of a run: `weir serve`, several against one database.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::host_process::HostProcess;
use crate::interrupt::Interrupt;

pub(super) struct Fleet<'a> {
    program: &'a Path,
    database_url: String,
    hosts: Vec<HostProcess>,
    interrupt: &'a Interrupt,
    place: TempDir,
}

/// Sets the store up.
pub(super) fn migrate(program: &Path, database_url: &str) -> Result<()> {
    let mut migrate = Command::new(program);
    migrate.arg("migrate").env("DATABASE_URL", database_url).env_remove("WEIR_SCHEMA");
    let output = migrate.stdin(Stdio::null()).output().context("running weir migrate")?;
    ensure!(output.status.success(), "weir migrate: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

impl<'a> Fleet<'a> {
    pub(super) fn start(
        program: &'a Path,
        database_url: String,
        hosts: usize,
        interrupt: &'a Interrupt,
    ) -> Result<Self> {
        let place = tempfile::Builder::new().prefix("weir-verify-").tempdir()?;
        let mut fleet = Self { program, database_url, hosts: Vec::new(), interrupt, place };
        for number in 0..hosts {
            let host = fleet.launch(number, "127.0.0.1:0")?;
            fleet.hosts.push(host);
        }
        Ok(fleet)
    }

    /// Where the hosts are, dead or alive: a host that starts again does so in its old place.
    pub(super) fn addresses(&self) -> Vec<String> {
        self.hosts.iter().map(|host| host.address().to_owned()).collect()
    }

    pub(super) fn size(&self) -> usize {
        self.hosts.len()
    }

    /// `kill -9` of a host, and a new start.
    pub(super) fn kill(&mut self, number: usize) -> Result<()> {
        self.hosts[number].kill()?;
        let listen = self.hosts[number].listens_on().to_owned();
        self.hosts[number] = self.launch(number, &listen)?;
        Ok(())
    }

    /// Has a host stand still in the middle of everything, until [`go_on`](Self::go_on).
    pub(super) fn pause(&self, number: usize) -> Result<()> {
        self.hosts[number].signal(Signal::STOP)
    }

    pub(super) fn go_on(&self, number: usize) -> Result<()> {
        self.hosts[number].signal(Signal::CONT)
    }

    pub(super) fn check_alive(&mut self) -> Result<()> {
        for host in &mut self.hosts {
            let alive = host.check_alive();
            alive.with_context(|| format!("the end of its log:\n{}", host.log_tail()))?;
        }
        Ok(())
    }

    /// The ends of the hosts' logs.
    pub(super) fn log_tails(&self) -> String {
        let tail = |(number, host): (usize, &HostProcess)| format!("host {number}:\n{}\n", host.log_tail());
        self.hosts.iter().enumerate().map(tail).collect()
    }

    /// Stops all hosts as Ctrl-C would.
    pub(super) fn stop(&mut self) -> Result<()> {
        for host in &self.hosts {
            // All at once; each is waited for below. One that stands still would not hear of it.
            let _ = host.signal(Signal::CONT);
            let _ = host.signal(Signal::INT);
        }
        for host in &mut self.hosts {
            let ended = host.wait();
            ended.with_context(|| format!("the end of its log:\n{}", host.log_tail()))?;
        }
        Ok(())
    }

    fn launch(&self, number: usize, listen: &str) -> Result<HostProcess> {
        let mut serve = Command::new(self.program);
        serve.args(["serve", "--listen", listen]).env("DATABASE_URL", &self.database_url);
        serve.env_remove("WEIR_SCHEMA").env("WEIR_CACHE", cache(&self.place));
        // There are several hosts on a server that tests share, and no handlers on any.
        serve.env("WEIR_CONNECTIONS", "8").env("WEIR_INSTANCES", "1");
        HostProcess::start(serve, self.place.path(), &format!("host-{number}"), self.interrupt)
    }
}

fn cache(place: &TempDir) -> PathBuf {
    place.path().join("cache")
}
