//! The flusher: moves staged events to the log and numbers them.
//!
//! Every host runs one; the lease (see `take_lease()` in migrations/) lets one of them work. The lease is for
//! economy, not for safety: `flush()` takes a lock, so two at once are only one too many.
//!
//! ```text
//!   waiting ──lease had──► draining ──staging empty──► resting ──nudge, or poll──► draining
//!      ▲                      │                           │
//!      └──────lease lost──────┴───────────────────────────┘
//! ```

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use sqlx::postgres::types::PgInterval;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{Error, Store};

/// How long a leader that says nothing stays leader.
const LEASE: Duration = Duration::from_millis(2000);
/// How often it renews, and how often the others look whether they can take over.
const RENEWAL: Duration = Duration::from_millis(600);
/// How long events that another host staged may rest: that host can't nudge this one.
const POLL: Duration = Duration::from_millis(50);
/// Rows of one flush transaction, at the most.
pub(crate) const BATCH: i32 = 2000;
/// How often the leader also forgets outcomes that are too old.
const FORGET: Duration = Duration::from_secs(60);
/// How many events are flushed before the floor of staging is raised over them, and how often it is tried.
const FLOOR_EVENTS: u64 = 20_000;
const FLOOR_TRY: Duration = Duration::from_secs(1);
/// How often a host looks how deep staging is.
const DEPTH_LOOK: Duration = Duration::from_millis(200);
/// How long to leave a database in peace that has just failed.
const RECOVERY: Duration = Duration::from_millis(500);

/// One host's flusher. See the module's text.
#[derive(Debug)]
pub struct Flusher {
    store: Store,
    id: Uuid,
    renew_at: Option<Instant>,
    /// Rows of the next flush: fewer, after one that took too long.
    batch: i32,
    forget_at: Instant,
    look_at: Instant,
    floor: Floor,
    stats: Arc<FlusherStats>,
}

/// On the way to raising the floor of staging, behind which a flush begins: see `floor_candidate()` in migrations/.
#[derive(Debug)]
struct Floor {
    /// Events flushed since it was raised.
    flushed: u64,
    try_at: Instant,
    /// The next floor, and the transactions that may still stage below it.
    candidate: Option<(i64, Vec<String>)>,
}

/// What a flusher has done so far, for whoever watches over it.
#[derive(Debug, Default)]
pub struct FlusherStats {
    leads: AtomicBool,
    flushes: AtomicU64,
    events: AtomicU64,
}

impl FlusherStats {
    /// Whether it had the lease when it last asked.
    pub fn leads(&self) -> bool {
        self.leads.load(Relaxed)
    }

    /// Flushes that moved something.
    pub fn flushes(&self) -> u64 {
        self.flushes.load(Relaxed)
    }

    /// Events that it has numbered.
    pub fn events(&self) -> u64 {
        self.events.load(Relaxed)
    }

    fn count(&self, flushed: u64) {
        if flushed > 0 {
            self.flushes.fetch_add(1, Relaxed);
            self.events.fetch_add(flushed, Relaxed);
        }
    }
}

impl Flusher {
    /// A flusher that does not lead yet.
    pub fn new(store: Store) -> Self {
        let now = Instant::now();
        Self {
            store,
            id: Uuid::now_v7(),
            renew_at: None,
            batch: BATCH,
            forget_at: now + FORGET,
            look_at: now,
            floor: Floor { flushed: 0, try_at: now, candidate: None },
            stats: Arc::default(),
        }
    }

    /// How the store's lease names it: see [`crate::Lease::holder`].
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// What it does, while it runs.
    pub fn stats(&self) -> Arc<FlusherStats> {
        self.stats.clone()
    }

    /// Flushes until shutdown, then once more, and gives up the lease. Failures are logged and tried again.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut appended = self.store.appended();
        loop {
            appended.borrow_and_update();
            let rest = match self.run_once().await {
                Ok(true) => POLL,
                Ok(false) => RENEWAL,
                Err(error) => {
                    tracing::warn!(%error, "the flusher failed and will try again");
                    RECOVERY
                }
            };
            tokio::select! {
                Ok(()) = appended.changed(), if self.renew_at.is_some() => {}
                () = tokio::time::sleep(rest) => {}
                () = shutdown.cancelled() => break,
            }
        }
        if let Err(error) = self.hand_over().await {
            tracing::warn!(%error, "the last flush failed; the next host to start will do it");
        }
    }

    /// Takes or renews the lease if it is due and, as the leader, flushes all that is staged. Returns whether
    /// it leads.
    ///
    /// # Errors
    /// Whatever the database says. What was flushed before stays flushed.
    pub async fn run_once(&mut self) -> Result<bool, Error> {
        loop {
            if !self.leads().await? {
                self.look_at_depth().await?;
                return Ok(false);
            }
            match self.store.flush_once(self.batch).await {
                Ok(flush) => {
                    self.stats.count(flush.events);
                    self.batch = (self.batch * 2).min(BATCH);
                    self.floor.flushed += flush.events;
                    self.raise_floor().await?;
                    self.look_at_depth().await?;
                    if !flush.more {
                        break;
                    }
                }
                // It did not end within the time a statement has: fewer at once, down to one.
                Err(Error::Busy(_)) if self.batch > 1 => self.batch /= 2,
                Err(error) => return Err(error),
            }
        }
        if Instant::now() >= self.forget_at && self.store.forget_outcomes().await? == 0 {
            self.forget_at = Instant::now() + FORGET;
        }
        Ok(true)
    }

    /// Now and then, a step towards a higher floor of staging.
    async fn raise_floor(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        if self.floor.flushed < FLOOR_EVENTS || now < self.floor.try_at {
            return Ok(());
        }
        self.floor.try_at = now + FLOOR_TRY;
        match self.floor.candidate.take() {
            None => {
                let ask = sqlx::query!(
                    r#"SELECT highest AS "highest!", running AS "running!" FROM floor_candidate()"#
                )
                .fetch_one(self.store.control());
                let candidate = self.store.bounded(ask).await?;
                self.floor.candidate = Some((candidate.highest, candidate.running));
            }
            Some((highest, running)) => {
                let raise =
                    sqlx::query_scalar!(r#"SELECT raise_floor($1, $2) AS "raised!""#, highest, &running)
                        .fetch_one(self.store.control());
                if self.store.bounded(raise).await? {
                    self.floor.flushed = 0;
                } else {
                    self.floor.candidate = Some((highest, running));
                }
            }
        }
        Ok(())
    }

    /// Lets this host's appends know whether the flusher, here or elsewhere, keeps up: see [`Store::append`].
    async fn look_at_depth(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        if now >= self.look_at {
            self.look_at = now + DEPTH_LOOK;
            self.store.know_depth(self.store.staged_depth().await?);
        }
        Ok(())
    }

    async fn leads(&mut self) -> Result<bool, Error> {
        let now = Instant::now();
        if self.renew_at.is_some_and(|at| now < at) {
            return Ok(true);
        }
        let was_leader = self.renew_at.take().is_some();
        let lease = PgInterval { months: 0, days: 0, microseconds: LEASE.as_micros() as i64 };
        let lead = sqlx::query_scalar!(r#"SELECT take_lease($1, $2) AS "leads!""#, self.id, lease)
            .fetch_one(self.store.control());
        let leads = self.store.bounded(lead).await;
        self.stats.leads.store(*leads.as_ref().unwrap_or(&false), Relaxed);
        let leads = leads?;
        if leads {
            self.renew_at = Some(now + RENEWAL);
        }
        if leads != was_leader {
            tracing::debug!(leads, "the flusher's lease changed hands");
        }
        Ok(leads)
    }

    async fn hand_over(&mut self) -> Result<(), Error> {
        self.stats.leads.store(false, Relaxed);
        loop {
            let flush = self.store.flush_once(self.batch).await?;
            self.stats.count(flush.events);
            if !flush.more {
                break;
            }
        }
        let give_up = sqlx::query!("DELETE FROM flusher_lease WHERE holder = $1", self.id)
            .execute(self.store.control());
        self.store.bounded(give_up).await.map(|_| ())
    }
}

/// What one flush has done.
pub(crate) struct Flush {
    /// Moved and numbered by it.
    pub(crate) events: u64,
    /// Whether some are left.
    pub(crate) more: bool,
}

impl Store {
    /// Flushes one batch of at most so many rows, if anything is staged.
    pub(crate) async fn flush_once(&self, batch: i32) -> Result<Flush, Error> {
        let flush = sqlx::query!(r#"SELECT flushed AS "flushed!", more AS "more!" FROM flush($1)"#, batch)
            .fetch_one(self.control());
        let row = self.bounded(flush).await?;
        Ok(Flush { events: u64::try_from(row.flushed).unwrap_or_default(), more: row.more })
    }
}
