//! Models that are kept warm: those of boundaries that commands come to again and again.
//!
//! A model here has been shown exactly what its token says, no more and no less, so a read that goes on from the token
//! brings it up to date, whatever has happened in between: what other hosts have appended, a flush, a change of strategy
//! (tokens outlive it). It serves the version it was built by and the boundary it was read for: a deployment, or a boundary
//! that was widened, looks for another one. A model that has failed, or has been shown an event that was not appended
//! after all, never comes here. In doubt it is dropped: the next command reads from the beginning.

use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex, PoisonError},
};

use lru::LruCache;
use weir_store::{Query, ReadToken};

use crate::host::Guest;

/// The version's id in the registry, and the boundary.
type Key = (i32, Query);

/// Cheap to clone; clones share them.
#[derive(Clone)]
pub(crate) struct Models {
    kept: Arc<Mutex<Kept>>,
    /// Bytes that all of them together may hold.
    most_bytes: usize,
}

struct Kept {
    models: LruCache<Key, (Guest, ReadToken)>,
    bytes: usize,
}

impl Models {
    /// At most so many models, of so many bytes together. None, if one of the two is 0.
    pub(crate) fn new(most: usize, most_bytes: usize) -> Self {
        let models = LruCache::new(NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN));
        let most_bytes = if most == 0 { 0 } else { most_bytes };
        Self { kept: Arc::new(Mutex::new(Kept { models, bytes: 0 })), most_bytes }
    }

    /// Takes a model out: while a batch is at work with it, nobody else is.
    pub(crate) fn take(&self, version: i32, boundary: &Query) -> Option<(Guest, ReadToken)> {
        let mut kept = self.kept();
        let (guest, token) = kept.models.pop(&(version, boundary.clone()))?;
        kept.bytes -= guest.bytes();
        Some((guest, token))
    }

    /// Keeps a model for the next batch that has its boundary, at the cost of those that were used least lately.
    pub(crate) fn keep(&self, version: i32, boundary: &Query, guest: Guest, token: ReadToken) {
        let bytes = guest.bytes();
        if bytes > self.most_bytes || !guest.can_be_kept() {
            return;
        }
        let mut kept = self.kept();
        kept.bytes += bytes;
        if let Some((_, (dropped, _))) = kept.models.push((version, boundary.clone()), (guest, token)) {
            kept.bytes -= dropped.bytes();
        }
        while kept.bytes > self.most_bytes {
            let Some((_, (dropped, _))) = kept.models.pop_lru() else { break };
            kept.bytes -= dropped.bytes();
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
