//! `weir`: hosts command handlers that are WebAssembly components over an event log in PostgreSQL.
//!
//! In reading order: `command` is the flow of one command; `host` is what it runs in; `handlers` finds and
//! keeps the loaded handlers; `http` and `cli` are the two ways in.

mod command;
mod translate;

mod handlers;
mod host;

mod http;

mod cli;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match cli::Cli::parse().run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("weir: {error:#}");
            ExitCode::FAILURE
        }
    }
}
