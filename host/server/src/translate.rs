//! Between what guests say and what the store takes: the only place that knows both.
//!
//! An error is the reason why a guest's answer can't be used, fit to follow "it answered nonsense:".

use std::fmt::Display;

use time::OffsetDateTime;
use weir_runtime::{Event, QueryItem, SequencedEvent};
use weir_store::{EventType, Json, NewEvent, Query, Settings, Tag, bounds};

/// The boundary that a handler declares for a command.
pub(crate) fn boundary(items: Vec<QueryItem>, settings: Settings) -> Result<Query, String> {
    let boundary = Query::new(query_items(items)?).map_err(|error| error.to_string())?;
    lockable(boundary, settings)
}

/// The boundary and what a decision wants added to it.
pub(crate) fn widened(boundary: &Query, items: Vec<QueryItem>, settings: Settings) -> Result<Query, String> {
    let wider = boundary.widened(query_items(items)?).map_err(|error| error.to_string())?;
    if wider == *boundary {
        return Err("it widened the boundary by nothing that was not in it already".into());
    }
    lockable(wider, settings)
}

fn lockable(boundary: Query, settings: Settings) -> Result<Query, String> {
    match boundary.unscoped() {
        Some(unscoped) if !settings.unscoped_conditions => Err(format!(
            "{unscoped} (a store may allow it, at that price: weir settings set unscoped-conditions true)"
        )),
        _ => Ok(boundary),
    }
}

fn query_items(items: Vec<QueryItem>) -> Result<Vec<weir_store::QueryItem>, String> {
    items.into_iter().enumerate().map(|(at, item)| query_item(at, item)).collect()
}

fn query_item(at: usize, item: QueryItem) -> Result<weir_store::QueryItem, String> {
    let malformed = |what, name: &str, error| format!("query item {at}: {}", complaint(what, name, error));
    let event_types = item.event_types.into_iter();
    let tags = item.tags.into_iter();
    Ok(weir_store::QueryItem {
        event_types: event_types
            .map(|name| EventType::try_from(name.clone()).map_err(|error| malformed("type", &name, error)))
            .collect::<Result<_, _>>()?,
        tags: tags
            .map(|name| Tag::try_from(name.clone()).map_err(|error| malformed("tag", &name, error)))
            .collect::<Result<_, _>>()?,
    })
}

/// The events of a decision.
pub(crate) fn events(events: Vec<Event>) -> Result<Vec<NewEvent>, String> {
    if events.len() > bounds::EVENTS {
        return Err(format!("it accepted with {} events, {} is the most", events.len(), bounds::EVENTS));
    }
    events
        .into_iter()
        .enumerate()
        .map(|(at, event)| new_event(event).map_err(|reason| format!("event {at}: {reason}")))
        .collect()
}

fn new_event(event: Event) -> Result<NewEvent, String> {
    let name = event.event_type;
    let event_type = EventType::try_from(name.clone()).map_err(|error| complaint("type", &name, error))?;
    let tags = event.tags.into_iter();
    let tags = tags
        .map(|name| Tag::try_from(name.clone()).map_err(|error| complaint("tag", &name, error)))
        .collect::<Result<_, _>>()?;
    let data = Json::try_from(event.data)
        .map_err(|error| format!("the data of {} can't be stored: {error}", event_type.as_str()))?;
    NewEvent::new(event_type, tags, data)
        .map_err(|tags| format!("it has {tags} tags, {} is the most", bounds::TAGS))
}

/// What a guest is shown of the log.
pub(crate) fn sequenced(event: &weir_store::SequencedEvent) -> SequencedEvent {
    SequencedEvent {
        position: event.position,
        recorded_at: milliseconds(event.recorded_at),
        event: guest_event(&event.event_type, &event.tags, &event.data),
    }
}

/// The same for an event that is about to be appended, and will be recorded at that time.
pub(crate) fn not_appended_yet(event: &NewEvent, recorded_at: u64) -> SequencedEvent {
    let event = guest_event(event.event_type(), event.tags(), event.data());
    SequencedEvent { position: None, recorded_at, event }
}

fn guest_event(event_type: &EventType, tags: &[Tag], data: &Json) -> Event {
    Event {
        event_type: event_type.to_string(),
        tags: tags.iter().map(ToString::to_string).collect(),
        data: data.as_str().to_owned(),
    }
}

pub(crate) fn milliseconds(time: OffsetDateTime) -> u64 {
    u64::try_from(time.unix_timestamp_nanos() / 1_000_000).unwrap_or_default()
}

/// A malformed name, quoted so that it fits into one line.
fn complaint(what: &str, name: &str, error: impl Display) -> String {
    let shown: String = name.chars().take(60).collect();
    let more = if shown.len() < name.len() { "…" } else { "" };
    format!("the {what} {shown:?}{more} is malformed: {error}")
}

#[cfg(test)]
mod tests {
    use weir_store::{OutcomesKept, Strategy};

    use super::*;

    const SCOPED: Settings = Settings {
        strategy: Strategy::Staging,
        unscoped_conditions: false,
        outcomes_kept: OutcomesKept::LEAST,
    };

    #[test]
    fn a_malformed_answer_is_told_by_place_and_reason() {
        let item = |types: &[&str], tags: &[&str]| QueryItem {
            event_types: types.iter().map(ToString::to_string).collect(),
            tags: tags.iter().map(ToString::to_string).collect(),
        };
        let reason = boundary(vec![item(&["A"], &["x:1"]), item(&["A"], &["x:\n"])], SCOPED).unwrap_err();
        assert!(reason.contains("query item 1") && reason.contains(r#""x:\n""#), "{reason}");
        let reason = boundary(vec![item(&["A"], &[])], SCOPED).unwrap_err();
        assert!(reason.contains("query item 0 (A) names no tag"), "{reason}");
        let allowed = Settings { unscoped_conditions: true, ..SCOPED };
        assert!(boundary(vec![item(&["A"], &[])], allowed).is_ok());

        let event = |event_type: &str, tag: &str, data: &str| Event {
            event_type: event_type.into(),
            tags: vec![tag.into()],
            data: data.into(),
        };
        let reason = events(vec![event("A", "x:1", "{}"), event("A", "x:1", "{")]).unwrap_err();
        assert!(reason.starts_with("event 1: the data of A"), "{reason}");
        let reason = events(vec![event(&"A".repeat(300), "x:1", "{}")]).unwrap_err();
        assert!(reason.len() < 200 && reason.contains("300 bytes"), "{reason}");
    }

    #[test]
    fn widening_by_nothing_new_is_refused() {
        let items = || vec![QueryItem { event_types: vec!["A".into()], tags: vec!["x:1".into()] }];
        let narrow = boundary(items(), SCOPED).unwrap();
        assert!(widened(&narrow, items(), SCOPED).unwrap_err().contains("nothing"));
    }
}
