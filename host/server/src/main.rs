//! `weir`: hosts command handlers that are WebAssembly components over an event log in PostgreSQL.
//!
//! In reading order: `command` is the flow of one command; `host` is what it runs in; `handlers` finds and
//! keeps the loaded handlers; `stores` has a host for each store; `metrics` and `status` tell how they are doing;
//! `http` and `cli` are the two ways in.

mod answer;
mod batch;
mod command;
mod translate;

mod handlers;
mod host;
mod instances;
mod stores;

mod metrics;
mod models;
mod queue;
mod status;

mod http;

mod cli;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let ran = match cli::Cli::try_parse() {
        Ok(cli) => cli.run().map_err(|error| format!("{error:#}")),
        Err(error) if asks_for_help(&error) => error.exit(),
        Err(misuse) => Err(misuse.to_string()),
    };
    ran.unwrap_or_else(|complaint| {
        eprintln!("weir: {}", one_line(&complaint));
        ExitCode::FAILURE
    })
}

fn asks_for_help(error: &clap::Error) -> bool {
    use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    !error.use_stderr() || error.kind() == DisplayHelpOnMissingArgumentOrSubcommand
}

/// A complaint without line breaks. clap's have several lines, and so has what a failed handler wrote.
fn one_line(complaint: &str) -> String {
    let lines = complaint.trim_start_matches("error: ").lines().map(str::trim);
    let telling: Vec<_> = lines.filter(|line| !line.is_empty() && !line.starts_with("Usage: ")).collect();
    telling.join("; ").replace(":; ", ": ")
}
