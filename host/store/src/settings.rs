//! The settings of a store: they hold for every host.

use std::fmt;

use crate::{Error, Store, Strategy, flusher::BATCH};

/// What holds for every host of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// See [`Strategy`].
    pub strategy: Strategy,
    /// Whether a condition may have items without a type or without a tag. Such appends wait for all others.
    pub unscoped_conditions: bool,
    /// How long the outcome of a request with an id of its caller's is kept: see [`Store::outcome`].
    pub outcomes_kept: OutcomesKept,
}

/// What to change about the settings; `None` leaves one as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SettingsChange {
    /// See [`Settings::strategy`].
    pub strategy: Option<Strategy>,
    /// See [`Settings::unscoped_conditions`].
    pub unscoped_conditions: Option<bool>,
    /// See [`Settings::outcomes_kept`].
    pub outcomes_kept: Option<OutcomesKept>,
}

/// How long outcomes are kept: a minute to ten years, in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutcomesKept(u64);

impl OutcomesKept {
    /// Long enough to send a request again.
    pub const LEAST: Self = Self(60);
    /// Longer is a mistake.
    pub const MOST: Self = Self(10 * 365 * 24 * 60 * 60);

    /// # Errors
    /// If it is less than [`Self::LEAST`] or more than [`Self::MOST`].
    pub fn from_seconds(seconds: u64) -> Result<Self, InvalidOutcomesKept> {
        if (Self::LEAST.0..=Self::MOST.0).contains(&seconds) {
            Ok(Self(seconds))
        } else {
            Err(InvalidOutcomesKept(seconds))
        }
    }

    /// As seconds.
    pub fn seconds(self) -> u64 {
        self.0
    }

    /// As the database has it, whatever somebody may have set it to there.
    fn trusted(seconds: i64) -> Self {
        Self(seconds.try_into().unwrap_or_default())
    }
}

/// A time for which outcomes can't be kept, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidOutcomesKept(pub u64);

impl fmt::Display for InvalidOutcomesKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "outcomes can't be kept for {} seconds: {} (a minute) is the least, {} (ten years) the most",
            self.0,
            OutcomesKept::LEAST.0,
            OutcomesKept::MOST.0
        )
    }
}

impl std::error::Error for InvalidOutcomesKept {}

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
        let read = sqlx::query!(
            r#"SELECT strategy, unscoped_conditions,
                      extract(epoch FROM outcomes_kept)::bigint AS "outcomes_kept_seconds!",
                      has_moved() AS "has_moved!"
                 FROM store"#
        )
        .fetch_one(self.control());
        let row = self.bounded(read).await?;
        if row.has_moved {
            self.adopt_cluster().await?;
        }
        let settings = Settings::of(&row.strategy, row.unscoped_conditions, row.outcomes_kept_seconds)?;
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

    /// Changes settings, online, all that are named or none, and returns whether the strategy was another. Appends that
    /// come meanwhile wait for as long as the longest one that runs now, unless only the time is changed for
    /// which outcomes are kept.
    ///
    /// # Errors
    /// [`Error::Busy`] if a transaction that has read the store does not end in time: nothing has changed then.
    pub async fn change_settings(&self, change: SettingsChange) -> Result<bool, Error> {
        if change.strategy.is_some() {
            // Under the lock only the rest should be left to flush.
            while self.flush_once(BATCH).await?.more {}
        }
        let set = sqlx::query_scalar!(
            r#"SELECT change_settings($1, $2, $3) AS "changed!""#,
            change.strategy.map(Strategy::as_str),
            change.unscoped_conditions,
            change.outcomes_kept.map(|kept| kept.seconds().cast_signed()),
        )
        .fetch_one(self.control());
        let changed = self.bounded(set).await?;
        self.refresh_settings().await?;
        Ok(changed)
    }

    /// Changes the strategy, and returns whether it was another.
    ///
    /// # Errors
    /// As for [`Store::change_settings`].
    pub async fn set_strategy(&self, strategy: Strategy) -> Result<bool, Error> {
        self.change_settings(SettingsChange { strategy: Some(strategy), ..SettingsChange::default() }).await
    }

    /// Allows conditions with unscoped items, or forbids them.
    ///
    /// # Errors
    /// As for [`Store::change_settings`].
    pub async fn allow_unscoped_conditions(&self, allowed: bool) -> Result<(), Error> {
        let change = SettingsChange { unscoped_conditions: Some(allowed), ..SettingsChange::default() };
        self.change_settings(change).await.map(|_| ())
    }
}

impl Settings {
    pub(crate) fn of(
        strategy: &str,
        unscoped_conditions: bool,
        outcomes_kept_seconds: i64,
    ) -> Result<Self, Error> {
        let strategy = strategy.parse().map_err(Error::Unexpected)?;
        Ok(Self {
            strategy,
            unscoped_conditions,
            outcomes_kept: OutcomesKept::trusted(outcomes_kept_seconds),
        })
    }
}
