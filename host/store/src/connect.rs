//! A store and its connections.

use std::{
    future::Future,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use sqlx::{
    Connection,
    postgres::{PgConnectOptions, PgPool, PgPoolOptions},
};
use tokio::sync::watch;

use crate::{
    Error, Settings,
    error::{classify, classify_write},
};

/// With more events staged than this, appends wait for the flusher.
const MOST_STAGED: u64 = 20_000;

/// The name of the schema that holds a store: lower-case letters, digits and `_`, at most 50 bytes, a letter
/// first. (Its name is part of a notification channel's, and never needs quotes.)
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaName(String);

impl SchemaName {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for SchemaName {
    fn default() -> Self {
        Self("weir".into())
    }
}

impl FromStr for SchemaName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let valid = text.len() <= 50
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            && !text.starts_with("pg_");
        if valid {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!(
                "\"{text}\" can't name a store: lower-case letters, digits and _, a letter first, at most 50 bytes, \
                 not beginning with pg_"
            ))
        }
    }
}

/// Where a store is and how to talk to it.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// A Postgres URL: `postgres://user:password@host:port/database`.
    pub url: String,
    /// The store's schema.
    pub schema: SchemaName,
    /// Connections for reads and appends. A few more serve the flusher and those who wait for events.
    pub connections: u32,
    /// How long a statement may take, waiting for locks included. The client waits a second longer, so that
    /// it hears from the server that nothing was written.
    pub deadline: Duration,
}

impl StoreConfig {
    /// Options that every connection of a store has.
    ///
    /// # Errors
    /// If the URL is none; the text says why.
    pub(crate) fn options(&self) -> Result<PgConnectOptions, Error> {
        let millis = |duration: Duration| duration.as_millis().to_string();
        let unclear = |why: &str| {
            Error::Unavailable(format!(
                "the database URL can't be understood ({why}); it looks like postgres://user:password@host:5432/name"
            ))
        };
        if !["postgres://", "postgresql://"].iter().any(|scheme| self.url.starts_with(scheme)) {
            return Err(unclear("it does not begin with postgres://"));
        }
        let options = PgConnectOptions::from_str(&self.url).map_err(|error| unclear(&error.to_string()))?;
        Ok(options
            .application_name("weir")
            // The check for conflicts needs a new snapshot for each statement.
            .options([("default_transaction_isolation", "read committed")])
            .options([("search_path", self.schema.as_str())])
            // A host that is cut off must not hold a boundary for longer than this.
            .options([
                ("statement_timeout", millis(self.deadline).as_str()),
                ("lock_timeout", millis(self.deadline / 2).as_str()),
                ("idle_in_transaction_session_timeout", "5000"),
                ("tcp_keepalives_idle", "5"),
                ("tcp_keepalives_interval", "2"),
                ("tcp_keepalives_count", "3"),
                ("tcp_user_timeout", "10000"),
            ]))
    }
}

/// One event log. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct Store {
    pool: PgPool,
    /// Apart from the pool, so that flushing never queues behind the appends that wait for it.
    control: PgPool,
    /// For pages of the log: however many read it, they hold up nobody but each other.
    readers: PgPool,
    schema: SchemaName,
    deadline: Duration,
    /// Told of every append of this process: by its flusher, and by those who follow the log.
    appended: Arc<watch::Sender<()>>,
    settings: Arc<Mutex<Option<Settings>>>,
    /// About how many events are staged, as the flusher last saw it.
    depth: Arc<watch::Sender<u64>>,
}

impl Store {
    /// A store whose connections open when they are needed: it can be made while the database is down.
    ///
    /// # Errors
    /// If the URL is none.
    pub fn new(config: &StoreConfig) -> Result<Self, Error> {
        let options = config.options()?;
        let pool = |connections: u32| {
            PgPoolOptions::new()
                .max_connections(connections)
                .acquire_timeout(config.deadline / 2)
                // A ping before each use would make three round trips of a command's two. A connection that
                // has rested may have died, though, and is asked.
                .test_before_acquire(false)
                .before_acquire(|connection, usage| {
                    Box::pin(async move {
                        if usage.idle_for > Duration::from_secs(1) {
                            connection.ping().await?;
                        }
                        Ok(true)
                    })
                })
                .connect_lazy_with(options.clone())
        };
        Ok(Self {
            pool: pool(config.connections),
            control: pool(4),
            readers: pool(4),
            schema: config.schema.clone(),
            deadline: config.deadline,
            appended: Arc::new(watch::Sender::new(())),
            settings: Arc::default(),
            depth: Arc::new(watch::Sender::new(0)),
        })
    }

    /// Asks the database for a sign of life, and whether the store is there.
    ///
    /// # Errors
    /// [`Error::Unavailable`] or [`Error::NotMigrated`].
    pub async fn ready(&self) -> Result<(), Error> {
        let check = sqlx::query_scalar!("SELECT EXISTS (SELECT FROM events)").fetch_one(&self.control);
        self.bounded(check).await.map(|_| ())
    }

    /// Closes all connections, after what they are doing.
    pub async fn close(&self) {
        self.pool.close().await;
        self.control.close().await;
        self.readers.close().await;
    }

    /// What it is called: its schema.
    pub fn name(&self) -> &str {
        self.schema.as_str()
    }

    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    pub(crate) fn control(&self) -> &PgPool {
        &self.control
    }

    pub(crate) fn readers(&self) -> &PgPool {
        &self.readers
    }

    pub(crate) fn schema(&self) -> &SchemaName {
        &self.schema
    }

    /// How long the client waits for an answer.
    pub(crate) fn timeout(&self) -> Duration {
        self.deadline + Duration::from_secs(1)
    }

    /// Changes with every append of this process.
    pub(crate) fn appended(&self) -> watch::Receiver<()> {
        self.appended.subscribe()
    }

    pub(crate) fn announce_append(&self) {
        self.appended.send_replace(());
    }

    pub(crate) fn know_depth(&self, depth: u64) {
        self.depth.send_replace(depth);
    }

    /// Waits while the flusher is behind, so that appends slow down before staging does.
    ///
    /// # Errors
    /// [`Error::Busy`] if it does not catch up in time.
    pub(crate) async fn until_flusher_keeps_up(&self) -> Result<(), Error> {
        let mut depth = self.depth.subscribe();
        let keeps_up = depth.wait_for(|depth| *depth <= MOST_STAGED);
        let behind = || {
            Error::Busy(format!("the flusher is behind: about {} events are staged", *self.depth.borrow()))
        };
        tokio::time::timeout(self.deadline / 2, keeps_up).await.map(|_| ()).map_err(|_| behind())
    }

    pub(crate) fn known_settings(&self) -> Option<Settings> {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn know_settings(&self, settings: Settings) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = Some(settings);
    }

    /// Runs a statement that writes and must not be repeated blindly: see [`classify_write`].
    pub(crate) async fn bounded_write<T>(
        &self,
        work: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, Error> {
        match tokio::time::timeout(self.timeout(), work).await {
            Ok(result) => result.map_err(classify_write),
            Err(_) => Err(Error::OutcomeUnknown("the database did not answer in time".into())),
        }
    }

    /// Runs a statement that reads, or that may be repeated, and says what its failure means. A server that has stopped
    /// answering does not time out by itself.
    pub(crate) async fn bounded<T>(
        &self,
        work: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, Error> {
        match tokio::time::timeout(self.timeout(), work).await {
            Ok(result) => result.map_err(classify),
            Err(_) => Err(Error::Unavailable(format!("no answer within {:?}", self.timeout()))),
        }
    }
}
