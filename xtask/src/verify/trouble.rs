//! What happens to a store while it is in use: hosts die, stand still and come back, connections break, transactions hesitate,
//! the strategy changes.
//!
//! Everything here takes place in the loop that watches the run: [`tick`](Trouble::tick) does what is due. One of the hosts
//! leads the flusher, and each has its turn.

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use ureq::Agent;

use super::database::Database;
use super::evidence::Strategy;
use super::fleet::Fleet;
use crate::http_client::{agent, read};

/// From one blow to the next.
const PAUSE: Duration = Duration::from_millis(300);

/// How long a host stands still: longer than the flusher's lease lasts.
const STANDSTILL: Duration = Duration::from_secs(4);

/// How long a backend does.
const HESITATION: Duration = Duration::from_millis(200);

const SWITCH_EVERY: Duration = Duration::from_secs(1);

/// How long a change of strategy may take before another host is asked.
const SWITCH_WITHIN: Duration = Duration::from_secs(3);

/// What is done, in turn. The first ones come in any run that lasts some seconds.
const BLOWS: [Blow; 8] = [
    Blow::Disconnect,
    Blow::Hesitate,
    Blow::Kill,
    Blow::Hesitate,
    Blow::Disconnect,
    Blow::StandStill,
    Blow::Hesitate,
    Blow::Disconnect,
];

#[derive(Clone, Copy)]
enum Blow {
    Kill,
    StandStill,
    /// A transaction takes its time: its backend stands still for a moment, whatever it holds.
    Hesitate,
    Disconnect,
}

/// How often it happened.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) kills: usize,
    pub(super) standstills: usize,
    pub(super) hesitations: usize,
    pub(super) disconnects: usize,
    pub(super) switches: usize,
    /// Hosts that have led the flusher, as far as was seen. A host that starts again counts as another one.
    pub(super) leaders: usize,
}

pub(super) struct Trouble {
    blows: bool,
    switches: bool,
    rng: Rng,
    agent: Agent,
    next_blow: Instant,
    /// Which blow is next, and which host it hits.
    turn: usize,
    victim: usize,
    standing_still: Option<(usize, Instant)>,
    next_switch: Instant,
    strategy: Strategy,
    leaders: HashSet<String>,
    tally: Tally,
}

impl Trouble {
    /// `blows`: kills, standstills and broken connections.
    pub(super) fn new(blows: bool, switches: bool, strategy: Strategy, mut rng: Rng) -> Self {
        let now = Instant::now();
        let (turn, victim) = (0, rng.usize(..64));
        Self {
            blows,
            switches,
            agent: agent(Some(SWITCH_WITHIN)),
            next_blow: now + PAUSE,
            turn,
            victim,
            standing_still: None,
            next_switch: now + SWITCH_EVERY,
            strategy,
            leaders: HashSet::new(),
            tally: Tally::default(),
            rng,
        }
    }

    pub(super) fn tick(&mut self, fleet: &mut Fleet<'_>, database: &Database<'_>) -> Result<()> {
        let now = Instant::now();
        if let Some((host, until)) = self.standing_still
            && now >= until
        {
            fleet.go_on(host)?;
            self.standing_still = None;
            self.next_blow = now + PAUSE;
        }
        if self.switches && now >= self.next_switch {
            self.switch(&fleet.addresses());
            self.next_switch = Instant::now() + SWITCH_EVERY;
        }
        if self.blows && self.standing_still.is_none() && now >= self.next_blow {
            self.leaders.extend(database.leader()?);
            self.strike(fleet, database)?;
            self.next_blow = Instant::now() + PAUSE;
        }
        Ok(())
    }

    /// Ends what is under way.
    pub(super) fn end(mut self, fleet: &Fleet<'_>) -> Result<Tally> {
        if let Some((host, _)) = self.standing_still.take() {
            fleet.go_on(host)?;
        }
        self.tally.leaders = self.leaders.len();
        Ok(self.tally)
    }

    fn strike(&mut self, fleet: &mut Fleet<'_>, database: &Database<'_>) -> Result<()> {
        let blow = BLOWS[self.turn % BLOWS.len()];
        self.turn += 1;
        let host = self.victim % fleet.size();
        match blow {
            Blow::Kill => {
                self.victim += 1;
                fleet.kill(host)?;
                self.tally.kills += 1;
            }
            Blow::StandStill => {
                self.victim += 1;
                fleet.pause(host)?;
                self.standing_still = Some((host, Instant::now() + STANDSTILL));
                self.tally.standstills += 1;
            }
            Blow::Hesitate => {
                if let Some(backend) = database.writing_backend()? {
                    self.tally.hesitations += usize::from(hesitate(backend));
                }
            }
            Blow::Disconnect => self.tally.disconnects += usize::from(database.terminate_a_backend()?),
        }
        Ok(())
    }

    /// Changes the strategy, by any host that can: whether it worked is for `epochs` to say.
    fn switch(&mut self, hosts: &[String]) {
        let others: Vec<Strategy> =
            Strategy::ALL.into_iter().filter(|strategy| *strategy != self.strategy).collect();
        let wanted = others[self.rng.usize(..others.len())];
        let host = &hosts[self.rng.usize(..hosts.len())];
        let body = json!({ "strategy": wanted.name() });
        let answer = self.agent.put(format!("{host}/v1/settings")).send_json(body).and_then(read);
        if answer.is_ok_and(|(status, _)| status == 200) {
            self.strategy = wanted;
            self.tally.switches += 1;
        }
    }
}

/// False, if the backend is gone, or is another account's.
fn hesitate(backend: i32) -> bool {
    let Some(pid) = Pid::from_raw(backend) else { return false };
    if kill_process(pid, Signal::STOP).is_err() {
        return false;
    }
    thread::sleep(HESITATION);
    // Nothing may come between the two: the server is not this run's alone.
    kill_process(pid, Signal::CONT).is_ok()
}
