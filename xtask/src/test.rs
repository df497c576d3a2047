//! `cargo xtask test`: everything that has to pass, from a fresh clone on.
//!
//! Headings and the summary go to standard error, so that standard output is cargo's alone.

mod steps;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use weir_postgres::Server;

use crate::workspaces::{GUEST_EXAMPLES, GUEST_TARGET, GUESTS, HOST, passes};
use crate::{guests, postgres, prepare};

use self::steps::Steps;

/// What can be chosen about the tests.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run only the tests whose name contains this
    #[arg(long, value_name = "NAME")]
    filter: Option<String>,

    /// Go on after a step that failed
    #[arg(long)]
    keep_going: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    // A Ctrl-C ends the cargo of the step, which then fails; this process stays to stop the server.
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let mut steps = Steps::new(options.keep_going, interrupted);
    let mut server = None;
    let ran = run_steps(&mut steps, &mut server, options.filter.as_deref());
    let finished = server.map_or(Ok(()), postgres::finish);
    steps.print_summary();
    ran?;
    finished?;
    steps.verdict()
}

/// The order: what takes seconds first, then what the tests need, then the tests.
fn run_steps(steps: &mut Steps, server: &mut Option<Server>, filter: Option<&str>) -> Result<()> {
    steps.step("Formatting", check_formats)?;
    steps.step("Handlers for the tests", guests::build_all)?;
    *server = steps.step("PostgreSQL", postgres::start)?;
    let server = || server.as_ref().context("there is no PostgreSQL");
    if filter.is_none() {
        steps.step("Queries in .sqlx", || prepare::check(server()?))?;
        steps.step("Lints", lint)?;
    }
    steps.step("Tests of the host", || test_host(server()?, filter))?;
    steps.step("Tests of the guests", || test_guests(filter))?;
    if filter.is_none() {
        steps.step("Random writers, several hosts", || verify(&["--seconds", "12", "--kill"]))?;
        steps.step("Faults that they find", || verify(&["--seconds", "40", "--plant", "all"]))?;
        steps.step("Documentation", document)?;
    }
    Ok(())
}

fn check_formats() -> Result<()> {
    for workspace in [HOST].into_iter().chain(GUESTS) {
        passes(&mut workspace.cargo(&["fmt", "--check"]))?;
    }
    Ok(())
}

fn lint() -> Result<()> {
    let strict = ["--", "-D", "warnings"];
    let everything = ["clippy", "--workspace", "--all-targets", "--locked"];
    passes(HOST.cargo(&everything).args(strict))?;
    passes(GUEST_EXAMPLES.guest_cargo(&everything).args(strict))?;
    for workspace in GUESTS {
        let clippy = ["clippy", "--workspace", "--locked", "--target", GUEST_TARGET];
        passes(workspace.guest_cargo(&clippy).args(strict))?;
    }
    Ok(())
}

fn test_host(server: &Server, filter: Option<&str>) -> Result<()> {
    let url = postgres::test_url(server)?;
    passes(HOST.cargo(&["test", "--workspace", "--locked"]).args(filter).env(postgres::TEST_URL, url))
}

/// As a process of its own, because it listens for a Ctrl-C of its own.
fn verify(arguments: &[&str]) -> Result<()> {
    let myself = std::env::current_exe().context("finding this program")?;
    passes(Command::new(myself).arg("verify").args(arguments))
}

/// The guests' own tests run on the host: a handler is a pure function.
fn test_guests(filter: Option<&str>) -> Result<()> {
    passes(GUEST_EXAMPLES.guest_cargo(&["test", "--workspace", "--locked"]).args(filter))
}

fn document() -> Result<()> {
    let doc = ["doc", "--workspace", "--no-deps", "--locked", "--document-private-items"];
    passes(HOST.cargo(&doc).env("RUSTDOCFLAGS", "-D warnings"))?;
    passes(GUEST_EXAMPLES.guest_cargo(&doc).env("RUSTDOCFLAGS", "-D warnings"))
}
