//! Where the server's programs are.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::account::Account;
use crate::get::{self, GetError};

/// The oldest major version Weir runs on.
pub const OLDEST_MAJOR: u32 = 13;

/// The programs every usable folder holds.
const PROGRAMS: [&str; 3] = ["initdb", "pg_ctl", "postgres"];

/// Names the folder of the programs, and so ends the search.
const NAMED_BY: &str = "WEIR_POSTGRES_BIN";

/// A folder with the programs of a PostgreSQL server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    /// The folder that holds `initdb`, `pg_ctl` and `postgres`; links are resolved.
    pub dir: PathBuf,
    /// The major version, such as 17.
    pub major: u32,
}

impl Binaries {
    /// Looks for the programs on this machine: in the folder that `WEIR_POSTGRES_BIN` names (which must
    /// then be right), along `PATH`, where `pg_config` points, in the usual folders with the newest
    /// version first, and among the copies fetched earlier.
    ///
    /// # Errors
    /// [`GetError::Named`] when `WEIR_POSTGRES_BIN` is wrong, [`GetError::NotFound`] when there are none.
    pub fn find() -> Result<Binaries, GetError> {
        if let Some(dir) = env::var_os(NAMED_BY) {
            let dir = PathBuf::from(dir);
            return Binaries::inspect(&dir).map_err(|unfit| GetError::Named { dir, unfit });
        }
        let mut seen = BTreeSet::new();
        let mut passed_over = Vec::new();
        let places: [fn() -> Vec<PathBuf>; 4] =
            [along_path, where_pg_config_points, usual_folders, get::earlier_copies];
        for dir in places.iter().flat_map(|place| place()) {
            if !seen.insert(dir.clone()) {
                continue;
            }
            match Binaries::inspect(&dir) {
                Ok(binaries) => return Ok(binaries),
                Err(unfit @ Unfit::Incomplete(_)) => drop(unfit),
                Err(unfit) => passed_over.push(format!("{}: {unfit}", dir.display())),
            }
        }
        Err(GetError::NotFound { passed_over })
    }

    /// [`find`](Binaries::find), and where that finds nothing, gets the programs: from the distribution
    /// as root on Debian and Ubuntu, otherwise as a download into the user's cache. `say` hears a line
    /// for each thing that takes time or changes the machine.
    ///
    /// # Errors
    /// As for [`find`](Binaries::find), or [`GetError::NotGot`] with what was tried and what helps.
    pub fn find_or_get(say: &mut dyn FnMut(&str)) -> Result<Binaries, GetError> {
        match Binaries::find() {
            Err(GetError::NotFound { passed_over }) => get::get(passed_over, say),
            found => found,
        }
    }

    /// Checks that `dir` holds the programs, in a version Weir runs on, and that the account which will
    /// run them can.
    pub(crate) fn inspect(dir: &Path) -> Result<Binaries, Unfit> {
        let dir = dir.canonicalize().map_err(|_| Unfit::Incomplete(PROGRAMS.join(", ")))?;
        let missing: Vec<&str> = PROGRAMS.into_iter().filter(|name| !dir.join(name).is_file()).collect();
        if !missing.is_empty() {
            return Err(Unfit::Incomplete(missing.join(", ")));
        }
        let account = Account::pick().ok_or(Unfit::NoAccount)?;
        let ran = account.command(dir.join("postgres")).arg("--version").output();
        let output = ran.map_err(|error| Unfit::NotRun(account.name().to_owned(), error.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let Some(major) = major_in(&text) else {
            let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', " ");
            return Err(Unfit::NotRun(account.name().to_owned(), said));
        };
        if major < OLDEST_MAJOR {
            return Err(Unfit::TooOld(major));
        }
        Ok(Binaries { dir, major })
    }
}

/// Why a folder's programs are of no use.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// Some are missing.
    #[error("it has no {0}")]
    Incomplete(String),
    /// They are of a version Weir does not run on.
    #[error("PostgreSQL {0} is too old, Weir needs {OLDEST_MAJOR} or newer")]
    TooOld(u32),
    /// The account could not run them.
    #[error("the account that runs the server ({0}) cannot run its postgres: {1}")]
    NotRun(String, String),
    /// The caller is root and there is nobody to lend them to.
    #[error("PostgreSQL does not run as root, and there is neither a postgres nor a nobody account")]
    NoAccount,
}

/// `17` in `postgres (PostgreSQL) 17.6 (Debian 17.6-1)`.
fn major_in(version: &str) -> Option<u32> {
    let after = version.split_once("(PostgreSQL) ")?.1;
    let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    after[..digits].parse().ok()
}

/// Real folders of the programs that `PATH` leads to, which may be links into them.
fn along_path() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .flat_map(|dir| PROGRAMS.map(|name| dir.join(name)))
        .filter_map(|program| Some(program.canonicalize().ok()?.parent()?.to_path_buf()))
        .collect()
}

fn where_pg_config_points() -> Vec<PathBuf> {
    let Ok(output) = Command::new("pg_config").arg("--bindir").output() else { return Vec::new() };
    vec![PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())]
}

/// The folders that distributions, Homebrew, Postgres.app and `make install` use.
fn usual_folders() -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    for (parent, prefix, bin) in [
        ("/usr/lib/postgresql", "", "bin"),
        ("/usr", "pgsql-", "bin"),
        ("/usr/libexec", "postgresql", ""),
        ("/opt/homebrew/opt", "postgresql@", "bin"),
        ("/usr/local/opt", "postgresql@", "bin"),
        ("/Applications/Postgres.app/Contents/Versions", "", "bin"),
    ] {
        dirs.extend(newest_first(Path::new(parent), prefix).into_iter().map(|dir| dir.join(bin)));
    }
    let unversioned =
        ["/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql/bin", "/usr/local/opt/postgresql/bin"];
    dirs.extend(unversioned.map(PathBuf::from));
    dirs
}

/// The folders in `parent` that are named `prefix` and a version, the highest version first.
pub(crate) fn newest_first(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = parent.read_dir() else { return Vec::new() };
    let mut found: Vec<(Vec<u32>, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let version: Result<Vec<u32>, _> =
                name.strip_prefix(prefix)?.split('.').map(str::parse).collect();
            Some((version.ok()?, entry.path()))
        })
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, dir)| dir).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_major_version() {
        assert_eq!(major_in("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n"), Some(15));
        assert_eq!(major_in("postgres (PostgreSQL) 18beta1\n"), Some(18));
        assert_eq!(major_in("postgres (Greenplum)"), None);
    }

    #[test]
    fn the_highest_version_comes_first() {
        let parent = tempfile::tempdir().unwrap();
        for name in ["pgsql-9.6", "pgsql-13", "pgsql-17", "pgsql-tools", "else"] {
            std::fs::create_dir(parent.path().join(name)).unwrap();
        }
        let names: Vec<_> = newest_first(parent.path(), "pgsql-")
            .iter()
            .map(|dir| dir.file_name().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["pgsql-17", "pgsql-13", "pgsql-9.6"]);
    }
}
