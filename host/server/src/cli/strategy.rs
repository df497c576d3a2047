//! `weir strategy`.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::json;
use weir_store::Strategy;

use super::{remote::RemoteArgs, settings::ask};
use crate::status::Settings;

#[derive(Args)]
pub(crate) struct StrategyArgs {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Subcommand)]
enum Action {
    /// Show the store's strategy, and what each of the four gives
    Show,
    /// Change the strategy while commands run
    Set {
        /// global, boundary, hybrid or staging
        strategy: Strategy,
    },
}

pub(crate) fn run(args: &StrategyArgs) -> anyhow::Result<ExitCode> {
    let change = match args.action {
        Action::Show => None,
        Action::Set { strategy } => Some(json!({ "strategy": strategy.as_str() })),
    };
    show(&ask(&args.remote, change)?)?;
    Ok(ExitCode::SUCCESS)
}

fn show(settings: &Settings) -> anyhow::Result<()> {
    let present: Strategy = settings.strategy.parse().map_err(anyhow::Error::msg)?;
    println!("The store's strategy is {present}: {}.", explained(present));
    println!();
    print!("{:<36}", "property");
    for strategy in Strategy::ALL {
        let name = if strategy == present { format!("[{strategy}]") } else { strategy.to_string() };
        print!("{name:<12}");
    }
    println!();
    for (name, holds) in PROPERTIES {
        row(name, |strategy| if holds(strategy) { "yes" } else { "no" }.to_owned());
    }
    println!();
    println!("As found out by `{VERIFIED_BY}`, with three hosts that were killed meanwhile:");
    let verified = verified()?;
    for (name, of) in FINDINGS {
        row(name, |strategy| {
            let found = verified.iter().find(|found| found.strategy == strategy.as_str());
            found.map_or_else(String::new, |found| of(found).to_string())
        });
    }
    println!();
    match settings.unscoped_conditions {
        true => println!("Conditions without a type or a tag are allowed, and wait for all other appends."),
        false => println!("Conditions without a type or a tag are refused."),
    }
    Ok(())
}

fn row(name: &str, value: impl Fn(Strategy) -> String) {
    print!("{name:<36}");
    for strategy in Strategy::ALL {
        print!("{:<12}", value(strategy));
    }
    println!();
}

/// A line of the table: what it is called, and whether it holds of a strategy.
type Property = (&'static str, fn(Strategy) -> bool);
/// The same of what was found.
type Finding = (&'static str, fn(&Verified) -> u64);

/// The article's table. Each property is held against an experiment by the store's tests.
const PROPERTIES: [Property; 4] = [
    ("decisions across boundaries", |_| true),
    ("positions without a gap", Strategy::gap_free),
    ("a plain number as cursor", Strategy::gap_free),
    ("boundaries commit in parallel", Strategy::parallel),
];

/// What [`VERIFIED_BY`] has printed: a line for each strategy.
const VERIFIED: &str = include_str!("verified.ndjson");
const VERIFIED_BY: &str = "cargo xtask verify --seconds 60 --kill";

#[derive(Deserialize)]
struct Verified {
    strategy: String,
    appends: u64,
    conflicts: u64,
    violations: u64,
    gaps: u64,
    out_of_order: u64,
}

const FINDINGS: [Finding; 5] = [
    ("appends held against their condition", |found| found.appends),
    ("conflicts", |found| found.conflicts),
    ("violations", |found| found.violations),
    ("positions missing", |found| found.gaps),
    ("events seen after a higher position", |found| found.out_of_order),
];

fn verified() -> anyhow::Result<Vec<Verified>> {
    VERIFIED.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

fn explained(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Global => "one lock for the whole store",
        Strategy::Boundary => "a lock for each key, positions at the insert, a cursor that is no number",
        Strategy::Hybrid => "a lock for each key for the check, one for the store for the insert",
        Strategy::Staging => "a lock for each key, and a flusher that numbers the events afterwards",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_out_is_there_for_every_strategy() {
        let verified = verified().unwrap();
        for strategy in Strategy::ALL {
            let found = verified.iter().find(|found| found.strategy == strategy.as_str()).unwrap();
            assert!(found.appends > 0 && found.violations == 0, "{strategy}");
        }
    }
}
