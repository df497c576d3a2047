//! One run: a store of its own, hosts, writers, followers, trouble; and then the check.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;
use serde_json::json;
use weir_postgres::Server;

use super::check::{self, Verdict};
use super::choice::WATCHED;
use super::database::Database;
use super::evidence::{Answer, Append, Evidence, Logged, Strategy};
use super::fault::Fault;
use super::fleet::{self, Fleet};
use super::follower::Follower;
use super::log;
use super::trouble::{Tally, Trouble};
use super::writer::{Shared, Writer};
use crate::http_client::{agent, read};
use crate::interrupt::Interrupt;
use crate::progress::step;

/// How often the run is looked after.
const TICK: Duration = Duration::from_millis(20);

/// How often there is a line about it.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// How long a follower may have heard nothing before what it lacks counts as missed.
const FOLLOWER_PATIENCE: Duration = Duration::from_secs(5);

/// How long a host may take to change a setting.
const SETTING_WITHIN: Duration = Duration::from_secs(30);

/// What is needed for any run.
pub(super) struct Place<'a> {
    pub(super) program: &'a Path,
    pub(super) server: &'a Server,
    pub(super) interrupt: &'a Interrupt,
}

/// One run.
#[derive(Clone, Copy)]
pub(super) struct Round<'a> {
    pub(super) strategy: Strategy,
    pub(super) seed: u64,
    pub(super) lasts: Duration,
    pub(super) hosts: usize,
    pub(super) writers: usize,
    /// Of the whole log, from its start. Two more are always there: one that comes late and one with a filter.
    pub(super) followers: usize,
    pub(super) kill: bool,
    pub(super) switch: bool,
    pub(super) unscoped: bool,
    pub(super) fault: Option<&'a Fault>,
    pub(super) keep: bool,
}

/// What came of it.
pub(super) struct Outcome {
    pub(super) evidence: Evidence,
    pub(super) verdict: Verdict,
    pub(super) tally: Tally,
    pub(super) took: Duration,
}

impl Round<'_> {
    pub(super) fn run(&self, place: &Place<'_>) -> Result<Outcome> {
        let began = Instant::now();
        let name = format!("weir_verify_{}_{}_{}", std::process::id(), self.strategy, self.seed);
        let database = Database::create(place.server, &name, self.keep)?;
        fleet::migrate(place.program, &database.url())?;
        if let Some(fault) = self.fault {
            fault.plant(&database, self.strategy)?;
        }
        let mut fleet = Fleet::start(place.program, database.url(), self.hosts, place.interrupt)?;
        let (evidence, tally) = self.play(&database, &mut fleet, place.interrupt)?;
        let verdict = check::check(&evidence);
        if verdict.violations() > 0 && self.fault.is_none() {
            eprintln!("The ends of the hosts' logs:\n{}", fleet.log_tails());
        }
        Ok(Outcome { evidence, verdict, tally, took: began.elapsed() })
    }

    fn play(
        &self,
        database: &Database<'_>,
        fleet: &mut Fleet<'_>,
        interrupt: &Interrupt,
    ) -> Result<(Evidence, Tally)> {
        let hosts = fleet.addresses();
        self.set_up(&hosts[0])?;
        let positions = self.switch || self.strategy.numbers_in_order();
        let shared = Shared::new(hosts, positions, self.unscoped);
        let followers = self.followers();
        let done = AtomicBool::new(false);
        let surprise = |what| shared.surprise(what);

        let played = thread::scope(|scope| {
            for follower in &followers {
                scope.spawn(|| follower.run(&shared.hosts, &done, surprise));
            }
            let writers: Vec<_> = (0..self.writers)
                .map(|number| {
                    let writer = Writer::new(&shared, number as u32 + 1, self.rng(number as u64 + 1));
                    scope.spawn(|| writer.run())
                })
                .collect();
            let watched = self.watch(&shared, database, fleet, interrupt);
            shared.stop.store(true, Ordering::Relaxed);
            let written =
                writers.into_iter().map(|writer| writer.join().expect("a writer reports its errors"));
            let written = written.collect::<Result<Vec<_>>>();
            let finished = watched.and_then(|tally| {
                let log = log::read_when_finished(database, &shared.hosts[0], || {
                    interrupt.check()?;
                    fleet.check_alive()
                })?;
                wait_for_followers(&followers, &log, interrupt)?;
                Ok((tally, log))
            });
            done.store(true, Ordering::Relaxed);
            // That is what ends the followers' streams.
            let stopped = fleet.stop();
            let (tally, log) = finished?;
            stopped?;
            Ok::<_, anyhow::Error>((written?, tally, log))
        });
        let (written, tally, log) = match played {
            Ok(played) => played,
            Err(error) if interrupt.check().is_ok() => {
                bail!("{error:#}; the ends of the hosts' logs:\n{}", fleet.log_tails())
            }
            Err(error) => return Err(error),
        };

        let mut evidence = Evidence {
            appends: written.into_iter().flatten().collect(),
            log,
            epochs: database.epochs()?,
            followers: followers.into_iter().map(Follower::followed).collect(),
            surprises: shared.take_surprises(),
        };
        if self.fault.is_some() {
            // A store that is broken may give any answer: what counts is whether its log shows it.
            evidence.surprises.clear();
        }
        Ok((evidence, tally))
    }

    fn set_up(&self, host: &str) -> Result<()> {
        let settings = json!({ "strategy": self.strategy.name(), "unscoped_conditions": self.unscoped });
        let set = agent(Some(SETTING_WITHIN)).put(format!("{host}/v1/settings")).send_json(settings);
        let (status, body) = set.and_then(read).context("setting the strategy")?;
        ensure!(status == 200, "the strategy could not be set: {status} {body}");
        Ok(())
    }

    /// Lets the writers write, with whatever trouble is wanted, for as long as the run lasts.
    fn watch(
        &self,
        shared: &Shared,
        database: &Database<'_>,
        fleet: &mut Fleet<'_>,
        interrupt: &Interrupt,
    ) -> Result<Tally> {
        let mut trouble = Trouble::new(self.kill, self.switch, self.strategy, self.rng(0));
        let mut line_at = Duration::ZERO;
        let mut watched = Ok(());
        while watched.is_ok() && shared.began.elapsed() < self.lasts {
            thread::sleep(TICK);
            watched = interrupt
                .check()
                .and_then(|()| fleet.check_alive())
                .and_then(|()| trouble.tick(fleet, database));
            let elapsed = shared.began.elapsed();
            if elapsed >= line_at + LINE_EVERY {
                line_at = elapsed;
                let acknowledged = shared.acknowledged.load(Ordering::Relaxed);
                step(&format!("  {} s: {acknowledged} appends", elapsed.as_secs()));
            }
        }
        let tally = trouble.end(fleet);
        watched.and(tally)
    }

    fn followers(&self) -> Vec<Follower> {
        let follower = |n| Follower::new(format!("follower {n}"), &[], n, Duration::ZERO);
        let mut followers: Vec<_> = (0..self.followers).map(follower).collect();
        followers.push(Follower::new("the late follower".to_owned(), &[], self.hosts, self.lasts / 2));
        let filtered = Follower::new(format!("the follower of {WATCHED}"), &[WATCHED], 1, Duration::ZERO);
        followers.push(filtered);
        followers
    }

    fn rng(&self, stream: u64) -> Rng {
        let strategy = Strategy::ALL.iter().position(|strategy| *strategy == self.strategy).unwrap_or(0);
        Rng::with_seed(self.seed.wrapping_mul(1 << 20) + ((strategy as u64) << 12) + stream)
    }
}

/// Waits until each follower has as many events as it should, or none has been sent any for a while.
fn wait_for_followers(followers: &[Follower], log: &[Logged], interrupt: &Interrupt) -> Result<()> {
    let due = |follower: &Follower| {
        let wanted = |logged: &&Logged| follower.tags().iter().all(|tag| logged.event.tags.contains(tag));
        log.iter().filter(wanted).count()
    };
    let due: Vec<usize> = followers.iter().map(due).collect();
    let counts = || followers.iter().map(Follower::count).collect::<Vec<_>>();
    let (mut before, mut grown_at) = (counts(), Instant::now());
    while before.iter().zip(&due).any(|(count, due)| count < due) && grown_at.elapsed() < FOLLOWER_PATIENCE {
        interrupt.check()?;
        thread::sleep(TICK);
        let now = counts();
        if now != before {
            (before, grown_at) = (now, Instant::now());
        }
    }
    Ok(())
}

impl Outcome {
    pub(super) fn acknowledged(&self) -> usize {
        self.appends(|append| append.was(Answer::Appended))
    }

    pub(super) fn conflicts(&self) -> usize {
        self.appends(|append| append.was(Answer::Conflict))
    }

    /// Appends of which nobody can say whether they were made.
    pub(super) fn unknown(&self) -> usize {
        let known = |append: &Append| append.was(Answer::Appended) || append.was(Answer::Conflict);
        self.appends(|append| append.was(Answer::Lost) && !known(append))
    }

    /// Those that were lost, and turned out in the end.
    pub(super) fn found_out(&self) -> usize {
        let known = |append: &Append| append.was(Answer::Appended) || append.was(Answer::Conflict);
        self.appends(|append| append.was(Answer::Lost) && known(append))
    }

    /// Those that were told more than once that they were made.
    pub(super) fn repeated(&self) -> usize {
        let times = |append: &Append| append.answers.iter().filter(|a| **a == Answer::Appended).count();
        self.appends(|append| times(append) > 1)
    }

    pub(super) fn unscoped(&self) -> usize {
        let is_unscoped = |append: &Append| append.condition.as_ref().is_some_and(|c| !c.query().is_scoped());
        self.appends(|append| append.was(Answer::Appended) && is_unscoped(append))
    }

    pub(super) fn unconditional(&self) -> usize {
        self.appends(|append| append.was(Answer::Appended) && append.condition.is_none())
    }

    fn appends(&self, wanted: impl Fn(&Append) -> bool) -> usize {
        self.evidence.appends.iter().filter(|append| wanted(append)).count()
    }
}
