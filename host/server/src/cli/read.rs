//! `weir read`.

use std::{
    io::{BufRead, BufReader, Write},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    events::Event,
    remote::{RemoteArgs, agent},
};

#[derive(Args)]
#[command(
    after_help = "The last line is the token: give it to `weir append --token` with the same query, and the append \
                        fails if an event that matches has come in since."
)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    query: QueryArgs,
    /// Only events behind this position
    #[arg(long, value_name = "POSITION")]
    after: Option<u64>,
    /// Only events before this position
    #[arg(long, value_name = "POSITION")]
    before: Option<u64>,
    /// Newest first
    #[arg(long)]
    backwards: bool,
    /// At most so many events
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Print what the host sends, one JSON object a line; the last one has the token
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// A query of one item, or of any number.
#[derive(Args)]
pub(super) struct QueryArgs {
    /// Events of this type; repeated, any of them
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Events with this tag; repeated, all of them
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Events that match one of several items: '{"items":[{"types":["A"],"tags":["x:1"]},{"types":["B"]}]}'
    #[arg(long, value_name = "JSON", conflicts_with_all = ["types", "tags"])]
    query: Option<String>,
}

impl QueryArgs {
    /// As the host takes it; none, if nothing was said.
    fn body(&self) -> anyhow::Result<Option<Value>> {
        match &self.query {
            Some(text) => Ok(Some(serde_json::from_str(text).context("the query is not JSON")?)),
            None if self.types.is_empty() && self.tags.is_empty() => Ok(None),
            None => Ok(Some(json!({ "items": [{ "types": self.types, "tags": self.tags }] }))),
        }
    }
}

#[derive(Deserialize)]
struct End {
    token: String,
}

pub(crate) fn run(args: &ReadArgs) -> anyhow::Result<ExitCode> {
    let mut wanted = json!({ "backwards": args.backwards });
    let given = [
        ("query", args.query.body()?),
        ("after", args.after.map(Value::from)),
        ("before", args.before.map(Value::from)),
        ("limit", args.limit.map(Value::from)),
    ];
    for (name, value) in given {
        if let Some(value) = value {
            wanted[name] = value;
        }
    }
    let result = agent(true).post(&args.remote.address("/v1/read")).send_json(wanted);
    let response = match args.remote.answer(result)? {
        Ok(response) => response,
        Err(problem) => bail!("{}: {}", problem.title, problem.detail),
    };
    let mut out = std::io::stdout().lock();
    let mut whole = false;
    for line in BufReader::new(response.into_body().into_reader()).lines() {
        let line = line.context("the host stopped sending")?;
        let end: Option<End> = serde_json::from_str(&line).ok();
        whole = end.is_some();
        let written = match (args.json, end) {
            (true, _) => writeln!(out, "{line}"),
            (false, Some(End { token })) => writeln!(out, "token {token}"),
            (false, None) => {
                let event: Event = serde_json::from_str(&line).context("can't understand the answer")?;
                event.print(&mut out)
            }
        };
        if written.is_err() {
            // Whoever reads our output has closed it.
            return Ok(ExitCode::SUCCESS);
        }
    }
    if !whole {
        bail!("the host stopped sending before the end: the token is missing");
    }
    Ok(ExitCode::SUCCESS)
}
