//! One ordered event log in PostgreSQL, with decision reads and conditional appends.
//!
//! A *decision read* returns the events that match a [`Query`], flushed or not, and a [`ReadToken`] that
//! stands for exactly what was seen. An *append* names query and token as its condition, and its events are taken
//! only if nothing that matches has come in since. How appends keep out of each other's way is the store's
//! [`Strategy`]; under `staging` the *flusher* moves events to the log and numbers them.
//!
//! Everything that decides happens in the database, in the functions of `migrations/`; this crate gives
//! them types. It knows nothing of handlers beyond storing their bytes, and nothing of HTTP.
//!
//! In the order of a command: [`Query`] and its locks, [`Store::read`], [`Store::append`], [`Flusher`],
//! [`Store::page`] for those who follow the log.

mod event;
mod query;

mod lock_key;

mod append;
mod outcomes;
mod read;
mod token;

mod cursor;
mod flusher;
mod log;
mod settings;
mod strategy;
mod watch;

mod import;
mod registry;

mod status;

mod connect;
mod error;
mod migrate;

pub use append::{Append, Appended, Condition, Outcome, Place, Provenance};
pub use connect::{SchemaName, Store, StoreConfig};
pub use cursor::{Cursor, InvalidCursor};
pub use error::Error;
pub use event::{EventType, InvalidData, InvalidName, Json, NewEvent, Tag};
pub use flusher::{Flusher, FlusherStats};
pub use import::{ImportError, ImportedEvent};
pub use log::{Filter, LoggedEvent, Page};
pub use migrate::{MigrateError, check_migrated, migrate};
pub use outcomes::{Idempotency, KeptOutcome};
pub use query::{InvalidQuery, Query, QueryItem, Unscoped};
pub use read::{
    BatchRead, DecisionRead, Origin, ReadOptions, ReadRequest, Reading, RequestRead, SequencedEvent,
};
pub use registry::{ActiveVersion, Deployed, HandlerVersion};
pub use settings::{InvalidOutcomesKept, OutcomesKept, Settings, SettingsChange};
pub use status::{Connections, Depth, Epoch, HeldBack, Lease, StoreStatus, TableBytes};
pub use strategy::Strategy;
pub use token::{InvalidToken, ReadToken};
pub use watch::HeadWatch;

/// What one append, boundary or event may hold at the most. Each has an error of its own.
pub mod bounds {
    /// Bytes of an event type or a tag.
    pub const NAME_BYTES: usize = 200;
    /// Tags of one event or one query item.
    pub const TAGS: usize = 32;
    /// Event types of one query item.
    pub const TYPES: usize = 32;
    /// Query items of one boundary.
    pub const ITEMS: usize = 64;
    /// Bytes of one event's data, and of its metadata.
    pub const DATA_BYTES: usize = 1024 * 1024;
    /// Levels of nesting in one event's data.
    pub const DATA_DEPTH: usize = 127;
    /// Events of one append.
    pub const EVENTS: usize = 500;
    /// Events of one import.
    pub const IMPORTED_EVENTS: usize = 10_000;
    /// Lock keys of one append. The slots for locks are shared by the whole server: by default 64 for each
    /// allowed connection.
    pub const LOCK_KEYS: usize = 1024;
}
