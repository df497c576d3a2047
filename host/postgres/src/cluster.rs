//! Makes the cluster, the folder that `initdb` fills.

use std::fs::{self, DirBuilder};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Output;

use crate::account::Account;
use crate::binaries::Binaries;
use crate::place::Place;
use crate::server::{SUPERUSER, StartError};

/// Makes the cluster when there is none yet, and refuses one of another major version.
pub(crate) fn ensure(
    place: &Place,
    binaries: &Binaries,
    account: &Account,
    durable: bool,
    say: &mut dyn FnMut(&str),
) -> Result<(), StartError> {
    let data = place.data();
    if !data.exists() {
        say(&format!("Making a PostgreSQL {} cluster in {}", binaries.major, data.display()));
        return make(place, binaries, account, durable);
    }
    let version = data.join("PG_VERSION");
    let text = fs::read_to_string(&version).map_err(StartError::io("read", &version))?;
    if text.trim() != binaries.major.to_string() {
        return Err(StartError::OtherMajor {
            data,
            made_by: text.trim().to_owned(),
            bin: binaries.dir.clone(),
            major: binaries.major,
        });
    }
    Ok(())
}

/// Fills another folder and renames it, so that a cluster which was interrupted half made is never
/// mistaken for one.
fn make(place: &Place, binaries: &Binaries, account: &Account, durable: bool) -> Result<(), StartError> {
    let making = place.dir().join("data.making");
    if making.exists() {
        fs::remove_dir_all(&making).map_err(StartError::io("remove", &making))?;
    }
    DirBuilder::new()
        .mode(0o700)
        .create(&making)
        .and_then(|()| account.give(&making))
        .map_err(StartError::io("make the folder", &making))?;

    // A C library that does not know C.UTF-8 (macOS until lately) still has plain C; both sort by bytes.
    let mut output = initdb(place, binaries, account, durable, &making, "C.UTF-8")?;
    if !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("invalid locale") {
        output = initdb(place, binaries, account, durable, &making, "C")?;
    }
    succeeded("initdb", &output)?;

    // Appended by the account itself: root does not write where another account could plant a link.
    let include = "printf '%s\\n' \"include '../weir.conf'\" >> \"$0\"";
    let output = account
        .command("/bin/sh")
        .args(["-c", include])
        .arg(making.join("postgresql.conf"))
        .output()
        .map_err(StartError::io("run", "/bin/sh"))?;
    succeeded("writing postgresql.conf", &output)?;
    fs::rename(&making, place.data()).map_err(StartError::io("rename", &making))
}

fn initdb(
    place: &Place,
    binaries: &Binaries,
    account: &Account,
    durable: bool,
    into: &Path,
    locale: &str,
) -> Result<Output, StartError> {
    // A passing copy of the password that the account may read; it goes when this function returns.
    let password = tempfile::NamedTempFile::new_in(place.dir())
        .and_then(|mut file| {
            writeln!(file, "{}", place.password().map_err(std::io::Error::other)?).map(|()| file)
        })
        .and_then(|file| account.give(file.path()).map(|()| file))
        .map_err(StartError::io("write the password to", place.dir()))?;
    let program = binaries.dir.join("initdb");
    let mut command = account.command(&program);
    command.arg("-D").arg(into).arg("--pwfile").arg(password.path());
    command.args([
        "--username",
        SUPERUSER,
        "--auth",
        "scram-sha-256",
        "--encoding",
        "UTF8",
        "--locale",
        locale,
    ]);
    if !durable {
        command.arg("--no-sync");
    }
    command.output().map_err(StartError::io("run", &program))
}

/// Turns a program's failure into one line.
pub(crate) fn succeeded(program: &str, output: &Output) -> Result<(), StartError> {
    if output.status.success() {
        return Ok(());
    }
    let said =
        format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(StartError::Failed { program: program.to_owned(), said: complaint(&said) })
}

/// The lines that say what went wrong, or the last ones if none does, as one line.
pub(crate) fn complaint(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let telling = ["FATAL:", "PANIC:", "error:", "HINT:", "could not", "invalid", "unrecognized"];
    let mut chosen: Vec<&str> =
        lines().filter(|line| telling.iter().any(|word| line.contains(word))).collect();
    if chosen.is_empty() {
        chosen = lines().collect();
    }
    chosen[chosen.len().saturating_sub(4)..].join(" | ")
}
