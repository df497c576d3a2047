//! The command line. Each subcommand is a file; what several share is here.

mod append;
mod deploy;
mod dev;
mod events;
mod export;
mod further_stores;
mod import;
mod local_postgres;
mod migrate;
mod read;
mod remote;
mod send;
mod serve;
mod settings;
mod status;
mod strategy;
mod text;
mod watch_files;

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use tokio_util::sync::CancellationToken;
use weir_runtime::{Limits, RuntimeConfig};
use weir_store::{SchemaName, StoreConfig};

/// Hosts command handlers that are WebAssembly components over an event log in PostgreSQL.
#[derive(Parser)]
#[command(name = "weir", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run everything on this machine: Postgres, the host and your handlers, reloaded when they change
    Dev(dev::DevArgs),
    /// Run a host against a database
    Serve(serve::ServeArgs),
    /// Set stores up in a database, or bring them up to date
    Migrate(migrate::MigrateArgs),
    /// Make a handler's component the active version
    Deploy(deploy::DeployArgs),
    /// Show or change how appends keep out of each other's way
    Strategy(strategy::StrategyArgs),
    /// Show or change the settings that hold for every host of a store
    Settings(settings::SettingsArgs),
    /// Show how a host and its store are doing
    Status(status::StatusArgs),
    /// Send a command
    Send(send::SendArgs),
    /// Read the event log, or follow it
    Events(events::EventsArgs),
    /// Read the events that a decision depends on, and get the token to append with
    Read(read::ReadArgs),
    /// Append events without a handler
    Append(append::AppendArgs),
    /// Write the log to a file, one event a line
    Export(export::ExportArgs),
    /// Read an exported log into an empty store
    Import(import::ImportArgs),
}

impl Cli {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Dev(args) => on_tokio(dev::run(args)),
            Command::Serve(args) => on_tokio(serve::run(args)),
            Command::Migrate(args) => on_tokio(migrate::run(args)),
            Command::Deploy(args) => deploy::run(&args),
            Command::Strategy(args) => strategy::run(&args),
            Command::Settings(args) => settings::run(&args),
            Command::Status(args) => status::run(&args),
            Command::Send(args) => send::run(&args),
            Command::Events(args) => events::run(&args),
            Command::Read(args) => read::run(&args),
            Command::Append(args) => append::run(&args),
            Command::Export(args) => export::run(&args),
            Command::Import(args) => import::run(&args),
        }
    }
}

fn on_tokio(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(work);
    // A guest that loops may still hold a blocking thread: it ends at its deadline, nobody waits for it.
    runtime.shutdown_timeout(Duration::from_secs(2));
    result.map(|()| ExitCode::SUCCESS)
}

/// Which stores.
#[derive(Args, Clone)]
struct DatabaseArgs {
    /// The database, as postgres://user:password@host:port/name
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: String,
    #[command(flatten)]
    store: StoreArgs,
}

/// The stores of a database, and how to talk to them.
#[derive(Args, Clone)]
struct StoreArgs {
    /// The schema that holds the store; the default one, where there are further stores
    #[arg(long, env = "WEIR_SCHEMA", default_value = "weir", value_name = "NAME")]
    schema: SchemaName,
    /// Connections for reads and appends, for each store (the flusher, listeners and those who read the log use up to eight more)
    #[arg(long, env = "WEIR_CONNECTIONS", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    connections: u32,
    /// Seconds that one statement may take, waiting for locks included
    #[arg(long, env = "WEIR_STATEMENT_SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    statement_seconds: u64,
    #[command(flatten)]
    further: further_stores::FurtherStoresArgs,
}

impl StoreArgs {
    /// The default store, which is in the database that `url` names, and then the further ones.
    fn configs(&self, url: String) -> anyhow::Result<Vec<StoreConfig>> {
        self.further.with_default(&StoreConfig {
            url,
            schema: self.schema.clone(),
            connections: self.connections,
            deadline: Duration::from_secs(self.statement_seconds),
        })
    }
}

/// Where to listen.
#[derive(Args, Clone)]
struct ListenArgs {
    /// The address to serve HTTP on; port 0 takes a free one
    #[arg(long, env = "WEIR_LISTEN", default_value = remote::DEFAULT_ADDRESS, value_name = "ADDR")]
    listen: SocketAddr,
}

impl ListenArgs {
    async fn bind(&self) -> anyhow::Result<tokio::net::TcpListener> {
        tokio::net::TcpListener::bind(self.listen).await.with_context(|| {
            format!(
                "can't listen on {}; if another weir runs there, stop it or choose another address with --listen \
                 (port 0 takes a free one)",
                self.listen
            )
        })
    }
}

/// What handlers may use.
#[derive(Args, Clone)]
struct GuestArgs {
    /// Where compiled handlers are kept [default: a folder of this user's cache]
    #[arg(long, env = "WEIR_CACHE", value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Memory that one instance of a handler may have, in MiB
    #[arg(long, env = "WEIR_GUEST_MEMORY_MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    guest_memory_mib: u32,
    /// Milliseconds that one call of a handler may take
    #[arg(long, env = "WEIR_GUEST_MILLISECONDS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=600_000))]
    guest_milliseconds: u64,
    /// Instances of handlers that may be alive at once, in all stores together
    #[arg(long, env = "WEIR_INSTANCES", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    instances: u32,
}

impl GuestArgs {
    fn config(&self) -> RuntimeConfig {
        RuntimeConfig {
            cache_dir: self.cache.clone().or_else(default_cache),
            limits: Limits {
                memory_bytes: self.guest_memory_mib as usize * 1024 * 1024,
                call_deadline: Duration::from_millis(self.guest_milliseconds),
                ..Limits::default()
            },
            max_instances: self.instances,
        }
    }
}

fn default_cache() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("weir").join("compiled"))
}

/// Logs go to the standard error; `RUST_LOG` says which, in place of `usual`.
fn log_to_stderr(usual: &str) {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(usual));
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colours)
        .with_target(false)
        .compact()
        .init();
}

/// A token that Ctrl-C or a TERM signal cancels. The second Ctrl-C ends the process at once.
fn stop_signal() -> anyhow::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let stop = CancellationToken::new();
    let token = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stop.cancel();
        interrupt.recv().await;
        eprintln!("weir: interrupted again, stopping at once");
        std::process::exit(130);
    });
    Ok(token)
}
