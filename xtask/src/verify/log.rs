//! The finished log: `GET /v1/events`, when all is flushed and nobody writes any more.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::database::Database;
use super::evidence::Logged;
use super::line;
use crate::http_client::{agent, read};

/// How long the store may take to come to rest, and a host to tell all of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// For how long nothing may have happened.
const QUIET: Duration = Duration::from_millis(800);

const PAUSE: Duration = Duration::from_millis(100);

/// The log as soon as the store has come to rest. If the host does not show all that there is, it is for the check to say
/// what is missing.
pub(super) fn read_when_finished(
    database: &Database<'_>,
    host: &str,
    mut watch: impl FnMut() -> Result<()>,
) -> Result<Vec<Logged>> {
    let deadline = Instant::now() + PATIENCE;
    let mut before = database.progress()?;
    let mut quiet_since = Instant::now();
    loop {
        watch()?;
        thread::sleep(PAUSE);
        let now = database.progress()?;
        if now != before || now.staged > 0 || now.busy > 0 {
            quiet_since = Instant::now();
            before = now;
        }
        if quiet_since.elapsed() >= QUIET {
            let log = read_log(host)?;
            // Under `boundary` the horizon of the whole cluster may hold the last ones back for a while.
            if log.len() as u64 >= now.events || Instant::now() >= deadline {
                return Ok(log);
            }
        }
        ensure!(Instant::now() < deadline, "the store does not come to rest: {now:?}");
    }
}

fn read_log(host: &str) -> Result<Vec<Logged>> {
    let url = format!("{host}/v1/events");
    let answer = agent(Some(PATIENCE)).get(&url).call().and_then(read);
    let (status, body) = answer.with_context(|| format!("GET {url}"))?;
    ensure!(status == 200, "GET {url}: {status} {body}");
    body.lines().map(|text| Ok(line::parse(text)?.0)).collect()
}
