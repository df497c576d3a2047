//! Importing events as they were in another log.

use time::OffsetDateTime;

use crate::{
    Error, NewEvent, Origin, Store, Tag, bounds,
    lock_key::{array_literal, event_keys, number_literal},
};

/// An event of another log, with the time and the origin that it has there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedEvent {
    /// The event itself.
    pub event: NewEvent,
    /// When it was recorded there.
    pub recorded_at: OffsetDateTime,
    /// Where it came from there. A handler's version need not be known to this store.
    pub origin: Origin,
}

/// Why events were not imported. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The log ends elsewhere than the import says: others have appended, or these events are in it already.
    #[error("the log ends at position {head} and not at {expected}, behind which these events belong")]
    OtherHead {
        /// Where the import says that the log ends.
        expected: u64,
        /// Where it does.
        head: u64,
    },
    /// See [`Error`].
    #[error(transparent)]
    Store(#[from] Error),
}

impl Store {
    /// Adds events to the log, in their order, if it ends at the position `expected_head`; returns where it ends then.
    /// Appends wait meanwhile.
    ///
    /// # Errors
    /// [`ImportError::OtherHead`]; [`Error::TooManyEvents`]; whatever the database says. After [`Error::OutcomeUnknown`] the
    /// head of the log tells whether the events are in it.
    pub async fn import(&self, expected_head: u64, events: &[ImportedEvent]) -> Result<u64, ImportError> {
        if events.len() > bounds::IMPORTED_EVENTS {
            return Err(Error::TooManyEvents(events.len()).into());
        }
        let (mut types, mut tags, mut keys, mut data, mut metadata) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut times, mut commands, mut correlations, mut causations, mut handlers, mut digests) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for ImportedEvent { event, recorded_at, origin } in events {
            types.push(event.event_type().to_string());
            tags.push(array_literal(event.tags().iter().map(Tag::as_str)));
            keys.push(number_literal(&event_keys(event)));
            data.push(event.data().as_str().to_owned());
            metadata.push(event.metadata().map(|metadata| metadata.as_str().to_owned()));
            times.push(*recorded_at);
            commands.push(origin.command_id.clone());
            correlations.push(origin.correlation_id.clone());
            causations.push(origin.causation_id.clone());
            let (handler, digest) = origin.handler.clone().unzip();
            handlers.push(handler);
            digests.push(digest);
        }
        let head = i64::try_from(expected_head).unwrap_or(i64::MAX);
        let import = sqlx::query_scalar!(
            "SELECT import_events($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            head,
            &types,
            &tags,
            &keys,
            &data,
            &metadata as &[Option<String>],
            &times,
            &commands,
            &correlations,
            &causations as &[Option<String>],
            &handlers as &[Option<String>],
            &digests as &[Option<Vec<u8>>]
        )
        .fetch_one(self.control());
        match self.bounded_write(import).await? {
            Some(head) => Ok(head.cast_unsigned()),
            None => Err(ImportError::OtherHead { expected: expected_head, head: self.head().await? }),
        }
    }
}
