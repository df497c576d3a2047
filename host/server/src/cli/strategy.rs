//! `weir strategy`.

use std::process::ExitCode;

use clap::{Args, Subcommand};
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
    type Property = (&'static str, fn(Strategy) -> bool);
    let properties: [Property; 4] = [
        ("decisions across boundaries", |_| true),
        ("positions without a gap", Strategy::gap_free),
        ("a plain number as cursor", Strategy::gap_free),
        ("boundaries commit in parallel", Strategy::parallel),
    ];
    for (name, holds) in properties {
        print!("{name:<36}");
        for strategy in Strategy::ALL {
            print!("{:<12}", if holds(strategy) { "yes" } else { "no" });
        }
        println!();
    }
    println!();
    match settings.unscoped_conditions {
        true => println!("Conditions without a type or a tag are allowed, and wait for all other appends."),
        false => println!("Conditions without a type or a tag are refused."),
    }
    Ok(())
}

fn explained(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Global => "one lock for the whole store",
        Strategy::Boundary => "a lock for each key, positions at the insert, a cursor that is no number",
        Strategy::Hybrid => "a lock for each key for the check, one for the store for the insert",
        Strategy::Staging => "a lock for each key, and a flusher that numbers the events afterwards",
    }
}
