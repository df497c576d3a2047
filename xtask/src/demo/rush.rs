//! The rush: many HTTP clients at the same time, each with the next command of the plan, until none is left.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use ureq::Agent;
use ureq::http::StatusCode;

use super::log::Written;
use super::plan::Command;
use crate::http_client::{OUTCOME_UNKNOWN, agent, read, was_never_sent};

/// How long a client goes on with one command while the host is overloaded or on its way back.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// How long a client waits before it knocks again.
const PAUSE: Duration = Duration::from_millis(50);

/// A command of the plan and what came of it.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) command: Command,
    pub(super) outcome: Outcome,
    /// How often the command was decided again because of a conflict.
    pub(super) conflicts: u64,
    /// From the first try to the answer, with every wait in between.
    pub(super) latency: Duration,
}

#[derive(Debug)]
pub(super) enum Outcome {
    Accepted {
        command_id: String,
        events: Vec<Written>,
    },
    Rejected {
        command_id: String,
        code: String,
        detail: String,
    },
    /// The host had no attempts left: every decision met a conflict.
    Exhausted,
    /// The answer was lost, on its way from the host or from PostgreSQL: the command may be in the log, at
    /// most once.
    Unknown,
}

pub(super) struct Rush<'a> {
    pub(super) address: &'a str,
    pub(super) clients: usize,
    /// Whether a broken connection is part of the show. If not, it ends it.
    pub(super) host_gets_killed: bool,
}

impl Rush<'_> {
    /// Sends all commands. `watch` is called a few times a second with the number of answers so far; its
    /// error ends the rush.
    pub(super) fn run(
        &self,
        commands: &[Command],
        mut watch: impl FnMut(usize) -> Result<()>,
    ) -> Result<Vec<Answered>> {
        let queue = Queue::new(commands);
        thread::scope(|scope| {
            let clients: Vec<_> =
                (0..self.clients).map(|_| scope.spawn(|| self.be_a_client(&queue))).collect();
            let mut watched = Ok(());
            while watched.is_ok() && !clients.iter().all(thread::ScopedJoinHandle::is_finished) {
                thread::sleep(Duration::from_millis(20));
                watched = watch(queue.answered.load(Ordering::Relaxed));
            }
            if watched.is_err() {
                queue.close();
            }
            let mut answers = Vec::with_capacity(commands.len());
            let mut served = Ok(());
            for client in clients {
                match client.join().expect("a client reports its errors") {
                    Ok(answered) => answers.extend(answered),
                    Err(error) => served = Err(error),
                }
            }
            // If both failed, the watch knows more: that the host ended is why its clients found nobody.
            watched.and(served).map(|()| answers)
        })
    }

    fn be_a_client(&self, queue: &Queue<'_>) -> Result<Vec<Answered>> {
        let agent = agent(Some(PATIENCE));
        let mut answers = Vec::new();
        while let Some(command) = queue.next() {
            let started = Instant::now();
            let sent = self.send(&agent, command, queue);
            let (outcome, attempts) = sent.inspect_err(|_| queue.close())?;
            answers.push(Answered {
                command: command.clone(),
                outcome,
                conflicts: attempts.saturating_sub(1),
                latency: started.elapsed(),
            });
            queue.answered.fetch_add(1, Ordering::Relaxed);
        }
        Ok(answers)
    }

    fn send(&self, agent: &Agent, command: &Command, queue: &Queue<'_>) -> Result<(Outcome, u64)> {
        let url = format!("{}/v1/commands/{}", self.address, command.name());
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline && !queue.closed.load(Ordering::Relaxed) {
            match agent.post(&url).send_json(command).and_then(read) {
                // To send this one again might have two effects; every other 503 has had none.
                Ok((StatusCode::SERVICE_UNAVAILABLE, body)) if body.contains(OUTCOME_UNKNOWN) => {
                    return Ok((Outcome::Unknown, 0));
                }
                Ok((StatusCode::SERVICE_UNAVAILABLE, _)) => thread::sleep(PAUSE),
                Ok((status, body)) => return understand(status, &body),
                Err(error) if was_never_sent(&error) && self.host_gets_killed => thread::sleep(PAUSE),
                Err(_) if self.host_gets_killed => {
                    // A dying process may still take a connection. The next command is not to be lost too.
                    thread::sleep(PAUSE);
                    return Ok((Outcome::Unknown, 0));
                }
                Err(error) => return Err(error).with_context(|| format!("POST {url}")),
            }
        }
        bail!("POST {url}: no answer within {PATIENCE:?}")
    }
}

/// The commands that are still to be sent, shared by the clients.
struct Queue<'a> {
    commands: &'a [Command],
    taken: AtomicUsize,
    answered: AtomicUsize,
    closed: AtomicBool,
}

impl<'a> Queue<'a> {
    fn new(commands: &'a [Command]) -> Self {
        Self {
            commands,
            taken: AtomicUsize::new(0),
            answered: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        }
    }

    fn next(&self) -> Option<&'a Command> {
        if self.closed.load(Ordering::Relaxed) {
            return None;
        }
        self.commands.get(self.taken.fetch_add(1, Ordering::Relaxed))
    }

    /// Sends the clients home.
    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

#[derive(Deserialize)]
struct Acceptance {
    command_id: String,
    attempts: u64,
    events: Vec<Written>,
}

#[derive(Deserialize)]
struct Rejection {
    command_id: String,
    attempts: u64,
    code: String,
    detail: String,
}

#[derive(Deserialize)]
struct Exhaustion {
    #[serde(default)]
    attempts: u64,
}

fn understand(status: StatusCode, body: &str) -> Result<(Outcome, u64)> {
    let not_understood = || format!("an answer of another shape than expected: {status} {body}");
    match status {
        StatusCode::OK => {
            let answer: Acceptance = serde_json::from_str(body).with_context(not_understood)?;
            let outcome = Outcome::Accepted { command_id: answer.command_id, events: answer.events };
            Ok((outcome, answer.attempts))
        }
        StatusCode::UNPROCESSABLE_ENTITY => {
            let Rejection { command_id, attempts, code, detail } =
                serde_json::from_str(body).with_context(not_understood)?;
            Ok((Outcome::Rejected { command_id, code, detail }, attempts))
        }
        StatusCode::CONFLICT => {
            let answer: Exhaustion = serde_json::from_str(body).with_context(not_understood)?;
            Ok((Outcome::Exhausted, answer.attempts))
        }
        _ => bail!("unexpected answer: {status} {body}"),
    }
}
