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

use crate::{EventType, NewEvent, Query, Tag, event::distinct};

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

/// A query as the database functions take it: one clause for each type of each item, as three lists. A clause of
/// an item that is not scoped has no key, and one of an item without types no type.
#[derive(Debug, Default)]
pub(crate) struct Clauses {
    pub(crate) keys: Vec<Option<i64>>,
    pub(crate) types: Vec<Option<String>>,
    pub(crate) tags: Vec<String>,
}

impl Clauses {
    pub(crate) fn of(query: &Query) -> Self {
        let mut clauses = Self::default();
        for item in query.items() {
            let tags = array_literal(item.tags.iter().map(Tag::as_str));
            if item.event_types.is_empty() {
                clauses.push(None, None, tags);
                continue;
            }
            for event_type in &item.event_types {
                let key = item.tags.first().map(|tag| lock_key(event_type, tag));
                clauses.push(key, Some(event_type.to_string()), tags.clone());
            }
        }
        clauses
    }

    fn push(&mut self, key: Option<i64>, event_type: Option<String>, tags: String) {
        self.keys.push(key);
        self.types.push(event_type);
        self.tags.push(tags);
    }
}

/// The locks of an append, each key once: exclusive where it writes, shared where it only looks. An id of the caller's
/// is locked too, so that two appends with one id are made one after the other.
pub(crate) fn locks(clauses: &Clauses, events: &[NewEvent], id: Option<&str>) -> (Vec<i64>, Vec<bool>) {
    let mut locks: BTreeMap<i64, bool> = clauses.keys.iter().flatten().map(|key| (*key, false)).collect();
    locks.extend(events.iter().flat_map(event_keys).map(|key| (key, true)));
    // No type is empty, so no event has the key of an id.
    locks.extend(id.map(|id| (xxh3_64(format!("\0{id}").as_bytes()).cast_signed(), true)));
    locks.into_iter().unzip()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Json, QueryItem};

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
        let clauses = Clauses::of(&query(&["A", "B"], &["x:1", "y:2"]));
        for matching in [event("A", &["y:2", "x:1"]), event("B", &["z:3", "x:1", "y:2"])] {
            assert!(event_keys(&matching).iter().any(|key| clauses.keys.contains(&Some(*key))));
        }
    }

    #[test]
    fn each_key_is_locked_once_in_its_strongest_mode_and_in_order() {
        let clauses = Clauses::of(&query(&["A", "B"], &["x:1"]));
        let (keys, exclusive) = locks(&clauses, &[event("A", &["x:1"]), event("A", &["x:1", "y:2"])], None);
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
    }
}
