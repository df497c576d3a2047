//! A handler that opens a connection. Its component imports `wasi:sockets`, so no host loads it.

mod contract {
    wit_bindgen::generate!({ path: "../../../../../wit", world: "command-handler" });
}

use std::net::TcpStream;

use contract::exports::weir::handler::handler::{
    Command, Decision, Description, Guest, GuestDecisionModel, QueryItem, Rejection, SequencedEvent,
};

struct Sockets;

impl Guest for Sockets {
    type DecisionModel = Model;

    fn describe() -> Description {
        Description { name: "sockets".into(), commands: vec!["connect".into()], event_types: vec![] }
    }

    fn boundary(_: Command) -> Result<Vec<QueryItem>, Rejection> {
        Ok(vec![])
    }
}

struct Model;

impl GuestDecisionModel for Model {
    fn new() -> Self {
        Model
    }

    fn apply(&self, _: Vec<SequencedEvent>) {}

    fn decide(&self, command: Command, _: Vec<QueryItem>) -> Decision {
        match TcpStream::connect(command.data) {
            Ok(_) => Decision::Accept(vec![]),
            Err(error) => {
                Decision::Reject(Rejection { code: "no-connection".into(), message: error.to_string() })
            }
        }
    }
}

contract::export!(Sockets with_types_in contract);
