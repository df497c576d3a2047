//! Starts, adopts and stops a private server.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::account::Account;
use crate::binaries::Binaries;
use crate::cluster::{self, complaint, succeeded};
use crate::conf;
use crate::place::Place;
use crate::postmaster::{self, PATIENCE};

/// The superuser of every private server.
pub(crate) const SUPERUSER: &str = "weir";

/// How often a port that was free a moment ago may turn out to be taken.
const PORT_TRIES: u32 = 3;

/// What server to run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder for everything the server keeps, made where it is missing. Where the account that runs
    /// the server cannot enter it, [`Server::dir`] is another.
    pub dir: PathBuf,
    /// Whether the data must outlive a crash of the machine. Without it commits do not wait for the disk.
    pub durable: bool,
    /// Settings in the manner of postgresql.conf, which override Weir's. A server that is adopted keeps
    /// those it was started with.
    pub extra: Vec<(String, String)>,
}

/// A running server. Dropping this leaves the server running, and the next [`Server::start`] on its
/// folder adopts it: so a killed host loses nothing, and a Ctrl-C reaches the host alone.
pub struct Server {
    place: Place,
    account: Account,
    bin: PathBuf,
    port: u16,
    password: String,
    adopted: bool,
    /// Says that the server is wanted, for as long as it is open.
    in_use: File,
}

/// What became of a server that its user is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It is down.
    Down,
    /// It runs on, because another process uses it too; the last one to stop it takes it down.
    InUse,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The system refused something.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// To what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The folder has things in it that no server of this crate put there.
    #[error("{} is not empty and holds no server of Weir's: name another folder, or empty it yourself", dir.display())]
    NotOurs {
        /// The folder.
        dir: PathBuf,
    },
    /// The path has a character that `pg_ctl` garbles.
    #[error("{} will not do as the server's folder: pg_ctl cannot quote one of its characters", dir.display())]
    Unquotable {
        /// The folder.
        dir: PathBuf,
    },
    /// The caller is root and there is nobody to run the server as.
    #[error(
        "PostgreSQL does not run as root, and there is neither a postgres nor a nobody account to run it"
    )]
    NoAccount,
    /// Neither the wanted folder nor one that could stand in for it is open to the account.
    #[error("`{account}`, which runs PostgreSQL, cannot enter {}, nor /var/lib/weir: name a folder it can enter", dir.display())]
    Unreachable {
        /// The account.
        account: String,
        /// The wanted folder.
        dir: PathBuf,
    },
    /// The cluster was made by another major version, whose files this one cannot read.
    #[error(
        "{} was made by PostgreSQL {made_by}, and {} has {major}: set WEIR_POSTGRES_BIN to the programs of \
         {made_by}, or move the folder above it away to begin with an empty one",
        data.display(), bin.display()
    )]
    OtherMajor {
        /// The cluster.
        data: PathBuf,
        /// The version that made it.
        made_by: String,
        /// The programs at hand.
        bin: PathBuf,
        /// Their version.
        major: u32,
    },
    /// A server runs on the cluster but gets neither ready nor done.
    #[error("the server on {} (process {pid}) has been `{state}` for {PATIENCE:?}", data.display())]
    Unsettled {
        /// The cluster.
        data: PathBuf,
        /// The server's process.
        pid: i32,
        /// Its last word.
        state: String,
    },
    /// One of PostgreSQL's programs failed.
    #[error("{program} failed: {said}")]
    Failed {
        /// Which, or what it was doing.
        program: String,
        /// What it said, in one line.
        said: String,
    },
}

impl StartError {
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> StartError {
        let path = path.into();
        move |source| StartError::Io { what, path, source }
    }
}

impl Server {
    /// Starts a server in `settings.dir`, with a new cluster when there is none, or adopts the one that
    /// runs there. Returns when it takes connections. `say` hears a line for each thing out of the
    /// ordinary. Several processes may do this at once: one starts the server, the others adopt it.
    ///
    /// # Errors
    /// [`StartError`], whose text is one line that says what to do.
    pub fn start(
        binaries: &Binaries,
        settings: &Settings,
        say: &mut dyn FnMut(&str),
    ) -> Result<Server, StartError> {
        let account = Account::pick().ok_or(StartError::NoAccount)?;
        let (place, _starting) = loop {
            let place = Place::open(&settings.dir, &account, say)?;
            if let Some(starting) = place.lock_starting()? {
                break (place, starting);
            }
        };
        let in_use = place.lock_in_use()?;
        let password = place.password()?;
        let running = postmaster::running(&place.data())?;
        let port = match running {
            Some(port) => port,
            None => {
                cluster::ensure(&place, binaries, &account, settings.durable, say)?;
                launch(&place, binaries, &account, settings)?
            }
        };
        let (bin, adopted) = (binaries.dir.clone(), running.is_some());
        Ok(Server { place, account, bin, port, password, adopted, in_use })
    }

    /// An address of `database` with user and password, for sqlx, psql and anything else that takes a
    /// `postgres://` URL. Whoever sees it can use the server.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{SUPERUSER}:{}@127.0.0.1:{}/{database}", self.password, self.port)
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder in which everything is kept, which may not be the one that was wanted.
    pub fn dir(&self) -> &Path {
        self.place.dir()
    }

    /// The server's log.
    pub fn log(&self) -> PathBuf {
        self.place.log()
    }

    /// Whether the server ran before this process came.
    pub fn adopted(&self) -> bool {
        self.adopted
    }

    /// A `psql` that is connected to `database` and reads no start-up file, where there is one.
    pub fn psql(&self, database: &str) -> Command {
        let beside = self.bin.join("psql");
        let mut psql = Command::new(if beside.is_file() { beside } else { PathBuf::from("psql") });
        // Variables, unlike arguments, are hidden from other users.
        psql.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"]).env_remove("PGSERVICE");
        psql.env("PGHOST", "127.0.0.1").env("PGPORT", self.port.to_string()).env("PGDATABASE", database);
        psql.env("PGUSER", SUPERUSER).env("PGPASSWORD", &self.password).env("PGCLIENTENCODING", "UTF8");
        psql
    }

    /// Makes the database `name`, if it is not there yet. Needs `psql`.
    ///
    /// # Errors
    /// When there is no `psql`, or the server refuses.
    pub fn create_database_if_missing(&self, name: &str) -> Result<(), StartError> {
        let statement = format!("CREATE DATABASE \"{}\"", name.replace('"', "\"\""));
        let mut psql = self.psql("postgres");
        psql.args(["--set", "VERBOSITY=verbose", "--command", &statement])
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        let output = psql.output().map_err(StartError::io("run", "psql"))?;
        // 42P04 duplicate_database, and 23505 where two make it at once.
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("42P04:") || said.contains("23505:") {
            return Ok(());
        }
        succeeded("CREATE DATABASE", &output)
    }

    /// Stops the server, rolling back what is under way, and waits until it is down; unless another
    /// process uses it too.
    ///
    /// # Errors
    /// When `pg_ctl` fails; the server may still run then.
    pub fn stop(self) -> Result<Stopped, StartError> {
        self.leave(false)
    }

    /// [`stop`](Server::stop), and where that took the server down, removes its folder with all data.
    ///
    /// # Errors
    /// As for [`stop`](Server::stop), or when the folder cannot be removed.
    pub fn stop_and_remove(self) -> Result<Stopped, StartError> {
        self.leave(true)
    }

    fn leave(self, remove: bool) -> Result<Stopped, StartError> {
        let Server { place, account, bin, in_use, .. } = self;
        let _starting = place.lock_starting()?;
        drop(in_use);
        if place.in_use().map_err(StartError::io("lock in", place.dir()))? {
            return Ok(Stopped::InUse);
        }
        let pg_ctl = bin.join("pg_ctl");
        let mut command = account.command(&pg_ctl);
        command
            .args(["stop", "-m", "fast", "-w", "-t", &PATIENCE.as_secs().to_string(), "-D"])
            .arg(place.data());
        let output = command.output().map_err(StartError::io("run", &pg_ctl))?;
        // It may have gone down by itself, which is just as well.
        if place.data().join("postmaster.pid").exists() {
            succeeded("pg_ctl stop", &output)?;
        }
        if remove {
            fs::remove_dir_all(place.dir()).map_err(StartError::io("remove", place.dir()))?;
        }
        Ok(Stopped::Down)
    }
}

/// Without the password.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("dir", &self.place.dir())
            .field("port", &self.port)
            .field("adopted", &self.adopted)
            .finish_non_exhaustive()
    }
}

/// Starts the server with `pg_ctl`, which gives it a session of its own: a Ctrl-C in the terminal must not
/// reach it before the host has drained. Returns its port.
fn launch(
    place: &Place,
    binaries: &Binaries,
    account: &Account,
    settings: &Settings,
) -> Result<u16, StartError> {
    let (data, log, conf) = (place.data(), place.log(), place.conf());
    postmaster::clear_stale(&data).map_err(StartError::io("clear postmaster.pid in", &data))?;
    let logged_before = log.metadata().map_or(0, |metadata| metadata.len());
    let pg_ctl = binaries.dir.join("pg_ctl");
    let mut tries = 0;
    loop {
        let port = conf::pick_port(&conf).map_err(StartError::io("find a free port for", place.dir()))?;
        conf::write(&conf, port, settings.durable, &settings.extra)
            .map_err(StartError::io("write", &conf))?;
        let mut command = account.command(&pg_ctl);
        command
            .args(["start", "-w", "-t", &PATIENCE.as_secs().to_string(), "-D"])
            .arg(&data)
            .arg("-l")
            .arg(&log);
        let output = command.output().map_err(StartError::io("run", &pg_ctl))?;
        if output.status.success() {
            // Asked rather than assumed: `extra` may have named another port.
            return postmaster::running(&data).map(|running| running.unwrap_or(port));
        }
        let said = read_from(&log, logged_before).unwrap_or_default();
        tries += 1;
        if said.contains("Address already in use") && tries < PORT_TRIES {
            continue;
        }
        let said = match complaint(&said) {
            nothing if nothing.is_empty() => complaint(&String::from_utf8_lossy(&output.stderr)),
            complaint => format!("{complaint} (see {})", log.display()),
        };
        return Err(StartError::Failed { program: "starting PostgreSQL".to_owned(), said });
    }
}

fn read_from(path: &Path, offset: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
