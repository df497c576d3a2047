//! The conditional append.

use crate::{
    Error, Idempotency, NewEvent, Query, ReadToken, Store, Strategy, Tag, bounds,
    error::classify_write,
    lock_key::{Clauses, array_literal, event_keys, locks},
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
}

/// How an append ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The events are durable, and every later decision sees them. The flusher will number them.
    Appended,
    /// An event that matches the condition came in after the read. Nothing was written.
    Conflict,
    /// An append with the same id of its caller's has been made before: see [`Store::outcome`]. Nothing was written.
    Repeated,
}

impl Store {
    /// Appends events if the condition holds: one statement, one round trip, one commit.
    ///
    /// # Errors
    /// [`Error::TooManyEvents`], [`Error::TooManyLocks`], [`Error::Unscoped`] and [`Error::ForeignToken`] if the append can't
    /// be made as it is; [`Error::OutcomeUnknown`] if the connection was lost on the way, so that nobody
    /// can tell whether the events are in the log; any other error says that nothing was written.
    pub async fn append(&self, append: Append<'_>) -> Result<Outcome, Error> {
        if append.events.is_empty() {
            return Ok(Outcome::Appended);
        }
        let request = Request::of(append)?;
        let mut strategy = self.settings().await?.strategy;
        loop {
            let status = self.call_append(strategy, &request, append).await?;
            match status.as_str() {
                "appended" => {
                    self.announce_append();
                    return Ok(Outcome::Appended);
                }
                "conflict" => return Ok(Outcome::Conflict),
                "repeated" => return Ok(Outcome::Repeated),
                "isolation" => return Err(Error::Isolation),
                "unscoped" => {
                    let unscoped = append.condition.and_then(|condition| condition.query.unscoped());
                    return Err(unscoped.map_or_else(|| Error::Unexpected(status), Error::Unscoped));
                }
                // It was changed while this process believed otherwise; nothing was written.
                "strategy" => strategy = self.refresh_settings().await?.strategy,
                other => return Err(Error::Unexpected(format!("append() answered \"{other}\""))),
            }
        }
    }

    async fn call_append(
        &self,
        ours: Strategy,
        request: &Request,
        append: Append<'_>,
    ) -> Result<String, Error> {
        let whose = append.provenance;
        // Taken apart so that a failure to get a connection is not mistaken for a lost answer.
        let mut connection = self.bounded(self.pool().acquire()).await?;
        let statement = sqlx::query_scalar!(
            r#"SELECT append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
                               $19) AS "status!""#,
            ours.as_str(),
            &request.lock_keys,
            &request.lock_exclusive,
            &request.clauses.keys as &[Option<i64>],
            &request.clauses.types as &[Option<String>],
            &request.clauses.tags,
            &request.after,
            &request.token.staged,
            request.token.snapshot,
            &request.types,
            &request.tags,
            &request.keys,
            &request.data,
            whose.command_id,
            whose.correlation_id,
            whose.causation_id,
            whose.version_id,
            append.idempotency.map(|id| id.fingerprint.to_vec()),
            append.idempotency.map(|id| id.answer.as_str()),
        );
        match tokio::time::timeout(self.timeout(), statement.fetch_one(&mut *connection)).await {
            Ok(answer) => answer.map_err(classify_write),
            Err(_) => {
                // The server may still be at it: this connection can't be used for anything else.
                connection.close_on_drop();
                Err(Error::OutcomeUnknown("the database did not answer in time".into()))
            }
        }
    }
}

/// An append as the database function takes it.
struct Request {
    lock_keys: Vec<i64>,
    lock_exclusive: Vec<bool>,
    clauses: Clauses,
    after: Vec<i64>,
    token: ReadToken,
    types: Vec<String>,
    tags: Vec<String>,
    keys: Vec<String>,
    data: Vec<String>,
}

impl Request {
    fn of(append: Append<'_>) -> Result<Self, Error> {
        let Append { events, condition, provenance, idempotency } = append;
        if events.len() > bounds::EVENTS {
            return Err(Error::TooManyEvents(events.len()));
        }
        let clauses = condition.map(|c| Clauses::of(c.query)).unwrap_or_default();
        let token = condition.map_or_else(ReadToken::nothing_seen, |c| c.token.clone());
        let after = token.positions(clauses.keys.len()).ok_or(Error::ForeignToken)?;
        let id = idempotency.map(|_| provenance.command_id.as_str());
        let (lock_keys, lock_exclusive) = locks(&clauses, events, id);
        if lock_keys.len() > bounds::LOCK_KEYS {
            return Err(Error::TooManyLocks(lock_keys.len()));
        }
        Ok(Self {
            lock_keys,
            lock_exclusive,
            clauses,
            after,
            token,
            types: events.iter().map(|e| e.event_type().to_string()).collect(),
            tags: events.iter().map(|e| array_literal(e.tags().iter().map(Tag::as_str))).collect(),
            keys: events.iter().map(|e| bigint_array_literal(&event_keys(e))).collect(),
            data: events.iter().map(|e| e.data().as_str().to_owned()).collect(),
        })
    }
}

fn bigint_array_literal(keys: &[i64]) -> String {
    let keys: Vec<_> = keys.iter().map(i64::to_string).collect();
    format!("{{{}}}", keys.join(","))
}
