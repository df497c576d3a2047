//! How a store is doing, for those who watch over it.

use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::{Error, Settings, Store, Strategy, error::classify};

/// Up to so many staged rows, and kept outcomes, are counted. More are estimated.
const COUNTED: i32 = 10_000;

/// A store as it was at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreStatus {
    /// The settings.
    pub settings: Settings,
    /// The highest position, 0 for an empty log.
    pub head: u64,
    /// Events that are accepted and not numbered yet. None but under [`Strategy::Staging`].
    pub staged: Depth,
    /// How long the oldest of them has been staged, by the database's clock; zero if there is none.
    pub flush_lag: Duration,
    /// The oldest transaction that has written and still runs. Under [`Strategy::Boundary`] those who follow the log see
    /// nothing that came later.
    pub held_back: Option<HeldBack>,
    /// Whether transactions of other roles can be seen. If not, `held_back` may be missing what the log waits for; the
    /// privileges of `pg_read_all_stats` mend it.
    pub sees_all_transactions: bool,
    /// Who flushes; `None` if nobody ever did or the last one has handed over.
    pub lease: Option<Lease>,
    /// The parts of the log that have one strategy each, in order. Never empty.
    pub epochs: Vec<Epoch>,
    /// Outcomes that are kept for callers who send a request again.
    pub outcomes: Depth,
    /// What the tables take up.
    pub bytes: TableBytes,
}

/// How many rows there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// So many.
    pub rows: u64,
    /// Whether they were counted. Else it is an estimate: of staged events, about the most that there can be.
    pub exact: bool,
}

/// A transaction of this database's cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldBack {
    /// How long it has been running.
    pub running: Duration,
    /// The process that serves it; `None` for a prepared transaction, which belongs to no session.
    pub pid: Option<i32>,
    /// What the session calls itself.
    pub application: String,
    /// What the session does, as `pg_stat_activity` has it: `active`, `idle in transaction`, …
    pub state: String,
}

/// The flusher's lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The flusher that has it: see [`crate::Flusher::id`].
    pub holder: Uuid,
    /// Until when, by the database's clock.
    pub until: OffsetDateTime,
    /// Whether it has run out: then the holder is gone or hangs, and whoever asks next gets it.
    pub expired: bool,
}

/// A part of the log with one strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch {
    /// From 1.
    pub number: u32,
    /// The position behind which it begins.
    pub after_position: u64,
    /// Its strategy.
    pub strategy: Strategy,
    /// When it began.
    pub began_at: OffsetDateTime,
}

/// Bytes of the store's tables, with their indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableBytes {
    /// The numbered events.
    pub events: u64,
    /// Where they are found by type and tag.
    pub event_keys: u64,
    /// Those that are not numbered yet.
    pub staging: u64,
    /// Where these are found.
    pub staged_keys: u64,
    /// The kept outcomes.
    pub outcomes: u64,
}

/// The connections of one of this process's pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// What they are for.
    pub pool: &'static str,
    /// At work.
    pub used: u32,
    /// Open, and waiting for work.
    pub idle: u32,
}

impl Store {
    /// How the store is doing: one statement, in one snapshot, whose cost does not grow with the log or with staging.
    /// Gives up after `patience`.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn status(&self, patience: Duration) -> Result<StoreStatus, Error> {
        let deadline = tokio::time::Instant::now() + patience;
        let late = |_| Error::Unavailable(format!("no answer within {patience:?}"));
        let connection = tokio::time::timeout_at(deadline, self.control().acquire()).await;
        let mut connection = connection.map_err(late)?.map_err(classify)?;
        let read = sqlx::query!(
            r#"SELECT s.strategy, s.unscoped_conditions,
                      extract(epoch FROM s.outcomes_kept)::bigint AS "outcomes_kept_seconds!",
                      (SELECT coalesce(max(e.position), 0) FROM events e) AS "head!",
                      d.depth AS "staged!", d.exact AS "staged_exact!",
                      coalesce(extract(epoch FROM clock_timestamp() - d.oldest), 0)::double precision AS "lag_seconds!",
                      w.seconds AS "writer_seconds?", w.pid AS "writer_pid?",
                      w.application AS "writer_application?", w.state AS "writer_state?",
                      pg_has_role('pg_read_all_stats', 'USAGE') AS "sees_all!",
                      l.holder AS "holder?", l.expires_at AS "expires_at?",
                      l.expires_at < clock_timestamp() AS expired,
                      ARRAY(SELECT p.number FROM epochs p ORDER BY p.number) AS "epoch_numbers!",
                      ARRAY(SELECT p.after_position FROM epochs p ORDER BY p.number) AS "epochs_after!",
                      ARRAY(SELECT p.strategy FROM epochs p ORDER BY p.number) AS "epoch_strategies!",
                      ARRAY(SELECT p.began_at FROM epochs p ORDER BY p.number) AS "epochs_began!",
                      (SELECT count(*) FROM (SELECT FROM outcomes LIMIT $1 + 1) AS c) AS "outcomes!",
                      (SELECT c.reltuples::bigint FROM pg_class c WHERE c.oid = 'outcomes'::regclass) AS "outcomes_estimated!",
                      pg_total_relation_size('events') AS "events_bytes!",
                      pg_total_relation_size('event_keys') AS "event_keys_bytes!",
                      pg_total_relation_size('staging') AS "staging_bytes!",
                      pg_total_relation_size('staged_keys') AS "staged_keys_bytes!",
                      pg_total_relation_size('outcomes') AS "outcomes_bytes!"
                 FROM store s
                CROSS JOIN staging_depth($1) AS d
                 LEFT JOIN oldest_writer() AS w ON true
                 LEFT JOIN flusher_lease l ON true"#,
            COUNTED
        );
        let row = match tokio::time::timeout_at(deadline, read.fetch_one(&mut *connection)).await {
            Ok(row) => row.map_err(classify)?,
            Err(elapsed) => {
                // A server that hangs would keep it for as long as it does, and the flusher needs one.
                connection.close_on_drop();
                return Err(late(elapsed));
            }
        };

        let epochs = row.epoch_numbers.into_iter().zip(row.epochs_after);
        let epochs = epochs.zip(row.epoch_strategies).zip(row.epochs_began).map(
            |(((number, after), strategy), began_at)| {
                let strategy = strategy.parse().map_err(Error::Unexpected)?;
                Ok(Epoch {
                    number: number.cast_unsigned(),
                    after_position: unsigned(after),
                    strategy,
                    began_at,
                })
            },
        );
        let lease = row.holder.zip(row.expires_at);
        Ok(StoreStatus {
            settings: Settings::of(&row.strategy, row.unscoped_conditions, row.outcomes_kept_seconds)?,
            head: unsigned(row.head),
            staged: Depth { rows: unsigned(row.staged), exact: row.staged_exact },
            flush_lag: seconds(row.lag_seconds),
            held_back: row.writer_seconds.map(|running| HeldBack {
                running: seconds(running),
                pid: row.writer_pid,
                application: row.writer_application.unwrap_or_default(),
                state: row.writer_state.unwrap_or_default(),
            }),
            sees_all_transactions: row.sees_all,
            lease: lease.map(|(holder, until)| Lease {
                holder,
                until,
                expired: row.expired.unwrap_or_default(),
            }),
            epochs: epochs.collect::<Result<_, Error>>()?,
            outcomes: Depth {
                rows: unsigned(if row.outcomes > i64::from(COUNTED) {
                    row.outcomes.max(row.outcomes_estimated)
                } else {
                    row.outcomes
                }),
                exact: row.outcomes <= i64::from(COUNTED),
            },
            bytes: TableBytes {
                events: unsigned(row.events_bytes),
                event_keys: unsigned(row.event_keys_bytes),
                staging: unsigned(row.staging_bytes),
                staged_keys: unsigned(row.staged_keys_bytes),
                outcomes: unsigned(row.outcomes_bytes),
            },
        })
    }

    /// About how many events are staged, at the most: for one who must know whether the flusher keeps up, and often. As
    /// cheap with a million as with none.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn staged_depth(&self) -> Result<u64, Error> {
        let ask = sqlx::query_scalar!(r#"SELECT depth AS "depth!" FROM staging_depth(0)"#)
            .fetch_one(self.control());
        self.bounded(ask).await.map(unsigned)
    }

    /// This process's connections.
    pub fn connections(&self) -> [Connections; 3] {
        let pools = [("appends", self.pool()), ("control", self.control()), ("readers", self.readers())];
        pools.map(|(name, pool)| {
            // Not read at one moment: a connection may have been taken in between.
            let idle = u32::try_from(pool.num_idle()).unwrap_or(u32::MAX).min(pool.size());
            Connections { pool: name, used: pool.size() - idle, idle }
        })
    }
}

fn unsigned(count: i64) -> u64 {
    count.try_into().unwrap_or_default()
}

/// Clocks may run backwards.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
