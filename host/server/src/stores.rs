//! The stores that this process serves, each with a host of its own.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::host::Host;

/// The hosts of the stores, in the order in which these were named. Cheap to clone; clones share it.
///
/// They have the runtime for handlers and the bound on its instances in common, and nothing else that can run out:
/// connections, queue, flusher and handlers are each host's own, so that what befalls one store's database stays there.
#[derive(Clone)]
pub(crate) struct Stores {
    hosts: Arc<Vec<Host>>,
    /// Cancelled when the process is to stop.
    pub(crate) shutdown: CancellationToken,
}

impl Stores {
    /// The default store's host comes first; there is at least this one.
    pub(crate) fn new(hosts: Vec<Host>) -> Self {
        Self { hosts: Arc::new(hosts), shutdown: CancellationToken::new() }
    }

    /// All of them, the default one first.
    pub(crate) fn all(&self) -> &[Host] {
        &self.hosts
    }

    /// The one that is meant where none is named.
    pub(crate) fn default_store(&self) -> &Host {
        &self.hosts[0]
    }

    /// Their names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(|host| host.store.name())
    }

    /// Whether each can take commands, by name. They are asked at once: one may take its deadline to answer.
    pub(crate) async fn ready(&self) -> Vec<(&str, Result<(), weir_store::Error>)> {
        join_all(self.hosts.iter().map(async |host| (host.store.name(), host.store.ready().await))).await
    }

    /// Stops them all, at the same time: see [`Host::stop`].
    pub(crate) async fn stop(&self, patience: Duration) {
        self.shutdown.cancel();
        let stop = |host: &Host| host.clone().stop(patience).instrument(host.span.clone());
        join_all(self.hosts.iter().map(stop)).await;
    }
}
