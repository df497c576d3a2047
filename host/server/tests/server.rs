//! The `weir` program from the outside: real processes, a real Postgres, real components.
//!
//! Each test has a store of its own (a schema), or shares a host with others of its module and keeps to names
//! that nobody else uses. `patience` is the one place that waits.

#![allow(clippy::unwrap_used, reason = "clippy.toml exempts test functions, but not what they share")]

#[path = "server/patience.rs"]
mod patience;

#[path = "server/components.rs"]
mod components;
#[path = "server/postgres.rs"]
mod postgres;
#[path = "server/store.rs"]
mod store;

#[path = "server/answer.rs"]
mod answer;
#[path = "server/host.rs"]
mod host;
#[path = "server/program.rs"]
mod program;
#[path = "server/reader.rs"]
mod reader;

#[path = "server/bad_components.rs"]
mod bad_components;
#[path = "server/bad_handlers.rs"]
mod bad_handlers;
#[path = "server/bad_input.rs"]
mod bad_input;
#[path = "server/cli.rs"]
mod cli;
#[path = "server/commands.rs"]
mod commands;
#[path = "server/crash.rs"]
mod crash;
#[path = "server/deploys.rs"]
mod deploys;
#[path = "server/dev.rs"]
mod dev;
#[path = "server/events.rs"]
mod events;
#[path = "server/grouping.rs"]
mod grouping;
#[path = "server/ids.rs"]
mod ids;
#[path = "server/metrics.rs"]
mod metrics;
#[path = "server/outages.rs"]
mod outages;
#[path = "server/plain_store.rs"]
mod plain_store;
#[path = "server/porting.rs"]
mod porting;
#[path = "server/race.rs"]
mod race;
#[path = "server/refusals.rs"]
mod refusals;
#[path = "server/restore.rs"]
mod restore;
#[path = "server/settings.rs"]
mod settings;
#[path = "server/shutdown.rs"]
mod shutdown;
#[path = "server/status.rs"]
mod status;
#[path = "server/stores.rs"]
mod stores;
#[path = "server/strategies.rs"]
mod strategies;
