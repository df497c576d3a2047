use std::cell::RefCell;
use std::marker::PhantomData;

use crate::contract::{self, Description, Guest, GuestDecisionModel, QueryItem, Rejection, SequencedEvent};
use crate::{Context, Events, Handler, Otherwise, Recorded, events, variant};

/// Makes the crate a component that handles commands, with this [`Handler`].
///
/// Once in a crate, whose type is `cdylib`. Nothing is exported when the target is not WebAssembly, so that
/// `cargo test` can run the handler natively.
#[macro_export]
macro_rules! export {
    ($handler:ty) => {
        const _: () = {
            type Handler = $crate::Component<$handler>;
            // Whatever the target, the compiler says here what the handler lacks.
            const _: fn() -> $crate::contract::Description = <Handler as $crate::contract::Guest>::describe;
            #[cfg(target_family = "wasm")]
            $crate::contract::export_component! { Handler with_types_in $crate::contract }
        };
    };
}

/// The contract as a [`Handler`] fulfils it. [`export!`](crate::export) needs it.
pub struct Component<H>(PhantomData<H>);

/// The contract's decision model.
pub struct Model<H>(RefCell<H>);

impl<H: Handler> Guest for Component<H> {
    type DecisionModel = Model<H>;

    fn describe() -> Description {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Description {
            name: H::NAME.into(),
            commands: owned(variant::names::<H::Command>()),
            event_types: owned(H::Event::types()),
        }
    }

    fn boundary(command: contract::Command) -> Result<Vec<QueryItem>, Rejection> {
        let (command, context) = read::<H>(command, Vec::new())?;
        H::boundary(&command, &context)?.into_items()
    }
}

impl<H: Handler> GuestDecisionModel for Model<H> {
    fn new() -> Self {
        Self(RefCell::default())
    }

    fn apply(&self, events: Vec<SequencedEvent>) {
        let types = H::Event::types();
        let mut model = self.0.borrow_mut();
        for SequencedEvent { position, recorded_at, event } in events {
            if types.contains(&&*event.event_type) {
                let decoded = variant::decode(&event.event_type, &event.data)
                    .unwrap_or_else(|error| unexpected(position, &error));
                model.apply(decoded, &Recorded { at: recorded_at, position });
            }
        }
    }

    fn decide(&self, command: contract::Command, widened: Vec<QueryItem>) -> contract::Decision {
        let decision = read::<H>(command, widened)
            .map_err(Otherwise::Reject)
            .and_then(|(command, context)| self.0.borrow().decide(command, &context));
        match decision {
            Ok(events) => contract::Decision::Accept(events.iter().map(events::to_contract).collect()),
            Err(Otherwise::Reject(rejection)) => contract::Decision::Reject(rejection),
            Err(Otherwise::Widen(query)) => match query.into_items() {
                Ok(items) => contract::Decision::Widen(items),
                Err(rejection) => contract::Decision::Reject(rejection),
            },
        }
    }
}

/// The command as the handler sees it. Another form of data than it declares is refused.
fn read<H: Handler>(
    command: contract::Command,
    widened: Vec<QueryItem>,
) -> Result<(H::Command, Context), Rejection> {
    let contract::Command { id, name, data, received_at, principal } = command;
    match variant::decode(&name, &data) {
        Ok(command) => Ok((command, Context { id, received_at, principal, widened })),
        Err(error) => Err(Rejection::invalid_command(error.to_string())),
    }
}

/// An event in the log has a declared type, but other data than declared: only the handler can mend it.
fn unexpected(position: Option<u64>, error: &serde_json::Error) -> ! {
    let place = position.map_or("not yet numbered".into(), |position| format!("at position {position}"));
    panic!("the event {place} has data that this handler does not expect: {error}");
}
