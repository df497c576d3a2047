//! A Postgres of a test's own, to be stopped and frozen.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use weir_postgres::{Binaries, Server, Settings};

use crate::store::Store;

/// A folder that every account can enter: as root, Postgres runs as somebody else.
pub(crate) fn folder() -> TempDir {
    let open_to_all = Permissions::from_mode(0o755);
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    tempfile::Builder::new().prefix("server-").permissions(open_to_all).tempdir_in(parent).unwrap()
}

pub(crate) struct Postgres {
    binaries: Binaries,
    settings: Settings,
    server: Option<Server>,
    _folder: TempDir,
}

impl Postgres {
    pub(crate) fn start() -> Self {
        let folder = folder();
        let small = vec![("shared_buffers".to_owned(), "16MB".to_owned())];
        let settings = Settings { dir: folder.path().join("postgres"), durable: false, extra: small };
        let binaries = Binaries::find_or_get(&mut |line| eprintln!("{line}")).unwrap();
        let mut postgres = Self { binaries, settings, server: None, _folder: folder };
        postgres.start_again();
        postgres
    }

    /// The port is the one it had, so that URLs stay as they are.
    pub(crate) fn start_again(&mut self) {
        self.server = Some(Server::start(&self.binaries, &self.settings, &mut |_| {}).unwrap());
    }

    pub(crate) fn stop(&mut self) {
        self.server.take().unwrap().stop().unwrap();
    }

    /// A new store in it.
    pub(crate) fn store(&self) -> Store {
        Store::on(self.server.as_ref().unwrap().url("postgres"))
    }

    /// Restores a dump of a store that is in another cluster, as an operator would: `pg_dump | psql`.
    pub(crate) fn restore(&self, from: &Store) -> Store {
        let dump = Command::new(self.binaries.dir.join("pg_dump"))
            .args(["--no-owner", "--schema", &from.schema, "--dbname", &from.url])
            .output()
            .unwrap();
        assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
        let store = Store { url: self.store().url.clone(), schema: from.schema.clone() };
        let mut psql = Command::new(self.binaries.dir.join("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", &store.url]);
        let run = crate::program::Run::of_command(&mut psql, &String::from_utf8(dump.stdout).unwrap());
        assert_eq!((run.code, &*run.stderr), (Some(0), ""), "{run:?}");
        store
    }

    /// Stops all its processes without ending one: connections stay open and nobody answers.
    pub(crate) fn freeze(&self, store: &Store) -> Frozen {
        let data = self.server.as_ref().unwrap().dir().join("data");
        let pid_file = fs::read_to_string(data.join("postmaster.pid")).unwrap();
        let postmaster: i32 = pid_file.lines().next().unwrap().parse().unwrap();
        let mut session = store.session();
        let mut frozen = Frozen(Vec::new());
        // It first: then there are no new ones.
        frozen.stop(postmaster);
        let backends: Vec<i32> =
            session.ask("SELECT array_agg(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()");
        backends.into_iter().for_each(|pid| frozen.stop(pid));
        frozen
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            let stopped = server.stop_and_remove();
            assert!(stopped.is_ok() || std::thread::panicking(), "{stopped:?}");
        }
    }
}

/// Frozen processes. They go on when this is dropped.
pub(crate) struct Frozen(Vec<Pid>);

impl Frozen {
    fn stop(&mut self, pid: i32) {
        let pid = Pid::from_raw(pid).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        self.0.push(pid);
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for pid in &self.0 {
            let _ = kill_process(*pid, Signal::CONT);
        }
    }
}
