use std::fmt::{self, Display};

/// What an event happened to, by custom `key:value`: `course:c1`. [`tag`] makes one.
///
/// Any text can be a `Tag` here. Weir takes 1 to 200 bytes without control characters and without white
/// space at either end, and a command whose boundary has another tag is refused as malformed. A value that
/// is an [`Id`](crate::Id) always makes a valid one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(String);

/// The tag `key:value`.
pub fn tag(key: &str, value: impl Display) -> Tag {
    Tag(format!("{key}:{value}"))
}

impl From<&str> for Tag {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The most bytes that Weir takes in a tag or an event type.
pub(crate) const MAX_BYTES: usize = 200;

/// What keeps a text from being (part of) a tag, if anything: the rules of the contract.
pub(crate) fn flaw(text: &str, max_bytes: usize) -> Option<String> {
    if text.is_empty() {
        Some("must not be empty".into())
    } else if text.len() > max_bytes {
        Some(format!("has {} bytes, {max_bytes} is the most", text.len()))
    } else if text.chars().any(char::is_control) {
        Some("must not contain control characters".into())
    } else if text.trim() != text {
        Some("must not begin or end with white space".into())
    } else {
        None
    }
}
