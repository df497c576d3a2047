//! Tests of a handler by examples, without a host: given events, when a command, then events or a rejection.
//!
//! ```
//! use weir_guest::testing::Scenario;
//! # use weir_guest::prelude::*;
//! # events! { enum Event: EventType { SeatSold { seat: u32 } tags [tag("seat", seat)] } }
//! # commands! { enum Command { SellSeat { seat: u32 } } }
//! # #[derive(Default)]
//! # struct Seats(std::collections::BTreeSet<u32>);
//! # impl Handler for Seats {
//! #     const NAME: &'static str = "seats";
//! #     type Command = Command;
//! #     type Event = Event;
//! #     fn boundary(Command::SellSeat { seat }: &Command, _: &Context) -> Result<Query, Rejection> {
//! #         Ok(Query::new().item([EventType::SeatSold], [tag("seat", seat)]))
//! #     }
//! #     fn apply(&mut self, Event::SeatSold { seat }: Event, _: &Recorded) {
//! #         self.0.insert(seat);
//! #     }
//! #     fn decide(&self, Command::SellSeat { seat }: Command, _: &Context) -> Decision<Event> {
//! #         if self.0.contains(&seat) {
//! #             return reject("seat-sold", "The seat is sold");
//! #         }
//! #         Ok(vec![Event::SeatSold { seat }])
//! #     }
//! # }
//!
//! Seats::given([Event::SeatSold { seat: 1 }])
//!     .when(Command::SellSeat { seat: 2 })
//!     .then([Event::SeatSold { seat: 2 }]);
//!
//! Seats::given([Event::SeatSold { seat: 1 }])
//!     .when(Command::SellSeat { seat: 1 })
//!     .then_rejected("seat-sold", "The seat is sold");
//!
//! Seats::given([])
//!     .when_sent("sellSeat", r#"{"seat": "1A"}"#)
//!     .then_rejected(
//!         "invalid-command",
//!         r#"sellSeat.seat: invalid type: string "1A", expected u32 at line 1 column 13"#,
//!     );
//! ```
//!
//! Command and events go through the same code as in a host, JSON included, and the decision model is shown
//! only the given events that match the boundary. The decision is then made once more with all the given
//! events, because a host may show more than the boundary, and must be the same. So a boundary
//! that misses an event fails the test, and so does a model that counts what does not concern it.

use std::marker::PhantomData;

use serde::Serialize;

use crate::contract::{
    self, Command, Decision, Guest, GuestDecisionModel, QueryItem, Rejection, SequencedEvent,
};
use crate::tag::{MAX_BYTES, flaw};
use crate::{Component, Events, Handler, Model, events, variant};

/// How often a host lets a handler widen the boundary of one command.
const MAX_WIDENINGS: usize = 4;

/// The events to append, or why not.
type Answer = Result<Vec<contract::Event>, Rejection>;

/// Gives every [`Handler`] its tests.
pub trait Scenario: Handler {
    /// The log holds these events, in this order, recorded at time 0.
    fn given(events: impl IntoIterator<Item = Self::Event>) -> Given<Self> {
        Given { log: Vec::new(), now: 0, principal: None, handler: PhantomData }.and(events)
    }
}

impl<H: Handler> Scenario for H {}

/// What is so before the command.
#[derive(Debug)]
pub struct Given<H> {
    log: Vec<SequencedEvent>,
    now: u64,
    principal: Option<String>,
    handler: PhantomData<H>,
}

impl<H: Handler> Given<H> {
    /// What follows, events or the command, happens at this time: milliseconds since 1970-01-01T00:00Z.
    #[must_use]
    pub fn at(mut self, now: u64) -> Self {
        self.now = now;
        self
    }

    /// The log holds these events too, after the others.
    #[must_use]
    pub fn and(mut self, events: impl IntoIterator<Item = H::Event>) -> Self {
        for event in events {
            let position = Some(self.log.len() as u64 + 1);
            let event = events::to_contract(&event);
            self.log.push(SequencedEvent { position, recorded_at: self.now, event });
        }
        self
    }

    /// The command is sent by this principal. It has none otherwise.
    #[must_use]
    pub fn by(mut self, principal: &str) -> Self {
        self.principal = Some(principal.into());
        self
    }

    /// The command is sent.
    ///
    /// # Panics
    ///
    /// If the handler breaks the contract: an unscoped query item, an event with an invalid tag, a decision
    /// that changes when more than the boundary is shown, or a boundary that never stops to widen.
    #[track_caller]
    pub fn when(self, command: H::Command) -> When<H>
    where
        H::Command: Serialize,
    {
        let (name, data) = variant::encode(&command).expect("a command can be written as JSON");
        self.when_sent(&name, &data)
    }

    /// The command of this name is sent with these data: JSON, not always of the form the handler declares.
    ///
    /// # Panics
    ///
    /// As [`when`](Self::when).
    #[track_caller]
    pub fn when_sent(self, name: &str, data: &str) -> When<H> {
        let command = Command {
            id: "test".into(),
            name: name.into(),
            data: data.into(),
            received_at: self.now,
            principal: self.principal.clone(),
        };
        let answer = self.answer(&command);
        When { answer, handler: PhantomData }
    }

    #[track_caller]
    fn answer(&self, command: &Command) -> Answer {
        let mut boundary = Component::<H>::boundary(command.clone())?;
        let mut widened = Vec::new();
        for _ in 0..=MAX_WIDENINGS {
            assert_scoped(&boundary);
            let matching = self.log.iter().filter(|event| matches(&boundary, event)).cloned().collect();
            let answer = match decide::<H>(matching, command, &widened) {
                Decision::Widen(items) => {
                    let new = items.iter().any(|item| !boundary.contains(item));
                    assert!(new, "the handler widened its boundary by nothing new: {items:#?}");
                    widened.extend_from_slice(&items);
                    boundary.extend(items);
                    continue;
                }
                Decision::Accept(events) => Ok(events),
                Decision::Reject(rejection) => Err(rejection),
            };
            self.assert_indifferent(command, &widened, &answer);
            assert_declared::<H>(&answer);
            return answer;
        }
        panic!("the handler widened its boundary more than {MAX_WIDENINGS} times: {boundary:#?}");
    }

    /// A host may show events of another boundary, too.
    #[track_caller]
    fn assert_indifferent(&self, command: &Command, widened: &[QueryItem], answer: &Answer) {
        let with_all = match decide::<H>(self.log.clone(), command, widened) {
            Decision::Accept(events) => lines(&Ok(events)),
            Decision::Reject(rejection) => lines(&Err(rejection)),
            Decision::Widen(items) => vec![format!("wants to see {items:?} too")],
        };
        assert_same(
            "the decision depends on events outside its boundary",
            ("with all the events", &with_all),
            ("within the boundary", &lines(answer)),
        );
    }
}

/// What came of the command.
#[derive(Debug)]
#[must_use = "nothing is asserted without `then` or `then_rejected`"]
pub struct When<H> {
    answer: Answer,
    handler: PhantomData<H>,
}

impl<H: Handler> When<H> {
    /// These events were appended, and no others.
    ///
    /// # Panics
    ///
    /// If it is not so.
    #[track_caller]
    pub fn then(self, events: impl IntoIterator<Item = H::Event>) {
        self.assert(&Ok(events.into_iter().map(|event| events::to_contract(&event)).collect()));
    }

    /// The command was refused, with this code and message.
    ///
    /// # Panics
    ///
    /// If it is not so.
    #[track_caller]
    pub fn then_rejected(self, code: &str, message: &str) {
        self.assert(&Err(Rejection::new(code, message)));
    }

    #[track_caller]
    fn assert(self, expected: &Answer) {
        let (expected, actual) = (lines(expected), lines(&self.answer));
        assert_same("the answer is another", ("expected", &expected), ("answered", &actual));
    }
}

fn decide<H: Handler>(events: Vec<SequencedEvent>, command: &Command, widened: &[QueryItem]) -> Decision {
    let model = Model::<H>::new();
    model.apply(events);
    model.decide(command.clone(), widened.to_vec())
}

fn matches(boundary: &[QueryItem], SequencedEvent { event, .. }: &SequencedEvent) -> bool {
    boundary.iter().any(|item| {
        item.event_types.contains(&event.event_type) && item.tags.iter().all(|tag| event.tags.contains(tag))
    })
}

#[track_caller]
fn assert_scoped(boundary: &[QueryItem]) {
    for item in boundary {
        let scoped = !item.event_types.is_empty() && !item.tags.is_empty();
        assert!(scoped, "a query item has at least one event type and one tag, this one has not: {item:?}");
    }
}

#[track_caller]
fn assert_declared<H: Handler>(answer: &Answer) {
    for event in answer.iter().flatten() {
        let event_type = &*event.event_type;
        assert!(H::Event::types().contains(&event_type), "the event type {event_type} is not declared");
        for tag in &event.tags {
            if let Some(flaw) = flaw(tag, MAX_BYTES) {
                panic!("the tag {tag:?} of the event {event_type} {flaw}");
            }
        }
    }
}

/// The answer as a person reads it, an event a line.
fn lines(answer: &Answer) -> Vec<String> {
    match answer {
        Ok(events) if events.is_empty() => vec!["no events".into()],
        Ok(events) => events
            .iter()
            .map(|contract::Event { event_type, tags, data }| {
                format!("{event_type} {data} [{}]", tags.join(", "))
            })
            .collect(),
        Err(Rejection { code, message }) => vec![format!("rejected as {code}: {message}")],
    }
}

#[track_caller]
fn assert_same(what: &str, (left, minus): (&str, &[String]), (right, plus): (&str, &[String])) {
    if minus == plus {
        return;
    }
    let mut diff = format!("{what}\n- {left}\n+ {right}\n");
    for line in 0..minus.len().max(plus.len()) {
        match (minus.get(line), plus.get(line)) {
            (Some(minus), Some(plus)) if minus == plus => diff += &format!("\n  {minus}"),
            (minus, plus) => {
                diff.extend(minus.map(|minus| format!("\n- {minus}")));
                diff.extend(plus.map(|plus| format!("\n+ {plus}")));
            }
        }
    }
    panic!("{diff}\n");
}
