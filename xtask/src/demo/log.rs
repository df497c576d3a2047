//! Reads the log back over HTTP.

use std::collections::{BTreeSet, HashSet};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use ureq::Agent;

use super::rush::{self, Answered, Outcome};
use crate::http_client::agent;

const PAGE: usize = 1000;

/// How long an accepted event may take to get its position. It is a matter of milliseconds; a host that was
/// killed has its flusher's duties taken over first.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long the log has to stand still before it counts as complete.
const QUIET: Duration = Duration::from_secs(1);

/// What an event says, in the log and in the answer to the command that wrote it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(super) struct Written {
    #[serde(rename = "type")]
    pub(super) event_type: String,
    pub(super) tags: BTreeSet<String>,
    pub(super) data: Value,
}

/// A line of the log.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Recorded {
    pub(super) position: u64,
    pub(super) command_id: Option<String>,
    #[serde(flatten)]
    pub(super) written: Written,
}

/// The whole log, as soon as it has the events of every accepted command and stands still. A log that never
/// gets there is returned as it is: to say what is missing is for the check.
pub(super) fn read_when_complete(
    address: &str,
    answers: &[Answered],
    mut watch: impl FnMut() -> Result<()>,
) -> Result<Vec<Recorded>> {
    let agent = agent(Some(rush::PATIENCE));
    let mut awaited: HashSet<&str> = answers.iter().filter_map(promised).collect();
    let mut head = 0;
    let mut grown_at = Instant::now();
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline && !(awaited.is_empty() && grown_at.elapsed() > QUIET) {
        watch()?;
        let news = read(&agent, &format!("{address}/v1/events?after={head}&limit={PAGE}"))?;
        for command_id in news.iter().filter_map(|event| event.command_id.as_deref()) {
            awaited.remove(command_id);
        }
        match news.last() {
            Some(last) => {
                head = last.position;
                grown_at = Instant::now();
            }
            None => thread::sleep(Duration::from_millis(50)),
        }
    }
    // From the start once more, because an event that took a place behind a reader would go unseen.
    read(&agent, &format!("{address}/v1/events?after=0"))
}

/// The command whose events the log must have, if the answer promised any.
fn promised(answered: &Answered) -> Option<&str> {
    match &answered.outcome {
        Outcome::Accepted { command_id, events } if !events.is_empty() => Some(command_id),
        _ => None,
    }
}

fn read(agent: &Agent, url: &str) -> Result<Vec<Recorded>> {
    let mut response = agent.get(url).call().with_context(|| format!("GET {url}"))?;
    let body = response.body_mut().with_config().limit(u64::MAX).read_to_string();
    let body = body.with_context(|| format!("GET {url}"))?;
    ensure!(response.status() == 200, "GET {url}: {} {body}", response.status());
    body.lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).with_context(|| format!("GET {url}: not an event: {line}")))
        .collect()
}
