//! A handler as its host sees it: through the contract, in texts.

use weir_guest::contract::{self, Guest, GuestDecisionModel, SequencedEvent};
use weir_guest::prelude::*;
use weir_guest::{Component, Model};

commands! {
    enum Command {
        OpenDoor { door_id: Id },
        #[serde(rename = "shut")]
        CloseDoor { door_id: Id, #[serde(default)] gently: bool },
    }
}

events! {
    enum Event: EventType {
        DoorOpened { door_id: Id } tags [tag("door", door_id)],
        #[serde(rename = "DoorShut")]
        DoorClosed { door_id: Id, gently: bool } tags [tag("door", door_id)],
    }
}

/// Remembers the last that happened to any door.
#[derive(Default)]
struct Doors(Option<(Event, Recorded)>);

export!(Doors);

impl Handler for Doors {
    const NAME: &'static str = "doors";
    type Command = Command;
    type Event = Event;

    fn boundary(command: &Command, _: &Context) -> Result<Query, Rejection> {
        let (Command::OpenDoor { door_id } | Command::CloseDoor { door_id, .. }) = command;
        Ok(Query::new().item([EventType::DoorOpened, EventType::DoorClosed], [tag("door", door_id)]))
    }

    fn apply(&mut self, event: Event, recorded: &Recorded) {
        self.0 = Some((event, recorded.clone()));
    }

    fn decide(&self, command: Command, context: &Context) -> Decision<Event> {
        match command {
            Command::OpenDoor { .. } => reject("last", format!("{:?} {context:?}", self.0)),
            Command::CloseDoor { door_id, gently } => Ok(vec![Event::DoorClosed { door_id, gently }]),
        }
    }
}

fn command(name: &str, data: &str) -> contract::Command {
    contract::Command {
        id: "7".into(),
        name: name.into(),
        data: data.into(),
        received_at: 9,
        principal: None,
    }
}

fn event(position: Option<u64>, event_type: &str, data: &str) -> SequencedEvent {
    let event = contract::Event { event_type: event_type.into(), tags: vec![], data: data.into() };
    SequencedEvent { position, recorded_at: 5, event }
}

#[test]
fn it_describes_itself() {
    let description = Component::<Doors>::describe();
    assert_eq!(description.name, "doors");
    assert_eq!(description.commands, ["openDoor", "shut"]);
    assert_eq!(description.event_types, ["DoorOpened", "DoorShut"]);
}

#[test]
fn its_boundary_is_in_the_words_of_the_wire() {
    let items = Component::<Doors>::boundary(command("shut", r#"{"doorId":"d"}"#)).unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].event_types, ["DoorOpened", "DoorShut"]);
    assert_eq!(items[0].tags, ["door:d"]);
}

#[test]
fn it_writes_events_as_they_are_declared() {
    let decision = Model::<Doors>::new().decide(command("shut", r#"{"doorId":"d"}"#), vec![]);
    let closed = contract::Event {
        event_type: "DoorShut".into(),
        tags: vec!["door:d".into()],
        data: r#"{"doorId":"d","gently":false}"#.into(),
    };
    assert_eq!(decision, contract::Decision::Accept(vec![closed]));
}

#[test]
fn it_ignores_events_and_fields_that_it_does_not_know() {
    let model = Model::<Doors>::new();
    model.apply(vec![
        event(None, "DoorOpened", r#"{"doorId":"d","by":"ada"}"#),
        event(Some(2), "DoorPainted", "[]"),
    ]);
    let contract::Decision::Reject(last) = model.decide(command("openDoor", r#"{"doorId":"d"}"#), vec![])
    else {
        panic!("it always refuses to open")
    };
    assert_eq!(
        last.message,
        r#"Some((DoorOpened { door_id: Id("d") }, Recorded { at: 5, position: None })) Context { id: "7", received_at: 9, principal: None, widened: [] }"#
    );
}

#[test]
#[should_panic = "the event at position 3 has data that this handler does not expect: \
                  DoorOpened.doorId: must not be empty at line 1 column 13"]
fn it_fails_at_an_event_that_is_not_what_it_declares() {
    Model::<Doors>::new().apply(vec![event(Some(3), "DoorOpened", r#"{"doorId":""}"#)]);
}

#[test]
fn it_refuses_what_is_malformed_at_every_step() {
    let malformed = || command("openDoor", r#"{"doorId":"d","door":1}"#);
    let message = "openDoor.door: unknown field `door`, expected `doorId` at line 1 column 20";
    let rejection = Rejection::new("invalid-command", message);
    assert_eq!(Component::<Doors>::boundary(malformed()), Err(rejection.clone()));
    assert_eq!(Model::<Doors>::new().decide(malformed(), vec![]), contract::Decision::Reject(rejection));
}
