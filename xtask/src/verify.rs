//! `cargo xtask verify`: random writers against several hosts on one store, and the finished log against what each was told.
//!
//! Every append is put back to its place in the log, and its condition is tried there again. So that a clean result means
//! something, `--plant` breaks the store on purpose and shows that the check notices.
//!
//! Standard output has a line of JSON for each run and nothing else.

mod evidence;

mod check;

mod choice;
mod line;
mod plain_store;
mod writer;

mod follower;
mod log;

mod database;
mod fault;
mod fleet;
mod trouble;

mod round;

use std::fs;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use crate::interrupt::Interrupt;
use crate::progress::step;
use crate::workspaces::root;
use crate::{host_program, postgres};

use self::evidence::Strategy;
use self::fault::{FAULTS, Fault};
use self::round::{Outcome, Place, Round};

/// How long a round lasts in which a planted fault may show.
const PLANTED_ROUND: Duration = Duration::from_secs(4);

/// With fewer appends a second than this, a run has not been one.
const FEWEST_APPENDS_A_SECOND: u64 = 5;

/// What can be chosen about the check.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How long writers write in each run; with --plant, how long a fault may stay unfound
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,

    /// Another seed gives other writers
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// Only under this strategy; may be repeated
    #[arg(long = "strategy", value_name = "NAME")]
    strategies: Vec<Strategy>,

    /// How many hosts share the store
    #[arg(long, value_name = "N", default_value = "3")]
    hosts: NonZeroUsize,

    /// How many writers there are
    #[arg(long, value_name = "N", default_value = "12")]
    writers: NonZeroUsize,

    /// How many follow the whole log from its start, beside one that comes late and one with a filter [default: one a host]
    #[arg(long, value_name = "N")]
    followers: Option<usize>,

    /// Kill hosts, have them stand still, break their connections and slow transactions down while it runs
    #[arg(long)]
    kill: bool,

    /// Change the strategy about every second while it runs
    #[arg(long)]
    switch: bool,

    /// Allow conditions without a type or a tag, and use them
    #[arg(long)]
    unscoped: bool,

    /// Break the store on purpose, and show that it is noticed: the name of a fault, or `all`
    #[arg(long, value_name = "FAULT", value_parser = fault_names())]
    plant: Option<String>,

    /// Leave the databases for a look
    #[arg(long)]
    keep: bool,
}

fn fault_names() -> Vec<&'static str> {
    FAULTS.iter().map(|fault| fault.name).chain(["all"]).collect()
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    step("Building the host; the first time takes some minutes");
    let built = host_program::build()?;
    // A build in the middle of a run must not change what runs.
    let place = tempfile::Builder::new().prefix("weir-verify-").tempdir()?;
    let program = place.path().join("weir");
    fs::copy(&built, &program).context("copying the host")?;
    let server = postgres::start()?;
    let place = Place { program: &program, server: &server, interrupt: &interrupt };
    let done = match &options.plant {
        None => options.check_all(&place),
        Some(name) => options.plant_all(&place, name),
    };
    let finished = postgres::finish(server);
    done.and(finished)
}

/// What a run has come to.
#[derive(Serialize)]
struct Summary {
    strategy: &'static str,
    appends: usize,
    conflicts: usize,
    violations: usize,
    unconditional: usize,
    /// On a condition without a type or a tag.
    unscoped: usize,
    /// Those that were told so more than once: sent again although known to be made, or by two at once.
    repeated: usize,
    /// Lost answers that a second try has found out about, and those that nobody can know.
    found_out: usize,
    unknown: usize,
    events: usize,
    gaps: u64,
    out_of_order: usize,
    followers: usize,
    kills: usize,
    standstills: usize,
    hesitations: usize,
    disconnects: usize,
    leaders: usize,
    switches: usize,
    seconds: f64,
}

/// What became of a fault.
#[derive(Serialize)]
struct Found {
    fault: &'static str,
    strategy: &'static str,
    found: bool,
    violations: usize,
    after_s: f64,
    appends: usize,
}

impl Options {
    fn strategies(&self) -> &[Strategy] {
        if self.strategies.is_empty() { &Strategy::ALL } else { &self.strategies }
    }

    fn round(&self, strategy: Strategy) -> Round<'static> {
        Round {
            strategy,
            seed: self.seed,
            lasts: Duration::from_secs(self.seconds),
            hosts: self.hosts.get(),
            writers: self.writers.get(),
            followers: self.followers.unwrap_or(self.hosts.get()),
            kill: self.kill,
            switch: self.switch,
            unscoped: self.unscoped,
            fault: None,
            keep: self.keep,
        }
    }

    fn check_all(&self, place: &Place<'_>) -> Result<()> {
        let mut violations = 0;
        // A run that switches goes through all of them.
        let strategies = if self.switch && self.strategies.is_empty() {
            &[Strategy::Staging][..]
        } else {
            self.strategies()
        };
        for &strategy in strategies {
            let name = if self.switch { "switching" } else { strategy.name() };
            step(&format!(
                "{name}: {} writers, {} hosts, {} s (seed {})",
                self.writers, self.hosts, self.seconds, self.seed
            ));
            let outcome = self.round(strategy).run(place)?;
            report(&outcome);
            if outcome.verdict.violations() > 0 {
                self.save(&outcome, name)?;
            }
            println!("{}", serde_json::to_string(&summary(&outcome, name))?);
            self.ensure_it_proves_something(&outcome)?;
            violations += outcome.verdict.violations();
        }
        ensure!(violations == 0, "{violations} violations");
        Ok(())
    }

    /// A clean log of nothing is no proof.
    fn ensure_it_proves_something(&self, outcome: &Outcome) -> Result<()> {
        let (appends, conflicts) = (outcome.acknowledged() as u64, outcome.conflicts());
        let fewest = self.seconds * FEWEST_APPENDS_A_SECOND;
        ensure!(appends >= fewest, "proves nothing: {appends} appends, of at least {fewest}");
        ensure!(conflicts > 0, "proves nothing: no append met a conflict");
        let tally = &outcome.tally;
        if self.kill {
            let blows = [tally.kills, tally.standstills, tally.disconnects];
            ensure!(!blows.contains(&0), "proves nothing: {tally:?}; it takes longer to do all of it");
        }
        ensure!(!self.switch || tally.switches > 0, "proves nothing: the strategy never changed");
        Ok(())
    }

    /// Keeps all that was wrong for whoever looks into it.
    fn save(&self, outcome: &Outcome, name: &str) -> Result<()> {
        let file = root().join(format!("target/verify-{name}-{}.txt", self.seed));
        let mut text = String::new();
        for rule in &outcome.verdict.rules {
            for case in &rule.broken {
                text += &format!("{}: {case}\n", rule.text);
            }
        }
        fs::create_dir_all(root().join("target"))?;
        fs::write(&file, text).with_context(|| file.display().to_string())?;
        step(&format!("All cases are in {}", file.display()));
        Ok(())
    }

    fn plant_all(&self, place: &Place<'_>, name: &str) -> Result<()> {
        let mut unfound = Vec::new();
        for fault in FAULTS.iter().filter(|fault| name == "all" || fault.name == name) {
            for &strategy in self.strategies().iter().filter(|strategy| fault.concerns(**strategy)) {
                step(&format!("{} under {strategy}", fault.name));
                let found = self.look_for(place, fault, strategy)?;
                println!("{}", serde_json::to_string(&found)?);
                if !found.found {
                    unfound.push(format!("{} under {strategy}", fault.name));
                }
            }
        }
        if !unfound.is_empty() {
            bail!("not found: {}", unfound.join(", "));
        }
        Ok(())
    }

    /// One round after the other, until the check has found the fault or the time is up.
    fn look_for(&self, place: &Place<'_>, fault: &Fault, strategy: Strategy) -> Result<Found> {
        let began = Instant::now();
        let limit = Duration::from_secs(self.seconds);
        let (mut violations, mut appends, mut seed) = (0, 0, self.seed);
        while violations == 0 && began.elapsed() < limit {
            let lasts = PLANTED_ROUND.min(limit);
            let round = Round { seed, lasts, fault: Some(fault), ..self.round(strategy) };
            let outcome = round.run(place)?;
            violations = outcome.verdict.violations();
            appends += outcome.acknowledged();
            if violations > 0 {
                report(&outcome);
            }
            seed += 1;
        }
        let after_s = seconds(began.elapsed());
        let (found, strategy) = (violations > 0, strategy.name());
        Ok(Found { fault: fault.name, strategy, found, violations, after_s, appends })
    }
}

/// For people: every rule that was broken, with some of the cases.
fn report(outcome: &Outcome) {
    for rule in &outcome.verdict.rules {
        if !rule.broken.is_empty() {
            eprintln!("{}", rule.lines().join("\n"));
        }
    }
}

fn summary(outcome: &Outcome, strategy: &'static str) -> Summary {
    let (verdict, tally) = (&outcome.verdict, &outcome.tally);
    Summary {
        strategy,
        appends: outcome.acknowledged(),
        conflicts: outcome.conflicts(),
        violations: verdict.violations(),
        unconditional: outcome.unconditional(),
        unscoped: outcome.unscoped(),
        repeated: outcome.repeated(),
        found_out: outcome.found_out(),
        unknown: outcome.unknown(),
        events: outcome.evidence.log.len(),
        gaps: verdict.gaps,
        out_of_order: verdict.out_of_order,
        followers: outcome.evidence.followers.len(),
        kills: tally.kills,
        standstills: tally.standstills,
        hesitations: tally.hesitations,
        disconnects: tally.disconnects,
        leaders: tally.leaders,
        switches: tally.switches,
        seconds: seconds(outcome.took),
    }
}

fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10.0).round() / 10.0
}
