//! `weir events`.

use std::{
    io::{BufRead, BufReader, Write},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context;
use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::remote::{RemoteArgs, agent, encoded};

#[derive(Args)]
pub(crate) struct EventsArgs {
    /// Begin behind this position, or behind an event's cursor where it has one
    #[arg(long, default_value = "0", value_name = "POSITION")]
    after: String,
    /// Events of this type; repeated, any of them
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Events with this tag; repeated, all of them
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// End after so many events
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Wait for more at the end of the log, and reconnect if the host goes away
    #[arg(long, short)]
    follow: bool,
    /// Print the events as the host sends them, one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Deserialize)]
pub(super) struct Event {
    /// None for an event that is accepted and not numbered yet.
    position: Option<u64>,
    /// Only where a position is no place to go on from.
    cursor: Option<String>,
    #[serde(rename = "type")]
    event_type: String,
    tags: Vec<String>,
    data: Box<RawValue>,
    recorded_at: String,
}

pub(crate) fn run(args: &EventsArgs) -> anyhow::Result<ExitCode> {
    let mut place = Place { after: args.after.clone(), left: args.limit };
    let mut reached = false;
    loop {
        match read(args, &mut place) {
            Ok(()) if !args.follow || place.left == Some(0) => return Ok(ExitCode::SUCCESS),
            Ok(()) => reached = true,
            Err(Ended::ByReader) => return Ok(ExitCode::SUCCESS),
            Err(Ended::Lost(_)) if args.follow && (reached || place.after != args.after) => {}
            Err(Ended::Lost(error) | Ended::Refused(error)) => return Err(error),
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// How far the log has been read.
struct Place {
    after: String,
    left: Option<u64>,
}

/// Why reading ended before its end.
enum Ended {
    /// Whoever reads our output has closed it: `weir events | head`.
    ByReader,
    /// The host did not answer, or stopped in the middle.
    Lost(anyhow::Error),
    Refused(anyhow::Error),
}

fn read(args: &EventsArgs, place: &mut Place) -> Result<(), Ended> {
    let mut address =
        args.remote.address(&format!("/v1/events?after={}&follow={}", encoded(&place.after), args.follow));
    for event_type in &args.types {
        address += &format!("&type={}", encoded(event_type));
    }
    for tag in &args.tags {
        address += &format!("&tag={}", encoded(tag));
    }
    if let Some(left) = place.left {
        address += &format!("&limit={left}");
    }
    let answer = args.remote.answer(agent(true).get(&address).call()).map_err(Ended::Lost)?;
    let response = match answer {
        Ok(response) => response,
        Err(problem) => {
            let said = anyhow::anyhow!("{}: {}", problem.title, problem.detail);
            // A host without its database says so, and may have it again soon.
            return Err(if problem.status == 503 { Ended::Lost(said) } else { Ended::Refused(said) });
        }
    };
    for line in BufReader::new(response.into_body().into_reader()).lines() {
        let line = line.context("the host stopped sending").map_err(Ended::Lost)?;
        if line.is_empty() {
            continue;
        }
        let event: Event =
            serde_json::from_str(&line).context("can't understand the answer").map_err(Ended::Refused)?;
        print(args, &event, &line).map_err(|_| Ended::ByReader)?;
        place.after = event.cursor.unwrap_or_else(|| event.position.unwrap_or_default().to_string());
        place.left = place.left.map(|left| left.saturating_sub(1));
    }
    Ok(())
}

impl Event {
    /// Prints it for people.
    pub(super) fn print(&self, out: &mut impl Write) -> std::io::Result<()> {
        let Self { position, event_type, tags, data, recorded_at, .. } = self;
        let position = position.map_or_else(|| "–".to_owned(), |position| position.to_string());
        let time = recorded_at.get(..19).unwrap_or(recorded_at);
        writeln!(out, "{position:>7}  {time}  {event_type} [{}] {data}", tags.join(", "))
    }
}

fn print(args: &EventsArgs, event: &Event, line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if args.json { writeln!(out, "{line}") } else { event.print(&mut out) }?;
    out.flush()
}
