//! What a command runs in: the store, the runtime, the loaded handlers, and the bounds.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{Instrument, Span};
use uuid::Uuid;
use weir_runtime::{Call, Command, Deciding, Failure, Runtime};
use weir_store::{Flusher, FlusherStats, HeadWatch, Store};

use crate::{
    handlers::{Handlers, Loaded},
    instances::{Instances, Slot},
    metrics::{Metrics, StoreMetrics},
    models::Models,
    queue::{self, Queue},
};

/// Commands under way at once; past it a caller is turned away at once.
const COMMANDS: usize = 2048;
/// Bytes that the models which are kept warm may hold together.
const MODEL_BYTES: usize = 256 << 20;

/// Serves the commands of one store. Hosts hold no truth: any number may share a store, each in a process of its own.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) store: Store,
    pub(crate) handlers: Handlers,
    pub(crate) head: tokio::sync::watch::Receiver<u64>,
    /// Cancelled when the host is to stop: nobody new is let in and streams end, but commands under way do not.
    pub(crate) shutdown: CancellationToken,
    /// Commands under way. They are waited for.
    pub(crate) commands: TaskTracker,
    pub(crate) metrics: StoreMetrics,
    pub(crate) flusher: Flushing,
    pub(crate) began: Instant,
    /// What marks the log lines that are about this store, where the process serves several.
    pub(crate) span: Span,
    places: Arc<Semaphore>,
    instances: Instances,
    pub(crate) queue: Queue,
    pub(crate) models: Models,
    background: TaskTracker,
    /// Cancelled when the background tasks may end: after the last command.
    rest: CancellationToken,
}

/// This host's flusher, from outside.
#[derive(Clone)]
pub(crate) struct Flushing {
    /// As the store's lease names it.
    pub(crate) id: Uuid,
    pub(crate) stats: Arc<FlusherStats>,
}

impl Host {
    /// Starts the background tasks: the flusher, the watch over the log, the registry's follower. The
    /// handlers that the registry names are loaded when this returns.
    pub(crate) async fn start(
        store: Store,
        runtime: Runtime,
        instances: Instances,
        metrics: &Arc<Metrics>,
        span: Span,
    ) -> Result<Self, weir_store::Error> {
        let (background, rest) = (TaskTracker::new(), CancellationToken::new());
        let watch = HeadWatch::new(store.clone());
        let handlers = Handlers::new(store.clone(), runtime);
        handlers.catch_up().instrument(span.clone()).await?;
        let flusher = Flusher::new(store.clone());
        let (queue, incoming) = Queue::new();
        let host = Self {
            head: watch.head(),
            handlers: handlers.clone(),
            metrics: metrics.of_store(store.name()),
            flusher: Flushing { id: flusher.id(), stats: flusher.stats() },
            began: Instant::now(),
            store,
            shutdown: CancellationToken::new(),
            commands: TaskTracker::new(),
            span: span.clone(),
            places: Arc::new(Semaphore::new(COMMANDS)),
            models: Models::new(instances.to_keep(), MODEL_BYTES),
            instances,
            queue,
            background: background.clone(),
            rest: rest.clone(),
        };
        background.spawn(handlers.follow(watch.deployments(), rest.clone()).instrument(span.clone()));
        background.spawn(watch.run(rest.clone()).instrument(span.clone()));
        background.spawn(flusher.run(rest).instrument(span.clone()));
        tokio::spawn(queue::run(host.clone(), incoming).instrument(span));
        Ok(host)
    }

    /// Stops: nobody new is let in, commands under way finish, what they staged is flushed, connections close.
    pub(crate) async fn stop(self, patience: Duration) {
        self.shutdown.cancel();
        self.commands.close();
        if tokio::time::timeout(patience, self.commands.wait()).await.is_err() {
            tracing::warn!(left = self.commands.len(), "commands still under way are given up");
        }
        self.rest.cancel();
        self.background.close();
        let end = async {
            self.background.wait().await;
            self.store.close().await;
        };
        if tokio::time::timeout(patience, end).await.is_err() {
            tracing::warn!("the flusher did not end in time; the next host's goes on where it was");
        }
    }

    /// A place among the commands under way, or how many there may be.
    pub(crate) fn accept(&self) -> Result<SemaphorePermit<'_>, usize> {
        self.places.try_acquire().map_err(|_| COMMANDS)
    }

    /// Waits for a place for an instance.
    pub(crate) async fn slot(&self) -> Slot {
        self.instances.slot().await
    }

    /// A fresh instance, for whoever is on a thread that may be busy and holds a [`slot`](Self::slot) for one at a time. It
    /// can be kept beyond that if another place is free.
    pub(crate) fn fresh_guest(&self, handler: &Loaded, command: &Command) -> Result<Guest, Failure> {
        let time = self.metrics.handler_run(handler.handler.name());
        Ok(Guest { deciding: handler.handler.begin(command)?, slot: self.instances.try_slot(), time })
    }

    /// A fresh instance of a handler for one attempt at a command, and what `first` made of it.
    pub(crate) async fn guest<T: Send + 'static>(
        &self,
        handler: &Loaded,
        command: &Command,
        first: impl FnOnce(&mut Deciding) -> Result<T, Failure> + Send + 'static,
    ) -> Result<(Guest, T), Failure> {
        // It stands before the pool of instances, which does not wait.
        let slot = self.instances.slot().await;
        let (handler, command) = (handler.handler.clone(), command.clone());
        let time = self.metrics.handler_run(handler.name());
        on_blocking_thread(time.clone(), move || {
            let mut deciding = handler.begin(&command)?;
            let answer = first(&mut deciding)?;
            Ok((Guest { deciding, slot: Some(slot), time }, answer))
        })
        .await
    }
}

/// A handler's instance and its place in the pool.
pub(crate) struct Guest {
    deciding: Deciding,
    /// None: it lives on its batch's.
    slot: Option<Slot>,
    time: Histogram,
}

impl Guest {
    /// Runs guest code off the threads that serve everybody else: it may take its whole deadline. Gives the
    /// guest back, unless it failed: then nobody can use it any more.
    pub(crate) async fn call<T: Send + 'static>(
        self,
        work: impl FnOnce(&mut Deciding) -> Result<T, Failure> + Send + 'static,
    ) -> Result<(Self, T), Failure> {
        let Self { mut deciding, slot, time } = self;
        on_blocking_thread(time.clone(), move || {
            let answer = work(&mut deciding)?;
            Ok((Self { deciding, slot, time }, answer))
        })
        .await
    }

    /// The same, for whoever is on such a thread already.
    pub(crate) fn run<T>(
        mut self,
        work: impl FnOnce(&mut Deciding) -> Result<T, Failure>,
    ) -> Result<(Self, T), Failure> {
        let began = Instant::now();
        let result = work(&mut self.deciding);
        self.time.observe(began.elapsed().as_secs_f64());
        result.map(|answer| (self, answer))
    }

    /// Whether it has a place of its own.
    pub(crate) fn can_be_kept(&self) -> bool {
        self.slot.is_some()
    }

    /// Bytes of memory that it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.deciding.memory_bytes()
    }

    /// The failure of a guest whose answer can't be used.
    pub(crate) fn nonsense(&self, call: Call, reason: String) -> Failure {
        self.deciding.nonsense(call, reason)
    }
}

/// The time counts from when the thread begins: what it waited for is no work of the handler's.
async fn on_blocking_thread<T: Send + 'static>(
    time: Histogram,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let timed = move || {
        let began = Instant::now();
        let result = work();
        time.observe(began.elapsed().as_secs_f64());
        result
    };
    match tokio::task::spawn_blocking(timed).await {
        Ok(result) => result,
        // The runtime's own panic, not the guest's: there is no answer to give in its place.
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}
