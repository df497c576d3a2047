//! `weir serve`: a host against a database that exists.

use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use weir_runtime::Runtime;
use weir_store::{Store, StoreConfig};

use super::{DatabaseArgs, GuestArgs, ListenArgs, log_to_stderr, stop_signal};
use crate::{host::Host, http, metrics::Metrics};

/// How long commands under way are waited for at the end.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long after that for callers to take their answers. One who has sent half a request has none to come.
const LINGER: Duration = Duration::from_secs(2);

#[derive(Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    guests: GuestArgs,
    /// Bring the store up to date first
    #[arg(long)]
    migrate: bool,
}

pub(crate) async fn run(args: ServeArgs) -> anyhow::Result<()> {
    log_to_stderr("info,sqlx=error");
    let stop = stop_signal()?;
    let listener = args.listen.bind().await?;
    let config = args.database.store.config(args.database.database_url);
    if args.migrate {
        weir_store::migrate(&config).await?;
    }
    weir_store::check_migrated(&config).await?;
    let host = start(&config, &args.guests).await?;
    serve(listener, host, stop).await
}

/// Makes a host on a store that is up to date.
pub(super) async fn start(config: &StoreConfig, guests: &GuestArgs) -> anyhow::Result<Host> {
    let store = Store::new(config)?;
    let runtime = Runtime::new(guests.config()).context("can't set up the WebAssembly runtime")?;
    Ok(Host::start(store, runtime, guests.instances, &Metrics::new()).await?)
}

/// Serves until `stop`, then sees the commands under way to their end.
pub(super) async fn serve(listener: TcpListener, host: Host, stop: CancellationToken) -> anyhow::Result<()> {
    let address = listener.local_addr()?;
    let server = tokio::spawn(http::serve(listener, host.clone()));
    // On the standard output, alone: what a script waits for.
    println!("listening on http://{address}");
    stop.cancelled().await;
    tracing::info!("stopping: commands under way will finish");
    host.stop(PATIENCE).await;
    match tokio::time::timeout(LINGER, server).await {
        Ok(result) => result?.context("the HTTP server failed"),
        Err(_) => Ok(()),
    }
}
