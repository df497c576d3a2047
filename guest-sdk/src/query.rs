use crate::contract::{QueryItem, Rejection};
use crate::tag::{MAX_BYTES, Tag, flaw};

/// Which events a decision depends on: those that match at least one of the items.
///
/// ```
/// use weir_guest::{Query, tag};
///
/// let boundary = Query::new()
///     .item(["CourseDefined", "StudentSubscribedToCourse"], [tag("course", "c1")])
///     .item(["StudentSubscribedToCourse"], [tag("student", "s7")]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    items: Vec<QueryItem>,
}

impl Query {
    /// A query without items: no event matches it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the events that are of one of these types and carry all of these tags.
    ///
    /// Weir asks for at least one of each, and looks events up by the first tag: name the most selective one
    /// first. An event type is a text, or a value of the type enum that [`events!`](crate::events!) declares.
    #[must_use]
    pub fn item(
        mut self,
        event_types: impl IntoIterator<Item = impl Into<String>>,
        tags: impl IntoIterator<Item = Tag>,
    ) -> Self {
        self.items.push(QueryItem {
            event_types: event_types.into_iter().map(Into::into).collect(),
            tags: tags.into_iter().map(|tag| tag.to_string()).collect(),
        });
        self
    }

    pub(crate) fn items(&self) -> &[QueryItem] {
        &self.items
    }

    /// The items as the contract has them, if the tags are valid: what they are made of comes from a command.
    pub(crate) fn into_items(self) -> Result<Vec<QueryItem>, Rejection> {
        for tag in self.items.iter().flat_map(|item| &item.tags) {
            if let Some(flaw) = flaw(tag, MAX_BYTES) {
                return Err(Rejection::invalid_command(format!("the tag {tag:?} {flaw}")));
            }
        }
        Ok(self.items)
    }
}
