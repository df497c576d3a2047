//! One of many who read, and append on the condition that nothing has come in between; and who write down what they did and
//! what they were told.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use fastrand::Rng;
use ureq::Agent;

use super::choice::{Chooser, Intent};
use super::evidence::{Answer, Append, Condition, Item, Query, Read};
use super::plain_store::{self, AppendRequest, ConditionBody, Reply};
use crate::http_client::agent;

/// How long a writer waits for an answer before it gives it up for lost: less than a host stands still.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long it goes on to find out about an append after everything else has ended.
const LAST_PATIENCE: Duration = Duration::from_secs(30);

/// How long it waits before it knocks again.
const PAUSE: Duration = Duration::from_millis(20);

/// What the writers of a run share.
pub(super) struct Shared {
    pub(super) hosts: Vec<String>,
    pub(super) began: Instant,
    pub(super) stop: AtomicBool,
    /// Whether positions may stand for reads, and conditions do without a type or a tag.
    pub(super) positions: bool,
    pub(super) unscoped: bool,
    tries: AtomicU64,
    /// The highest position that some read has told of.
    head: AtomicU64,
    pub(super) acknowledged: AtomicU64,
    surprises: Mutex<Vec<String>>,
}

impl Shared {
    pub(super) fn new(hosts: Vec<String>, positions: bool, unscoped: bool) -> Self {
        Self {
            hosts,
            began: Instant::now(),
            stop: AtomicBool::new(false),
            positions,
            unscoped,
            tries: AtomicU64::new(0),
            head: AtomicU64::new(0),
            acknowledged: AtomicU64::new(0),
            surprises: Mutex::default(),
        }
    }

    pub(super) fn surprise(&self, what: String) {
        self.surprises.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    pub(super) fn take_surprises(&self) -> Vec<String> {
        std::mem::take(&mut self.surprises.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

pub(super) struct Writer<'a> {
    shared: &'a Shared,
    chooser: Chooser,
    agent: Agent,
    appends: Vec<Append>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(shared: &'a Shared, number: u32, rng: Rng) -> Self {
        let chooser = Chooser::new(rng, number, shared.unscoped, shared.positions);
        Self { shared, chooser, agent: agent(Some(PATIENCE)), appends: Vec::new() }
    }

    /// Writes until it is told to stop.
    pub(super) fn run(mut self) -> Result<Vec<Append>> {
        while !self.shared.stops() {
            self.write_once()?;
        }
        Ok(self.appends)
    }

    fn write_once(&mut self) -> Result<()> {
        let tries = self.shared.tries.fetch_add(1, Ordering::Relaxed);
        let intent = self.chooser.intent(tries, self.shared.head.load(Ordering::Relaxed));
        let events = self.chooser.events(&intent, tries);
        let id = (self.chooser.rng.u32(..10) < 3).then(|| self.chooser.append_id());
        let (condition, token) = match &intent {
            Intent::Always => (None, None),
            Intent::AfterPosition { query, position } => {
                (Some(Condition::NothingAfter(query.clone(), *position)), None)
            }
            Intent::AfterRead { query, beyond, backwards } => {
                let Some((read, token)) = self.read(query, *beyond, *backwards) else { return Ok(()) };
                (Some(Condition::NothingSince(read)), Some(token))
            }
        };
        let condition_body = condition.as_ref().map(|condition| ConditionBody {
            query: condition.query(),
            token: token.as_deref(),
            after: match condition {
                Condition::NothingAfter(_, position) => Some(*position).filter(|position| *position > 0),
                Condition::NothingSince(_) => None,
            },
        });
        let request = AppendRequest::new(id.clone(), &events, condition_body)?;
        let append = Append {
            command_id: id,
            events,
            condition,
            sent: self.shared.began.elapsed(),
            acknowledged: None,
            answers: Vec::new(),
        };
        let append = self.append(append, &request);
        if append.was(Answer::Appended) && request.id.is_some() {
            self.try_the_id_again(append, &request, &intent, tries)?;
        } else {
            self.appends.push(append);
        }
        Ok(())
    }

    /// Reads until some host has answered; none, if that takes to the end.
    fn read(&mut self, query: &Query, beyond: u64, backwards: bool) -> Option<(Read, String)> {
        while !self.shared.stops() {
            let host = self.any_host();
            let began = self.shared.began.elapsed();
            match plain_store::read(&self.agent, host, query, beyond, backwards) {
                Ok(Some(shown)) => {
                    self.shared.head.fetch_max(shown.head, Ordering::Relaxed);
                    let read = Read { query: query.clone(), beyond, began, seen: shown.seen };
                    return Some((read, shown.token));
                }
                Ok(None) => thread::sleep(PAUSE),
                Err(error) => {
                    self.shared.surprise(format!("{error:#}"));
                    thread::sleep(PAUSE);
                }
            }
        }
        None
    }

    /// Sends an append until it is known what came of it, or cannot be known.
    fn append(&mut self, mut append: Append, request: &AppendRequest) -> Append {
        if request.id.is_some() && self.chooser.rng.u32(..10) == 0 {
            self.send_twice_at_once(&mut append, request);
        }
        let mut give_up_at = None;
        while !append.was(Answer::Appended) && !append.was(Answer::Conflict) {
            let reply = self.send(request);
            let refused = self.note(&mut append, reply);
            let lost = append.was(Answer::Lost);
            if lost && request.id.is_none() {
                break;
            }
            if self.shared.stops() {
                // Whoever has an id can and should find out.
                let until = *give_up_at.get_or_insert_with(|| Instant::now() + LAST_PATIENCE);
                if !lost || Instant::now() >= until {
                    break;
                }
            }
            match refused {
                Refusal::None => {}
                Refusal::ForNow => thread::sleep(PAUSE),
                Refusal::ForGood => break,
            }
        }
        append
    }

    fn send_twice_at_once(&mut self, append: &mut Append, request: &AppendRequest) {
        let (one, other) = (self.any_host(), self.any_host());
        let agent = &self.agent;
        let replies = thread::scope(|scope| {
            let twin = scope.spawn(|| plain_store::append(agent, other, request));
            let reply = plain_store::append(agent, one, request);
            [reply, twin.join().expect("a request reports its errors")]
        });
        for reply in replies {
            self.note(append, reply);
        }
    }

    /// An id that stands for an append stands for it whatever condition comes with it, and for nothing else.
    fn try_the_id_again(
        &mut self,
        mut append: Append,
        request: &AppendRequest,
        intent: &Intent,
        tries: u64,
    ) -> Result<()> {
        match self.chooser.rng.u32(..10) {
            0 => {
                let reply = self.send(request);
                self.note(&mut append, reply);
            }
            1 => {
                // That nothing like its own events is there: which is not so.
                let query = Query {
                    items: vec![Item {
                        types: vec![append.events[0].event_type.clone()],
                        tags: append.events[0].tags.iter().cloned().collect(),
                    }],
                };
                if query.is_scoped() {
                    let condition = ConditionBody { query: &query, token: None, after: None };
                    let request = AppendRequest::new(request.id.clone(), &append.events, Some(condition))?;
                    let reply = self.send(&request);
                    self.note(&mut append, reply);
                }
            }
            2 => {
                let events = self.chooser.some_events(intent, tries, 1);
                let others = AppendRequest::new(request.id.clone(), &events, None)?;
                let sent = self.shared.began.elapsed();
                let answer = match self.send(&others) {
                    Reply::IdReused => Answer::Conflict,
                    Reply::Known { answer, .. } => answer,
                    reply => {
                        self.shared.surprise(format!("an id was used again: {}", reply.in_words()));
                        Answer::Lost
                    }
                };
                let answers = vec![if answer == Answer::Conflict { Answer::Refused } else { answer }];
                // An answer that it was made is a lie: the check will miss the events.
                self.appends.push(Append {
                    command_id: None,
                    events,
                    condition: None,
                    sent,
                    acknowledged: None,
                    answers,
                });
            }
            _ => {}
        }
        self.appends.push(append);
        Ok(())
    }

    /// Writes a reply down, and says whether it was none.
    fn note(&self, append: &mut Append, reply: Reply) -> Refusal {
        let mut refusal = Refusal::None;
        let answer = match reply {
            Reply::Known { answer: Answer::Refused, .. } => {
                refusal = Refusal::ForNow;
                Answer::Refused
            }
            Reply::Known { answer, id } => {
                if let (Answer::Appended, Some(id)) = (answer, id) {
                    self.acknowledge(append, &id);
                }
                answer
            }
            Reply::PositionRefused => {
                refusal = Refusal::ForGood;
                Answer::Refused
            }
            reply @ (Reply::IdReused | Reply::Surprise(_)) => {
                self.shared.surprise(format!("an append was answered with {}", reply.in_words()));
                refusal = Refusal::ForNow;
                Answer::Lost
            }
        };
        // How often it was refused on the way does not matter.
        if answer != Answer::Refused || append.answers.is_empty() {
            append.answers.push(answer);
        }
        refusal
    }

    fn acknowledge(&self, append: &mut Append, id: &str) {
        if append.acknowledged.is_none() {
            append.acknowledged = Some(self.shared.began.elapsed());
            self.shared.acknowledged.fetch_add(1, Ordering::Relaxed);
        }
        if append.command_id.get_or_insert_with(|| id.to_owned()) != id {
            self.shared.surprise(format!("{:?} was answered with the id {id}", append.command_id));
        }
    }

    fn send(&mut self, request: &AppendRequest) -> Reply {
        let host = self.any_host();
        plain_store::append(&self.agent, host, request)
    }

    fn any_host(&mut self) -> &'a str {
        let hosts = &self.shared.hosts;
        &hosts[self.chooser.rng.usize(..hosts.len())]
    }
}

enum Refusal {
    None,
    /// Try again.
    ForNow,
    ForGood,
}
