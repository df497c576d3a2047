//! `weir settings`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use weir_store::OutcomesKept;

use super::remote::{ANSWER_BYTES, RemoteArgs, agent};
use crate::status::Settings;

#[derive(Args)]
pub(crate) struct SettingsArgs {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Subcommand)]
enum Action {
    /// Change a setting, for every host of the store
    Set {
        #[command(subcommand)]
        setting: Setting,
    },
}

#[derive(Subcommand)]
enum Setting {
    /// Whether conditions may have items without a type or a tag; such an append waits for all others
    UnscopedConditions {
        /// true or false
        #[arg(action = clap::ArgAction::Set)]
        allowed: bool,
    },
    /// How long a request that is sent again with its id gets its first answer again
    OutcomesKept {
        /// 7d, 12h, 90m or 3600s; a minute at least, ten years at most
        #[arg(value_parser = time)]
        time: OutcomesKept,
    },
}

pub(crate) fn run(args: &SettingsArgs) -> anyhow::Result<ExitCode> {
    let change = args.action.as_ref().map(|Action::Set { setting }| match setting {
        Setting::UnscopedConditions { allowed } => json!({ "unscoped_conditions": allowed }),
        Setting::OutcomesKept { time } => json!({ "outcomes_kept_seconds": time.seconds() }),
    });
    let settings = ask(&args.remote, change)?;
    println!("strategy             {}", settings.strategy);
    println!("unscoped-conditions  {}", settings.unscoped_conditions);
    println!("outcomes-kept        {}", written(settings.outcomes_kept_seconds));
    Ok(ExitCode::SUCCESS)
}

/// The store's settings, after a change if there is one.
pub(super) fn ask(remote: &RemoteArgs, change: Option<Value>) -> anyhow::Result<Settings> {
    let address = remote.address("/v1/settings");
    let result = match change {
        None => agent(false).get(&address).call(),
        Some(change) => agent(false).put(&address).send_json(change),
    };
    match remote.answer(result)? {
        Ok(mut response) => response
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES)
            .read_json()
            .context("can't understand the answer"),
        Err(problem) => bail!("{}: {}", problem.title, problem.detail),
    }
}

const UNITS: [(char, u64); 4] = [('d', 24 * 60 * 60), ('h', 60 * 60), ('m', 60), ('s', 1)];

fn time(text: &str) -> Result<OutcomesKept, String> {
    let unclear = || "it looks like 7d, 12h, 90m or 3600s".to_owned();
    let unit = text.chars().next_back().ok_or_else(unclear)?;
    let (_, seconds) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(unclear)?;
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| unclear())?;
    OutcomesKept::from_seconds(number.saturating_mul(seconds)).map_err(|error| error.to_string())
}

/// In the largest unit that leaves nothing over.
pub(super) fn written(seconds: u64) -> String {
    let fitting = UNITS.into_iter().find(|(_, unit)| seconds.is_multiple_of(*unit));
    let (name, unit) = fitting.unwrap_or(('s', 1));
    format!("{}{name}", seconds / unit)
}
