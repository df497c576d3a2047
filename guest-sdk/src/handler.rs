use serde::de::DeserializeOwned;

use crate::contract::{QueryItem, Rejection};
use crate::{Events, Query};

/// A handler of commands. The type is its own decision model: what a decision needs to know, built from
/// events alone.
///
/// The model is made before its command is known, and may be kept for the next one of the same boundary.
/// It therefore holds what the events say of every course, student and so on that they name, and ignores
/// what does not concern it. Prefer a `BTreeMap` to a `HashMap`, whose order is not that of every run.
pub trait Handler: Default + 'static {
    /// The handler's name: 1 to 100 bytes of `a-z`, `0-9` and `-`. Versions of one handler share it.
    const NAME: &'static str;

    /// The commands it handles, as [`commands!`](crate::commands!) declares them.
    type Command: DeserializeOwned;

    /// The events it reads and writes, as [`events!`](crate::events!) declares them.
    type Event: Events;

    /// The events that the decision on this command depends on.
    ///
    /// # Errors
    ///
    /// A command that can be refused without looking at any event is refused here.
    fn boundary(command: &Self::Command, context: &Context) -> Result<Query, Rejection>;

    /// Takes in an event. Older ones come first.
    fn apply(&mut self, event: Self::Event, recorded: &Recorded);

    /// Decides by what the events say. Must have no memory of its own: it may be called twice, or on
    /// another instance that has seen the same events.
    ///
    /// # Errors
    ///
    /// `Err` refuses the command or, rarely, asks for more events.
    fn decide(&self, command: Self::Command, context: &Context) -> Decision<Self::Event>;
}

/// What is known of a command besides its data.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    /// Unique for each command. The seed of whatever must be unique or look random.
    pub id: String,
    /// When the host accepted the command, in milliseconds since 1970-01-01T00:00Z: the only clock there is.
    pub received_at: u64,
    /// Who sent it, where the host knows.
    pub principal: Option<String>,
    /// What decisions on this very command have asked for so far; see [`has_widened_by`](Self::has_widened_by).
    pub widened: Vec<QueryItem>,
}

impl Context {
    /// Whether a decision on this command has asked for all of `query` already. Its events have been shown
    /// then, be it that there are none.
    pub fn has_widened_by(&self, query: &Query) -> bool {
        query.items().iter().all(|item| self.widened.contains(item))
    }
}

/// When and where an event was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Milliseconds since 1970-01-01T00:00Z, by the database's clock.
    pub at: u64,
    /// The event's place in the log, counted from 1. `None` while it is accepted but not yet numbered.
    pub position: Option<u64>,
}

/// The events to append, in this order, all or none (an empty list succeeds and records nothing).
pub type Decision<E> = Result<Vec<E>, Otherwise>;

/// Why no events can be appended.
#[derive(Clone, Debug, PartialEq)]
pub enum Otherwise {
    /// The domain says no. `?` on a `Result<_, Rejection>` gives this one.
    Reject(Rejection),
    /// The events shown are not enough to decide: the host adds these to the boundary and asks again, four
    /// times at most. The whole boundary guards the append. That no event was shown says nothing by itself,
    /// for there may be none: [`Context::has_widened_by`] tells whether it was asked for.
    Widen(Query),
}

/// Refuses: `return reject("course-full", format!(…))`.
///
/// The code is for programs, short and stable, in kebab-case by custom. The message is for people.
///
/// # Errors
///
/// Always.
pub fn reject<T, E: From<Rejection>>(code: &str, message: impl Into<String>) -> Result<T, E> {
    Err(Rejection::new(code, message).into())
}

/// Asks for more events:
///
/// ```
/// # use weir_guest::prelude::*;
/// # events! { enum Event: EventType { MoneyTransferred { group: String } tags [tag("group", group)] } }
/// # fn decide(group: &str, context: &Context) -> Decision<Event> {
/// let of_group = Query::new().item([EventType::MoneyTransferred], [tag("group", group)]);
/// if !context.has_widened_by(&of_group) {
///     return widen(of_group);
/// }
/// // From here on the model has seen every transfer of the group.
/// # Ok(vec![])
/// # }
/// ```
///
/// # Errors
///
/// Always.
pub fn widen<T>(query: Query) -> Result<T, Otherwise> {
    Err(Otherwise::Widen(query))
}

impl From<Rejection> for Otherwise {
    fn from(rejection: Rejection) -> Self {
        Self::Reject(rejection)
    }
}

impl Rejection {
    /// A refusal with a code for programs, and a message for people.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }

    /// The refusal of a command that is malformed.
    pub(crate) fn invalid_command(message: String) -> Self {
        Self { code: "invalid-command".into(), message }
    }
}
