//! The log as its readers see it: numbered events, page by page.

use time::OffsetDateTime;

use crate::{
    Cursor, Error, EventType, Json, Origin, Store, Strategy, Tag,
    cursor::Transaction,
    lock_key::{keys, number_literal},
};

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
    /// Its position, from 1; without gaps, unless the strategy is `boundary`.
    pub position: u64,
    /// The place behind it.
    pub cursor: Cursor,
    /// Its type.
    pub event_type: EventType,
    /// Its tags.
    pub tags: Vec<Tag>,
    /// Its data.
    pub data: Json,
    /// When it was recorded, by the database's clock.
    pub recorded_at: OffsetDateTime,
    /// What its writer said of it besides.
    pub metadata: Option<Json>,
    /// Where it comes from.
    pub origin: Origin,
}

/// A piece of the log.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// In the order in which they are to be followed.
    pub events: Vec<LoggedEvent>,
    /// Where to go on: everything that matches up to here has been returned.
    pub next: Cursor,
    /// Whether that was the end of the log.
    pub caught_up: bool,
}

impl Store {
    /// The events behind a place that match, at most `limit` of them. A page may be empty although more follows: go on
    /// at `next` until it has `caught_up`.
    ///
    /// # Errors
    /// [`Error::PositionIsNoCursor`], or whatever the database says.
    pub async fn page(&self, after: Cursor, filter: &Filter, limit: u32) -> Result<Page, Error> {
        // Everything about the log together, then the page up to that head: a type that comes up in between
        // belongs to events past it, and so none is skipped.
        let known = self.known().await?;
        let epoch = known.epoch_of(after);
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        let mut page = match epoch.strategy {
            Strategy::Boundary => self.page_by_xid(after, &epoch, filter, limit).await?,
            _ => self.page_by_position(after, &epoch, &known, filter, limit).await?,
        };
        if let Some(last) = page.events.last()
            && page.events.len() >= limit.cast_unsigned() as usize
        {
            page.next = last.cursor;
            page.caught_up = false;
        }
        Ok(page)
    }

    async fn page_by_position(
        &self,
        after: Cursor,
        epoch: &Epoch,
        known: &Known,
        filter: &Filter,
        limit: i32,
    ) -> Result<Page, Error> {
        let until = epoch.until.unwrap_or(known.head);
        let after = i64::try_from(after.position).unwrap_or(i64::MAX);
        if after >= until {
            let next = Cursor::at(after.cast_unsigned());
            return Ok(Page { events: Vec::new(), next, caught_up: epoch.until.is_none() });
        }
        let types = if filter.event_types.is_empty() { &known.types } else { &filter.event_types };
        let keys: Vec<String> = if filter.tags.is_empty() {
            Vec::new()
        } else {
            types.iter().map(|event_type| number_literal(&keys(event_type, &filter.tags))).collect()
        };
        let (types, tags) = filter.texts();
        let rows = self.bounded(sqlx::query_as!(
                Row,
                r#"SELECT looked_to, looked_to_xid, position, xid, type AS event_type, event_tags, data::text AS data,
                          metadata::text AS metadata, recorded_at, command_id, correlation_id, causation_id, handler, digest
                     FROM log_page($1, $2, $3, $4, $5, $6)"#,
                after,
                until,
                &types,
                &tags,
                &keys,
                limit
            )
            .fetch_all(self.readers()));
        let mut page = Page { events: Vec::new(), next: Cursor::at(after.cast_unsigned()), caught_up: false };
        page.take(rows.await?, epoch);
        page.caught_up = epoch.until.is_none() && page.next.position >= until.cast_unsigned();
        Ok(page)
    }

    async fn page_by_xid(
        &self,
        after: Cursor,
        epoch: &Epoch,
        filter: &Filter,
        limit: i32,
    ) -> Result<Page, Error> {
        // A position alone is a place here only where the epoch begins.
        let (xid, position) = match after.transaction {
            Some(Transaction { xid, .. }) => (xid.cast_signed(), after.position.cast_signed()),
            None if after.position == epoch.after.cast_unsigned() => (0, 0),
            None => return Err(Error::PositionIsNoCursor(after.position)),
        };
        let (types, tags) = filter.texts();
        let rows = self.bounded(sqlx::query_as!(
                Row,
                r#"SELECT looked_to, looked_to_xid, position, xid, type AS event_type, event_tags, data::text AS data,
                          metadata::text AS metadata, recorded_at, command_id, correlation_id, causation_id, handler, digest
                     FROM log_page_by_xid($1, $2, $3, $4, $5, $6)"#,
                xid,
                position,
                i32::try_from(epoch.number).unwrap_or(i32::MAX),
                &types,
                &tags,
                limit
            )
            .fetch_all(self.readers()));
        let mut page = Page { events: Vec::new(), next: after, caught_up: false };
        page.take(rows.await?, epoch);
        if page.next == after {
            match epoch.until {
                // The epoch has ended and been read to its end: on to the next.
                Some(until) => page.next = Cursor::at(until.cast_unsigned()),
                None => page.caught_up = true,
            }
        }
        Ok(page)
    }

    /// The end of the log as it is now: a reader that stops there has seen all that was there. (Under `boundary`, all
    /// that was committed before the oldest transaction that runs now.)
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn end(&self) -> Result<Cursor, Error> {
        let known = self.known().await?;
        let by_xid = known.epochs.last().is_some_and(|(_, strategy)| *strategy == Strategy::Boundary);
        let (epoch, xid) = (known.epochs.len() as u64, known.horizon.cast_unsigned());
        let transaction = by_xid.then_some(Transaction { epoch, xid });
        Ok(Cursor { position: known.head.cast_unsigned(), transaction })
    }

    /// The highest position, 0 for an empty log.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn head(&self) -> Result<u64, Error> {
        // Not as one of the readers: what wakes them must not wait for them.
        let head = sqlx::query_scalar!(r#"SELECT coalesce(max(position), 0) AS "head!" FROM events"#)
            .fetch_one(self.control());
        Ok(self.bounded(head).await?.cast_unsigned())
    }

    /// How many events are staged.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn staged_count(&self) -> Result<u64, Error> {
        let count =
            sqlx::query_scalar!(r#"SELECT count(*) AS "count!" FROM staging"#).fetch_one(self.readers());
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
        let staged = sqlx::query_scalar!(
            r#"SELECT EXISTS (SELECT FROM staging WHERE tags @> ARRAY[$1]) AS "staged!""#,
            tag.as_str()
        )
        .fetch_one(self.readers());
        // Staging first: a flush in between shows the event in both places rather than in neither.
        if self.bounded(staged).await? {
            return Ok(true);
        }
        let filter = Filter { event_types: Vec::new(), tags: vec![tag.clone()] };
        let mut after = Cursor::START;
        loop {
            let page = self.page(after, &filter, 1).await?;
            if !page.events.is_empty() || page.caught_up {
                return Ok(!page.events.is_empty());
            }
            after = page.next;
        }
    }

    async fn known(&self) -> Result<Known, Error> {
        let known = sqlx::query!(
            r#"SELECT (SELECT coalesce(max(position), 0) FROM events) AS "head!",
                          pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS "horizon!",
                          ARRAY(SELECT type FROM event_types ORDER BY type) AS "types!",
                          ARRAY(SELECT after_position FROM epochs ORDER BY number) AS "epochs_after!",
                          ARRAY(SELECT strategy FROM epochs ORDER BY number) AS "epochs_strategy!""#
        )
        .fetch_one(self.readers());
        let row = self.bounded(known).await?;
        let epochs = row.epochs_after.into_iter().zip(row.epochs_strategy).map(|(after, strategy)| {
            strategy.parse().map(|strategy| (after, strategy)).map_err(Error::Unexpected)
        });
        Ok(Known {
            head: row.head,
            horizon: row.horizon,
            types: row.types.into_iter().map(EventType::trusted).collect(),
            epochs: epochs.collect::<Result<_, _>>()?,
        })
    }
}

impl Filter {
    fn texts(&self) -> (Vec<String>, Vec<String>) {
        let types = self.event_types.iter().map(ToString::to_string).collect();
        (types, self.tags.iter().map(ToString::to_string).collect())
    }
}

impl Page {
    fn take(&mut self, rows: Vec<Row>, epoch: &Epoch) {
        let transaction =
            |xid: Option<i64>| xid.map(|xid| Transaction { epoch: epoch.number, xid: xid.cast_unsigned() });
        for row in rows {
            if let Some(looked_to) = row.looked_to {
                let transaction = transaction(row.looked_to_xid);
                self.next = Cursor { position: looked_to.cast_unsigned(), transaction };
                continue;
            }
            let position = row.position.unwrap_or_default().cast_unsigned();
            self.events.push(LoggedEvent {
                position,
                cursor: Cursor { position, transaction: transaction(row.xid) },
                event_type: EventType::trusted(row.event_type.unwrap_or_default()),
                tags: row.event_tags.unwrap_or_default().into_iter().map(Tag::trusted).collect(),
                data: Json::trusted(row.data.unwrap_or_default()),
                recorded_at: row.recorded_at.unwrap_or(OffsetDateTime::UNIX_EPOCH),
                metadata: row.metadata.map(Json::trusted),
                origin: Origin {
                    command_id: row.command_id.unwrap_or_default(),
                    correlation_id: row.correlation_id.unwrap_or_default(),
                    causation_id: row.causation_id,
                    handler: row.handler.zip(row.digest),
                },
            });
        }
    }
}

/// How far the log has come, which types it holds and of which epochs it consists, in one snapshot.
struct Known {
    head: i64,
    /// The oldest transaction that runs.
    horizon: i64,
    types: Vec<EventType>,
    /// Behind which position each begins, in order of their numbers, which run from 1, and its strategy. Never empty.
    epochs: Vec<(i64, Strategy)>,
}

/// A part of the log with one order.
struct Epoch {
    number: u64,
    strategy: Strategy,
    after: i64,
    /// `None` for the present one.
    until: Option<i64>,
}

impl Known {
    /// The epoch in which the event behind a place lies.
    fn epoch_of(&self, place: Cursor) -> Epoch {
        let position = i64::try_from(place.position).unwrap_or(i64::MAX);
        let at = match place.transaction {
            Some(Transaction { epoch, .. }) => {
                usize::try_from(epoch).unwrap_or(usize::MAX).clamp(1, self.epochs.len()) - 1
            }
            None => self.epochs.iter().rposition(|(after, _)| *after <= position).unwrap_or_default(),
        };
        let (after, strategy) = self.epochs[at];
        let until = self.epochs.get(at + 1).map(|(after, _)| *after);
        Epoch { number: at as u64 + 1, strategy, after, until }
    }
}

/// A row of the functions that make pages.
struct Row {
    looked_to: Option<i64>,
    looked_to_xid: Option<i64>,
    position: Option<i64>,
    xid: Option<i64>,
    event_type: Option<String>,
    event_tags: Option<Vec<String>>,
    data: Option<String>,
    metadata: Option<String>,
    recorded_at: Option<OffsetDateTime>,
    command_id: Option<String>,
    correlation_id: Option<String>,
    causation_id: Option<String>,
    handler: Option<String>,
    digest: Option<Vec<u8>>,
}
