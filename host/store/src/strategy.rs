//! The locking strategies, and the settings of a store.

use std::{fmt, str::FromStr, time::Duration};

use crate::{Error, Store, flusher::BATCH};

/// How appends of a store keep out of each other's way, and when events get their position. After the article "DCB on
/// Postgres", whose four strategies these are; the argument for each stands in `migrations/`, in the file that
/// is named after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// One lock for the whole store, position at the insert.
    Global,
    /// A lock for each key, position at the insert: fast, with gaps, and followers need an opaque cursor.
    Boundary,
    /// A lock for each key for the check, one for the store for the insert.
    Hybrid,
    /// A lock for each key; a flusher gives the positions afterwards.
    Staging,
}

impl Strategy {
    /// All of them, in the article's order.
    pub const ALL: [Self; 4] = [Self::Global, Self::Boundary, Self::Hybrid, Self::Staging];

    /// Its name, as the store has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Boundary => "boundary",
            Self::Hybrid => "hybrid",
            Self::Staging => "staging",
        }
    }

    /// Whether positions run without a gap, and so a position alone is a cursor.
    pub fn gap_free(self) -> bool {
        self != Self::Boundary
    }

    /// Whether appends with different keys commit in parallel.
    pub fn parallel(self) -> bool {
        matches!(self, Self::Boundary | Self::Staging)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|strategy| strategy.as_str() == text);
        known.ok_or_else(|| {
            format!("there is no strategy \"{text}\"; there are global, boundary, hybrid and staging")
        })
    }
}

/// What holds for every host of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// See [`Strategy`].
    pub strategy: Strategy,
    /// Whether a condition may have items without a type or without a tag. Such appends wait for all others.
    pub unscoped_conditions: bool,
}

impl Store {
    /// The settings, as this process last saw them; asks the database the first time.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn settings(&self) -> Result<Settings, Error> {
        match self.known_settings() {
            Some(settings) => Ok(settings),
            None => self.refresh_settings().await,
        }
    }

    /// The settings, from the database.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn refresh_settings(&self) -> Result<Settings, Error> {
        let read =
            sqlx::query!(r#"SELECT strategy, unscoped_conditions, has_moved() AS "has_moved!" FROM store"#)
                .fetch_one(self.control());
        let row = self.bounded(read).await?;
        if row.has_moved {
            self.adopt_cluster().await?;
        }
        let strategy = row.strategy.parse().map_err(Error::Unexpected)?;
        let settings = Settings { strategy, unscoped_conditions: row.unscoped_conditions };
        self.know_settings(settings);
        Ok(settings)
    }

    /// Takes a store into use that was restored from a dump into another cluster than the one it was in. It does no harm to
    /// do it twice.
    pub(crate) async fn adopt_cluster(&self) -> Result<(), Error> {
        let adopt = sqlx::query_scalar!(r#"SELECT adopt_cluster() AS "adopted!""#).fetch_one(self.control());
        if self.bounded(adopt).await? {
            tracing::info!("the store has come to another cluster: a new epoch begins here");
        }
        Ok(())
    }

    /// Changes the strategy, online, and returns whether it was another. Appends that come meanwhile wait for as long as
    /// the longest one that runs now.
    ///
    /// # Errors
    /// [`Error::Busy`] if a transaction that has read the store does not end in time: nothing has changed then.
    pub async fn set_strategy(&self, strategy: Strategy) -> Result<bool, Error> {
        // Under the lock only the rest should be left to flush.
        while self.flush_once(BATCH).await? {}
        let set = sqlx::query_scalar!(r#"SELECT set_strategy($1) AS "changed!""#, strategy.as_str())
            .fetch_one(self.control());
        let changed = self.bounded(set).await?;
        self.refresh_settings().await?;
        Ok(changed)
    }

    /// Allows conditions with unscoped items, or forbids them.
    ///
    /// # Errors
    /// As for [`Store::set_strategy`].
    pub async fn allow_unscoped_conditions(&self, allowed: bool) -> Result<(), Error> {
        let set = sqlx::query!("SELECT allow_unscoped_conditions($1)", allowed).execute(self.control());
        self.bounded(set).await?;
        self.refresh_settings().await?;
        Ok(())
    }

    /// How long the oldest transaction of the cluster that has written has been running: under `boundary`, those who
    /// follow the log see nothing that is newer.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn held_back(&self) -> Result<Duration, Error> {
        let ask = sqlx::query_scalar!(
                r#"SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start) * 1000), 0)::bigint AS "ms!"
                     FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()"#
            )
            .fetch_one(self.control());
        let ms = self.bounded(ask).await?;
        Ok(Duration::from_millis(u64::try_from(ms).unwrap_or_default()))
    }
}
