//! The conditional append.

use crate::{
    Boundary, Error, NewEvent, ReadToken, Store, Tag, bounds,
    error::{classify, classify_write},
    lock_key::{Clauses, array_literal, event_keys, locks},
};

/// Fail if an event matches the boundary that the read did not see.
#[derive(Debug, Clone, Copy)]
pub struct Condition<'a> {
    /// The boundary that was read.
    pub boundary: &'a Boundary,
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
}

/// How an append ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The events are durable, and every later decision sees them. The flusher will number them.
    Appended,
    /// An event that matches the condition came in after the read. Nothing was written.
    Conflict,
}

impl Store {
    /// Appends events if the condition holds: one statement, one round trip, one commit.
    ///
    /// # Errors
    /// [`Error::TooManyEvents`] and [`Error::TooManyLocks`] before anything is sent;
    /// [`Error::OutcomeUnknown`] if the connection was lost on the way, so that nobody can tell whether
    /// the events are in the log; any other error says that nothing was written.
    pub async fn append(&self, append: Append<'_>) -> Result<Outcome, Error> {
        if append.events.is_empty() {
            return Ok(Outcome::Appended);
        }
        if append.events.len() > bounds::EVENTS {
            return Err(Error::TooManyEvents(append.events.len()));
        }
        let clauses = append.condition.map(|c| Clauses::of(c.boundary)).unwrap_or_default();
        let nothing_seen = ReadToken::default();
        let token = append.condition.map_or(&nothing_seen, |c| c.token);
        let (lock_keys, lock_exclusive) = locks(&clauses, append.events);
        if lock_keys.len() > bounds::LOCK_KEYS {
            return Err(Error::TooManyLocks(lock_keys.len()));
        }

        let events = append.events;
        let types: Vec<_> = events.iter().map(|e| e.event_type().as_str().to_owned()).collect();
        let tags: Vec<_> = events.iter().map(|e| array_literal(e.tags().iter().map(Tag::as_str))).collect();
        let keys: Vec<_> = events.iter().map(|e| bigint_array_literal(&event_keys(e))).collect();
        let data: Vec<_> = events.iter().map(|e| e.data().as_str().to_owned()).collect();

        // Taken apart so that a failure to get a connection is not mistaken for a lost answer.
        let mut connection = self.bounded(async { self.pool().acquire().await.map_err(classify) }).await?;
        let statement = sqlx::query_scalar!(
            r#"SELECT append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) AS "status!""#,
            &lock_keys,
            &lock_exclusive,
            &clauses.keys,
            &clauses.types,
            &clauses.tags,
            token.head,
            &token.staged,
            &types,
            &tags,
            &keys,
            &data,
            append.provenance.command_id,
            append.provenance.correlation_id,
            append.provenance.causation_id,
            append.provenance.version_id,
        );
        let status = match tokio::time::timeout(self.timeout(), statement.fetch_one(&mut *connection)).await {
            Ok(answer) => answer.map_err(classify_write)?,
            Err(_) => {
                // The server may still be at it: this connection can't be used for anything else.
                connection.close_on_drop();
                return Err(Error::OutcomeUnknown("the database did not answer in time".into()));
            }
        };
        match status.as_str() {
            "appended" => {
                self.nudge_flusher();
                Ok(Outcome::Appended)
            }
            "conflict" => Ok(Outcome::Conflict),
            "isolation" => Err(Error::Isolation),
            other => Err(Error::Unexpected(format!("append() answered \"{other}\""))),
        }
    }
}

fn bigint_array_literal(keys: &[i64]) -> String {
    let keys: Vec<_> = keys.iter().map(i64::to_string).collect();
    format!("{{{}}}", keys.join(","))
}
