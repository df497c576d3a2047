//! A batch of commands: decision read, decide, append, answer.
//!
//! One statement reads what all their boundaries match, and one appends what all of them decide. Commands with the same
//! boundary share a model; commands that overlap are decided one after the other, each shown what the ones before it would
//! append. If one of those is not appended, because another host was faster, those that built on it fall with it in the
//! same transaction, and are decided again.

use std::ops::Range;

use time::OffsetDateTime;
use tokio::sync::oneshot;
use weir_runtime::{Call, Command, Decision, QueryItem, SequencedEvent};
use weir_store::{
    Append, Appended, Condition, Error, Idempotency, NewEvent, Outcome, Place, Provenance, Query,
    ReadOptions, ReadRequest, ReadToken,
};

use crate::{
    answer::Answer,
    command::Failure,
    handlers::Loaded,
    host::{Guest, Host},
    translate,
};

/// A command that waits for its batch.
pub(crate) struct Entry {
    pub(crate) command: Command,
    pub(crate) handler: Loaded,
    pub(crate) boundary: Query,
    /// What the boundary is locked by.
    pub(crate) keys: Vec<i64>,
    /// Whether a part of it is locked by nothing.
    pub(crate) unscoped: bool,
    /// What earlier answers have asked to see besides.
    pub(crate) widened: Vec<QueryItem>,
    pub(crate) provenance: Provenance,
    /// If its caller gave the command its id.
    pub(crate) fingerprint: Option<[u8; 32]>,
    /// With this one.
    pub(crate) attempts: u32,
    /// It has made a batch fail as a whole, and goes without others.
    pub(crate) alone: bool,
    pub(crate) settled: oneshot::Sender<Settled>,
}

/// What a batch makes of a command.
pub(crate) enum Settled {
    /// The events of the answer are durable.
    Appended(Answer),
    /// The answer needed no append.
    Answered(Answer),
    /// An append with its id has been made before.
    Repeated,
    /// What it was decided on has changed.
    Conflict,
    /// The model it was to be decided on failed with another command.
    Again,
    /// It does not go together with others: its history is too long, or the batch could not be appended as a whole.
    Alone,
    /// The decision needs to see more.
    Widen(Vec<QueryItem>),
    Failed(Failure),
}

/// Commands of one handler with one boundary: they are decided on one model.
struct Group {
    boundary: Query,
    /// Its commands: so many, one behind the other.
    entries: Range<usize>,
    /// What the model has been shown of the store, when its history has been applied.
    token: ReadToken,
    /// What the model has not been shown yet.
    history: Vec<SequencedEvent>,
    /// A model that is warm, or was fed with a long history. None: a fresh one.
    guest: Option<Guest>,
    /// There is more history than can be read together with others'.
    is_long: bool,
    /// Events that commands of this batch would append, and that the model has been shown: the command's index, and the
    /// event's.
    shown: Vec<(usize, usize)>,
}

/// What a command is decided to be, and the commands of the batch whose events that decision has seen.
struct Decided {
    what: What,
    builds_on: Vec<usize>,
}

enum What {
    Accept {
        events: Vec<NewEvent>,
        answer: Answer,
        idempotency: Option<Idempotency>,
    },
    /// A rejection, or an acceptance without an event.
    Answer(Answer),
    /// Nothing that depends on the others.
    Settled(Settled),
}

/// Takes a batch from its boundaries to its answers.
pub(crate) async fn run(host: &Host, batch: Vec<Entry>) {
    let (batch, mut groups) = grouped(host, batch);
    // For the models that are not warm, of which one is at work at a time.
    let slot = host.slot().await;
    let read_at = match read(host, &batch, &mut groups).await {
        Ok(read_at) => read_at,
        Err(failure) => return settle_all(batch, &failure),
    };
    let (batch, mut groups, decided) = decide(host, batch, groups, read_at).await;
    drop(slot);
    let appended = append(host, &batch, &groups, &decided, read_at).await;
    keep_models(host, &batch, &mut groups, &decided, &appended);
    settle(batch, decided, appended);
}

/// Commands with the same boundary one behind the other, and otherwise in the order in which they came.
fn grouped(host: &Host, batch: Vec<Entry>) -> (Vec<Entry>, Vec<Group>) {
    let mut by_boundary: Vec<Vec<Entry>> = Vec::new();
    for entry in batch {
        match by_boundary.iter_mut().find(|group| group[0].boundary == entry.boundary) {
            // What was widened to the same boundary has been told so in another way.
            Some(group) if group[0].widened == entry.widened => group.push(entry),
            _ => by_boundary.push(vec![entry]),
        }
    }
    let (mut batch, mut groups) = (Vec::new(), Vec::new());
    for entries in by_boundary {
        let (boundary, version) = (entries[0].boundary.clone(), entries[0].handler.version_id);
        let (guest, token) = host.models.take(version, &boundary).unzip();
        groups.push(Group {
            boundary,
            entries: batch.len()..batch.len() + entries.len(),
            token: token.unwrap_or_default(),
            history: Vec::new(),
            guest,
            is_long: false,
            shown: Vec::new(),
        });
        batch.extend(entries);
    }
    (batch, groups)
}

/// Reads what the models need: of those that are warm, only what is new. Returns the time at which that was.
async fn read(host: &Host, batch: &[Entry], groups: &mut [Group]) -> Result<OffsetDateTime, Failure> {
    let requests: Vec<_> = groups
        .iter()
        .map(|group| ReadRequest {
            query: &group.boundary,
            since: group.guest.as_ref().map(|_| &group.token),
        })
        .collect();
    let read = host.store.read_batch(&requests).await?;
    for (group, of_group) in groups.iter_mut().zip(read.reads) {
        group.token = of_group.token;
        if of_group.is_whole {
            group.history =
                of_group.events.iter().map(|at| translate::sequenced(&read.events[*at])).collect();
        } else if batch.len() == 1 {
            read_long(host, &batch[group.entries.start], group).await?;
        } else {
            group.is_long = true;
        }
    }
    Ok(read.read_at)
}

/// Feeds a fresh model page by page, because the history is too long to be read with the others'.
async fn read_long(host: &Host, first: &Entry, group: &mut Group) -> Result<(), Failure> {
    group.guest = None;
    let mut reading = host.store.begin_read(&group.boundary, ReadOptions::default()).await?;
    group.token = reading.token().clone();
    let mut guest = host.fresh_guest(&first.handler, &first.command)?;
    while let Some(page) = reading.next().await? {
        let page: Vec<_> = page.iter().map(translate::sequenced).collect();
        (guest, ()) = guest.call(move |guest| guest.apply(&page)).await?;
    }
    group.guest = Some(guest);
    Ok(())
}

/// Lets each command be decided, on a thread that may be busy for so long.
async fn decide(
    host: &Host,
    batch: Vec<Entry>,
    groups: Vec<Group>,
    read_at: OffsetDateTime,
) -> (Vec<Entry>, Vec<Group>, Vec<Decided>) {
    let host = host.clone();
    let thread = tokio::task::spawn_blocking(move || {
        let mut deciding =
            Deciding { host, batch, decided: Vec::new(), read_at: translate::milliseconds(read_at) };
        let mut groups = groups;
        for group in &mut groups {
            deciding.group(group);
        }
        (deciding.batch, groups, deciding.decided)
    });
    match thread.await {
        Ok(decided) => decided,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

struct Deciding {
    host: Host,
    batch: Vec<Entry>,
    /// So far, in order.
    decided: Vec<Decided>,
    read_at: u64,
}

impl Deciding {
    fn group(&mut self, group: &mut Group) {
        if group.is_long {
            return self.decided.extend(group.entries.clone().map(|_| What::Settled(Settled::Alone).alone()));
        }
        let first = &self.batch[group.entries.start];
        let fed = match group.guest.take() {
            Some(guest) => Ok(guest),
            None => self.host.fresh_guest(&first.handler, &first.command),
        };
        let history = std::mem::take(&mut group.history);
        let mut guest = match fed.and_then(|guest| guest.run(|model| model.apply(&history))) {
            Ok((guest, ())) => guest,
            // That is the end of the model, for all of them.
            Err(failure) => {
                let failed = || What::Settled(Settled::Failed(failure.clone().into()));
                return self.decided.extend(group.entries.clone().map(|_| failed().alone()));
            }
        };
        for at in group.entries.clone() {
            let unseen = self.unseen_batch_mates(group);
            let builds_on = distinct(group.shown.iter().map(|(mate, _)| *mate));
            let entry = &self.batch[at];
            let decision = guest.run(|model| {
                model.apply(&unseen)?;
                model.turn_to(&entry.command);
                model.decide(&entry.widened)
            });
            match decision {
                Ok((same, decision)) => {
                    guest = same;
                    let what = made_of(entry, decision, |reason| guest.nonsense(Call::Decide, reason));
                    self.decided.push(Decided { what, builds_on });
                }
                Err(failure) => {
                    self.decided.push(What::Settled(Settled::Failed(failure.into())).alone());
                    // The model is lost with it; the others get another.
                    let rest = at + 1..group.entries.end;
                    return self.decided.extend(rest.map(|_| What::Settled(Settled::Again).alone()));
                }
            }
        }
        // One that lives on the batch's place makes room for the next.
        group.guest = Some(guest).filter(Guest::can_be_kept);
    }

    /// What commands before would append that matches the group's boundary, and that its model has not been shown.
    fn unseen_batch_mates(&self, group: &mut Group) -> Vec<SequencedEvent> {
        let mut unseen = Vec::new();
        for (mate, decided) in self.decided.iter().enumerate() {
            let What::Accept { events, .. } = &decided.what else { continue };
            for (at, event) in events.iter().enumerate() {
                if group.boundary.matches(event) && !group.shown.contains(&(mate, at)) {
                    group.shown.push((mate, at));
                    unseen.push(translate::not_appended_yet(event, self.read_at));
                }
            }
        }
        unseen
    }
}

impl What {
    /// It has seen no event of a batch mate.
    fn alone(self) -> Decided {
        Decided { what: self, builds_on: Vec::new() }
    }
}

fn made_of(entry: &Entry, decision: Decision, nonsense: impl Fn(String) -> weir_runtime::Failure) -> What {
    let (command, handler) = (&entry.command, &entry.handler.handler);
    let answer = match decision {
        Decision::Widen(items) => return What::Settled(Settled::Widen(items)),
        Decision::Reject(rejection) => Answer::rejected(command, handler, entry.attempts, rejection),
        Decision::Accept(events) => {
            let accepted = translate::events(events).map_err(|reason| Failure::from(nonsense(reason)));
            let accepted = accepted.and_then(|events| {
                let answer = Answer::accepted(command, handler, entry.attempts, &events)?;
                let idempotency = match entry.fingerprint {
                    Some(fingerprint) => Some(Idempotency { fingerprint, answer: answer.to_json()? }),
                    None => None,
                };
                Ok((events, answer, idempotency))
            });
            match accepted {
                Ok((events, answer, _)) if events.is_empty() => answer,
                Ok((events, answer, idempotency)) => return What::Accept { events, answer, idempotency },
                Err(failure) => return What::Settled(Settled::Failed(failure)),
            }
        }
    };
    What::Answer(answer)
}

/// Appends what was decided in one statement. For each command: what became of its append, if it has one.
async fn append(
    host: &Host,
    batch: &[Entry],
    groups: &[Group],
    decided: &[Decided],
    read_at: OffsetDateTime,
) -> Vec<Option<Appended>> {
    // For each command: which of the appends is its own.
    let mut count = 0;
    let numbers: Vec<Option<usize>> = decided
        .iter()
        .map(|decided| {
            let accepted = matches!(decided.what, What::Accept { .. });
            count += usize::from(accepted);
            accepted.then(|| count - 1)
        })
        .collect();
    let builds_on: Vec<Vec<usize>> = decided
        .iter()
        .map(|decided| decided.builds_on.iter().filter_map(|base| numbers[*base]).collect())
        .collect();
    let mut appends = Vec::with_capacity(count);
    for group in groups {
        for at in group.entries.clone() {
            let What::Accept { events, idempotency, .. } = &decided[at].what else { continue };
            appends.push(Append {
                events,
                condition: Some(Condition { query: &group.boundary, token: &group.token }),
                provenance: &batch[at].provenance,
                idempotency: idempotency.as_ref(),
                builds_on: &builds_on[at],
            });
        }
    }
    let mut outcomes: Vec<Option<Appended>> = match host.store.append_batch(&appends, Some(read_at)).await {
        Ok(appended) => appended.into_iter().map(Some).collect(),
        Err(error) => appends.iter().map(|_| Some(Err(error.clone()))).collect(),
    };
    numbers.into_iter().map(|number| number.and_then(|number| outcomes[number].take())).collect()
}

/// Keeps the models that have been shown nothing but what is in the store.
fn keep_models(
    host: &Host,
    batch: &[Entry],
    groups: &mut [Group],
    decided: &[Decided],
    appended: &[Option<Appended>],
) {
    for group in groups {
        let Some(guest) = group.guest.take() else { continue };
        let entries = group.entries.clone();
        let checked = entries.clone().any(|at| matches!(appended[at], Some(Ok((Outcome::Appended, _)))));
        let mut token = std::mem::take(&mut group.token);
        let all_there = group.shown.iter().all(|(mate, event)| {
            let (What::Accept { events, .. }, Some(Ok((Outcome::Appended, places)))) =
                (&decided[*mate].what, &appended[*mate])
            else {
                return false;
            };
            // Where it has a position, only a check of this very boundary tells that nothing lies below.
            let known = places.get(*event).filter(|place| checked || matches!(place, Place::Staged(_)));
            known.is_some_and(|place| {
                token.and_own(&group.boundary, &events[*event], *place);
                true
            })
        });
        if all_there && token.can_be_read_on() {
            host.models.keep(batch[entries.start].handler.version_id, &group.boundary, guest, token);
        }
    }
}

fn settle(batch: Vec<Entry>, decided: Vec<Decided>, appended: Vec<Option<Appended>>) {
    let is_there: Vec<bool> =
        appended.iter().map(|appended| matches!(appended, Some(Ok((Outcome::Appended, _))))).collect();
    let together = is_there.len() > 1;
    for ((entry, Decided { what, builds_on }), appended) in batch.into_iter().zip(decided).zip(appended) {
        let settled = match (what, appended) {
            (What::Settled(settled), _) => settled,
            // It has seen what is not there.
            (What::Answer(_), _) if !builds_on.iter().all(|base| is_there[*base]) => Settled::Conflict,
            (What::Answer(answer), _) => Settled::Answered(answer),
            (What::Accept { answer, .. }, Some(Ok((Outcome::Appended, _)))) => Settled::Appended(answer),
            (_, Some(Ok((Outcome::Repeated, _)))) => Settled::Repeated,
            (_, Some(Err(error))) if together && !concerns_all(&error) => Settled::Alone,
            (_, Some(Err(error))) => Settled::Failed(error.into()),
            (_, _) => Settled::Conflict,
        };
        // Whoever waited may have given up.
        let _ = entry.settled.send(settled);
    }
}

/// Whether an error is the database's, and not that of a command which the others need not suffer for.
fn concerns_all(error: &Error) -> bool {
    matches!(
        error,
        Error::Unavailable(_)
            | Error::OutcomeUnknown(_)
            | Error::Busy(_)
            | Error::Isolation
            | Error::NotMigrated
    )
}

fn settle_all(batch: Vec<Entry>, failure: &Failure) {
    for entry in batch {
        let _ = entry.settled.send(Settled::Failed(failure.clone()));
    }
}

fn distinct(indexes: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut kept: Vec<usize> = indexes.collect();
    kept.sort_unstable();
    kept.dedup();
    kept
}
