//! Events and their parts. A value of one of these types is valid: nothing past the constructors checks again.

use std::fmt;

use serde::Serialize;

use crate::bounds;

/// Why a text can't be an event type or a tag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// It has no character.
    #[error("it is empty")]
    Empty,
    /// It is longer than [`bounds::NAME_BYTES`].
    #[error("it has {0} bytes, {max} is the most", max = bounds::NAME_BYTES)]
    TooLong(usize),
    /// It has a control character (a line break, NUL, …) at this byte.
    #[error("it has a control character at byte {0}")]
    Control(usize),
    /// It begins or ends with white space.
    #[error("it begins or ends with white space")]
    Padded,
}

fn check_name(text: &str) -> Result<(), InvalidName> {
    if text.is_empty() {
        return Err(InvalidName::Empty);
    }
    if text.len() > bounds::NAME_BYTES {
        return Err(InvalidName::TooLong(text.len()));
    }
    if let Some((at, _)) = text.char_indices().find(|(_, c)| c.is_control()) {
        return Err(InvalidName::Control(at));
    }
    if text.trim() != text {
        return Err(InvalidName::Padded);
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// A name that comes out of the database, where only valid ones went in.
            pub(crate) fn trusted(text: String) -> Self {
                Self(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, InvalidName> {
                check_name(&text)?;
                Ok(Self(text))
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::try_from(text.to_owned())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// What happened: `CourseDefined`. 1 to [`bounds::NAME_BYTES`] bytes, no control characters, no white
    /// space at either end.
    EventType
}

name! {
    /// What an event happened to: `course:c1`. Opaque to the store; the same rules as for [`EventType`].
    Tag
}

/// Why a text can't be an event's data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidData {
    /// It is longer than [`bounds::DATA_BYTES`].
    #[error("it has {0} bytes, {max} is the most", max = bounds::DATA_BYTES)]
    TooLong(usize),
    /// It is not JSON, or nested more than [`bounds::DATA_DEPTH`] levels deep.
    #[error("it is not JSON, or too deeply nested: {0}")]
    NotJson(String),
}

/// JSON text, kept byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json(String);

impl Json {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn trusted(text: String) -> Self {
        Self(text)
    }
}

impl TryFrom<String> for Json {
    type Error = InvalidData;

    fn try_from(text: String) -> Result<Self, InvalidData> {
        if text.len() > bounds::DATA_BYTES {
            return Err(InvalidData::TooLong(text.len()));
        }
        // A full parse, because it bounds the depth: Postgres parses JSON by recursion.
        match serde_json::from_str::<serde_json::Value>(&text) {
            Ok(_) => Ok(Self(text)),
            Err(error) => Err(InvalidData::NotJson(error.to_string())),
        }
    }
}

/// An event to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    event_type: EventType,
    tags: Vec<Tag>,
    data: Json,
    metadata: Option<Json>,
}

impl NewEvent {
    /// An event with these tags, each kept once and in the given order.
    ///
    /// # Errors
    /// The number of tags, if it is more than [`bounds::TAGS`].
    pub fn new(event_type: EventType, tags: Vec<Tag>, data: Json) -> Result<Self, usize> {
        let tags = distinct(tags);
        if tags.len() > bounds::TAGS {
            return Err(tags.len());
        }
        Ok(Self { event_type, tags, data, metadata: None })
    }

    /// The same event with something that its writer says of it besides.
    pub fn with_metadata(mut self, metadata: Option<Json>) -> Self {
        self.metadata = metadata;
        self
    }

    /// Its type.
    pub fn event_type(&self) -> &EventType {
        &self.event_type
    }

    /// Its tags, without repetitions.
    pub fn tags(&self) -> &[Tag] {
        &self.tags
    }

    /// Its data.
    pub fn data(&self) -> &Json {
        &self.data
    }

    /// Its metadata.
    pub fn metadata(&self) -> Option<&Json> {
        self.metadata.as_ref()
    }
}

/// The same values in the same order, without repetitions. Lists are short (see [`bounds`]).
pub(crate) fn distinct<T: PartialEq>(values: Vec<T>) -> Vec<T> {
    let mut kept = Vec::with_capacity(values.len());
    for value in values {
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_once_and_for_all() {
        let name = |text: &str| text.parse::<Tag>();
        assert_eq!(name(""), Err(InvalidName::Empty));
        assert_eq!(name("a\nb"), Err(InvalidName::Control(1)));
        assert_eq!(name("nul\0"), Err(InvalidName::Control(3)));
        assert_eq!(name(" a"), Err(InvalidName::Padded));
        assert_eq!(name(&"x".repeat(201)), Err(InvalidName::TooLong(201)));
        assert_eq!(name("straße:überall").unwrap().as_str(), "straße:überall");
        assert_eq!(name("{\"a\",NULL}").unwrap().as_str(), "{\"a\",NULL}");
    }

    #[test]
    fn data_is_json_of_a_bounded_depth_and_stays_as_it_came() {
        let data = |text: &str| Json::try_from(text.to_owned());
        assert_eq!(data("{ \"b\":1, \"a\" : 1.0 }").unwrap().as_str(), "{ \"b\":1, \"a\" : 1.0 }");
        assert!(matches!(data(""), Err(InvalidData::NotJson(_))));
        assert!(matches!(data("{} x"), Err(InvalidData::NotJson(_))));
        assert!(matches!(data(&"[".repeat(10_000)), Err(InvalidData::NotJson(_))));
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(data(&nested(bounds::DATA_DEPTH)).is_ok());
        assert!(data(&nested(bounds::DATA_DEPTH + 1)).is_err());
        let long = format!("\"{}\"", "x".repeat(bounds::DATA_BYTES));
        assert_eq!(data(&long), Err(InvalidData::TooLong(long.len())));
    }

    #[test]
    fn a_tag_given_twice_counts_once() {
        let tag = |t: &str| t.parse::<Tag>().unwrap();
        let event = NewEvent::new(
            "T".parse().unwrap(),
            vec![tag("b"), tag("a"), tag("b")],
            Json::try_from("{}".to_owned()).unwrap(),
        )
        .unwrap();
        assert_eq!(event.tags(), [tag("b"), tag("a")]);
    }
}
