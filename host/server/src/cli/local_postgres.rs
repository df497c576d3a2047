//! The Postgres that `weir dev` keeps for a project that has none.

use std::path::Path;

use weir_postgres::{Binaries, Server, Settings};

const DATABASE: &str = "weir";

/// A server of the project's own, with the URL of its database.
pub(super) struct LocalPostgres {
    server: Server,
    pub(super) url: String,
}

impl LocalPostgres {
    /// Starts the project's server, or adopts it if it still runs from last time.
    pub(super) async fn start(project: &Path) -> anyhow::Result<Self> {
        let dir = project.join(".weir").join("postgres");
        tokio::task::spawn_blocking(move || {
            let mut say = |line: &str| tracing::info!("{line}");
            let binaries = Binaries::find_or_get(&mut say)?;
            let server =
                Server::start(&binaries, &Settings { dir, durable: true, extra: Vec::new() }, &mut say)?;
            server.create_database_if_missing(DATABASE)?;
            let how = if server.adopted() { "still running" } else { "started" };
            tracing::info!(port = server.port(), data = %server.dir().display(), "Postgres is {how}");
            Ok(Self { url: server.url(DATABASE), server })
        })
        .await?
    }

    /// Stops the server; its data stays.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        tokio::task::spawn_blocking(move || self.server.stop()).await??;
        Ok(())
    }
}
