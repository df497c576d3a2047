//! The project's chores, as `cargo xtask <chore>`.

mod workspaces;

mod guests;
mod postgres;

mod host_process;
mod host_program;
mod http_client;
mod interrupt;
mod progress;
mod rule;

mod prepare;
mod test;

mod demo;
mod verify;

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's chores")]
enum Chore {
    /// Play a rush of students for courses against a host of its own, and check the log afterwards
    Demo(demo::Options),
    /// Let hosts and writers loose on a store, and hold its log against what each of them was told
    Verify(verify::Options),
    /// Run everything that has to pass: formats, lints, every test, the documentation
    Test(test::Options),
    /// Build the example handlers and the handlers for tests, as WebAssembly components
    Guests,
    /// Renew `.sqlx`, which the store's queries are compiled against
    Prepare(prepare::Options),
    /// Start the PostgreSQL for tests and leave it running, for `cargo test` on its own
    Postgres(postgres::Options),
}

fn main() -> ExitCode {
    let done = match Chore::parse() {
        Chore::Demo(options) => demo::run(&options),
        Chore::Verify(options) => verify::run(&options),
        Chore::Test(options) => test::run(&options),
        Chore::Guests => guests::build_all(),
        Chore::Prepare(options) => prepare::run(options),
        Chore::Postgres(options) => postgres::run(options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without the backtrace that RUST_BACKTRACE, meant for the tests, would add.
            eprintln!("cargo xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
