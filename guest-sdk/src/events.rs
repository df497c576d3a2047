use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::contract;
use crate::tag::Tag;
use crate::variant;

/// The events of a handler: an enum with a variant for each type. [`events!`](crate::events!) implements it.
pub trait Events: Serialize + DeserializeOwned {
    /// The event types, in the order of the variants.
    fn types() -> &'static [&'static str] {
        variant::names::<Self>()
    }

    /// What the event happened to.
    fn tags(&self) -> Vec<Tag>;
}

/// The event as the contract has it.
///
/// # Panics
///
/// If it can't be written as JSON, as a map whose keys are no texts.
pub(crate) fn to_contract(event: &impl Events) -> contract::Event {
    match variant::encode(event) {
        Ok((event_type, data)) => {
            let tags = event.tags().iter().map(ToString::to_string).collect();
            contract::Event { event_type, tags, data }
        }
        Err(error) => panic!("an event can't be written as JSON: {error}"),
    }
}

/// Declares the events that a handler reads and writes.
///
/// A variant's name is the event type, its fields in camelCase are the event's data, and the expression after
/// `tags` gives its tags from the fields: an array or whatever else can be iterated. The name after
/// the colon becomes an enum of the types alone, for [`Query::item`](crate::Query::item).
///
/// ```
/// use weir_guest::{Id, Query, events, tag};
///
/// events! {
///     pub enum Event: EventType {
///         CourseDefined { course_id: Id, capacity: u32 } tags [tag("course", course_id)],
///         CoursesMerged { course_ids: Vec<Id> } tags course_ids.iter().map(|id| tag("course", id)),
///     }
/// }
///
/// let boundary = Query::new().item([EventType::CourseDefined], [tag("course", "c1")]);
/// ```
///
/// Attributes of serde can be given to variants and fields: `#[serde(default)]` on a field that older
/// events lack, `#[serde(rename = "…")]` on a variant whose name in the log is another. Fields that the
/// enum does not know are ignored, so that an event may gain some.
#[macro_export]
macro_rules! events {
    (
        $(#[$meta:meta])*
        $vis:vis enum $events:ident : $types:ident {
            $(
                $(#[$variant_meta:meta])*
                $variant:ident { $( $(#[$field_meta:meta])* $field:ident : $type:ty ),* $(,)? }
                tags $tags:expr
            ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Debug, PartialEq, $crate::serde::Serialize, $crate::serde::Deserialize,
        )]
        #[serde(crate = "weir_guest::serde", rename_all_fields = "camelCase")]
        #[allow(clippy::enum_variant_names, reason = "events of one thing are often named after it")]
        $vis enum $events {
            $( $(#[$variant_meta])* $variant { $( $(#[$field_meta])* $field: $type ),* } ),+
        }

        impl $crate::Events for $events {
            fn tags(&self) -> ::std::vec::Vec<$crate::Tag> {
                #[allow(unused_variables, reason = "not every field makes a tag")]
                match self {
                    $( Self::$variant { $($field),* } => {
                        ::std::iter::IntoIterator::into_iter($tags).collect()
                    } ),+
                }
            }
        }

        #[doc = ::std::concat!("The types of [`", ::std::stringify!($events), "`].")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(dead_code, missing_docs, clippy::enum_variant_names, reason = "they are those of the events")]
        $vis enum $types {
            $($variant),+
        }

        impl ::std::convert::From<$types> for ::std::string::String {
            fn from(event_type: $types) -> Self {
                <$events as $crate::Events>::types()[event_type as usize].into()
            }
        }
    };
}
