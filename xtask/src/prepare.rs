//! `cargo xtask prepare`: renews `.sqlx`, what PostgreSQL says about each query the store checks at compile
//! time, so that building Weir needs no database.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use weir_postgres::Server;

use crate::postgres;
use crate::workspaces::{HOST, passes, root};

/// What can be chosen about `.sqlx`.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct Options {
    /// Change nothing; fail when `.sqlx` is not what it should be
    #[arg(long)]
    check: bool,
}

/// Query files by name, with their text.
type Queries = BTreeMap<String, String>;

pub(crate) fn run(options: Options) -> Result<()> {
    let server = postgres::start()?;
    let done = if options.check { check(&server) } else { renew(&server) };
    let finished = postgres::finish(server);
    done.and(finished)
}

/// Fails when `.sqlx` differs from what the queries and migrations of this tree give.
pub(crate) fn check(server: &Server) -> Result<()> {
    let (fresh, committed) = (describe(server)?, read(&committed_dir())?);
    let missing = fresh.keys().filter(|name| !committed.contains_key(*name)).count();
    let stale = committed.keys().filter(|name| !fresh.contains_key(*name)).count();
    let changed =
        fresh.iter().filter(|(name, text)| committed.get(*name).is_some_and(|old| old != *text)).count();
    if missing + stale + changed > 0 {
        bail!(
            ".sqlx is out of date ({missing} missing, {changed} changed, {stale} no longer used): \
             run `cargo xtask prepare` and commit the result"
        );
    }
    eprintln!(".sqlx is up to date ({} queries)", fresh.len());
    Ok(())
}

fn renew(server: &Server) -> Result<()> {
    let (fresh, dir) = (describe(server)?, committed_dir());
    fs::create_dir_all(&dir)?;
    for name in read(&dir)?.keys().filter(|name| !fresh.contains_key(*name)) {
        fs::remove_file(dir.join(name))?;
    }
    for (name, text) in &fresh {
        fs::write(dir.join(name), text)?;
    }
    eprintln!("{} holds {} queries", dir.display(), fresh.len());
    Ok(())
}

fn committed_dir() -> PathBuf {
    root().join(".sqlx")
}

/// Has the compiler describe every query, against a database with this tree's migrations.
fn describe(server: &Server) -> Result<Queries> {
    let database = format!("weir_prepare_{}", std::process::id());
    server.create_database_if_missing(&database)?;
    let described = migrate(server, &database).and_then(|()| compile_against(server, &database));
    let drop = format!("DROP DATABASE \"{database}\" WITH (FORCE)");
    passes(server.psql("postgres").args(["--command", &drop]))?;
    described
}

/// Applies the migrations as the store does: in order, with the store's schema as the search path.
fn migrate(server: &Server, database: &str) -> Result<()> {
    let dir = root().join("migrations");
    let mut files: Vec<PathBuf> = fs::read_dir(&dir)
        .with_context(|| format!("cannot read {}", dir.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "sql"));
    files.sort();
    passes(server.psql(database).args(["--command", "CREATE SCHEMA weir"]))?;
    for file in files {
        let mut psql = server.psql(database);
        psql.env("PGOPTIONS", "-c search_path=weir").args(["--single-transaction", "--file"]).arg(&file);
        // What a migration's statements return interests nobody here.
        passes(psql.stdout(Stdio::null())).with_context(|| format!("migration {}", file.display()))?;
    }
    Ok(())
}

/// Compiles the store with its macros asking the database, which leaves a file for each query.
fn compile_against(server: &Server, database: &str) -> Result<Queries> {
    let dir = root().join("target/prepare");
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    fs::create_dir_all(&dir)?;
    let touched = Touched::touch(&root().join("host/store/src/lib.rs"))?;
    let checked = passes(
        HOST.cargo(&["check", "--quiet", "--locked", "--package", "weir-store", "--all-targets"])
            .env("SQLX_OFFLINE_DIR", &dir)
            .env("SQLX_OFFLINE", "false")
            .env("DATABASE_URL", format!("{}?options=-csearch_path=weir", server.url(database))),
    );
    touched.undo()?;
    checked?;
    read(&dir)
}

/// A source file that cargo takes to have changed, so that it runs the crate's macros again. Its time is
/// put back afterwards, or every later build would compile the crate again too.
struct Touched {
    file: File,
    before: SystemTime,
    after: SystemTime,
}

impl Touched {
    fn touch(path: &Path) -> Result<Touched> {
        let file = File::options().append(true).open(path).with_context(|| path.display().to_string())?;
        let before = file.metadata()?.modified()?;
        file.set_times(FileTimes::new().set_modified(SystemTime::now()))?;
        let after = file.metadata()?.modified()?;
        Ok(Touched { file, before, after })
    }

    fn undo(self) -> Result<()> {
        // Whoever saved the file meanwhile wants it compiled.
        if self.file.metadata()?.modified()? == self.after {
            self.file.set_times(FileTimes::new().set_modified(self.before))?;
        }
        Ok(())
    }
}

fn read(dir: &Path) -> Result<Queries> {
    if !dir.exists() {
        return Ok(Queries::new());
    }
    let mut queries = Queries::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("query-") && name.ends_with(".json") {
            queries.insert(name, fs::read_to_string(entry.path())?);
        }
    }
    Ok(queries)
}
