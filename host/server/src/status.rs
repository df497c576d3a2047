//! How a host and its store are doing: what `GET /v1/status` answers with and `weir status` shows.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use weir_store::StoreStatus;

use crate::host::Host;

/// How long the store may take to say how it is doing.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) host: OfHost,
    /// Missing while it can't be asked.
    pub(crate) store: Option<OfStore>,
    /// Why it can't.
    pub(crate) store_problem: Option<String>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct OfHost {
    pub(crate) version: String,
    pub(crate) uptime_seconds: f64,
    pub(crate) commands_under_way: usize,
    pub(crate) followers: i64,
    pub(crate) flusher: Flusher,
    pub(crate) handlers: Vec<Handler>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Flusher {
    /// As the holder of the store's lease is called.
    pub(crate) id: String,
    pub(crate) leads: bool,
    pub(crate) flushes: u64,
    pub(crate) flushed_events: u64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Handler {
    pub(crate) handler: String,
    /// The version's digest, in hexadecimal.
    pub(crate) version: String,
    pub(crate) ready: bool,
    /// Why it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct OfStore {
    pub(crate) name: String,
    pub(crate) settings: Settings,
    pub(crate) head: u64,
    pub(crate) staged: Staged,
    pub(crate) held_back: Option<HeldBack>,
    pub(crate) sees_all_transactions: bool,
    pub(crate) flusher_lease: Option<Lease>,
    pub(crate) epochs: Vec<Epoch>,
    pub(crate) outcomes: Outcomes,
    pub(crate) bytes: Bytes,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) strategy: String,
    pub(crate) unscoped_conditions: bool,
    pub(crate) outcomes_kept_seconds: u64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Staged {
    pub(crate) events: u64,
    /// Whether they were counted, or this is about the most that there can be.
    pub(crate) exact: bool,
    /// The age of the oldest one.
    pub(crate) lag_seconds: f64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct HeldBack {
    pub(crate) seconds: f64,
    pub(crate) pid: Option<i32>,
    pub(crate) application: String,
    pub(crate) state: String,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Lease {
    pub(crate) holder: String,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) until: OffsetDateTime,
    pub(crate) expired: bool,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Epoch {
    pub(crate) number: u32,
    pub(crate) after_position: u64,
    pub(crate) strategy: String,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) began_at: OffsetDateTime,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Outcomes {
    pub(crate) kept: u64,
    pub(crate) exact: bool,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Bytes {
    pub(crate) events: u64,
    pub(crate) event_keys: u64,
    pub(crate) staging: u64,
    pub(crate) staged_keys: u64,
    pub(crate) outcomes: u64,
}

impl Status {
    /// How a host is doing. It has something to say, too, when its store has not.
    pub(crate) async fn of(host: &Host) -> Self {
        let (store, store_problem) = match host.store.status(PATIENCE).await {
            Ok(status) => (Some(OfStore::of(host.store.name(), status)), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self { host: OfHost::of(host), store, store_problem }
    }
}

impl OfHost {
    fn of(host: &Host) -> Self {
        let stats = &host.flusher.stats;
        let handlers = host.handlers.all().into_iter().map(|handler| Handler {
            handler: handler.name,
            version: handler.version,
            ready: handler.unready.is_none(),
            reason: handler.unready,
        });
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            uptime_seconds: host.began.elapsed().as_secs_f64(),
            commands_under_way: host.commands.len(),
            followers: host.metrics.followers(),
            flusher: Flusher {
                id: host.flusher.id.to_string(),
                leads: stats.leads(),
                flushes: stats.flushes(),
                flushed_events: stats.events(),
            },
            handlers: handlers.collect(),
        }
    }
}

impl OfStore {
    fn of(name: &str, status: StoreStatus) -> Self {
        let bytes = status.bytes;
        let epochs = status.epochs.iter().map(|epoch| Epoch {
            number: epoch.number,
            after_position: epoch.after_position,
            strategy: epoch.strategy.to_string(),
            began_at: epoch.began_at,
        });
        Self {
            name: name.to_owned(),
            settings: Settings::of(status.settings),
            head: status.head,
            staged: Staged {
                events: status.staged.rows,
                exact: status.staged.exact,
                lag_seconds: status.flush_lag.as_secs_f64(),
            },
            held_back: status.held_back.map(|by| HeldBack {
                seconds: by.running.as_secs_f64(),
                pid: by.pid,
                application: by.application,
                state: by.state,
            }),
            sees_all_transactions: status.sees_all_transactions,
            flusher_lease: status.lease.map(|lease| Lease {
                holder: lease.holder.to_string(),
                until: lease.until,
                expired: lease.expired,
            }),
            epochs: epochs.collect(),
            outcomes: Outcomes { kept: status.outcomes.rows, exact: status.outcomes.exact },
            bytes: Bytes {
                events: bytes.events,
                event_keys: bytes.event_keys,
                staging: bytes.staging,
                staged_keys: bytes.staged_keys,
                outcomes: bytes.outcomes,
            },
        }
    }
}

impl Settings {
    pub(crate) fn of(settings: weir_store::Settings) -> Self {
        Self {
            strategy: settings.strategy.to_string(),
            unscoped_conditions: settings.unscoped_conditions,
            outcomes_kept_seconds: settings.outcomes_kept.seconds(),
        }
    }
}
