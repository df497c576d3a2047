//! The folder a server keeps everything in, and who may be busy in it.
//!
//! ```text
//! <dir>/            the caller's; root never writes below data/, which belongs to someone else
//!   starting.lock   held while a server is started or stopped: one at a time
//!   in-use.lock     held, shared, by everyone who uses the server: the last to leave stops it
//!   password        of the superuser `weir`, for its owner's eyes only
//!   weir.conf       settings, written anew at every start; postgresql.conf includes it
//!   data/           the cluster, with server.log in it
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::account::{Account, caller_is_root};
use crate::server::StartError;

/// The folder of one server. It exists, it is this crate's, and the account can enter it.
#[derive(Debug)]
pub(crate) struct Place {
    dir: PathBuf,
}

impl Place {
    /// Opens `wanted`, making it where it is missing. Where the account cannot enter it, as in a project
    /// below `/root`, another folder takes its place, always the same one, and `say` hears which.
    pub(crate) fn open(
        wanted: &Path,
        account: &Account,
        say: &mut dyn FnMut(&str),
    ) -> Result<Place, StartError> {
        let wanted = std::path::absolute(wanted).map_err(StartError::io("find", wanted))?;
        let first_made = wanted.ancestors().take_while(|dir| !dir.exists()).last();
        make(&wanted, account).map_err(StartError::io("make the folder", &wanted))?;
        if account.can_enter(&wanted) {
            return Place { dir: wanted }.checked();
        }
        if let Some(first_made) = first_made {
            let emptied = wanted.ancestors().map_while(|dir| fs::remove_dir(dir).ok().map(|()| dir));
            emptied.take_while(|dir| *dir != first_made).for_each(drop);
        }
        let instead = instead_of(&wanted, account)?;
        say(&format!(
            "The account `{}`, which runs PostgreSQL, cannot enter {}: its data is kept in {}",
            account.name(),
            wanted.display(),
            instead.display()
        ));
        Place { dir: instead }.checked()
    }

    /// Refuses a folder with things of somebody else's in it, and a path that `pg_ctl`, which hands it to
    /// a shell between double quotes, would garble.
    fn checked(self) -> Result<Place, StartError> {
        let dir = self.dir.canonicalize().map_err(StartError::io("find", &self.dir))?;
        if dir.to_string_lossy().contains(['"', '$', '`', '\\', '\n', '\r']) {
            return Err(StartError::Unquotable { dir });
        }
        let place = Place { dir };
        let mut entries = place.dir.read_dir().map_err(StartError::io("read the folder", &place.dir))?;
        if entries.next().is_some() && !place.dir.join(STARTING).exists() {
            return Err(StartError::NotOurs { dir: place.dir });
        }
        Ok(place)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join("data/server.log")
    }

    /// The settings that postgresql.conf includes.
    pub(crate) fn conf(&self) -> PathBuf {
        self.dir.join("weir.conf")
    }

    /// Waits until nobody else starts or stops the server. Lasts as long as the file. `None` when the
    /// folder was removed during the wait: open it anew.
    pub(crate) fn lock_starting(&self) -> Result<Option<File>, StartError> {
        let path = self.dir.join(STARTING);
        let locked = || {
            let file = open_lock(&path)?;
            file.lock()?;
            Ok((file.metadata()?.nlink() > 0).then_some(file))
        };
        locked().map_err(StartError::io("lock", &path))
    }

    /// Joins those who use the server. Lasts as long as the file, so a killed process leaves them too.
    pub(crate) fn lock_in_use(&self) -> Result<File, StartError> {
        let path = self.dir.join(IN_USE);
        open_lock(&path)
            .and_then(|file| file.lock_shared().map(|()| file))
            .map_err(StartError::io("lock", &path))
    }

    /// Whether anybody uses the server. Ask while nobody can join: under [`lock_starting`](Self::lock_starting).
    pub(crate) fn in_use(&self) -> io::Result<bool> {
        match open_lock(&self.dir.join(IN_USE))?.try_lock() {
            Ok(()) => Ok(false),
            Err(fs::TryLockError::WouldBlock) => Ok(true),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// The superuser's password, made up when there is none yet.
    pub(crate) fn password(&self) -> Result<String, StartError> {
        let path = self.dir.join("password");
        match fs::read_to_string(&path) {
            Ok(password) => return Ok(password.trim().to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StartError::io("read", &path)(error)),
        }
        let password = random_hex().map_err(StartError::io("read", "/dev/urandom"))?;
        self.write_private(&path, &password).map_err(StartError::io("write", &path))?;
        Ok(password)
    }

    /// Writes then renames, so that a full disk leaves no empty password behind. Temporary files are
    /// their owner's alone from the start.
    fn write_private(&self, path: &Path, text: &str) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.dir)?;
        writeln!(file, "{text}")?;
        file.persist(path)?;
        Ok(())
    }
}

const STARTING: &str = "starting.lock";
const IN_USE: &str = "in-use.lock";

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
}

/// Makes `dir` and its parents. A lent account must get through, whatever the umask; other users have no
/// business in there.
fn make(dir: &Path, account: &Account) -> io::Result<()> {
    let mode = match account {
        Account::Caller => 0o700,
        Account::Lent { .. } => 0o755,
    };
    if let Some(parent) = dir.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::create_dir(dir) {
        Ok(()) => fs::set_permissions(dir, fs::Permissions::from_mode(mode)),
        Err(_) if dir.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// The folder that stands in for one which the account cannot enter.
fn instead_of(wanted: &Path, account: &Account) -> Result<PathBuf, StartError> {
    let name = format!("postgres-{:016x}", fnv1a(wanted.as_os_str().as_encoded_bytes()));
    let bases = [PathBuf::from("/var/lib/weir"), std::env::temp_dir().join("weir")];
    for base in &bases {
        let dir = base.join(&name);
        // Anyone may have made a folder of that name in a shared one.
        let ours = |dir: &Path| {
            dir.symlink_metadata().is_ok_and(|it| it.is_dir() && (it.uid() == 0) == caller_is_root())
        };
        if make(base, account).is_ok()
            && make(&dir, account).is_ok()
            && ours(base)
            && ours(&dir)
            && account.can_enter(&dir)
        {
            return Ok(dir);
        }
    }
    Err(StartError::Unreachable { account: account.name().to_owned(), dir: wanted.to_path_buf() })
}

/// A hash that stays the same from one build to the next, which the standard library's does not promise.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn random_hex() -> io::Result<String> {
    let mut bytes = [0; 24];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
