//! What a decision depends on: a query that can be locked.

use crate::{EventType, Tag, bounds, event::distinct};

/// One alternative of a query: an event matches it if its type is one of `event_types` and it carries all of
/// `tags`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryItem {
    /// Any of these types.
    pub event_types: Vec<EventType>,
    /// All of these tags, by custom the most selective first: events are looked up by the first.
    pub tags: Vec<Tag>,
}

/// Why a list of query items can't be a boundary. Items are counted from 0, as they were given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBoundary {
    /// Without a type there is no key to lock.
    #[error(
        "query item {0} names no event type: an item needs at least one type and one tag to be locked by"
    )]
    NoType(usize),
    /// Without a tag there is no key to lock.
    #[error(
        "query item {0} ({1}) names no tag: an item needs at least one type and one tag to be locked by, or \
         every command would wait for every other"
    )]
    NoTag(usize, String),
    /// More than [`bounds::ITEMS`] items.
    #[error("it has {0} query items, {max} is the most", max = bounds::ITEMS)]
    TooManyItems(usize),
    /// An item has more than [`bounds::TYPES`] types.
    #[error("query item {0} names {1} event types, {max} is the most", max = bounds::TYPES)]
    TooManyTypes(usize, usize),
    /// An item has more than [`bounds::TAGS`] tags.
    #[error("query item {0} names {1} tags, {max} is the most", max = bounds::TAGS)]
    TooManyTags(usize, usize),
}

/// A query of which every item is scoped (has a type and a tag), and so has keys that can be locked.
///
/// The empty boundary is matched by no event: what is decided on it depends on nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Boundary {
    items: Vec<QueryItem>,
}

impl Boundary {
    /// A boundary of these items, each kept once.
    ///
    /// # Errors
    /// If an item is not scoped, or there is too much of something.
    pub fn new(items: Vec<QueryItem>) -> Result<Self, InvalidBoundary> {
        for (at, item) in items.iter().enumerate() {
            if item.event_types.is_empty() {
                return Err(InvalidBoundary::NoType(at));
            }
            if item.tags.is_empty() {
                let types: Vec<_> = item.event_types.iter().map(EventType::as_str).collect();
                return Err(InvalidBoundary::NoTag(at, types.join(", ")));
            }
            if item.event_types.len() > bounds::TYPES {
                return Err(InvalidBoundary::TooManyTypes(at, item.event_types.len()));
            }
            if item.tags.len() > bounds::TAGS {
                return Err(InvalidBoundary::TooManyTags(at, item.tags.len()));
            }
        }
        let items = distinct(items);
        if items.len() > bounds::ITEMS {
            return Err(InvalidBoundary::TooManyItems(items.len()));
        }
        Ok(Self { items })
    }

    /// The union of this boundary and more items. Positions in an error count from the first of `more`.
    ///
    /// # Errors
    /// As for [`Boundary::new`].
    pub fn widened(&self, more: Vec<QueryItem>) -> Result<Self, InvalidBoundary> {
        let more = Self::new(more)?;
        Self::new(self.items.iter().cloned().chain(more.items).collect())
    }

    /// Its items.
    pub fn items(&self) -> &[QueryItem] {
        &self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(types: &[&str], tags: &[&str]) -> QueryItem {
        QueryItem {
            event_types: types.iter().map(|t| t.parse().unwrap()).collect(),
            tags: tags.iter().map(|t| t.parse().unwrap()).collect(),
        }
    }

    #[test]
    fn an_unscoped_item_is_refused_with_its_number_and_the_reason() {
        let scoped = item(&["A"], &["x:1"]);
        assert_eq!(Boundary::new(vec![scoped.clone(), item(&[], &["x:1"])]), Err(InvalidBoundary::NoType(1)));
        let error = Boundary::new(vec![item(&["A", "B"], &[])]).unwrap_err();
        assert_eq!(error, InvalidBoundary::NoTag(0, "A, B".into()));
        assert!(Boundary::new(vec![]).unwrap().items().is_empty());
        let many = (0..=bounds::ITEMS).map(|n| item(&["A"], &[&format!("x:{n}")])).collect();
        assert_eq!(Boundary::new(many), Err(InvalidBoundary::TooManyItems(bounds::ITEMS + 1)));
    }

    #[test]
    fn widening_keeps_what_was_there_and_adds_each_item_once() {
        let (a, b) = (item(&["A"], &["x:1"]), item(&["A"], &["x:2"]));
        let boundary = Boundary::new(vec![a.clone()]).unwrap();
        assert_eq!(boundary.widened(vec![b.clone(), a.clone()]).unwrap().items(), [a, b]);
    }
}
