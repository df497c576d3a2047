//! The read token: what a decision read saw.

/// What a decision read saw, as far as a later append must know it. Opaque to everyone but the store.
///
/// It holds the highest position of the read's snapshot and the staged ids of the *matching* events that it
/// saw. An event that matches the condition is then new if it is staged and not among those ids, or lies past
/// the position and was not among them when it was staged (a flush in between is no conflict). It serves only
/// conditions whose boundary is the one that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadToken {
    /// The highest position in the snapshot, 0 for an empty log.
    pub(crate) head: i64,
    /// Staged ids of matching events.
    pub(crate) staged: Vec<i64>,
}
