//! Cursors: how far somebody has read the log.

use std::{fmt, str::FromStr};

/// A place behind an event of the log. Whoever reads on from there sees every later event once, whatever the
/// strategy of the store was or becomes.
///
/// Its text is a plain number, the position, wherever positions become visible in their own order. In a part of the
/// log that was written under `boundary` it is opaque (`b1.…`): there the order is that of the transactions, and a
/// position alone would skip what commits late.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    pub(crate) position: u64,
    /// Only in an epoch of `boundary`.
    pub(crate) transaction: Option<Transaction>,
}

/// Transactions of different epochs can't be compared: in between, the store may have come to another cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Transaction {
    pub(crate) epoch: u64,
    pub(crate) xid: u64,
}

impl Cursor {
    /// Before the first event.
    pub const START: Self = Self { position: 0, transaction: None };

    /// Behind the event at a position.
    pub fn at(position: u64) -> Self {
        Self { position, transaction: None }
    }

    /// The position of the event behind which it is.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether this place lies behind the other one. Epochs of the log are ranges of positions, so where only one of
    /// them has a transaction, they lie in different epochs and positions decide.
    pub fn is_past(&self, other: &Self) -> bool {
        match (self.transaction, other.transaction) {
            (Some(mine), Some(theirs)) => (mine, self.position) > (theirs, other.position),
            _ => self.position > other.position,
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.transaction {
            None => write!(f, "{}", self.position),
            Some(Transaction { epoch, xid }) => write!(f, "b1.{epoch}.{xid}.{}", self.position),
        }
    }
}

/// The text is no cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is neither a position nor a cursor that this version of Weir has given out")]
pub struct InvalidCursor;

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let position = |text: &str| text.parse::<u64>().map_err(|_| InvalidCursor);
        // What the database counts with a sign.
        let number =
            |text: &str| text.parse::<i64>().ok().and_then(|n| u64::try_from(n).ok()).ok_or(InvalidCursor);
        let Some(rest) = text.strip_prefix("b1.") else {
            return Ok(Self::at(position(text)?));
        };
        let parts = rest.split('.').map(number).collect::<Result<Vec<_>, _>>()?;
        match parts[..] {
            [epoch, xid, position] => Ok(Self { position, transaction: Some(Transaction { epoch, xid }) }),
            _ => Err(InvalidCursor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_its_text() {
        for text in ["0", "17", "b1.2.720.17"] {
            assert_eq!(text.parse::<Cursor>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "-1",
            "b1.720.17",
            "b1.1.x.2",
            "b1.1.1.1.1",
            "b2.1.1.1",
            "17.2",
            "b1.1.18446744073709551615.1",
        ] {
            assert_eq!(text.parse::<Cursor>(), Err(InvalidCursor), "{text}");
        }
    }

    #[test]
    fn transactions_decide_within_an_epoch_and_epochs_or_positions_between_them() {
        let place = |text: &str| text.parse::<Cursor>().unwrap();
        assert!(place("b1.2.7.2").is_past(&place("b1.2.6.9")));
        assert!(!place("b1.2.7.2").is_past(&place("b1.2.7.2")));
        assert!(place("b1.3.7.9").is_past(&place("b1.2.700.8")), "it was another cluster then");
        assert!(place("9").is_past(&place("b1.2.700.8")));
        assert!(!place("8").is_past(&place("b1.2.1.9")));
    }
}
