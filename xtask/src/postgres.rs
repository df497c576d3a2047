//! `cargo xtask postgres`: the one PostgreSQL server that tests and chores share.

use anyhow::Result;
use weir_postgres::{Binaries, Server, Settings, Stopped};

use crate::workspaces::root;

/// Where tests look for the server.
pub(crate) const TEST_URL: &str = "WEIR_TEST_DATABASE_URL";

const TEST_DATABASE: &str = "weir_test";

/// What can be chosen about the server.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct Options {
    /// Stop it and remove its data
    #[arg(long)]
    stop: bool,
}

pub(crate) fn run(options: Options) -> Result<()> {
    let server = start()?;
    if options.stop {
        return remove(server);
    }
    eprintln!("Until `cargo xtask postgres --stop`:");
    println!("export {TEST_URL}='{}'", test_url(&server)?);
    Ok(())
}

/// Starts the shared server, or adopts it when it runs. Its data is worth nothing.
pub(crate) fn start() -> Result<Server> {
    let mut say = |line: &str| eprintln!("{line}");
    let binaries = Binaries::find_or_get(&mut say)?;
    let settings = Settings { dir: root().join("target/postgres"), durable: false, extra: Vec::new() };
    let server = Server::start(&binaries, &settings, &mut say)?;
    let how = if server.adopted() { "runs already" } else { "started" };
    eprintln!(
        "PostgreSQL {} {how}: port {}, log in {}",
        binaries.major,
        server.port(),
        server.log().display()
    );
    Ok(server)
}

/// The address of the database for tests, which is made when it is missing.
pub(crate) fn test_url(server: &Server) -> Result<String> {
    server.create_database_if_missing(TEST_DATABASE)?;
    Ok(server.url(TEST_DATABASE))
}

/// Ends the use of the shared server. One that ran before is somebody's, and is left to them.
pub(crate) fn finish(server: Server) -> Result<()> {
    if server.adopted() {
        eprintln!("PostgreSQL ran before and runs on (cargo xtask postgres --stop)");
        return Ok(());
    }
    remove(server)
}

fn remove(server: Server) -> Result<()> {
    if server.stop_and_remove()? == Stopped::InUse {
        eprintln!("PostgreSQL runs on: another process uses it");
    }
    Ok(())
}
