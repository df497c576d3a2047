//! Somebody who follows the log, from the start and for as long as the run lasts: `GET /v1/events?follow=true`. When the
//! connection breaks, it goes on behind what it has, at the next host.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::evidence::{Delivered, Followed};
use super::line;
use crate::http_client::agent;

/// How long it waits before it knocks again.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Follower {
    name: String,
    tags: Vec<String>,
    /// Which host it begins with.
    at: usize,
    /// How far into the run it begins.
    joins_after: Duration,
    delivered: Mutex<Vec<Delivered>>,
}

impl Follower {
    pub(super) fn new(name: String, tags: &[&str], at: usize, joins_after: Duration) -> Self {
        let tags = tags.iter().map(|&tag| tag.to_owned()).collect();
        Self { name, tags, at, joins_after, delivered: Mutex::default() }
    }

    /// How many events it has.
    pub(super) fn count(&self) -> usize {
        self.delivered.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// What it had been sent when it was done.
    pub(super) fn followed(self) -> Followed {
        let delivered = self.delivered.into_inner().unwrap_or_else(PoisonError::into_inner);
        Followed { name: self.name, tags: self.tags, delivered }
    }

    /// Whether it asks for events with these tags only.
    pub(super) fn tags(&self) -> &[String] {
        &self.tags
    }

    /// Follows until it is `done` and its host ends the stream.
    pub(super) fn run(&self, hosts: &[String], done: &AtomicBool, surprise: impl Fn(String)) {
        let begin = Instant::now() + self.joins_after;
        while Instant::now() < begin && !done.load(Ordering::Relaxed) {
            thread::sleep(PAUSE);
        }
        // It waits for as long as there is nothing to see.
        let agent = agent(None);
        let mut cursor = "0".to_owned();
        for host in hosts.iter().cycle().skip(self.at) {
            if done.load(Ordering::Relaxed) {
                return;
            }
            let mut url = format!("{host}/v1/events?follow=true&after={cursor}");
            for tag in &self.tags {
                let _ = write!(url, "&tag={tag}");
            }
            match agent.get(&url).call() {
                Ok(response) if response.status() == 200 => {
                    let mut lines = BufReader::new(response.into_body().into_reader());
                    while let Some(text) = next_line(&mut lines) {
                        // A sign of life.
                        if text.is_empty() {
                            continue;
                        }
                        match line::parse(&text) {
                            Ok((logged, behind)) => {
                                cursor = behind;
                                let delivered = Delivered { id: logged.event.id, line: logged.line };
                                self.delivered.lock().unwrap_or_else(PoisonError::into_inner).push(delivered);
                            }
                            Err(error) => surprise(format!("{}: {error:#}", self.name)),
                        }
                    }
                }
                Ok(response) if response.status() == 503 => {}
                Ok(response) => surprise(format!("{}: {} to {url}", self.name, response.status())),
                Err(_) => {}
            }
            thread::sleep(PAUSE);
        }
    }
}

/// A whole line, without its end. What stands before a broken connection is none.
fn next_line(lines: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    match lines.read_line(&mut line) {
        Ok(_) => line.strip_suffix('\n').map(str::to_owned),
        Err(_) => None,
    }
}
