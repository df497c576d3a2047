//! What can go wrong with the database, and the one place that tells which it was.

use sqlx::postgres::PgDatabaseError;

use crate::{Unscoped, bounds};

/// What a caller of the store can't mend by deciding again. Conflicts are not errors: see [`crate::Outcome`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The database can't be reached, or did not answer in time. Nothing was written.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// The connection was lost, or the time ran out, while a write was on its way.
    #[error("the outcome is unknown, the database may or may not have taken the events: {0}")]
    OutcomeUnknown(String),
    /// Somebody else held a lock for too long, or the statement ran for too long. Nothing was written.
    #[error("the database was too busy: {0}")]
    Busy(String),
    /// The server has no slot left for another lock. Nothing was written.
    #[error(
        "the server is out of space for locks: raise max_locks_per_transaction in postgresql.conf (its slots, \
         times max_connections, are shared by all) and restart it"
    )]
    OutOfLocks,
    /// The schema is missing or older than this program.
    #[error("the store is not set up in this database, or is of an older version: run `weir migrate`")]
    NotMigrated,
    /// Two statements of one transaction would share a snapshot.
    #[error("the connection does not run at READ COMMITTED, which the check for conflicts rests on")]
    Isolation,
    /// The condition has an item that no lock stands for, and this store does not allow it.
    #[error("the condition can't be used in this store: {0}")]
    Unscoped(Unscoped),
    /// The read token was made by a read of another query.
    #[error(
        "the read token belongs to another query than the condition's: read the condition's query, and use its token"
    )]
    ForeignToken,
    /// A position was used as a cursor in a part of the log in which it is none.
    #[error(
        "position {0} is no place to go on from: this part of the log was written under the strategy `boundary`, in which \
         events do not become visible in the order of their positions; use the cursor that came with the event"
    )]
    PositionIsNoCursor(u64),
    /// A position was used as a read token where it is none.
    #[error(
        "position {0} is no read token: the log has not come so far, or this part of it was written under the strategy \
         `boundary`, in which events do not become visible in the order of their positions; use the token of a read"
    )]
    PositionIsNoToken(u64),
    /// More than [`bounds::EVENTS`] events in one append.
    #[error("{0} events in one append, {max} is the most", max = bounds::EVENTS)]
    TooManyEvents(usize),
    /// More than [`bounds::LOCK_KEYS`] keys in one append.
    #[error(
        "the append would take {0} locks, {max} is the most: fewer events, tags, or query items at once",
        max = bounds::LOCK_KEYS
    )]
    TooManyLocks(usize),
    /// The database answered with an error that is none of the above. Nothing was written.
    #[error("the database reported: {0}")]
    Database(String),
    /// The database answered with something that this version does not know.
    #[error("an answer that makes no sense: {0}")]
    Unexpected(String),
}

/// Says what an error of the driver means for whoever only reads, or has not written yet.
#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err, which gives the error away")]
pub(crate) fn classify(error: sqlx::Error) -> Error {
    match &error {
        sqlx::Error::Database(database) => {
            let message = database.message().to_owned();
            let detail = database
                .try_downcast_ref::<PgDatabaseError>()
                .and_then(|e| e.detail())
                .map(|detail| format!(" ({detail})"))
                .unwrap_or_default();
            match database.code().as_deref().unwrap_or_default() {
                // Lock timeout, deadlock, serialization failure, statement timeout or cancel.
                "55P03" | "40P01" | "40001" | "57014" => Error::Busy(message),
                "53200" if message.contains("shared memory") => Error::OutOfLocks,
                // Undefined table, function or schema: there is no store, or not all of one.
                "42P01" | "42883" | "3F000" => Error::NotMigrated,
                // Out of resources, operator intervention, connection and authentication trouble.
                code if ["53", "57", "08", "28", "3D"].iter().any(|class| code.starts_with(class)) => {
                    Error::Unavailable(message)
                }
                _ => Error::Database(format!("{message}{detail}")),
            }
        }
        sqlx::Error::PoolTimedOut => Error::Unavailable("no connection could be had in time".into()),
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::RowNotFound => {
            Error::Unexpected(error.to_string())
        }
        _ => Error::Unavailable(error.to_string()),
    }
}

/// The same for a statement that writes and commits. An error that the server reports says that it did not, unless
/// it ends the session with it (class 57P: it is told to stop), for that may come after the commit. Where the
/// connection failed, nobody can tell.
pub(crate) fn classify_write(error: sqlx::Error) -> Error {
    let reported = match &error {
        sqlx::Error::Database(database) => !database.code().is_some_and(|code| code.starts_with("57P")),
        _ => false,
    };
    match classify(error) {
        Error::Unavailable(reason) if !reported => Error::OutcomeUnknown(reason),
        other => other,
    }
}
