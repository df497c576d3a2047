//! Whether a server runs on a cluster already, as `postmaster.pid` and the process table have it.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, test_kill_process};

use crate::server::StartError;

/// How long a server may take to start (after a crash it replays its log) or to stop.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// What `postmaster.pid` says: line 1 is the process, line 4 the port, line 8 the state.
struct PidFile {
    pid: i32,
    port: Option<u16>,
    state: String,
}

impl PidFile {
    fn read(data: &Path) -> Option<PidFile> {
        let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
        let mut lines = text.lines().map(str::trim);
        let pid = lines.next()?.parse().ok()?;
        let port = lines.nth(2).and_then(|port| port.parse().ok());
        let state = lines.nth(3).unwrap_or_default().to_owned();
        Some(PidFile { pid, port, state })
    }
}

/// Who has the process id that `postmaster.pid` names.
enum Holder {
    /// The server of this cluster.
    Server,
    /// A PostgreSQL whose cluster cannot be told: it is for the new server to find out.
    SomePostgres,
    /// Nobody, or a process that has nothing to do with it: the file is left over from a crash.
    Other,
}

/// The port of the server that runs on `data`. Waits for one that is starting to be ready, and for one
/// that is stopping to be gone.
pub(crate) fn running(data: &Path) -> Result<Option<u16>, StartError> {
    let deadline = Instant::now() + PATIENCE;
    while let Some(file) = PidFile::read(data) {
        if !matches!(holder(file.pid, data), Holder::Server) {
            return Ok(None);
        }
        if file.state == "ready"
            && let Some(port) = file.port
            && TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), PATIENCE).is_ok()
        {
            return Ok(Some(port));
        }
        if Instant::now() > deadline {
            return Err(StartError::Unsettled { data: data.to_path_buf(), pid: file.pid, state: file.state });
        }
        // The server tells nobody but this file how far it is.
        sleep(Duration::from_millis(50));
    }
    Ok(None)
}

/// Removes a `postmaster.pid` whose process id now belongs to something else. PostgreSQL clears one that
/// names a dead process by itself, but refuses to start beside a live one of the same user, whatever it is.
pub(crate) fn clear_stale(data: &Path) -> io::Result<()> {
    match PidFile::read(data) {
        Some(file) if matches!(holder(file.pid, data), Holder::Other) => {
            fs::remove_file(data.join("postmaster.pid"))
        }
        _ => Ok(()),
    }
}

fn holder(pid: i32, data: &Path) -> Holder {
    let Some(id) = Pid::from_raw(pid) else { return Holder::Other };
    if test_kill_process(id) == Err(rustix::io::Errno::SRCH) {
        return Holder::Other;
    }
    // `pg_ctl` starts `<bin>/postgres -D <data>`, and the server leaves its command line alone.
    let Some(line) = command_line(pid) else { return Holder::SomePostgres };
    let runs_postgres = line.split(' ').next().is_some_and(|program| program.ends_with("postgres"));
    match line.contains(&format!("-D {}", data.display())) {
        true if runs_postgres => Holder::Server,
        false if runs_postgres => Holder::SomePostgres,
        _ => Holder::Other,
    }
}

/// The process's arguments, separated by blanks. `None` when this machine does not tell.
fn command_line(pid: i32) -> Option<String> {
    if let Ok(bytes) = fs::read(format!("/proc/{pid}/cmdline")) {
        return Some(String::from_utf8_lossy(&bytes).replace('\0', " "));
    }
    let output = Command::new("ps").args(["-ww", "-o", "command=", "-p", &pid.to_string()]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
