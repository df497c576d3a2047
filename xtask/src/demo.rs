//! `cargo xtask demo`: a thousand students, forty courses, and more applicants than places.
//!
//! Builds what it needs, starts a host of its own, lets the rush in, and holds the log against every rule.

mod check;
mod host;
mod log;
mod plan;
mod report;
mod rush;

use std::collections::VecDeque;
use std::time::Instant;

use anyhow::{Result, bail};
use weir_postgres::Binaries;

use crate::interrupt::Interrupt;
use crate::progress::{Progress, step};
use crate::{guests, host_program};

use self::host::Host;
use self::plan::Size;
use self::report::Report;
use self::rush::Rush;

/// What can be chosen about the demo.
#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// Keep the host running afterwards, until Ctrl-C
    #[arg(long)]
    stay: bool,

    /// How many students apply
    #[arg(long, value_name = "N", default_value_t = 1000)]
    students: usize,

    /// How many courses there are
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = at_least_one)]
    courses: usize,

    /// How many HTTP clients send commands at the same time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = at_least_one)]
    clients: usize,

    /// Another seed gives another rush
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// Kill the host in the middle of the rush (kill -9), this many times, and start it again
    #[arg(long, value_name = "TIMES", num_args = 0..=1, default_missing_value = "3")]
    kill: Option<usize>,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least one is needed".to_owned()),
        Ok(n) => Ok(n),
        Err(error) => Err(format!("{error}")),
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let interrupt = Interrupt::listen()?;

    step("Building the host; the first time takes some minutes");
    let program = host_program::build()?;
    step("Building the handler of the course enrolment example");
    let handler = guests::build("course-enrolment")?;
    let postgres = Binaries::find_or_get(&mut |line| step(line))?;
    step(&format!("PostgreSQL {} is in {}", postgres.major, postgres.dir.display()));
    interrupt.check()?;

    step("Starting `weir dev` with a PostgreSQL of its own, in a temporary place");
    let mut host = Host::start(&program, &handler, &interrupt)?;
    step(&format!("The host listens on {}, with the handler deployed", host.address()));

    let played = play(&mut host, options, &interrupt);
    if !matches!(&played, Ok(outcome) if outcome.broken.is_none()) && interrupt.check().is_ok() {
        eprintln!("The end of the host's log:\n{}", host.log_tail());
    }
    if let (true, Ok(outcome)) = (options.stay, &played) {
        println!("To play with until Ctrl-C: {}\n{}", host.address(), outcome.summary);
        interrupt.wait();
    }
    step("Stopping the host and its PostgreSQL, and removing the temporary place");
    let stopped = host.stop();
    let outcome = played?;
    if !options.stay {
        // The last line of all, whichever streams one reads.
        println!("{}", outcome.summary);
    }
    stopped?;
    match outcome.broken {
        None => Ok(()),
        Some(broken) => bail!(broken),
    }
}

/// A rush that came to its end.
struct Outcome {
    /// One JSON object.
    summary: String,
    /// What the check found fault with.
    broken: Option<String>,
}

/// The rush and its reckoning. An error says that it did not come that far.
fn play(host: &mut Host, options: &Options, interrupt: &Interrupt) -> Result<Outcome> {
    let Options { students, courses, clients, seed, .. } = *options;
    let plan = plan::plan(Size { students, courses, seed });
    let address = host.address().to_owned();
    let rush = Rush { address: &address, clients, host_gets_killed: options.kill.is_some() };
    let started = Instant::now();

    step(&format!("Defining {courses} courses"));
    let mut answers = rush.run(&plan.courses, |_| interrupt.check())?;

    let commands = plan.rush.len();
    step(&format!("{students} students send {commands} commands through {clients} clients (seed {seed})"));
    let kills = options.kill.unwrap_or(0);
    let mut kills: VecDeque<usize> = (1..=kills).map(|kill| kill * commands / (kills + 1)).collect();
    let mut killed = 0;
    let mut progress = Progress::new(commands);
    answers.extend(rush.run(&plan.rush, |answered| {
        interrupt.check()?;
        host.check_alive()?;
        progress.show(answered);
        if kills.pop_front_if(|at| answered >= *at).is_some() {
            progress.step(&format!("kill -9 of the host after {answered} answers, and a new start"));
            host.kill()?;
            host.start_again(interrupt)?;
            killed += 1;
        }
        Ok(())
    })?);
    drop(progress);
    let took = started.elapsed();

    step("Reading the log back and checking every rule");
    let log = log::read_when_complete(&address, &answers, || interrupt.check())?;
    let verdict = check::check(&log, &answers);

    let killed = options.kill.map(|_| killed);
    let report = Report { answers: &answers, log: &log, verdict: &verdict, took, killed };
    report.print();
    let broken = (!verdict.is_clean()).then(|| {
        format!(
            "the rules are broken in {} cases, and {} positions are missing",
            verdict.violations(),
            verdict.gaps
        )
    });
    Ok(Outcome { summary: serde_json::to_string(&report.summary())?, broken })
}
