//! The host's side of the contract in `wit/`, generated.

// The generated code is not ours to polish. Its public types take their documentation from the contract.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
mod generated {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "command-handler",
        additional_derives: [PartialEq, Eq],
    });
}

pub(crate) use generated::exports::weir::handler::handler::Description;
pub use generated::weir::handler::types::{Command, Decision, Event, QueryItem, Rejection, SequencedEvent};
pub(crate) use generated::{CommandHandler, CommandHandlerPre};

/// The interface a component exports to be a handler.
pub(crate) const HANDLER: &str = "weir:handler/handler";

/// The version of [`HANDLER`] that this host was built against. It accepts any patch of it: within 0.1, what
/// an interface has is never changed.
pub(crate) const HANDLER_VERSION: &str = "0.1.0";
