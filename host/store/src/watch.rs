//! Tells the rest of the process when the log has grown or a handler was deployed.
//!
//! Notifications wake, polling makes sure: a lost notification delays by [`POLL`] and loses nothing.
//!
//! Only the flusher notifies. Under the other strategies, where events are numbered as they are appended, this
//! process's own appends wake, and those of other hosts are found by polling more often.

use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{Error, Store, Strategy, error::classify};

const POLL: Duration = Duration::from_millis(1000);
/// The same where nobody notifies.
const UNNOTIFIED_POLL: Duration = Duration::from_millis(50);

/// The background task behind [`HeadWatch::head`] and [`HeadWatch::deployments`].
#[derive(Debug)]
pub struct HeadWatch {
    store: Store,
    head: watch::Sender<u64>,
    deployments: watch::Sender<u64>,
}

impl HeadWatch {
    /// A watch that has seen nothing yet.
    pub fn new(store: Store) -> Self {
        Self { store, head: watch::Sender::new(0), deployments: watch::Sender::new(0) }
    }

    /// The highest position known so far. It may lag behind the log, never run ahead of it.
    pub fn head(&self) -> watch::Receiver<u64> {
        self.head.subscribe()
    }

    /// Changes whenever it is worth looking at the registry.
    pub fn deployments(&self) -> watch::Receiver<u64> {
        self.deployments.subscribe()
    }

    /// Watches until shutdown. Failures are logged, and mended by reconnecting.
    pub async fn run(self, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = async {
                loop {
                    if let Err(error) = self.watch().await {
                        tracing::warn!(%error, "lost the connection that listens; polling until it is back");
                    }
                    tokio::time::sleep(POLL).await;
                }
            } => {}
        }
    }

    /// Returns only when the connection is lost.
    async fn watch(&self) -> Result<(), Error> {
        let mut listener = PgListener::connect_with(self.store.control()).await.map_err(classify)?;
        listener.ignore_pool_close_event(true);
        listener.listen(&format!("weir_{}", self.store.schema().as_str())).await.map_err(classify)?;
        let mut appended = self.store.appended();
        loop {
            // First poll, then wait: what came before the listener was there is seen now.
            appended.borrow_and_update();
            self.advance(self.store.head().await?);
            let notified = self.store.refresh_settings().await?.strategy == Strategy::Staging;
            self.deployments.send_modify(|n| *n += 1);
            let poll_at = Instant::now() + if notified { POLL } else { UNNOTIFIED_POLL };
            loop {
                tokio::select! {
                    notification = listener.recv() => match notification.map_err(classify)?.payload() {
                        "handlers" => self.deployments.send_modify(|n| *n += 1),
                        "settings" => break,
                        head => self.advance(head.parse().unwrap_or_default()),
                    },
                    Ok(()) = appended.changed(), if !notified => break,
                    () = tokio::time::sleep_until(poll_at) => break,
                }
            }
        }
    }

    fn advance(&self, head: u64) {
        self.head.send_if_modified(|known| {
            let grown = head > *known;
            *known = head.max(*known);
            grown
        });
    }
}
