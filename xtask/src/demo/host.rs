//! The host of the show: a `weir dev` of its own, in a temporary place, that leaves nothing behind.

use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use weir_postgres::{Binaries, Server, Settings};

use super::rush;
use crate::http_client::agent;
use crate::interrupt::Interrupt;
use crate::progress::step;

/// The first start may have to download PostgreSQL.
const READY_WITHIN: Duration = Duration::from_secs(600);

const STOPPED_WITHIN: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_millis(50);

/// How much of the host's log is shown when something went wrong.
const TAIL_LINES: usize = 20;

pub(super) struct Host {
    program: PathBuf,
    handler: PathBuf,
    child: Child,
    address: String,
    place: TempDir,
}

impl Host {
    /// Starts a host on a free port, with the handler deployed, and waits until it is ready.
    pub(super) fn start(program: &Path, handler: &Path, interrupt: &Interrupt) -> Result<Self> {
        let place = tempfile::Builder::new().prefix("weir-demo-").tempdir()?;
        // PostgreSQL does not run as root. Started by root, it runs as another user, who has to get in here.
        fs::set_permissions(place.path(), Permissions::from_mode(0o755))?;
        let child = spawn(program, handler, place.path(), "127.0.0.1:0")?;
        let mut host = Self {
            program: program.to_owned(),
            handler: handler.to_owned(),
            child,
            address: String::new(),
            place,
        };
        host.wait_until_ready(interrupt)?;
        Ok(host)
    }

    /// `http://`, the host and the port.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// `kill -9`: the host has no chance to finish anything.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.child.kill().context("killing the host")?;
        self.child.wait()?;
        Ok(())
    }

    /// Starts the host again where it was: same place, same port. Its PostgreSQL has been running all along.
    pub(super) fn start_again(&mut self, interrupt: &Interrupt) -> Result<()> {
        let listen = self.address.trim_start_matches("http://");
        self.child = spawn(&self.program, &self.handler, self.place.path(), listen)?;
        self.wait_until_ready(interrupt)
    }

    /// Stops the host as Ctrl-C would, and says so if it did not end well.
    pub(super) fn stop(mut self) -> Result<()> {
        self.end()
    }

    pub(super) fn check_alive(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the host ended by itself: {status}");
        }
        Ok(())
    }

    pub(super) fn log_tail(&self) -> String {
        let log = fs::read(log_file(self.place.path())).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    fn wait_until_ready(&mut self, interrupt: &Interrupt) -> Result<()> {
        self.watch_start(interrupt)
            .with_context(|| format!("the host did not start; the end of its log:\n{}", self.log_tail()))
    }

    fn watch_start(&mut self, interrupt: &Interrupt) -> Result<()> {
        let deadline = Instant::now() + READY_WITHIN;
        let agent = agent(Some(rush::PATIENCE));
        while Instant::now() < deadline {
            interrupt.check()?;
            self.check_alive()?;
            if let Some(address) = announced_address(self.place.path())
                && agent.get(format!("{address}/readyz")).call().is_ok_and(|ready| ready.status() == 200)
            {
                self.address = address;
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        bail!("not ready within {READY_WITHIN:?}")
    }

    fn end(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_none() {
            kill_process(Pid::from_child(&self.child), Signal::INT).context("stopping the host")?;
        }
        let deadline = Instant::now() + STOPPED_WITHIN;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "the host ended badly: {status}");
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        self.kill()?;
        bail!("the host did not stop within {STOPPED_WITHIN:?} and was killed")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Whoever wants to know whether the host ended well calls `stop`. On all other ways out, what went
        // wrong is already being told.
        let _ = self.end();
        let postgres = self.place.path().join(".weir/postgres");
        let data = postgres.join("data");
        if !data.is_dir() || data.join("postmaster.pid").exists() {
            remove_postgres(postgres);
        }
    }
}

/// Stops the server that a killed host has left running, and removes its data, which are elsewhere if the
/// account that runs PostgreSQL cannot get into the temporary place. To get hold of it is to start it.
fn remove_postgres(dir: PathBuf) {
    let settings = Settings { dir, durable: false, extra: Vec::new() };
    let removed = Binaries::find().map_err(anyhow::Error::from).and_then(|binaries| {
        let server = Server::start(&binaries, &settings, &mut |_| {})?;
        Ok(server.stop_and_remove()?)
    });
    if let Err(error) = removed {
        step(&format!("PostgreSQL may have been left in {}: {error:#}", settings.dir.display()));
    }
}

fn spawn(program: &Path, handler: &Path, place: &Path, listen: &str) -> Result<Child> {
    let log = File::options().create(true).append(true).open(log_file(place))?;
    Command::new(program)
        .args(["dev", "--listen", listen, "--project"])
        .arg(place)
        .arg(handler)
        // The show has a database of its own and leaves others alone.
        .env_remove("DATABASE_URL")
        .stdin(Stdio::null())
        .stdout(File::create(announcements(place))?)
        .stderr(log)
        // Out of reach of the terminal's Ctrl-C, so that the order in which things end is decided here.
        .process_group(0)
        .spawn()
        .with_context(|| format!("starting {}", program.display()))
}

fn log_file(place: &Path) -> PathBuf {
    place.join("host.log")
}

/// Where the host's standard output goes: a file needs nobody who keeps reading it.
fn announcements(place: &Path) -> PathBuf {
    place.join("host.out")
}

fn announced_address(place: &Path) -> Option<String> {
    let mut announced = String::new();
    File::open(announcements(place)).ok()?.read_to_string(&mut announced).ok()?;
    let (line, _) = announced.split_once("listening on ")?.1.split_once('\n')?;
    Some(line.trim().to_owned())
}
