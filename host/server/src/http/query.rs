//! Queries and conditions in the bodies of requests.

use serde::Deserialize;
use weir_store::{EventType, Query, QueryItem, ReadToken, Tag};

/// `{"items":[{"types":["A"],"tags":["x:1"]}]}`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueryBody {
    items: Vec<ItemBody>,
}

/// An event matches it if it has one of the types and all of the tags. What is left out leaves nothing out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemBody {
    #[serde(default)]
    types: Vec<String>,
    #[serde(default)]
    tags: Vec<String>,
}

/// Fail if an event matches the query that the read behind the token did not see.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConditionBody {
    query: QueryBody,
    token: Option<String>,
    /// A position, in place of a token; neither stands for a read that saw nothing.
    after: Option<u64>,
}

impl QueryBody {
    /// The query; the error says what is wrong with it.
    pub(super) fn parse(&self) -> Result<Query, String> {
        if self.items.is_empty() {
            return Err("the query names no item, so no event matches it; leave the query out to read \
                        every event, or the condition to append in any case"
                .to_owned());
        }
        let items = self.items.iter().enumerate().map(|(at, item)| {
            let types: Result<_, _> = item.types.iter().map(|name| event_type(name)).collect();
            let item = types.and_then(|event_types| Ok(QueryItem { event_types, tags: tags(&item.tags)? }));
            item.map_err(|error| format!("query item {at}: {error}"))
        });
        Query::new(items.collect::<Result<_, _>>()?)
            .map_err(|error| format!("the query can't be used: {error}"))
    }
}

impl ConditionBody {
    /// Query and token; the error says what is wrong with them.
    pub(super) fn parse(&self) -> Result<(Query, ReadToken), String> {
        let token = match (&self.token, self.after) {
            (Some(_), Some(_)) => {
                return Err("the condition has a token and a position: give one of them".to_owned());
            }
            (Some(text), None) => {
                text.parse().map_err(|error| format!("the token can't be used: {error}"))?
            }
            (None, Some(position)) => ReadToken::at(position),
            (None, None) => ReadToken::nothing_seen(),
        };
        Ok((self.query.parse()?, token))
    }
}

pub(super) fn event_type(name: &str) -> Result<EventType, String> {
    name.parse().map_err(|error| format!("the type {name:?} can't be one: {error}"))
}

pub(super) fn tags(names: &[String]) -> Result<Vec<Tag>, String> {
    let tag = |name: &String| name.parse().map_err(|error| format!("the tag {name:?} can't be one: {error}"));
    names.iter().map(tag).collect()
}
