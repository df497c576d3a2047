//! The decision read.

use time::OffsetDateTime;

use crate::{Error, EventType, Json, Query, ReadToken, Store, Tag, lock_key::Clauses};

/// An event as a decision sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequencedEvent {
    /// Its place in the log; `None` while it is staged.
    pub position: Option<u64>,
    /// When it was recorded, by the database's clock.
    pub recorded_at: OffsetDateTime,
    /// Its type.
    pub event_type: EventType,
    /// Its tags.
    pub tags: Vec<Tag>,
    /// Its data.
    pub data: Json,
}

/// All events that match a query, in one snapshot.
#[derive(Debug, Clone)]
pub struct DecisionRead {
    /// Oldest first: those with a position by position, then those that are staged.
    pub events: Vec<SequencedEvent>,
    /// For the condition of the append that follows from them.
    pub token: ReadToken,
}

impl Store {
    /// Reads the events that match `query`: one statement, one snapshot over staging and events.
    ///
    /// # Errors
    /// [`Error::Unavailable`] and its like; a read that failed can be repeated.
    pub async fn read(&self, query: &Query) -> Result<DecisionRead, Error> {
        let clauses = Clauses::of(query);
        let rows = self
            .bounded(sqlx::query!(
                    r#"SELECT clause_after, snapshot, position, staged_id, type AS event_type, tags, data::text AS data, recorded_at
                         FROM decision_read($1, $2, $3)"#,
                    &clauses.keys as &[Option<i64>],
                    &clauses.types as &[Option<String>],
                    &clauses.tags
                )
                .fetch_all(self.pool()))
            .await?;

        let mut read = DecisionRead { events: Vec::with_capacity(rows.len()), token: ReadToken::default() };
        for row in rows {
            if let Some(clause_after) = row.clause_after {
                read.token = ReadToken::new(clause_after, row.snapshot);
                continue;
            }
            if row.position.is_none() {
                read.token.staged.extend(row.staged_id);
            }
            read.events.push(SequencedEvent {
                position: row.position.map(i64::cast_unsigned),
                recorded_at: row.recorded_at.unwrap_or(OffsetDateTime::UNIX_EPOCH),
                event_type: EventType::trusted(row.event_type.unwrap_or_default()),
                tags: row.tags.unwrap_or_default().into_iter().map(Tag::trusted).collect(),
                data: Json::trusted(row.data.unwrap_or_default()),
            });
        }
        Ok(read)
    }
}
