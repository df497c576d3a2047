//! `weir append`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

use super::{
    remote::{ANSWER_BYTES, RemoteArgs, agent},
    text::text,
};

#[derive(Args)]
#[command(
    after_help = "Ends with 0 if the events were appended, 2 on a conflict, 1 on any error.\n\nTo append an event unless one \
                  like it is there: weir append UserCreated '{\"name\":\"ann\"}' --tag user:ann --unless-type UserCreated \
                  --unless-tag user:ann"
)]
pub(crate) struct AppendArgs {
    /// The event's type: UserCreated
    #[arg(value_name = "TYPE", required_unless_present = "events")]
    event_type: Option<String>,
    /// The event's data, JSON; @FILE reads a file, - the standard input
    #[arg(default_value = "{}")]
    data: String,
    /// A tag of the event; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// What to say of the event besides, JSON
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Several events, to be appended together: a file, or - for the standard input, with a line
    /// {"type":…,"tags":[…],"data":…} for each
    #[arg(long, value_name = "FILE", conflicts_with_all = ["event_type", "tags", "metadata"])]
    events: Option<String>,
    /// Fail if an event of this type is there; repeated, any of them
    #[arg(long, value_name = "TYPE")]
    unless_type: Vec<String>,
    /// Fail if an event with this tag is there; repeated, all of them
    #[arg(long, value_name = "TAG")]
    unless_tag: Vec<String>,
    /// Fail if an event matches one of several items: '{"items":[{"types":["A"],"tags":["x:1"]}]}'
    #[arg(long, value_name = "JSON", conflicts_with_all = ["unless_type", "unless_tag"])]
    unless: Option<String>,
    /// What `weir read` of that query has seen does not count
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// What is up to this position does not count
    #[arg(long, value_name = "POSITION", conflicts_with = "token")]
    after: Option<u64>,
    /// An id of your own: the same events sent again with it are appended once
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Serialize)]
struct Wanted {
    events: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<Value>,
}

#[derive(Deserialize)]
struct Appended {
    id: String,
}

pub(crate) fn run(args: &AppendArgs) -> anyhow::Result<ExitCode> {
    let events = match &args.events {
        Some(file) => lines(file)?,
        None => vec![event(args)?],
    };
    let count = events.len();
    let mut request = agent(false).post(&args.remote.address("/v1/append"));
    if let Some(id) = &args.id {
        request = request.header("weir-append-id", id);
    }
    let result = request.send_json(Wanted { events, condition: condition(args)? });
    match args.remote.answer(result)? {
        Ok(mut response) => {
            let appended: Appended = response
                .body_mut()
                .with_config()
                .limit(ANSWER_BYTES)
                .read_json()
                .context("can't understand the answer")?;
            println!("appended {count} ({})", appended.id);
            Ok(ExitCode::SUCCESS)
        }
        Err(problem) if problem.outcome.as_deref() == Some("conflict") => {
            println!("conflict: {}", problem.detail);
            Ok(ExitCode::from(2))
        }
        Err(problem) => bail!("{}: {}", problem.title, problem.detail),
    }
}

fn event(args: &AppendArgs) -> anyhow::Result<Box<RawValue>> {
    #[derive(Serialize)]
    struct Event<'a> {
        r#type: &'a str,
        tags: &'a [String],
        data: Box<RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Box<RawValue>>,
    }
    let event = Event {
        r#type: args.event_type.as_deref().unwrap_or_default(),
        tags: &args.tags,
        data: RawValue::from_string(text(&args.data)?).context("the event's data is not JSON")?,
        metadata: args
            .metadata
            .clone()
            .map(RawValue::from_string)
            .transpose()
            .context("the event's metadata is not JSON")?,
    };
    Ok(serde_json::value::to_raw_value(&event)?)
}

fn lines(file: &str) -> anyhow::Result<Vec<Box<RawValue>>> {
    let text = text(&if file == "-" { "-".to_owned() } else { format!("@{file}") })?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let event = |(at, line): (usize, &str)| {
        RawValue::from_string(line.to_owned()).with_context(|| format!("line {} is not JSON", at + 1))
    };
    lines.map(event).collect()
}

fn condition(args: &AppendArgs) -> anyhow::Result<Option<Value>> {
    let query = match &args.unless {
        Some(text) => serde_json::from_str(text).context("the query is not JSON")?,
        None if args.unless_type.is_empty() && args.unless_tag.is_empty() => {
            if args.token.is_some() || args.after.is_some() {
                bail!(
                    "a token or a position belongs to a condition: say --unless-type, --unless-tag or --unless, as it was read"
                );
            }
            return Ok(None);
        }
        None => json!({ "items": [{ "types": args.unless_type, "tags": args.unless_tag }] }),
    };
    let mut condition = json!({ "query": query });
    if let Some(token) = &args.token {
        condition["token"] = json!(token);
    }
    if let Some(after) = args.after {
        condition["after"] = json!(after);
    }
    Ok(Some(condition))
}
