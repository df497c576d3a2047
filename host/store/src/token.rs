//! The read token: what a decision read saw.

/// What a decision read saw, as far as a later append must know it. Opaque to everyone but the store.
///
/// It holds, for each clause of the query, a position up to which everything was seen, and the staged ids of the
/// *matching* events. An event that matches the condition is new if it is staged and not among those ids, or lies past
/// that position and was not among them when it was staged (a flush in between is no conflict). Where that
/// can't tell, for items without a key under the strategy `boundary`, the snapshot itself is kept.
///
/// It serves only conditions whose query is the one that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadToken {
    pub(crate) after: After,
    /// Staged ids of matching events.
    pub(crate) staged: Vec<i64>,
    /// A `pg_snapshot`.
    pub(crate) snapshot: Option<String>,
}

/// Up to where a read saw everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum After {
    /// One position for all clauses.
    Position(i64),
    /// One for each clause, in their order.
    Clauses(Vec<i64>),
}

impl Default for After {
    fn default() -> Self {
        Self::Position(0)
    }
}

impl ReadToken {
    /// The token of a read that saw nothing: any event that matches is new.
    pub fn nothing_seen() -> Self {
        Self::default()
    }

    pub(crate) fn new(clauses: Vec<i64>, snapshot: Option<String>) -> Self {
        let after = match clauses.first() {
            None => After::default(),
            Some(first) if clauses.iter().all(|position| position == first) => After::Position(*first),
            Some(_) => After::Clauses(clauses),
        };
        Self { after, staged: Vec::new(), snapshot }
    }

    /// The positions for a query of so many clauses; none if the token is another query's.
    pub(crate) fn positions(&self, clauses: usize) -> Option<Vec<i64>> {
        match &self.after {
            After::Position(position) => Some(vec![*position; clauses]),
            After::Clauses(positions) if positions.len() == clauses => Some(positions.clone()),
            After::Clauses(_) => None,
        }
    }
}
