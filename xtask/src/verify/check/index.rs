//! The log, with ways to find events in it. A place is an index into the log, in the order in which it is followed.

use std::collections::HashMap;

use super::super::evidence::{Epoch, Event, EventId, Item, Logged, Query, Strategy};

pub(super) struct Index<'a> {
    pub(super) log: &'a [Logged],
    pub(super) epochs: &'a [Epoch],
    places: HashMap<EventId, usize>,
    by_type: HashMap<&'a str, Vec<usize>>,
    by_tag: HashMap<&'a str, Vec<usize>>,
    by_key: HashMap<(&'a str, &'a str), Vec<usize>>,
}

impl<'a> Index<'a> {
    pub(super) fn of(log: &'a [Logged], epochs: &'a [Epoch]) -> Self {
        let mut index = Self {
            log,
            epochs,
            places: HashMap::new(),
            by_type: HashMap::new(),
            by_tag: HashMap::new(),
            by_key: HashMap::new(),
        };
        for (place, Logged { event, .. }) in log.iter().enumerate() {
            index.places.entry(event.id).or_insert(place);
            index.by_type.entry(&event.event_type).or_default().push(place);
            for tag in &event.tags {
                index.by_tag.entry(tag).or_default().push(place);
                index.by_key.entry((&event.event_type, tag)).or_default().push(place);
            }
        }
        index
    }

    /// Where an event stands; the first time, if it is there more than once.
    pub(super) fn place(&self, id: EventId) -> Option<usize> {
        self.places.get(&id).copied()
    }

    /// The places of all that a query matches, in order.
    pub(super) fn matching(&self, query: &Query) -> Vec<usize> {
        let mut places: Vec<usize> = query.items.iter().flat_map(|item| self.matching_item(item)).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    fn matching_item(&self, item: &Item) -> Vec<usize> {
        let candidates: Vec<usize> = match (&item.types[..], item.tags.first()) {
            ([], None) => (0..self.log.len()).collect(),
            ([], Some(tag)) => self.by_tag.get(&**tag).cloned().unwrap_or_default(),
            (types, None) => types.iter().filter_map(|t| self.by_type.get(&**t)).flatten().copied().collect(),
            (types, Some(tag)) => {
                types.iter().filter_map(|t| self.by_key.get(&(&**t, &**tag))).flatten().copied().collect()
            }
        };
        let matches = |place: &usize| item.matches(self.event(*place));
        candidates.into_iter().filter(matches).collect()
    }

    /// The places of the events under each pair of a type and a tag: what a store locks.
    pub(super) fn boundaries(&self) -> impl Iterator<Item = (&(&'a str, &'a str), &Vec<usize>)> {
        self.by_key.iter()
    }

    pub(super) fn event(&self, place: usize) -> &'a Event {
        &self.log[place].event
    }

    pub(super) fn position(&self, place: usize) -> u64 {
        self.log[place].position
    }

    pub(super) fn strategy_at(&self, position: u64) -> Strategy {
        let epoch = self.epochs.iter().rfind(|epoch| epoch.after < position);
        epoch.or(self.epochs.first()).expect("a log has an epoch").strategy
    }
}
