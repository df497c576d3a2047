//! A line of the log, as hosts give it out.

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::evidence::{Event, EventId, LineHash, Logged};

#[derive(Deserialize)]
struct Line<'a> {
    position: u64,
    cursor: Option<String>,
    #[serde(rename = "type")]
    event_type: String,
    tags: Vec<String>,
    #[serde(borrow)]
    data: &'a RawValue,
    /// Instead of `data`, where those have a line break.
    data_text: Option<String>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    command_id: String,
}

/// The part of an event's data that identifies it.
#[derive(Deserialize)]
struct Identity {
    id: u64,
}

/// The event of a line, and where to go on behind it.
pub(super) fn parse(text: &str) -> Result<(Logged, String)> {
    let not_understood = || format!("not a line of the log: {text}");
    let line: Line<'_> = serde_json::from_str(text).with_context(not_understood)?;
    let id = identity(line.data).with_context(not_understood)?;
    let event = Event {
        id,
        event_type: line.event_type,
        tags: line.tags.into_iter().collect(),
        data: line.data_text.unwrap_or_else(|| line.data.get().to_owned()),
        metadata: line.metadata.map(|metadata| metadata.get().to_owned()),
    };
    let cursor = line.cursor.unwrap_or_else(|| line.position.to_string());
    let logged =
        Logged { event, position: line.position, command_id: line.command_id, line: LineHash::of(text) };
    Ok((logged, cursor))
}

pub(super) fn identity(data: &RawValue) -> Result<EventId> {
    let identity: Identity = serde_json::from_str(data.get())?;
    Ok(EventId(identity.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_kept_byte_for_byte_and_the_cursor_goes_before_the_position() {
        let text = r#"{"position":7,"cursor":"b1.70.7","type":"A","tags":["x","y"],"data":{"id": 4294967298},"data_text":"{\"id\":\n4294967298}","metadata":{"a":1},"recorded_at":"","command_id":"c","handler":null}"#;
        let (logged, cursor) = parse(text).unwrap();
        assert_eq!((logged.position, &*cursor, &*logged.command_id), (7, "b1.70.7", "c"));
        assert_eq!(logged.event.id, EventId::of(1, 2));
        assert_eq!(logged.event.data, "{\"id\":\n4294967298}");
        assert_eq!(logged.event.metadata.as_deref(), Some(r#"{"a":1}"#));
        let plain = r#"{"position":7,"type":"A","tags":[],"data":{"id":1.0e0},"command_id":"c"}"#;
        assert!(parse(plain).is_err());
        let (logged, cursor) = parse(&plain.replace("1.0e0", "1")).unwrap();
        assert_eq!((logged.event.data.as_str(), &*cursor), (r#"{"id":1}"#, "7"));
    }
}
