//! `weir dev`: everything on this machine, with one command.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use weir_store::Deployed;

use super::{
    GuestArgs, ListenArgs, StoreArgs, local_postgres::LocalPostgres, log_to_stderr, migrate::migrate, serve,
    stop_signal, watch_files::FileWatch,
};
use crate::handlers::Handlers;

#[derive(Args)]
pub(crate) struct DevArgs {
    /// Handlers to deploy in the default store, and to deploy again when their files change
    #[arg(value_name = "HANDLER.wasm")]
    handlers: Vec<PathBuf>,
    /// The project, whose folder .weir holds the data
    #[arg(long, default_value = ".", value_name = "DIR")]
    project: PathBuf,
    /// A database to use instead of starting one
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    guests: GuestArgs,
}

pub(crate) async fn run(args: DevArgs) -> anyhow::Result<()> {
    // Commands are shown one by one here; a host that serves thousands a second does not.
    log_to_stderr("info,sqlx=error,weir::http::commands=debug");
    let stop = stop_signal()?;
    let files = args.handlers.iter().map(|file| found(file)).collect::<anyhow::Result<Vec<_>>>()?;
    let listener = args.listen.bind().await?;
    let project = std::path::absolute(&args.project)?;

    let (postgres, url) = match args.database_url.filter(|url| !url.is_empty()) {
        Some(url) => (None, url),
        None => {
            let postgres = LocalPostgres::start(&project).await?;
            let url = postgres.url.clone();
            (Some(postgres), url)
        }
    };
    let served = async {
        let configs = args.store.configs(url)?;
        for config in &configs {
            migrate(config).await?;
        }
        let stores = serve::start(&configs, &args.guests).await?;
        let handlers = stores.default_store().handlers.clone();
        let mut watch = FileWatch::over(&files);
        for file in &files {
            deploy(&handlers, file).await;
        }
        let reload = tokio::spawn(async move {
            loop {
                for file in watch.changed().await {
                    deploy(&handlers, &file).await;
                }
            }
        });
        let served = serve::serve(listener, stores, stop).await;
        reload.abort();
        served
    };
    let served = served.await;
    if let Some(postgres) = postgres {
        postgres.stop().await?;
    }
    served
}

fn found(file: &Path) -> anyhow::Result<PathBuf> {
    let path = file.canonicalize();
    let path = path.with_context(|| format!("there is no handler at {}; build it first", file.display()))?;
    ensure!(path.is_file(), "{} is no file: name the handler's component, a .wasm file", file.display());
    Ok(path)
}

/// Deploys a file. A failure is shown and changes nothing: the next build may mend it.
async fn deploy(handlers: &Handlers, file: &Path) {
    let name = file.display();
    let component = match tokio::fs::read(file).await {
        Ok(component) => component,
        Err(error) => return tracing::error!("can't read {name}: {error}"),
    };
    match handlers.deploy(component).await {
        Ok((loaded, deployed)) => {
            let what = match deployed {
                Deployed::Unchanged(_) => "is unchanged",
                Deployed::Activated(_) | Deployed::CommandOwned { .. } => "is active",
            };
            let handler = loaded.handler;
            tracing::info!(handler = handler.name(), version = handler.version().short(), "{name} {what}");
        }
        Err(error) => tracing::error!("{name} was not deployed: {error}"),
    }
}
