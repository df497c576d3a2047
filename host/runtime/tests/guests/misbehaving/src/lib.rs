//! A handler that fails in every way a handler can. The name of the command says how, so that one component
//! serves every test.

mod contract {
    wit_bindgen::generate!({ path: "../../../../../wit", world: "command-handler" });
}

mod clocks;

use std::cell::RefCell;
use std::collections::HashMap;

use contract::exports::weir::handler::handler::{
    Command, Decision, Description, Guest, GuestDecisionModel, QueryItem, Rejection, SequencedEvent,
};
use contract::weir::handler::types::Event;
use serde_json::{Value, json};

/// The commands, each with the one thing it does.
const COMMANDS: &[&str] = &[
    "accept",
    "reject",
    "panic",
    "panic-in-boundary",
    "loop",
    "allocate",
    "exit",
    "bad-type",
    "empty-type",
    "undeclared-type",
    "bad-tag",
    "bad-data",
    "deep-data",
    "huge-answer",
    "many-events",
    "unscoped",
    "unscoped-no-type",
    "widen",
    "widen-forever",
    "widen-by-nothing",
    "clock",
    "stderr",
    "count",
];

struct Misbehaving;

impl Guest for Misbehaving {
    type DecisionModel = Model;

    fn describe() -> Description {
        Description {
            name: "misbehaving".into(),
            commands: COMMANDS.iter().map(ToString::to_string).collect(),
            event_types: ["Noted", "Counted"].map(String::from).to_vec(),
        }
    }

    fn boundary(command: Command) -> Result<Vec<QueryItem>, Rejection> {
        let Ok(data) = serde_json::from_str::<Value>(&command.data) else {
            return Err(rejection("malformed", "The command's data is not JSON"));
        };
        Ok(match command.name.as_str() {
            "panic-in-boundary" => panic!("no boundary today"),
            "unscoped" => vec![item(&["Noted"], &[])],
            "unscoped-no-type" => vec![item(&[], &[&note(&data)])],
            "count" => vec![item(&["Counted"], &[&counted(&data)])],
            _ => vec![item(&["Noted"], &[&note(&data)])],
        })
    }
}

/// How many events of type `Counted` it saw under each tag. An event with the data `{"poison":true}` makes it
/// panic.
#[derive(Default)]
struct Model {
    counted: RefCell<HashMap<String, u64>>,
}

impl GuestDecisionModel for Model {
    fn new() -> Self {
        Model::default()
    }

    fn apply(&self, events: Vec<SequencedEvent>) {
        for SequencedEvent { event, .. } in events {
            assert!(event.data != r#"{"poison":true}"#, "this event is poison");
            if event.event_type == "Counted" {
                for tag in event.tags {
                    *self.counted.borrow_mut().entry(tag).or_default() += 1;
                }
            }
        }
    }

    fn decide(&self, command: Command, widened: Vec<QueryItem>) -> Decision {
        let data: Value = serde_json::from_str(&command.data).expect("`boundary` parsed it");
        let note = note(&data);
        match command.name.as_str() {
            "reject" => Decision::Reject(rejection("refused", "This command is always refused")),
            "panic" => panic!("the decision is to panic"),
            "loop" => loop {
                std::hint::black_box(());
            },
            "allocate" => {
                let mut hoard = Vec::new();
                loop {
                    hoard.push(std::hint::black_box(vec![1_u8; 1 << 20]));
                }
            }
            "exit" => std::process::exit(3),
            "bad-type" => accept("No\nted", &note, json!({})),
            "empty-type" => accept("", &note, json!({})),
            "undeclared-type" => accept("Undeclared", &note, json!({})),
            "bad-tag" => accept("Noted", " tag\u{7}", json!({})),
            "bad-data" => accept_text("Noted", &note, "{not json".into()),
            "deep-data" => accept_text("Noted", &note, "[".repeat(10_000) + &"]".repeat(10_000)),
            "huge-answer" => accept_text("Noted", &note, huge_string()),
            "many-events" => Decision::Accept(vec![event("Noted", &note, "{}".into()); 200_000]),
            "widen" => self.widen_once(&note, &data, &widened),
            "widen-forever" => Decision::Widen(vec![item(&["Noted"], &[&format!("more:{}", widened.len())])]),
            "widen-by-nothing" => Decision::Widen(vec![item(&["Noted"], &[&note])]),
            "clock" => accept("Noted", &note, clocks::reading()),
            "stderr" => {
                for line in 0..10_000 {
                    eprintln!("line {line} of far too much");
                }
                accept("Noted", &note, json!({}))
            }
            "count" => {
                let tag = counted(&data);
                let seen = self.seen(&tag);
                accept("Counted", &tag, json!({ "seen": seen }))
            }
            _ => accept("Noted", &note, data),
        }
    }
}

impl Model {
    fn seen(&self, tag: &str) -> u64 {
        self.counted.borrow().get(tag).copied().unwrap_or(0)
    }

    /// `widen` with `{"note": …, "next": TAG}` wants to see all events `Counted` tagged TAG, be there any or none.
    fn widen_once(&self, note: &str, data: &Value, widened: &[QueryItem]) -> Decision {
        let next = data["next"].as_str().unwrap_or("next");
        match widened {
            [] => Decision::Widen(vec![item(&["Counted"], &[next])]),
            _ => accept("Noted", note, json!({ "seen": self.seen(next) })),
        }
    }
}

fn note(data: &Value) -> String {
    format!("note:{}", data["note"].as_str().unwrap_or("none"))
}

fn counted(data: &Value) -> String {
    data["tag"].as_str().unwrap_or("counted").into()
}

fn item(types: &[&str], tags: &[&str]) -> QueryItem {
    let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
    QueryItem { event_types: owned(types), tags: owned(tags) }
}

fn event(event_type: &str, tag: &str, data: String) -> Event {
    Event { event_type: event_type.into(), tags: vec![tag.into()], data }
}

fn accept(event_type: &str, tag: &str, data: Value) -> Decision {
    accept_text(event_type, tag, data.to_string())
}

fn accept_text(event_type: &str, tag: &str, data: String) -> Decision {
    Decision::Accept(vec![event(event_type, tag, data)])
}

fn rejection(code: &str, message: &str) -> Rejection {
    Rejection { code: code.into(), message: message.into() }
}

/// A JSON string of 24 MiB: it fits the guest's memory, not the answer the host takes.
fn huge_string() -> String {
    const SIZE: usize = 24 << 20;
    let mut text = String::with_capacity(SIZE);
    text.push('"');
    text.extend(std::iter::repeat_n('x', SIZE - 2));
    text.push('"');
    text
}

contract::export!(Misbehaving with_types_in contract);
