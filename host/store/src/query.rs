//! Queries: which events a decision depends on, or a reader wants.

use crate::{EventType, NewEvent, Tag, bounds, event::distinct, lock_key::clauses};

/// One alternative of a query: an event matches it if its type is one of `event_types` and it carries all of
/// `tags`. An empty list leaves nothing out.
///
/// An item that has at least one of each is *scoped*: its events have keys, by which they are locked and found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QueryItem {
    /// Any of these types.
    pub event_types: Vec<EventType>,
    /// All of these tags, by custom the most selective first: events are looked up by the first.
    pub tags: Vec<Tag>,
}

/// Why a list of query items can't be a query. Items are counted from 0, as they were given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidQuery {
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

/// An item of a condition that no lock stands for. Items are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unscoped {
    /// Without a type there is no key to lock.
    #[error("query item {0} names no event type: it needs at least one type and one tag to be locked by")]
    NoType(usize),
    /// Without a tag there is no key to lock.
    #[error(
        "query item {0} ({1}) names no tag: it needs at least one type and one tag to be locked by, or every append \
         would have to wait for every other"
    )]
    NoTag(usize, String),
}

/// The union of its items: an event matches a query if it matches one of them.
///
/// The query without items is matched by no event: what is decided on it depends on nothing. What a command declares is
/// its boundary; what guards an append is its condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Query {
    items: Vec<QueryItem>,
}

impl Query {
    /// A query of these items, each kept once.
    ///
    /// # Errors
    /// If there is too much of something.
    pub fn new(items: Vec<QueryItem>) -> Result<Self, InvalidQuery> {
        for (at, item) in items.iter().enumerate() {
            if item.event_types.len() > bounds::TYPES {
                return Err(InvalidQuery::TooManyTypes(at, item.event_types.len()));
            }
            if item.tags.len() > bounds::TAGS {
                return Err(InvalidQuery::TooManyTags(at, item.tags.len()));
            }
        }
        let items = distinct(items);
        if items.len() > bounds::ITEMS {
            return Err(InvalidQuery::TooManyItems(items.len()));
        }
        Ok(Self { items })
    }

    /// The query that every event matches.
    pub fn everything() -> Self {
        Self { items: vec![QueryItem { event_types: Vec::new(), tags: Vec::new() }] }
    }

    /// The union of this query and more items. Positions in an error count from the first of `more`.
    ///
    /// # Errors
    /// As for [`Query::new`].
    pub fn widened(&self, more: Vec<QueryItem>) -> Result<Self, InvalidQuery> {
        let more = Self::new(more)?;
        Self::new(self.items.iter().cloned().chain(more.items).collect())
    }

    /// Its items.
    pub fn items(&self) -> &[QueryItem] {
        &self.items
    }

    /// Whether an event matches it.
    pub fn matches(&self, event: &NewEvent) -> bool {
        clauses(self).iter().any(|clause| clause.matches(event))
    }

    /// The numbers that it is locked by; none for a part of it that is not scoped. Queries without a number in common can be
    /// appended under at the same time.
    pub fn lock_keys(&self) -> Vec<i64> {
        clauses(self).iter().filter_map(|clause| clause.keys.first().copied()).collect()
    }

    /// The first item that is not scoped, if there is one.
    pub fn unscoped(&self) -> Option<Unscoped> {
        self.items.iter().enumerate().find_map(|(at, item)| {
            if item.event_types.is_empty() {
                Some(Unscoped::NoType(at))
            } else if item.tags.is_empty() {
                let types: Vec<_> = item.event_types.iter().map(EventType::as_str).collect();
                Some(Unscoped::NoTag(at, types.join(", ")))
            } else {
                None
            }
        })
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
    fn an_unscoped_item_is_known_by_its_number_and_what_it_lacks() {
        let unscoped = |items: Vec<QueryItem>| Query::new(items).unwrap().unscoped();
        let scoped = item(&["A"], &["x:1"]);
        assert_eq!(unscoped(vec![scoped.clone()]), None);
        assert_eq!(unscoped(vec![scoped.clone(), item(&[], &["x:1"])]), Some(Unscoped::NoType(1)));
        assert_eq!(unscoped(vec![item(&["A", "B"], &[])]), Some(Unscoped::NoTag(0, "A, B".into())));
        assert_eq!(Query::everything().unscoped(), Some(Unscoped::NoType(0)));
        assert_eq!(unscoped(vec![]), None, "what depends on nothing needs no lock");
    }

    #[test]
    fn a_query_has_bounds_each_with_an_error_of_its_own() {
        let names: Vec<String> = (0..=bounds::ITEMS).map(|n| format!("x:{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let items = |n: usize| names[..n].iter().map(|name| item(&["A"], &[name])).collect::<Vec<_>>();
        assert!(Query::new(items(bounds::ITEMS)).is_ok());
        assert_eq!(Query::new(items(bounds::ITEMS + 1)), Err(InvalidQuery::TooManyItems(bounds::ITEMS + 1)));
        let (types, tags) = (&names[..=bounds::TYPES], &names[..=bounds::TAGS]);
        assert_eq!(
            Query::new(vec![item(types, &["x"])]),
            Err(InvalidQuery::TooManyTypes(0, bounds::TYPES + 1))
        );
        assert_eq!(Query::new(vec![item(&["A"], tags)]), Err(InvalidQuery::TooManyTags(0, bounds::TAGS + 1)));
    }

    #[test]
    fn widening_keeps_what_was_there_and_adds_each_item_once() {
        let (a, b) = (item(&["A"], &["x:1"]), item(&["A"], &["x:2"]));
        let query = Query::new(vec![a.clone()]).unwrap();
        assert_eq!(query.widened(vec![b.clone(), a.clone()]).unwrap().items(), [a, b]);
    }
}
