//! The log as its readers see it: numbered events, page by page.

use time::OffsetDateTime;

use crate::{Error, EventType, Json, Store, Tag, error::classify, lock_key::lock_key};

/// Which events to read: those with any of the types and all of the tags. Empty lists leave nothing out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Any of these; all, if empty.
    pub event_types: Vec<EventType>,
    /// All of these.
    pub tags: Vec<Tag>,
}

/// An event with everything the log knows about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Its place, from 1, without gaps.
    pub position: u64,
    /// Its type.
    pub event_type: EventType,
    /// Its tags.
    pub tags: Vec<Tag>,
    /// Its data.
    pub data: Json,
    /// When it was recorded, by the database's clock.
    pub recorded_at: OffsetDateTime,
    /// The command that it answers.
    pub command_id: String,
    /// The conversation that the command belongs to: its own id, if it began one.
    pub correlation_id: String,
    /// What caused the command, if anything.
    pub causation_id: Option<String>,
    /// The handler that decided, and its version's digest.
    pub handler: Option<(String, Vec<u8>)>,
}

/// A piece of the log.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// In order of position.
    pub events: Vec<LoggedEvent>,
    /// Where to go on: everything that matches up to here has been returned.
    pub next: u64,
    /// The highest position when the page was read. At `next == head` the reader has caught up.
    pub head: u64,
}

impl Store {
    /// The events after position `after` that match, at most `limit` of them. A page may be empty although
    /// more follows: go on at `next` until it reaches `head`.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn page(&self, after: u64, filter: &Filter, limit: u32) -> Result<Page, Error> {
        // The head and the types together, then the page up to that head: a type that comes up in between
        // belongs to events past it, and so none is skipped.
        let known = self.known().await?;
        let Ok(after) = i64::try_from(after) else {
            return Ok(Page { events: Vec::new(), next: after, head: known.head.cast_unsigned() });
        };
        let mut page = Page {
            events: Vec::new(),
            next: after.max(known.head).cast_unsigned(),
            head: known.head.cast_unsigned(),
        };
        if after >= known.head {
            page.next = after.cast_unsigned();
            return Ok(page);
        }

        let types = if filter.event_types.is_empty() { &known.types } else { &filter.event_types };
        let keys: Vec<i64> = match filter.tags.first() {
            Some(tag) => types.iter().map(|event_type| lock_key(event_type, tag)).collect(),
            None => Vec::new(),
        };
        let types: Vec<String> = filter.event_types.iter().map(ToString::to_string).collect();
        let tags: Vec<String> = filter.tags.iter().map(ToString::to_string).collect();
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        let rows = self
            .bounded(async {
                sqlx::query!(
                    r#"SELECT looked_to, position, type AS event_type, event_tags, data::text AS data, recorded_at,
                              command_id, correlation_id, causation_id, handler, digest
                         FROM log_page($1, $2, $3, $4, $5, $6)"#,
                    after,
                    known.head,
                    &types,
                    &tags,
                    &keys,
                    limit
                )
                .fetch_all(self.control())
                .await
                .map_err(classify)
            })
            .await?;

        for row in rows {
            if let Some(looked_to) = row.looked_to {
                page.next = looked_to.cast_unsigned();
                continue;
            }
            page.events.push(LoggedEvent {
                position: row.position.unwrap_or_default().cast_unsigned(),
                event_type: EventType::trusted(row.event_type.unwrap_or_default()),
                tags: row.event_tags.unwrap_or_default().into_iter().map(Tag::trusted).collect(),
                data: Json::trusted(row.data.unwrap_or_default()),
                recorded_at: row.recorded_at.unwrap_or(OffsetDateTime::UNIX_EPOCH),
                command_id: row.command_id.unwrap_or_default(),
                correlation_id: row.correlation_id.unwrap_or_default(),
                causation_id: row.causation_id,
                handler: row.handler.zip(row.digest),
            });
        }
        if let Some(last) = page.events.last()
            && page.events.len() >= limit as usize
        {
            page.next = last.position;
        }
        Ok(page)
    }

    /// The highest position, 0 for an empty log.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn head(&self) -> Result<u64, Error> {
        Ok(self.known().await?.head.cast_unsigned())
    }

    /// How many events are staged.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn staged_count(&self) -> Result<u64, Error> {
        let count = async {
            sqlx::query_scalar!(r#"SELECT count(*) AS "count!" FROM staging"#)
                .fetch_one(self.control())
                .await
                .map_err(classify)
        };
        Ok(self.bounded(count).await?.cast_unsigned())
    }

    /// The types that some event of the log has.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn event_types(&self) -> Result<Vec<EventType>, Error> {
        Ok(self.known().await?.types)
    }

    /// Whether some event carries the tag, numbered or not.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn knows_tag(&self, tag: &Tag) -> Result<bool, Error> {
        let staged = async {
            sqlx::query_scalar!(
                r#"SELECT EXISTS (SELECT FROM staging WHERE tags @> ARRAY[$1]) AS "staged!""#,
                tag.as_str()
            )
            .fetch_one(self.control())
            .await
            .map_err(classify)
        };
        // Staging first: a flush in between shows the event in both places rather than in neither.
        if self.bounded(staged).await? {
            return Ok(true);
        }
        let filter = Filter { event_types: Vec::new(), tags: vec![tag.clone()] };
        let mut after = 0;
        loop {
            let page = self.page(after, &filter, 1).await?;
            if !page.events.is_empty() || page.next >= page.head {
                return Ok(!page.events.is_empty());
            }
            after = page.next;
        }
    }

    async fn known(&self) -> Result<Known, Error> {
        let known = async {
            sqlx::query!(
                r#"SELECT (SELECT coalesce(max(position), 0) FROM events) AS "head!",
                          ARRAY(SELECT type FROM event_types ORDER BY type) AS "types!""#
            )
            .fetch_one(self.control())
            .await
            .map_err(classify)
        };
        let row = self.bounded(known).await?;
        Ok(Known { head: row.head, types: row.types.into_iter().map(EventType::trusted).collect() })
    }
}

/// How far the log has come, and which types it holds, in one snapshot.
struct Known {
    head: i64,
    types: Vec<EventType>,
}
