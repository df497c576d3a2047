//! `weir send`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    remote::{ANSWER_BYTES, RemoteArgs, agent, encoded},
    text::text,
};

#[derive(Args)]
#[command(
    after_help = "Ends with 0 if the command was accepted, 2 if the handler refused it, 1 on any error."
)]
pub(crate) struct SendArgs {
    /// The command's name: subscribeStudentToCourse
    name: String,
    /// The command's data, JSON: '{"studentId":"s1","courseId":"c1"}'; @FILE reads a file, - the standard input
    #[arg(default_value = "{}")]
    data: String,
    /// An id of your own for the command: sent again with the same data, it gets the first answer again
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Deserialize)]
struct Accepted {
    command_id: String,
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    event_type: String,
    tags: Vec<String>,
    data: Box<RawValue>,
}

pub(crate) fn run(args: &SendArgs) -> anyhow::Result<ExitCode> {
    let data = text(&args.data)?;
    if let Err(error) = serde_json::from_str::<&RawValue>(&data) {
        bail!("the command's data is not JSON: {error}; it was: {data}");
    }
    let address = args.remote.address(&format!("/v1/commands/{}", encoded(&args.name)));
    let mut request = agent(false).post(&address).content_type("application/json");
    if let Some(id) = &args.id {
        request = request.header("weir-command-id", id);
    }
    let result = request.send(&data);
    match args.remote.answer(result)? {
        Ok(mut response) => {
            let accepted: Accepted = response
                .body_mut()
                .with_config()
                .limit(ANSWER_BYTES)
                .read_json()
                .context("can't understand the answer")?;
            println!("accepted {} ({})", args.name, accepted.command_id);
            for event in accepted.events {
                println!("  {} [{}] {}", event.event_type, event.tags.join(", "), event.data);
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(problem) if problem.outcome.as_deref() == Some("rejected") => {
            println!("rejected {}: {} ({})", args.name, problem.detail, problem.code.unwrap_or_default());
            Ok(ExitCode::from(2))
        }
        Err(problem) => bail!("{}: {}", problem.title, problem.detail),
    }
}
