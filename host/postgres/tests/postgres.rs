//! Servers of the real kind: each test runs its own, in a folder of its own.

#![allow(clippy::unwrap_used, reason = "a test's helpers may stop at the first surprise as well")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Barrier;

use rustix::process::{Pid, geteuid, getsid};
use tempfile::TempDir;
use weir_postgres::{Binaries, GetError, Server, Settings, StartError, Stopped};

/// A folder for one server, which does not outlive the test.
struct Home {
    dir: TempDir,
    binaries: Binaries,
}

impl Home {
    /// A folder that every account can enter.
    fn new() -> Home {
        let open_to_all = fs::Permissions::from_mode(0o755);
        let dir =
            tempfile::Builder::new().prefix("weir-postgres-").permissions(open_to_all).tempdir().unwrap();
        Home { dir, binaries: Binaries::find().expect("these tests need a PostgreSQL server") }
    }

    fn settings(&self) -> Settings {
        // Small, so that several fit on a small machine.
        let extra = vec![("shared_buffers".to_owned(), "16MB".to_owned())];
        Settings { dir: self.dir.path().join("postgres"), durable: false, extra }
    }

    fn start(&self) -> Server {
        self.try_start(&self.settings()).unwrap()
    }

    fn try_start(&self, settings: &Settings) -> Result<Server, StartError> {
        Server::start(&self.binaries, settings, &mut |_| {})
    }

    fn pid_file(&self) -> PathBuf {
        self.dir.path().join("postgres/data/postmaster.pid")
    }

    fn pid(&self) -> Option<i32> {
        fs::read_to_string(self.pid_file()).ok()?.lines().next()?.parse().ok()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A test that failed half-way leaves its server behind.
        if let Some(pid) = self.pid()
            && pid != std::process::id().cast_signed()
        {
            let _ = Command::new("kill").args(["-QUIT", &pid.to_string()]).output();
        }
    }
}

/// What `statement` answers.
fn ask(server: &Server, database: &str, statement: &str) -> String {
    let output = server.psql(database).args(["-At", "-c", statement]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_fresh_server_answers_and_stops() {
    let home = Home::new();
    let server = home.start();
    assert!(!server.adopted());
    assert_eq!(ask(&server, "postgres", "SHOW server_encoding"), "UTF8");
    assert_eq!(ask(&server, "postgres", "SHOW max_locks_per_transaction"), "256");
    assert_eq!(ask(&server, "postgres", "SHOW fsync"), "off");
    assert_eq!(ask(&server, "postgres", "SHOW shared_buffers"), "16MB", "`extra` has the last word");

    let port = server.port();
    assert_eq!(server.stop().unwrap(), Stopped::Down);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn its_url_is_all_that_psql_needs() {
    let home = Home::new();
    let server = home.start();
    let mut psql = server.psql("postgres");
    for name in ["PGHOST", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD"] {
        psql.env_remove(name);
    }
    let output = psql.args(["-At", "-c", "SELECT current_user", &server.url("postgres")]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "weir");
    server.stop().unwrap();
}

#[test]
fn nobody_gets_in_without_the_password() {
    let home = Home::new();
    let server = home.start();
    let password = home.dir.path().join("postgres/password");
    assert_eq!(fs::metadata(&password).unwrap().permissions().mode() & 0o777, 0o600);

    // A start-up message for protocol 3.0; the answer is a request to authenticate (R) with SASL (10).
    let mut message = b"\0\0\0\0\0\x03\0\0user\0weir\0database\0postgres\0\0".to_vec();
    message[3] = u8::try_from(message.len()).unwrap();
    let mut connection = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    connection.write_all(&message).unwrap();
    let mut answer = [0; 9];
    connection.read_exact(&mut answer).unwrap();
    assert_eq!((answer[0], answer[8]), (b'R', 10));
    server.stop().unwrap();
}

#[test]
fn data_and_port_survive_a_restart() {
    let home = Home::new();
    let server = home.start();
    let port = server.port();
    server.create_database_if_missing("kept").unwrap();
    server.create_database_if_missing("kept").unwrap();
    ask(&server, "kept", "CREATE TABLE t AS SELECT 42 AS n");
    server.stop().unwrap();

    let server = home.start();
    assert!(!server.adopted());
    assert_eq!(server.port(), port);
    assert_eq!(ask(&server, "kept", "SELECT n FROM t"), "42");
    server.stop().unwrap();
}

#[test]
fn a_server_outlives_its_starter_and_is_adopted() {
    let home = Home::new();
    let server = home.start();
    let port = server.port();
    let pid = home.pid().unwrap();
    assert_eq!(getsid(Pid::from_raw(pid)).unwrap().as_raw_nonzero().get(), pid, "Ctrl-C must not reach it");
    drop(server);

    let server = home.start();
    assert!(server.adopted());
    assert_eq!(server.port(), port);
    assert_eq!(home.pid(), Some(pid));
    assert_eq!(server.stop().unwrap(), Stopped::Down);
}

#[test]
fn a_server_that_was_killed_starts_again() {
    let home = Home::new();
    let settings = Settings { durable: true, ..home.settings() };
    let server = home.try_start(&settings).unwrap();
    ask(&server, "postgres", "CREATE TABLE t AS SELECT 42 AS n");
    let (pid, port) = (home.pid().unwrap(), server.port());
    drop(server);
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    while TcpStream::connect(("127.0.0.1", port)).is_ok() {
        std::thread::yield_now();
    }

    let server = home.try_start(&settings).unwrap();
    assert!(!server.adopted());
    assert_eq!(ask(&server, "postgres", "SELECT n FROM t"), "42");
    server.stop().unwrap();
}

#[test]
fn a_stale_pid_file_is_no_obstacle() {
    let home = Home::new();
    home.start().stop().unwrap();
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    // One process is dead; the other lives, but is no server.
    for pid in [gone.id(), std::process::id()] {
        let data = home.pid_file().parent().unwrap().display().to_string();
        fs::write(home.pid_file(), format!("{pid}\n{data}\n1700000000\n5999\n\n127.0.0.1\n\nready   \n"))
            .unwrap();
        let server = home.start();
        assert!(!server.adopted());
        assert_eq!(ask(&server, "postgres", "SELECT 1"), "1");
        server.stop().unwrap();
    }
}

#[test]
fn one_of_two_concurrent_starts_adopts_and_the_last_to_leave_stops() {
    let home = Home::new();
    let both = Barrier::new(2);
    let start = || {
        both.wait();
        home.start()
    };
    let (one, other) = std::thread::scope(|scope| {
        let (one, other) = (scope.spawn(start), scope.spawn(start));
        (one.join().unwrap(), other.join().unwrap())
    });
    assert_eq!(one.url("postgres"), other.url("postgres"));
    assert!(one.adopted() != other.adopted());

    assert_eq!(one.stop().unwrap(), Stopped::InUse);
    assert_eq!(ask(&other, "postgres", "SELECT 1"), "1");
    assert_eq!(other.stop_and_remove().unwrap(), Stopped::Down);
    assert!(!home.dir.path().join("postgres").exists());
}

#[test]
fn a_folder_that_the_account_cannot_enter_is_stood_in_for() {
    if !geteuid().is_root() {
        eprintln!("skipped: only root lends PostgreSQL to another account");
        return;
    }
    let home = Home::new();
    fs::set_permissions(home.dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let mut settings = home.settings();
    settings.dir = home.dir.path().join("project/.weir/postgres");
    let mut said = Vec::new();
    let server = Server::start(&home.binaries, &settings, &mut |line| said.push(line.to_owned())).unwrap();
    assert!(!server.dir().starts_with(home.dir.path()));
    assert!(said[0].contains(server.dir().to_str().unwrap()), "{said:?}");
    assert!(!home.dir.path().join("project").exists(), "nothing useless stays behind");
    assert_eq!(fs::metadata(home.dir.path()).unwrap().permissions().mode() & 0o777, 0o700);

    let stand_in = server.dir().to_path_buf();
    drop(server);
    let server = home.try_start(&settings).unwrap();
    assert!(server.adopted(), "the same folder stands in every time");
    assert_eq!(server.stop_and_remove().unwrap(), Stopped::Down);
    assert!(!stand_in.exists());
}

#[test]
fn a_folder_with_other_things_in_it_is_refused() {
    let home = Home::new();
    let settings = home.settings();
    fs::create_dir(&settings.dir).unwrap();
    fs::write(settings.dir.join("thesis.txt"), "do not lose").unwrap();
    let error = home.try_start(&settings).unwrap_err();
    assert!(matches!(error, StartError::NotOurs { .. }), "{error}");
    assert_eq!(fs::read_to_string(settings.dir.join("thesis.txt")).unwrap(), "do not lose");
    assert_eq!(settings.dir.read_dir().unwrap().count(), 1);
}

#[test]
fn a_cluster_of_another_major_version_is_refused() {
    let home = Home::new();
    home.start().stop().unwrap();
    fs::write(home.dir.path().join("postgres/data/PG_VERSION"), "9.6\n").unwrap();
    let error = home.try_start(&home.settings()).unwrap_err().to_string();
    assert!(error.contains("made by PostgreSQL 9.6") && error.contains("WEIR_POSTGRES_BIN"), "{error}");
}

#[test]
fn a_failed_start_says_why_in_one_line() {
    let home = Home::new();
    let mut settings = home.settings();
    settings.extra.push(("shared_buffers".to_owned(), "plenty".to_owned()));
    let error = home.try_start(&settings).unwrap_err().to_string();
    assert!(error.contains("shared_buffers") && error.contains("plenty"), "{error}");
    assert!(!error.contains('\n'), "{error}");
    // Nothing is broken by it.
    home.start().stop().unwrap();
}

#[test]
fn an_interrupted_initdb_is_begun_again() {
    let home = Home::new();
    home.start().stop().unwrap();
    let place = home.dir.path().join("postgres");
    fs::rename(place.join("data"), place.join("data.making")).unwrap();
    let server = home.start();
    assert!(!place.join("data.making").exists());
    server.stop().unwrap();
}

/// Runs itself in another process, because the variable would show in every other test of this one.
#[test]
fn a_wrong_folder_in_the_environment_is_an_error() {
    if std::env::var_os("WEIR_POSTGRES_BIN").is_some_and(|dir| dir == "/dev/null") {
        let error = Binaries::find().unwrap_err();
        assert!(matches!(error, GetError::Named { .. }), "{error}");
        assert!(error.to_string().contains("WEIR_POSTGRES_BIN=/dev/null"), "{error}");
        return;
    }
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_wrong_folder_in_the_environment_is_an_error"])
        .env("WEIR_POSTGRES_BIN", "/dev/null")
        .status()
        .unwrap();
    assert!(status.success());
}
