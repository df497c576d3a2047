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
    pub(crate) xid: Option<u64>,
}

impl Cursor {
    /// Before the first event.
    pub const START: Self = Self { position: 0, xid: None };

    /// Behind the event at a position.
    pub fn at(position: u64) -> Self {
        Self { position, xid: None }
    }

    /// The position of the event behind which it is.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether this place lies behind the other one. Epochs of the log are ranges of positions, so where only one of
    /// them has a transaction, they lie in different epochs and positions decide.
    pub fn is_past(&self, other: &Self) -> bool {
        match (self.xid, other.xid) {
            (Some(mine), Some(theirs)) => (mine, self.position) > (theirs, other.position),
            _ => self.position > other.position,
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.xid {
            None => write!(f, "{}", self.position),
            Some(xid) => write!(f, "b1.{xid}.{}", self.position),
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
        let number = |text: &str| text.parse::<u64>().map_err(|_| InvalidCursor);
        match text.strip_prefix("b1.") {
            None => Ok(Self::at(number(text)?)),
            Some(rest) => {
                let (xid, position) = rest.split_once('.').ok_or(InvalidCursor)?;
                Ok(Self { xid: Some(number(xid)?), position: number(position)? })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_its_text() {
        for text in ["0", "17", "b1.720.17"] {
            assert_eq!(text.parse::<Cursor>().unwrap().to_string(), text);
        }
        for text in ["", "-1", "b1.720", "b1.x.2", "b2.1.1", "17.2"] {
            assert_eq!(text.parse::<Cursor>(), Err(InvalidCursor), "{text}");
        }
    }

    #[test]
    fn transactions_decide_within_an_epoch_and_positions_between_epochs() {
        let place = |text: &str| text.parse::<Cursor>().unwrap();
        assert!(place("b1.7.2").is_past(&place("b1.6.9")));
        assert!(!place("b1.7.2").is_past(&place("b1.7.2")));
        assert!(place("9").is_past(&place("b1.700.8")));
        assert!(!place("8").is_past(&place("b1.1.9")));
    }
}
