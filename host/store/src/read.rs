//! The decision read.

use std::collections::HashMap;

use time::OffsetDateTime;

use crate::{
    Error, EventType, Json, Query, ReadToken, Store, Tag,
    lock_key::{Clause, ClauseLists, clauses, fingerprint, number_literal},
    token::Seen,
};

/// Rows looked at for each clause by the statement that makes the token. Most boundaries have fewer events.
const FIRST_ROWS: i32 = 1000;
/// Rows looked at for each clause by a statement that goes on from there.
const PAGE_ROWS: i32 = 10_000;

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
    /// What its writer said of it besides.
    pub metadata: Option<Json>,
    /// Where it comes from; told only if [`ReadOptions::with_origin`] asks for it.
    pub origin: Option<Origin>,
}

/// Where an event comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The command, or append, that it answers.
    pub command_id: String,
    /// The conversation that the command belongs to: its own id, if it began one.
    pub correlation_id: String,
    /// What caused the command, if anything.
    pub causation_id: Option<String>,
    /// The handler that decided, and its version's digest.
    pub handler: Option<(String, Vec<u8>)>,
}

/// All events that match a query, in one snapshot.
#[derive(Debug, Clone)]
pub struct DecisionRead {
    /// Oldest first: those with a position by position, then those that are staged.
    pub events: Vec<SequencedEvent>,
    /// For the condition of the append that follows from them.
    pub token: ReadToken,
}

/// Which of the events that match are wanted. The token stands for all of them, whichever are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// Only those behind this position. Staged events are behind every position.
    pub after: u64,
    /// Only those before this position, if there is one: none that is staged.
    pub before: Option<u64>,
    /// Newest first.
    pub backwards: bool,
    /// Tell where each event comes from.
    pub with_origin: bool,
}

impl Default for ReadOptions {
    /// All of them, oldest first, as a decision needs them.
    fn default() -> Self {
        Self { after: 0, before: None, backwards: false, with_origin: false }
    }
}

/// A read under way: page by page, and yet one snapshot, which nobody holds open meanwhile. The first statement has
/// settled what belongs to it: the staged events are at hand, and those that are numbered do not change any more.
#[derive(Debug)]
pub struct Reading {
    store: Store,
    lists: ClauseLists,
    until: Vec<i64>,
    options: ReadOptions,
    token: ReadToken,
    head: u64,
    /// What the next page looks at; none, if no more are to be read.
    rest: Option<(i64, i64)>,
    first: Vec<SequencedEvent>,
    staged: Vec<SequencedEvent>,
}

impl Reading {
    /// For the condition of an append that follows from this read.
    pub fn token(&self) -> &ReadToken {
        &self.token
    }

    /// The highest position at the time.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Whether the last page has been read.
    pub fn is_done(&self) -> bool {
        self.rest.is_none() && self.first.is_empty() && self.staged.is_empty()
    }

    /// The next events; none at the end. A page is bounded by its bytes and may be empty.
    ///
    /// # Errors
    /// Whatever the database says. The page can be asked for again.
    pub async fn next(&mut self) -> Result<Option<Vec<SequencedEvent>>, Error> {
        if self.options.backwards && !self.staged.is_empty() {
            return Ok(Some(std::mem::take(&mut self.staged)));
        }
        if self.is_done() {
            return Ok(None);
        }
        let mut events = match self.rest {
            Some((after, before)) => self.page(after, before).await?,
            None => std::mem::take(&mut self.first),
        };
        if self.rest.is_none() {
            events.append(&mut self.staged);
        }
        Ok(Some(events))
    }

    async fn page(&mut self, after: i64, before: i64) -> Result<Vec<SequencedEvent>, Error> {
        let rows = sqlx::query_as!(
            Row,
            r#"SELECT looked_to, position, type AS event_type, event_tags, data::text AS data,
                      metadata::text AS metadata, recorded_at, command_id, correlation_id, causation_id, handler, digest
                 FROM read_page($1, $2, $3, $4, $5, $6, $7, $8, $9)"#,
            &self.lists.keys,
            &self.lists.types as &[Option<String>],
            &self.lists.tags,
            &self.until,
            self.token.snapshot.as_deref(),
            after,
            before,
            self.options.backwards,
            PAGE_ROWS
        )
        .fetch_all(self.store.readers());
        let mut rows = self.store.bounded(rows).await?.into_iter();
        let looked_to = rows.next().and_then(|row| row.looked_to);
        self.rest = looked_to.map(|to| if self.options.backwards { (after, to) } else { (to, before) });
        Ok(rows.map(SequencedEvent::from).collect())
    }
}

/// A read of a batch.
#[derive(Debug, Clone, Copy)]
pub struct ReadRequest<'a> {
    /// What to read.
    pub query: &'a Query,
    /// Only what the read behind this token, of the same query, has not seen. (A token with a snapshot, of an unscoped query
    /// under `boundary`, can't tell, and must not be given: see [`ReadToken::can_be_read_on`].)
    pub since: Option<&'a ReadToken>,
}

/// What a batch of reads saw.
#[derive(Debug)]
pub struct BatchRead {
    /// Each event once: those with a position by position, then those that are staged.
    pub events: Vec<SequencedEvent>,
    /// For each request.
    pub reads: Vec<RequestRead>,
    /// When, by the database's clock.
    pub read_at: OffsetDateTime,
}

/// What one read of a batch saw.
#[derive(Debug)]
pub struct RequestRead {
    /// Its events, by their index.
    pub events: Vec<usize>,
    /// Whether these are all. If not, they are of no use: begin a read of its own.
    pub is_whole: bool,
    /// For the condition of an append that follows from them.
    pub token: ReadToken,
}

impl Store {
    /// Reads the events that match `query`, all of them: for a boundary of no great length.
    ///
    /// # Errors
    /// [`Error::Unavailable`] and its like; a read that failed can be repeated.
    pub async fn read(&self, query: &Query) -> Result<DecisionRead, Error> {
        let mut reading = self.begin_read(query, ReadOptions::default()).await?;
        let mut events = Vec::new();
        while let Some(mut page) = reading.next().await? {
            events.append(&mut page);
        }
        Ok(DecisionRead { events, token: reading.token })
    }

    /// Begins to read the events that match `query`: one statement, one snapshot over staging and events, and for most
    /// boundaries no other.
    ///
    /// # Errors
    /// [`Error::Unavailable`] and its like; a read that failed can be repeated.
    pub async fn begin_read(&self, query: &Query, options: ReadOptions) -> Result<Reading, Error> {
        let clauses = clauses(query);
        let lists = ClauseLists::of(&clauses);
        let unseen = vec![Seen::default(); clauses.len()];
        // A decision wants the beginning at once; whoever wants another part gets it in pages.
        let from_start =
            options == ReadOptions { with_origin: options.with_origin, ..ReadOptions::default() };
        let first_rows = if from_start { FIRST_ROWS } else { 0 };
        let snapshot = self.decision_read(&lists, &unseen, first_rows, options.with_origin).await?;

        let (mut first, mut staged) = (Vec::new(), Vec::new());
        for Found { event, .. } in snapshot.found {
            if event.position.is_none() { staged.push(event) } else { first.push(event) }
        }
        let whole = snapshot.whole.iter().all(|whole| *whole);
        if !whole {
            // Read from the beginning in pages, so that all clauses together are in order.
            first.clear();
        }
        if options.backwards {
            staged.reverse();
        }
        if options.before.is_some() {
            staged.clear();
        }
        let bound = |position: u64| i64::try_from(position).unwrap_or(i64::MAX);
        let range = (bound(options.after), options.before.map_or(i64::MAX, bound));
        Ok(Reading {
            store: self.clone(),
            lists,
            until: snapshot.seen.iter().map(|seen| seen.after).collect(),
            options,
            token: ReadToken {
                query: Some(fingerprint(&clauses)),
                seen: snapshot.seen,
                position: None,
                snapshot: snapshot.text,
            },
            head: snapshot.head,
            rest: (!whole).then_some(range),
            first,
            staged,
        })
    }

    /// Reads for several decisions in one statement and one snapshot.
    ///
    /// # Errors
    /// As for [`Store::begin_read`]; [`Error::ForeignToken`].
    pub async fn read_batch(&self, requests: &[ReadRequest<'_>]) -> Result<BatchRead, Error> {
        let (mut known, mut distinct) = (HashMap::new(), Vec::new());
        let mut of_requests = Vec::with_capacity(requests.len());
        for ReadRequest { query, since } in requests {
            let clauses = clauses(query);
            let (query, count) = (fingerprint(&clauses), clauses.len());
            let seen = match since {
                Some(token) => token.of_query(query, count).ok_or(Error::ForeignToken)?,
                None => vec![Seen::default(); count],
            };
            let numbers = clauses.into_iter().zip(seen).map(|clause: (Clause, Seen)| {
                *known.entry(clause.clone()).or_insert_with(|| {
                    distinct.push(clause);
                    distinct.len() - 1
                })
            });
            of_requests.push((query, numbers.collect::<Vec<usize>>()));
        }
        let lists = ClauseLists::of(distinct.iter().map(|(clause, _)| clause));
        let seen: Vec<Seen> = distinct.into_iter().map(|(_, seen)| seen).collect();
        let snapshot = self.decision_read(&lists, &seen, FIRST_ROWS, false).await?;
        let reads = of_requests.into_iter().map(|(query, clauses)| RequestRead {
            events: (0..snapshot.found.len())
                .filter(|at| snapshot.found[*at].fresh.iter().any(|clause| clauses.contains(clause)))
                .collect(),
            is_whole: clauses.iter().all(|clause| snapshot.whole[*clause]),
            token: ReadToken {
                query: Some(query),
                seen: clauses.iter().map(|clause| snapshot.seen[*clause].clone()).collect(),
                position: None,
                snapshot: snapshot.text.clone(),
            },
        });
        let reads = reads.collect();
        let events = snapshot.found.into_iter().map(|found| found.event).collect();
        Ok(BatchRead { events, reads, read_at: snapshot.read_at })
    }

    async fn decision_read(
        &self,
        lists: &ClauseLists,
        since: &[Seen],
        most_rows: i32,
        with_origin: bool,
    ) -> Result<Snapshot, Error> {
        let after: Vec<_> = since.iter().map(|seen| seen.after).collect();
        let staged: Vec<_> = since.iter().map(|seen| number_literal(&seen.staged)).collect();
        let rows = sqlx::query!(
            r#"SELECT clause_after, clause_whole, snapshot, head, position, staged_id, clauses, fresh, type AS event_type,
                      event_tags, data::text AS data, metadata::text AS metadata, recorded_at,
                      command_id, correlation_id, causation_id, handler, digest
                 FROM decision_read($1, $2, $3, $4, $5, $6, $7)"#,
            &lists.keys,
            &lists.types as &[Option<String>],
            &lists.tags,
            &after,
            &staged,
            most_rows,
            with_origin
        )
        .fetch_all(self.pool());
        let mut rows = self.bounded(rows).await?.into_iter();
        let header =
            rows.next().ok_or_else(|| Error::Unexpected("decision_read() gave no token".to_owned()))?;
        let after = header.clause_after.unwrap_or_default();
        let mut snapshot = Snapshot {
            seen: after.into_iter().map(|after| Seen { after, staged: Vec::new() }).collect(),
            whole: header.clause_whole.unwrap_or_default(),
            text: header.snapshot,
            head: header.head.unwrap_or_default().cast_unsigned(),
            found: Vec::new(),
            read_at: header.recorded_at.unwrap_or(OffsetDateTime::UNIX_EPOCH),
        };
        for row in rows {
            if let (None, Some(id)) = (row.position, row.staged_id) {
                for clause in from_zero(row.clauses, since.len())? {
                    snapshot.seen[clause].staged.push(id);
                }
            }
            let fresh = from_zero(row.fresh, since.len())?;
            if fresh.is_empty() {
                continue;
            }
            let event = SequencedEvent::from(Row {
                looked_to: None,
                position: row.position,
                event_type: row.event_type,
                event_tags: row.event_tags,
                data: row.data,
                metadata: row.metadata,
                recorded_at: row.recorded_at,
                command_id: row.command_id,
                correlation_id: row.correlation_id,
                causation_id: row.causation_id,
                handler: row.handler,
                digest: row.digest,
            });
            snapshot.found.push(Found { event, fresh });
        }
        Ok(snapshot)
    }
}

/// What one statement saw, for some clauses.
struct Snapshot {
    /// For each clause.
    seen: Vec<Seen>,
    /// For each clause: whether all that it matches was found.
    whole: Vec<bool>,
    text: Option<String>,
    head: u64,
    found: Vec<Found>,
    read_at: OffsetDateTime,
}

struct Found {
    event: SequencedEvent,
    /// The clauses to which it is news, counted from 0.
    fresh: Vec<usize>,
}

/// Numbers of clauses, which the database counts from 1.
fn from_zero(numbers: Option<Vec<i32>>, clauses: usize) -> Result<Vec<usize>, Error> {
    let from_zero = |number: i32| usize::try_from(number - 1).ok().filter(|number| *number < clauses);
    let numbers: Option<Vec<_>> = numbers.unwrap_or_default().into_iter().map(from_zero).collect();
    numbers.ok_or_else(|| Error::Unexpected("decision_read() named a clause that is none".to_owned()))
}

/// A row of the functions that read.
struct Row {
    looked_to: Option<i64>,
    position: Option<i64>,
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

impl From<Row> for SequencedEvent {
    fn from(row: Row) -> Self {
        let handler = row.handler.zip(row.digest);
        let origin = row.command_id.map(|command_id| Origin {
            correlation_id: row.correlation_id.unwrap_or_else(|| command_id.clone()),
            command_id,
            causation_id: row.causation_id,
            handler,
        });
        Self {
            position: row.position.map(i64::cast_unsigned),
            recorded_at: row.recorded_at.unwrap_or(OffsetDateTime::UNIX_EPOCH),
            event_type: EventType::trusted(row.event_type.unwrap_or_default()),
            tags: row.event_tags.unwrap_or_default().into_iter().map(Tag::trusted).collect(),
            data: Json::trusted(row.data.unwrap_or_default()),
            metadata: row.metadata.map(Json::trusted),
            origin,
        }
    }
}
