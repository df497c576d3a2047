//! `weir serve`: a host against databases that exist.

use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::Span;
use weir_runtime::Runtime;
use weir_store::{Store, StoreConfig};

use super::{DatabaseArgs, GuestArgs, ListenArgs, log_to_stderr, migrate::migrate, stop_signal};
use crate::{host::Host, http, instances::Instances, metrics::Metrics, stores::Stores};

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
    /// Bring the stores up to date first
    #[arg(long)]
    migrate: bool,
}

pub(crate) async fn run(args: ServeArgs) -> anyhow::Result<()> {
    log_to_stderr("info,sqlx=error");
    let stop = stop_signal()?;
    let listener = args.listen.bind().await?;
    let configs = args.database.store.configs(args.database.database_url)?;
    // All of them before the first is served: one that is not there ends the start, and nobody has been let in.
    for config in &configs {
        if args.migrate {
            migrate(config).await?;
        }
        let checked = weir_store::check_migrated(config).await;
        checked.with_context(|| format!("store \"{}\"", config.schema.as_str()))?;
    }
    let stores = start(&configs, &args.guests).await?;
    serve(listener, stores, stop).await
}

/// Makes a host for each of some stores that are up to date.
pub(super) async fn start(configs: &[StoreConfig], guests: &GuestArgs) -> anyhow::Result<Stores> {
    let runtime = Runtime::new(guests.config()).context("can't set up the WebAssembly runtime")?;
    let metrics = Metrics::new();
    let shares = Instances::among(configs.len(), guests.instances);
    let mut hosts = Vec::new();
    for (config, instances) in configs.iter().zip(shares) {
        let name = config.schema.as_str();
        let span = if configs.len() > 1 { tracing::error_span!("store", store = name) } else { Span::none() };
        let store = Store::new(config)?;
        let host = Host::start(store, runtime.clone(), instances, &metrics, span).await;
        hosts.push(host.with_context(|| format!("store \"{name}\""))?);
    }
    Ok(Stores::new(hosts))
}

/// Serves until `stop`, then sees the commands under way to their end.
pub(super) async fn serve(
    listener: TcpListener,
    stores: Stores,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let address = listener.local_addr()?;
    let server = tokio::spawn(http::serve(listener, stores.clone()));
    // On the standard output, alone: what a script waits for.
    println!("listening on http://{address}");
    stop.cancelled().await;
    tracing::info!("stopping: commands under way will finish");
    stores.stop(PATIENCE).await;
    match tokio::time::timeout(LINGER, server).await {
        Ok(result) => result?.context("the HTTP server failed"),
        Err(_) => Ok(()),
    }
}
