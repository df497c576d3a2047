//! What a writer does next, at random.
//!
//! The writers meet under a few tags and two types, so that nearly everything is contended. The names change now and then, all
//! at once, so that a boundary's history stays short however long the run is.

use fastrand::Rng;

use super::evidence::{Event, EventId, Item, Query};

/// A tag that some events have, whatever the time, for a follower to ask for.
pub(super) const WATCHED: &str = "watched:1";

/// How many appends are tried with the same names.
const TRIES_OF_AN_AGE: u64 = 150;

/// How many tags there are at a time. Few enough to meet, enough for two boundaries that overlap in one.
const TAGS: u64 = 8;

const TYPES: [&str; 2] = ["Opened", "Closed"];

/// The type of events that claim a name nobody may have claimed before.
const CLAIM: &str = "Claimed";

/// How many names there are to claim at a time.
const CLAIMS: u64 = 8;

/// Data that a store might not keep as they are.
const NOTES: [&str; 6] = [
    r#""plain""#,
    r#""é ☃ \u00e9 \" \\n""#,
    "[1, 2.50,  -0, 1e3]",
    r#"{"b":null,"a":[],"a":{}}"#,
    "123456789012345678901234567890",
    "{\n  \"on\": \"two lines\"\n}",
];

/// On which condition something is to be appended.
pub(super) enum Intent {
    /// On none.
    Always,
    /// That nothing new matches since a read. Of events up to a position the read shows nothing.
    AfterRead { query: Query, beyond: u64, backwards: bool },
    /// That nothing matches behind a position, without a read.
    AfterPosition { query: Query, position: u64 },
}

pub(super) struct Chooser {
    pub(super) rng: Rng,
    writer: u32,
    events: u32,
    unscoped: bool,
    positions: bool,
}

impl Chooser {
    /// `unscoped`: whether the store allows conditions without a type or a tag. `positions`: whether a position may stand
    /// for a read.
    pub(super) fn new(rng: Rng, writer: u32, unscoped: bool, positions: bool) -> Self {
        Self { rng, writer, events: 0, unscoped, positions }
    }

    /// What to do, after so many tries of all writers, when the log had come to `head`.
    pub(super) fn intent(&mut self, tries: u64, head: u64) -> Intent {
        let age = tries / TRIES_OF_AN_AGE;
        match self.rng.u32(..100) {
            0..10 => Intent::Always,
            10..20 => {
                let tag = format!("name:{age}-{}", self.rng.u64(..CLAIMS));
                let item = Item { types: vec![CLAIM.to_owned()], tags: vec![tag] };
                Intent::AfterPosition { query: Query { items: vec![item] }, position: 0 }
            }
            20..24 if self.positions => {
                Intent::AfterPosition { query: self.scoped_query(age), position: head }
            }
            24..34 if self.unscoped => {
                // Not the whole log each time, which grows.
                let beyond = if self.rng.u32(..10) == 0 { 0 } else { head.saturating_sub(300) };
                let query = self.unscoped_query(age, beyond);
                Intent::AfterRead { query, beyond, backwards: self.rng.bool() }
            }
            _ => {
                let beyond =
                    if self.rng.u32(..20) == 0 { head.saturating_sub(self.rng.u64(..20)) } else { 0 };
                let backwards = self.rng.u32(..10) == 0;
                Intent::AfterRead { query: self.scoped_query(age), beyond, backwards }
            }
        }
    }

    /// One to four events, most of which the intent's query matches.
    pub(super) fn events(&mut self, intent: &Intent, tries: u64) -> Vec<Event> {
        let count = [1, 1, 1, 1, 2, 2, 3, 4][self.rng.usize(..8)];
        self.some_events(intent, tries, count)
    }

    pub(super) fn some_events(&mut self, intent: &Intent, tries: u64, count: usize) -> Vec<Event> {
        let age = tries / TRIES_OF_AN_AGE;
        (0..count).map(|_| self.event(intent, age)).collect()
    }

    /// A name for an append.
    pub(super) fn append_id(&self) -> String {
        format!("verify-{}-{}", self.writer, self.events)
    }

    fn event(&mut self, intent: &Intent, age: u64) -> Event {
        self.events += 1;
        let id = EventId::of(self.writer, self.events);
        let (event_type, mut tags) = match intent {
            Intent::AfterRead { query, .. } | Intent::AfterPosition { query, .. }
                if self.rng.u32(..100) < 75 =>
            {
                let item = &query.items[self.rng.usize(..query.items.len())];
                let event_type = match item.types.len() {
                    0 => self.event_type(age),
                    types => item.types[self.rng.usize(..types)].clone(),
                };
                let mut tags = item.tags.clone();
                if self.rng.u32(..3) == 0 {
                    tags.push(self.tag(age));
                }
                (event_type, tags)
            }
            _ => {
                let tags = self.rng.usize(..=3);
                (self.event_type(age), (0..tags).map(|_| self.tag(age)).collect())
            }
        };
        if self.rng.u32(..20) == 0 {
            tags.push(WATCHED.to_owned());
        }
        let note = NOTES[self.rng.usize(..NOTES.len())];
        let metadata = (self.rng.u32(..5) == 0).then(|| format!(r#"{{"writer": {}}}"#, self.writer));
        Event {
            id,
            event_type,
            tags: tags.into_iter().collect(),
            data: format!(r#"{{"id":{},"note":{note}}}"#, id.0),
            metadata,
        }
    }

    fn scoped_query(&mut self, age: u64) -> Query {
        let items = [1, 1, 2, 2, 2, 3][self.rng.usize(..6)];
        Query { items: (0..items).map(|_| self.scoped_item(age)).collect() }
    }

    fn scoped_item(&mut self, age: u64) -> Item {
        let types =
            if self.rng.u32(..3) > 0 { vec![self.event_type(age)] } else { types(age, self.unscoped) };
        let mut tags = vec![self.tag(age)];
        if self.rng.u32(..4) == 0 {
            let another = self.tag(age);
            if !tags.contains(&another) {
                tags.push(another);
            }
        }
        Item { types, tags }
    }

    /// Of one item without a type, a tag, or both, perhaps among others. Everything is asked for only of the end of the log.
    fn unscoped_query(&mut self, age: u64, beyond: u64) -> Query {
        let item = match self.rng.u32(..if beyond > 0 { 5 } else { 4 }) {
            0 | 1 => Item { types: vec![self.event_type(age)], tags: Vec::new() },
            2 | 3 => Item { types: Vec::new(), tags: vec![self.tag(age)] },
            _ => Item { types: Vec::new(), tags: Vec::new() },
        };
        let mut items = vec![item];
        if self.rng.bool() {
            items.push(self.scoped_item(age));
        }
        Query { items }
    }

    /// Now and then one of the age before, whose events may still be on their way.
    fn tag(&mut self, age: u64) -> String {
        let age = if self.rng.u32(..20) == 0 { age.saturating_sub(1) } else { age };
        format!("meet:{age}-{}", self.rng.u64(..TAGS))
    }

    fn event_type(&mut self, age: u64) -> String {
        let mut types = types(age, self.unscoped);
        types.swap_remove(self.rng.usize(..types.len()))
    }
}

/// Where a condition may name a type alone, types must change with the age as tags do.
fn types(age: u64, of_their_age: bool) -> Vec<String> {
    let name = |name: &str| if of_their_age { format!("{name}{age}") } else { name.to_owned() };
    TYPES.into_iter().map(name).collect()
}
