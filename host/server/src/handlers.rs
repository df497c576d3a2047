//! The handlers that this host has loaded, kept in step with the registry in the database.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use weir_runtime::{Handler, LoadError, Runtime, Version};
use weir_store::{ActiveVersion, Deployed, HandlerVersion, Store};

/// A handler's active version, ready to decide.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) handler: Handler,
    /// The version's id in the registry.
    pub(crate) version_id: i32,
}

/// An active handler, whether this host could load it or not.
pub(crate) struct Active {
    pub(crate) name: String,
    /// The version's digest, in hexadecimal.
    pub(crate) version: String,
    /// Why this host can't run it, if it can't.
    pub(crate) unready: Option<String>,
}

/// Why no handler takes a command.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum NotFound {
    #[error("no handler of this store handles the command \"{command}\"; the commands it knows are: {known}")]
    Unknown { command: String, known: String },
    #[error("handler \"{handler}\" (version {version}) can't be run on this host: {reason}")]
    Unready { handler: String, version: String, reason: String },
}

/// Why a component was not deployed. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeployError {
    #[error("component {version} is refused: {reason}")]
    Refused { version: String, reason: LoadError },
    #[error(
        "the command \"{command}\" belongs to the handler \"{owner}\" already: rename it, or remove it there first"
    )]
    CommandOwned { command: String, owner: String },
    #[error(transparent)]
    Store(#[from] weir_store::Error),
}

/// The handlers by name and by command. Cheap to clone; clones share it.
#[derive(Clone)]
pub(crate) struct Handlers {
    store: Store,
    runtime: Runtime,
    /// By the handler's name. Replaced as a whole: a command keeps the version that it began on.
    active: Arc<Mutex<Arc<BTreeMap<String, Entry>>>>,
    /// One look at the registry at a time, so that an older one never overwrites a newer.
    catching_up: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Clone)]
enum Entry {
    Ready(Loaded),
    /// Active, but this host could not load it.
    Unready {
        version: ActiveVersion,
        reason: String,
    },
}

impl Entry {
    fn version_id(&self) -> i32 {
        match self {
            Self::Ready(loaded) => loaded.version_id,
            Self::Unready { version, .. } => version.id,
        }
    }

    fn commands(&self) -> &[String] {
        match self {
            Self::Ready(loaded) => loaded.handler.commands(),
            Self::Unready { version, .. } => &version.commands,
        }
    }
}

impl Handlers {
    pub(crate) fn new(store: Store, runtime: Runtime) -> Self {
        Self { store, runtime, active: Arc::default(), catching_up: Arc::default() }
    }

    /// The handler of a command.
    pub(crate) fn find(&self, command: &str) -> Result<Loaded, NotFound> {
        let active = self.active();
        match active.iter().find(|(_, entry)| entry.commands().iter().any(|c| c == command)) {
            Some((_, Entry::Ready(loaded))) => Ok(loaded.clone()),
            Some((name, Entry::Unready { version, reason })) => Err(NotFound::Unready {
                handler: name.clone(),
                version: version.short_digest(),
                reason: reason.clone(),
            }),
            None => {
                let known: Vec<_> = active.values().flat_map(Entry::commands).map(String::as_str).collect();
                let known =
                    if known.is_empty() { "none, no handler is deployed".into() } else { known.join(", ") };
                Err(NotFound::Unknown { command: command.to_owned(), known })
            }
        }
    }

    /// All handlers that are ready, by name.
    pub(crate) fn ready(&self) -> Vec<Loaded> {
        self.active()
            .values()
            .filter_map(|entry| match entry {
                Entry::Ready(loaded) => Some(loaded.clone()),
                Entry::Unready { .. } => None,
            })
            .collect()
    }

    /// All active handlers, by name.
    pub(crate) fn all(&self) -> Vec<Active> {
        let active = self.active();
        let all = active.iter().map(|(name, entry)| match entry {
            Entry::Ready(loaded) => {
                Active { name: name.clone(), version: loaded.handler.version().to_string(), unready: None }
            }
            Entry::Unready { version, reason } => {
                let hex = version.digest.iter().map(|byte| format!("{byte:02x}")).collect();
                Active { name: name.clone(), version: hex, unready: Some(reason.clone()) }
            }
        });
        all.collect()
    }

    /// Loads a component, records it as its handler's active version and lets this host use it at once.
    pub(crate) async fn deploy(&self, component: Vec<u8>) -> Result<(Loaded, Deployed), DeployError> {
        let (component, handler) = self.load(component).await;
        let refused = |reason| DeployError::Refused { version: Version::of(&component).short(), reason };
        let handler = handler.map_err(refused)?;
        let deployed = self
            .store
            .deploy(HandlerVersion {
                handler: handler.name(),
                component: &component,
                commands: handler.commands(),
                event_types: handler.event_types(),
            })
            .await?;
        let version_id = match &deployed {
            Deployed::Activated(id) | Deployed::Unchanged(id) => *id,
            Deployed::CommandOwned { command, owner } => {
                return Err(DeployError::CommandOwned { command: command.clone(), owner: owner.clone() });
            }
        };
        // Through the registry, like every other host: if someone else has deployed since, theirs is in force.
        self.catch_up_with(Some(&handler)).await?;
        Ok((Loaded { handler, version_id }, deployed))
    }

    /// Makes the loaded handlers those that the registry names.
    pub(crate) async fn catch_up(&self) -> Result<(), weir_store::Error> {
        self.catch_up_with(None).await
    }

    async fn catch_up_with(&self, at_hand: Option<&Handler>) -> Result<(), weir_store::Error> {
        let _one_at_a_time = self.catching_up.lock().await;
        let present = self.active();
        let versions = self.store.active_versions().await?;
        let ids = |entries: &BTreeMap<String, Entry>| -> HashMap<String, i32> {
            entries.iter().map(|(name, entry)| (name.clone(), entry.version_id())).collect()
        };
        if ids(&present) == versions.iter().map(|v| (v.handler.clone(), v.id)).collect() {
            return Ok(());
        }
        let mut next = BTreeMap::new();
        for version in versions {
            let entry = match present.get(&version.handler) {
                Some(entry) if entry.version_id() == version.id => entry.clone(),
                _ => match at_hand {
                    Some(handler) if handler.version().as_bytes() == version.digest.as_slice() => {
                        ready(handler.clone(), version.id)
                    }
                    _ => self.take_in(version.clone()).await?,
                },
            };
            next.insert(version.handler, entry);
        }
        *self.active.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        Ok(())
    }

    /// Follows the registry until shutdown.
    pub(crate) async fn follow(self, mut changes: watch::Receiver<u64>, shutdown: CancellationToken) {
        loop {
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = shutdown.cancelled() => return,
            }
            if let Err(error) = self.catch_up().await {
                tracing::warn!(%error, "can't look at the registry; the handlers stay as they are");
            }
        }
    }

    async fn take_in(&self, version: ActiveVersion) -> Result<Entry, weir_store::Error> {
        let component = self.store.component(version.id).await?;
        let (_, handler) = self.load(component).await;
        Ok(match handler {
            Ok(handler) => ready(handler, version.id),
            Err(error) => {
                tracing::error!(handler = version.handler, version = version.short_digest(), %error, "can't load a handler");
                Entry::Unready { version, reason: error.to_string() }
            }
        })
    }

    /// Compiling takes long: it has a thread of its own.
    async fn load(&self, component: Vec<u8>) -> (Vec<u8>, Result<Handler, LoadError>) {
        let runtime = self.runtime.clone();
        let load = tokio::task::spawn_blocking(move || {
            let handler = runtime.load(&component);
            (component, handler)
        });
        match load.await {
            Ok(loaded) => loaded,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    fn active(&self) -> Arc<BTreeMap<String, Entry>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn ready(handler: Handler, version_id: i32) -> Entry {
    tracing::info!(
        handler = handler.name(),
        version = handler.version().short(),
        commands = handler.commands().join(", "),
        "handler is ready"
    );
    Entry::Ready(Loaded { handler, version_id })
}
