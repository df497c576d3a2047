//! Gets the server's programs onto a machine that has none.

mod apt;
#[cfg(feature = "download")]
mod download;

use std::path::PathBuf;

use crate::account::caller_is_root;
use crate::binaries::{Binaries, OLDEST_MAJOR, Unfit};

/// Why there are no programs to run a server with.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    /// `WEIR_POSTGRES_BIN` names a folder that will not do. The search does not go on: who names a
    /// folder means that one.
    #[error("WEIR_POSTGRES_BIN={} will not do: {unfit}", dir.display())]
    Named {
        /// The folder named.
        dir: PathBuf,
        /// What is wrong with it.
        unfit: Unfit,
    },
    /// None are on this machine.
    #[error("{}", without(passed_over))]
    NotFound {
        /// Folders that have the programs but cannot be used, each with the reason.
        passed_over: Vec<String>,
    },
    /// None are on this machine, and getting them failed.
    #[error("{}; getting it failed ({}); {HELP}", without(passed_over), tried.join("; "))]
    NotGot {
        /// Folders that have the programs but cannot be used, each with the reason.
        passed_over: Vec<String>,
        /// What was tried, each with what went wrong.
        tried: Vec<String>,
    },
}

const HELP: &str = "install one (apt-get install postgresql, brew install postgresql@17), or set WEIR_POSTGRES_BIN \
                    to the folder of its programs, or DATABASE_URL to a server that runs";

fn without(passed_over: &[String]) -> String {
    let mut text = format!(
        "found no PostgreSQL server {OLDEST_MAJOR} or newer (initdb, pg_ctl and postgres in one folder of PATH, \
         pg_config --bindir or the usual ones)"
    );
    if !passed_over.is_empty() {
        text.push_str(&format!(", only {}", passed_over.join(", ")));
    }
    text
}

/// Gets the programs by the first way that works here.
pub(crate) fn get(passed_over: Vec<String>, say: &mut dyn FnMut(&str)) -> Result<Binaries, GetError> {
    let mut tried = Vec::new();
    if caller_is_root() && apt::is_here() {
        match apt::install(say) {
            Ok(()) => return Binaries::find(),
            Err(error) => tried.push(error),
        }
    }
    #[cfg(feature = "download")]
    match download::download(say) {
        Ok(binaries) => return Ok(binaries),
        Err(error) => tried.push(error),
    }
    #[cfg(not(feature = "download"))]
    tried.push("built without the `download` feature".to_owned());
    Err(GetError::NotGot { passed_over, tried })
}

/// The folders of programs downloaded before, the highest version first.
pub(crate) fn earlier_copies() -> Vec<PathBuf> {
    #[cfg(feature = "download")]
    return download::earlier_copies();
    #[cfg(not(feature = "download"))]
    Vec::new()
}
