//! Lock keys: the 64-bit numbers under which events are locked and looked up.
//!
//! The key of a type and a tag is a hash of both. An event has one key for each of its tags. A query item
//! looks under the key of one of its tags, for each of its types: an event that matches carries that tag,
//! so whoever writes it locks that key too. A collision makes two boundaries wait for each other, or shows
//! the check an event that is none of its business; it never hides one, because the check compares the real
//! types and tags.
//!
//! Keys are stored with the events, so the function may never change: XXH3 (64 bit, seed 0) over the type, a
//! zero byte (no name holds one) and the tag.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

use crate::{EventType, NewEvent, Query, QueryItem, Tag, event::distinct};

pub(crate) fn lock_key(event_type: &EventType, tag: &Tag) -> i64 {
    let mut bytes = Vec::with_capacity(event_type.as_str().len() + 1 + tag.as_str().len());
    bytes.extend_from_slice(event_type.as_str().as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(tag.as_str().as_bytes());
    xxh3_64(&bytes).cast_signed()
}

/// The keys that an event is found by. Distinct: two tags whose keys collide make one row.
pub(crate) fn event_keys(event: &NewEvent) -> Vec<i64> {
    distinct(event.tags().iter().map(|tag| lock_key(event.event_type(), tag)).collect())
}

/// A part of a query that asks for one type, or for any, and for all of some tags. A query is the union of its clauses: one
/// for each type of each item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Clause {
    /// The key of the type with each of the tags. The clause is locked by the first, and found under any. None for an item
    /// that is not scoped.
    pub(crate) keys: Vec<i64>,
    /// None: any.
    pub(crate) event_type: Option<EventType>,
    pub(crate) tags: Vec<Tag>,
}

impl Clause {
    pub(crate) fn matches(&self, event: &NewEvent) -> bool {
        self.event_type.as_ref().is_none_or(|event_type| event_type == event.event_type())
            && self.tags.iter().all(|tag| event.tags().contains(tag))
    }
}

pub(crate) fn clauses(query: &Query) -> Vec<Clause> {
    let mut clauses = Vec::new();
    for QueryItem { event_types, tags } in query.items() {
        if event_types.is_empty() {
            clauses.push(Clause { keys: Vec::new(), event_type: None, tags: tags.clone() });
        }
        for event_type in event_types {
            let keys = keys(event_type, tags);
            clauses.push(Clause { keys, event_type: Some(event_type.clone()), tags: tags.clone() });
        }
    }
    clauses
}

/// The keys of a type with each of these tags.
pub(crate) fn keys(event_type: &EventType, tags: &[Tag]) -> Vec<i64> {
    tags.iter().map(|tag| lock_key(event_type, tag)).collect()
}

/// Tells a query from others, for the token of its read.
pub(crate) fn fingerprint(clauses: &[Clause]) -> u64 {
    let mut text = String::new();
    for clause in clauses {
        text.push_str(clause.event_type.as_ref().map_or("", EventType::as_str));
        for tag in &clause.tags {
            text.push('\0');
            text.push_str(tag.as_str());
        }
        text.push('\n');
    }
    xxh3_64(text.as_bytes())
}

/// Clauses as the database functions take them: three lists, of which the first and the last are lists of lists, which
/// travel as array literals.
#[derive(Debug, Default)]
pub(crate) struct ClauseLists {
    pub(crate) keys: Vec<String>,
    pub(crate) types: Vec<Option<String>>,
    pub(crate) tags: Vec<String>,
}

impl ClauseLists {
    pub(crate) fn of<'a>(clauses: impl IntoIterator<Item = &'a Clause>) -> Self {
        let mut lists = Self::default();
        for clause in clauses {
            lists.keys.push(number_literal(&clause.keys));
            lists.types.push(clause.event_type.as_ref().map(ToString::to_string));
            lists.tags.push(array_literal(clause.tags.iter().map(Tag::as_str)));
        }
        lists
    }
}

/// The locks of an append, each key once: exclusive where it writes, shared where it only looks. An id of the caller's
/// is locked too, so that two appends with one id are made one after the other.
#[derive(Debug, Default)]
pub(crate) struct Locks(BTreeMap<i64, bool>);

impl Locks {
    pub(crate) fn add(&mut self, clauses: &[Clause], events: &[NewEvent], id: Option<&str>) {
        for key in clauses.iter().filter_map(|clause| clause.keys.first()) {
            self.0.entry(*key).or_insert(false);
        }
        self.0.extend(events.iter().flat_map(event_keys).map(|key| (key, true)));
        // No type is empty, so no event has the key of an id.
        self.0.extend(id.map(|id| (xxh3_64(format!("\0{id}").as_bytes()).cast_signed(), true)));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The keys, ascending, and whether each is locked exclusively.
    pub(crate) fn lists(self) -> (Vec<i64>, Vec<bool>) {
        self.0.into_iter().unzip()
    }
}

/// A Postgres array literal. Lists of lists of different lengths travel as lists of these.
pub(crate) fn array_literal<'a>(values: impl Iterator<Item = &'a str>) -> String {
    let mut literal = String::from("{");
    for value in values {
        if literal.len() > 1 {
            literal.push(',');
        }
        literal.push('"');
        for c in value.chars() {
            if matches!(c, '"' | '\\') {
                literal.push('\\');
            }
            literal.push(c);
        }
        literal.push('"');
    }
    literal.push('}');
    literal
}

/// The same for numbers.
pub(crate) fn number_literal<T: ToString>(numbers: &[T]) -> String {
    let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
    format!("{{{}}}", numbers.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Json;

    fn event(event_type: &str, tags: &[&str]) -> NewEvent {
        let tags = tags.iter().map(|t| t.parse().unwrap()).collect();
        NewEvent::new(event_type.parse().unwrap(), tags, Json::try_from("{}".to_owned()).unwrap()).unwrap()
    }

    fn query(types: &[&str], tags: &[&str]) -> Query {
        Query::new(vec![QueryItem {
            event_types: types.iter().map(|t| t.parse().unwrap()).collect(),
            tags: tags.iter().map(|t| t.parse().unwrap()).collect(),
        }])
        .unwrap()
    }

    #[test]
    fn keys_are_stored_so_they_never_change() {
        let key = |t: &str, tag: &str| lock_key(&t.parse().unwrap(), &tag.parse().unwrap());
        assert_eq!(key("CourseDefined", "course:c1"), 8_784_560_462_993_630_052);
        assert_ne!(key("ab", "c"), key("a", "bc"));
    }

    #[test]
    fn whoever_writes_a_matching_event_locks_a_key_of_the_condition() {
        let clauses = clauses(&query(&["A", "B"], &["x:1", "y:2"]));
        for matching in [event("A", &["y:2", "x:1"]), event("B", &["z:3", "x:1", "y:2"])] {
            let clause =
                clauses.iter().find(|c| c.event_type.as_ref() == Some(matching.event_type())).unwrap();
            assert!(clause.keys.iter().all(|key| event_keys(&matching).contains(key)));
        }
    }

    #[test]
    fn each_key_is_locked_once_in_its_strongest_mode_and_in_order() {
        let mut locks = Locks::default();
        let written = [event("A", &["x:1"]), event("A", &["x:1", "y:2"])];
        locks.add(&clauses(&query(&["A", "B"], &["x:1"])), &written, None);
        let (keys, exclusive) = locks.lists();
        assert!(keys.is_sorted());
        assert_eq!(keys.len(), 3, "A|x:1 and A|y:2 written, B|x:1 only looked at");
        for (key, exclusive) in keys.iter().zip(exclusive) {
            let only_read = *key == lock_key(&"B".parse().unwrap(), &"x:1".parse().unwrap());
            assert_eq!(exclusive, !only_read);
        }
    }

    #[test]
    fn array_literals_quote_what_postgres_would_read_otherwise() {
        assert_eq!(array_literal([r#"a"b\c"#, "NULL", "{x,y}"].into_iter()), r#"{"a\"b\\c","NULL","{x,y}"}"#);
        assert_eq!(array_literal(std::iter::empty()), "{}");
        assert_eq!(number_literal(&[1, -2]), "{1,-2}");
    }
}
