//! The conditional append.

use std::collections::HashMap;

use time::OffsetDateTime;

use crate::{
    Error, Idempotency, NewEvent, Query, ReadToken, Store, Strategy, Tag, bounds,
    error::classify_write,
    lock_key::{Clause, ClauseLists, Locks, array_literal, clauses, event_keys, fingerprint, number_literal},
    token::Seen,
};

/// Fail if an event matches the query that the read did not see.
#[derive(Debug, Clone, Copy)]
pub struct Condition<'a> {
    /// The query that was read.
    pub query: &'a Query,
    /// What that read saw.
    pub token: &'a ReadToken,
}

/// Where events come from.
#[derive(Debug, Clone, Default)]
pub struct Provenance {
    /// The command that they answer.
    pub command_id: String,
    /// The conversation that the command belongs to; `None` if it starts one.
    pub correlation_id: Option<String>,
    /// The command or event that caused the command.
    pub causation_id: Option<String>,
    /// The version of the handler that decided: [`crate::ActiveVersion::id`].
    pub version_id: Option<i32>,
}

/// Events to be appended together, all or none.
#[derive(Debug, Clone, Copy)]
pub struct Append<'a> {
    /// In this order, at most [`bounds::EVENTS`].
    pub events: &'a [NewEvent],
    /// `None`: append in any case. The events' keys are locked all the same, or a condition that is checked at
    /// the same moment would miss them.
    pub condition: Option<Condition<'a>>,
    /// Whose they are.
    pub provenance: &'a Provenance,
    /// If the caller gave the command's id: an append with that id is made once, and its answer kept.
    pub idempotency: Option<&'a Idempotency>,
    /// In a batch: the earlier ones, counted from 0, whose events this one's decision has seen besides what its token
    /// says. If one of them is not appended, neither is this one.
    pub builds_on: &'a [usize],
}

/// How an append ended. In every case but the first nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The events are durable, and every later decision sees them. The flusher will number them.
    Appended,
    /// An event that matches the condition came in after the read.
    Conflict,
    /// One that it builds on was not appended.
    Undermined,
    /// An append with the same id of its caller's has been made before: see [`Store::outcome`].
    Repeated,
}

/// Where an appended event is now: what a token needs to count it as seen. See [`ReadToken::and_own`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In staging, under an id of the store's own.
    Staged(i64),
    /// In the log.
    Position(i64),
}

/// What became of one append of a batch: how it ended and, if its events were appended, where each of them is.
pub type Appended = Result<(Outcome, Vec<Place>), Error>;

impl Store {
    /// Appends events if the condition holds: one statement, one round trip, one commit. Waits while the flusher is far
    /// behind.
    ///
    /// # Errors
    /// [`Error::TooManyEvents`], [`Error::TooManyLocks`], [`Error::Unscoped`], [`Error::ForeignToken`] and
    /// [`Error::PositionIsNoToken`] if the append can't be made as it is; [`Error::OutcomeUnknown`] if the connection was
    /// lost on the way, so that nobody can tell whether the events are in the log; any other error says that nothing was
    /// written.
    pub async fn append(&self, append: Append<'_>) -> Result<Outcome, Error> {
        let mut outcomes = self.append_batch(&[append], None).await?;
        match outcomes.pop() {
            Some(appended) => appended.map(|(outcome, _)| outcome),
            None => Err(Error::Unexpected("append() gave no answer".into())),
        }
    }

    /// Makes several appends in one statement and one commit, each with an outcome of its own. They are made in their
    /// order, and each is held against those before it as if they had been made one by one, except that a decision may have
    /// seen what an earlier one of the batch appends: see [`Append::builds_on`]. Such a decision has seen a time, too:
    /// `recorded_at` is what the events get, by the database's clock; now, if it is none.
    ///
    /// # Errors
    /// As for [`Store::append`]. One that concerns a single append stands in its place among the outcomes, and the others
    /// are not made either if it shows before the database is asked.
    pub async fn append_batch(
        &self,
        appends: &[Append<'_>],
        recorded_at: Option<OffsetDateTime>,
    ) -> Result<Vec<Appended>, Error> {
        if appends.iter().all(|append| append.events.is_empty()) {
            return Ok(appends.iter().map(|_| Ok((Outcome::Appended, Vec::new()))).collect());
        }
        let batch = Batch { recorded_at, ..Batch::of(appends)? };
        self.until_flusher_keeps_up().await?;
        let mut strategy = self.settings().await?.strategy;
        loop {
            let (statuses, places) = self.call_append(strategy, &batch).await?;
            match statuses.first().map(String::as_str) {
                // It was changed while this process believed otherwise; nothing was written.
                Some("strategy") => strategy = self.refresh_settings().await?.strategy,
                Some("moved") => self.adopt_cluster().await?,
                Some("isolation") => return Err(Error::Isolation),
                _ => {
                    if !places.is_empty() {
                        self.announce_append();
                    }
                    let place = if strategy == Strategy::Staging { Place::Staged } else { Place::Position };
                    let mut places = places.into_iter().map(place);
                    let appended = statuses.iter().zip(appends).map(|(status, append)| {
                        let outcome = outcome(status, append)?;
                        let written = if outcome == Outcome::Appended { append.events.len() } else { 0 };
                        Ok((outcome, places.by_ref().take(written).collect()))
                    });
                    return Ok(appended.collect());
                }
            }
        }
    }

    async fn call_append(&self, ours: Strategy, batch: &Batch) -> Result<(Vec<String>, Vec<i64>), Error> {
        // Taken apart so that a failure to get a connection is not mistaken for a lost answer.
        let mut connection = self.bounded(self.pool().acquire()).await?;
        let statement = sqlx::query!(
            r#"SELECT statuses AS "statuses!", coalesce(places, '{}') AS "places!"
                 FROM append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
                             $19, $20, $21, $22, $23, $24)"#,
            ours.as_str(),
            &batch.lock_keys,
            &batch.lock_exclusive,
            &batch.lists.keys,
            &batch.lists.types as &[Option<String>],
            &batch.lists.tags,
            &batch.after,
            &batch.seen,
            &batch.snapshots as &[Option<String>],
            &batch.clauses,
            &batch.builds_on,
            &batch.command_ids,
            &batch.correlation_ids as &[Option<String>],
            &batch.causation_ids as &[Option<String>],
            &batch.version_ids as &[Option<i32>],
            &batch.fingerprints as &[Option<Vec<u8>>],
            &batch.answers as &[Option<String>],
            &batch.event_requests,
            &batch.event_types,
            &batch.event_tags,
            &batch.event_keys,
            &batch.event_data,
            &batch.event_metadata as &[Option<String>],
            batch.recorded_at,
        );
        match tokio::time::timeout(self.timeout(), statement.fetch_one(&mut *connection)).await {
            Ok(answer) => answer.map(|row| (row.statuses, row.places)).map_err(classify_write),
            Err(_) => {
                // The server may still be at it: this connection can't be used for anything else.
                connection.close_on_drop();
                Err(Error::OutcomeUnknown("the database did not answer in time".into()))
            }
        }
    }
}

fn outcome(status: &str, append: &Append<'_>) -> Result<Outcome, Error> {
    match status {
        "appended" => Ok(Outcome::Appended),
        "conflict" => Ok(Outcome::Conflict),
        "undermined" => Ok(Outcome::Undermined),
        "repeated" => Ok(Outcome::Repeated),
        "unscoped" => {
            let unscoped = append.condition.and_then(|condition| condition.query.unscoped());
            Err(unscoped.map_or_else(|| Error::Unexpected(status.to_owned()), Error::Unscoped))
        }
        "position" => {
            let position =
                append.condition.and_then(|condition| condition.token.position).unwrap_or_default();
            Err(Error::PositionIsNoToken(position.cast_unsigned()))
        }
        other => Err(Error::Unexpected(format!("append() answered \"{other}\""))),
    }
}

/// Appends as the database function takes them: see the type `append_batch` in migrations/.
#[derive(Default)]
struct Batch {
    lock_keys: Vec<i64>,
    lock_exclusive: Vec<bool>,
    lists: ClauseLists,
    after: Vec<i64>,
    seen: Vec<String>,
    snapshots: Vec<Option<String>>,
    clauses: Vec<String>,
    builds_on: Vec<String>,
    command_ids: Vec<String>,
    correlation_ids: Vec<Option<String>>,
    causation_ids: Vec<Option<String>>,
    version_ids: Vec<Option<i32>>,
    fingerprints: Vec<Option<Vec<u8>>>,
    answers: Vec<Option<String>>,
    event_requests: Vec<i32>,
    event_types: Vec<String>,
    event_tags: Vec<String>,
    event_keys: Vec<String>,
    event_data: Vec<String>,
    event_metadata: Vec<Option<String>>,
    recorded_at: Option<OffsetDateTime>,
}

/// A clause with what was seen of it. Appends of a batch that rest on the same one share it, and it is checked once.
type SeenClause = (Clause, Seen, Option<String>);

impl Batch {
    fn of(appends: &[Append<'_>]) -> Result<Self, Error> {
        let mut batch = Self::default();
        let mut locks = Locks::default();
        let (mut known, mut distinct) = (HashMap::new(), Vec::new());
        for (append, request) in appends.iter().zip(1..) {
            if append.events.len() > bounds::EVENTS {
                return Err(Error::TooManyEvents(append.events.len()));
            }
            let clauses = append.condition.map(|condition| clauses(condition.query)).unwrap_or_default();
            let id = append.idempotency.map(|_| append.provenance.command_id.as_str());
            locks.add(&clauses, append.events, id);
            let seen = match append.condition {
                None => Vec::new(),
                Some(Condition { token, .. }) => {
                    let seen =
                        token.of_query(fingerprint(&clauses), clauses.len()).ok_or(Error::ForeignToken)?;
                    let snapshot = token.snapshot().map(str::to_owned);
                    clauses
                        .into_iter()
                        .zip(seen)
                        .map(|(clause, seen)| (clause, seen, snapshot.clone()))
                        .collect()
                }
            };
            let numbers: Vec<usize> = seen
                .into_iter()
                .map(|clause: SeenClause| {
                    *known.entry(clause.clone()).or_insert_with(|| {
                        distinct.push(clause);
                        distinct.len()
                    })
                })
                .collect();
            batch.clauses.push(number_literal(&numbers));
            batch.add(append, request);
        }
        if locks.len() > bounds::LOCK_KEYS {
            return Err(Error::TooManyLocks(locks.len()));
        }
        (batch.lock_keys, batch.lock_exclusive) = locks.lists();
        batch.lists = ClauseLists::of(distinct.iter().map(|(clause, ..)| clause));
        batch.after = distinct.iter().map(|(_, seen, _)| seen.after).collect();
        batch.seen = distinct.iter().map(|(_, seen, _)| number_literal(&seen.staged)).collect();
        batch.snapshots = distinct.into_iter().map(|(_, _, snapshot)| snapshot).collect();
        Ok(batch)
    }

    fn add(&mut self, append: &Append<'_>, request: i32) {
        let bases: Vec<usize> = append.builds_on.iter().map(|base| base + 1).collect();
        self.builds_on.push(number_literal(&bases));
        self.command_ids.push(append.provenance.command_id.clone());
        self.correlation_ids.push(append.provenance.correlation_id.clone());
        self.causation_ids.push(append.provenance.causation_id.clone());
        self.version_ids.push(append.provenance.version_id);
        self.fingerprints.push(append.idempotency.map(|id| id.fingerprint.to_vec()));
        self.answers.push(append.idempotency.map(|id| id.answer.clone()));
        for event in append.events {
            self.event_requests.push(request);
            self.event_types.push(event.event_type().to_string());
            self.event_tags.push(array_literal(event.tags().iter().map(Tag::as_str)));
            self.event_keys.push(number_literal(&event_keys(event)));
            self.event_data.push(event.data().as_str().to_owned());
            self.event_metadata.push(event.metadata().map(|metadata| metadata.as_str().to_owned()));
        }
    }
}
