//! Tells the rest of the process when the log has grown or a handler was deployed.
//!
//! Notifications wake, polling makes sure: a lost notification delays by [`POLL`] and loses nothing.

use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{Error, Store, error::classify};

const POLL: Duration = Duration::from_millis(1000);

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
        loop {
            // First poll, then wait: what came before the listener was there is seen now.
            self.advance(self.store.head().await?);
            self.deployments.send_modify(|n| *n += 1);
            let poll_at = tokio::time::Instant::now() + POLL;
            while let Ok(notification) = tokio::time::timeout_at(poll_at, listener.recv()).await {
                match notification.map_err(classify)?.payload() {
                    "handlers" => self.deployments.send_modify(|n| *n += 1),
                    head => self.advance(head.parse().unwrap_or_default()),
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
