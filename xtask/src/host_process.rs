//! A host that a chore runs: the process, what it says, and its end.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::http_client::agent;
use crate::interrupt::Interrupt;

/// The first start may have to download PostgreSQL.
const READY_WITHIN: Duration = Duration::from_secs(600);

/// How long a host that starts may think about whether it is ready.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

const STOPPED_WITHIN: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_millis(50);

/// How much of the host's log is shown when something went wrong.
const TAIL_LINES: usize = 20;

pub(crate) struct HostProcess {
    child: Child,
    address: String,
    files: Files,
}

/// Where the host's output goes: files need nobody who keeps reading them.
#[derive(Clone)]
struct Files {
    announcements: PathBuf,
    log: PathBuf,
}

impl HostProcess {
    /// Starts a host and waits until it is ready. Its output goes to files of this name in `place`; a log that is there is
    /// continued.
    pub(crate) fn start(
        mut command: Command,
        place: &Path,
        name: &str,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let files = Files {
            announcements: place.join(format!("{name}.out")),
            log: place.join(format!("{name}.log")),
        };
        let child = command
            .stdin(Stdio::null())
            .stdout(File::create(&files.announcements)?)
            .stderr(File::options().create(true).append(true).open(&files.log)?)
            // Out of reach of the terminal's Ctrl-C, so that the order in which things end is decided here.
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {}", command.get_program().display()))?;
        let mut host = Self { child, address: String::new(), files };
        host.watch_start(interrupt)
            .with_context(|| format!("the host did not start; the end of its log:\n{}", host.log_tail()))?;
        Ok(host)
    }

    /// `http://`, the host and the port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// What `--listen` takes to put a host in this one's place.
    pub(crate) fn listens_on(&self) -> &str {
        self.address.trim_start_matches("http://")
    }

    /// `kill -9`: the host has no chance to finish anything.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill().context("killing the host")?;
        self.child.wait()?;
        Ok(())
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(Pid::from_child(&self.child), signal).with_context(|| format!("sending {signal:?}"))
    }

    pub(crate) fn check_alive(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the host ended by itself: {status}");
        }
        Ok(())
    }

    pub(crate) fn log_tail(&self) -> String {
        let log = fs::read(&self.files.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    /// Stops the host as Ctrl-C would, and says so if it did not end well.
    pub(crate) fn end(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_none() {
            self.signal(Signal::INT).context("stopping the host")?;
        }
        self.wait()
    }

    /// Waits for the end of a host that has been told to stop.
    pub(crate) fn wait(&mut self) -> Result<()> {
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

    fn watch_start(&mut self, interrupt: &Interrupt) -> Result<()> {
        let deadline = Instant::now() + READY_WITHIN;
        let agent = agent(Some(ANSWER_WITHIN));
        while Instant::now() < deadline {
            interrupt.check()?;
            self.check_alive()?;
            if let Some(address) = self.announced_address()
                && agent.get(format!("{address}/readyz")).call().is_ok_and(|ready| ready.status() == 200)
            {
                self.address = address;
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        bail!("not ready within {READY_WITHIN:?}")
    }

    fn announced_address(&self) -> Option<String> {
        let mut announced = String::new();
        File::open(&self.files.announcements).ok()?.read_to_string(&mut announced).ok()?;
        let (line, _) = announced.split_once("listening on ")?.1.split_once('\n')?;
        Some(line.trim().to_owned())
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        // Whoever wants to know whether the host ended well calls `end`. On all other ways out, what went
        // wrong is already being told.
        let _ = self.end();
    }
}
