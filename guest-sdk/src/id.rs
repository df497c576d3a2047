use std::borrow::Borrow;
use std::fmt::{self, Display};
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::tag::flaw;

/// A text that identifies something, fit to be the value of a [`tag`](crate::tag()).
///
/// It has 1 to 100 bytes, no control characters and no white space at either end. A command field of
/// this type is checked when the command is read, and the command is refused if the text is none. Events can
/// hold it too: they are written from such commands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Id(String);

impl Id {
    /// Half of what a tag may have, so that the key has room.
    const MAX_BYTES: usize = 100;

    /// The text as an id.
    ///
    /// # Errors
    ///
    /// If it is empty, too long, has control characters or begins or ends with white space.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidId> {
        let text = text.into();
        match flaw(&text, Self::MAX_BYTES) {
            Some(flaw) => Err(InvalidId(flaw)),
            None => Ok(Self(text)),
        }
    }
}

/// Why a text is not an [`Id`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidId(String);

impl Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidId {}

impl TryFrom<String> for Id {
    type Error = InvalidId;

    fn try_from(text: String) -> Result<Self, InvalidId> {
        Self::new(text)
    }
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        id.0
    }
}

impl Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Deref for Id {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Id {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_fit_for_a_tag() {
        for good in ["c1", "a b", "ü", &"x".repeat(100)] {
            assert!(Id::new(good).is_ok(), "{good:?}");
        }
        for bad in ["", " c1", "c1\u{a0}", "c\n1", "c\u{7f}", &"x".repeat(101)] {
            assert!(Id::new(bad).is_err(), "{bad:?}");
        }
    }
}
