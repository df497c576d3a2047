//! The contract as wit-bindgen generates it from `weir:handler`, for whoever wants to do without the rest.
#![allow(missing_docs, unreachable_pub)]

wit_bindgen::generate!({
    path: "../wit",
    world: "command-handler",
    additional_derives: [PartialEq],
    pub_export_macro: true,
    export_macro_name: "export_component",
    default_bindings_module: "weir_guest::contract",
});

pub use self::exports::weir::handler::handler::{Description, Guest, GuestDecisionModel};
pub use self::weir::handler::types::{Command, Decision, Event, Json, QueryItem, Rejection, SequencedEvent};
