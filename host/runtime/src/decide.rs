//! One attempt at one command, or at several after each other.

use std::fmt;

use wasmtime::component::ResourceAny;

use crate::bindings::{Command, CommandHandler, Decision, Event, QueryItem, Rejection, SequencedEvent};
use crate::failure::{Answer, Call, Failure, FailureKind};
use crate::handler::Handler;
use crate::instance::Instance;

/// A chunk of history ends at this many events …
const CHUNK_EVENTS: usize = 1_000;
/// … or after the event that takes it past this many bytes. The guest holds a whole chunk in its memory.
const CHUNK_BYTES: usize = 1 << 20;

/// One attempt at one command, in an instance of its own: [`boundary`](Self::boundary), then
/// [`apply`](Self::apply) with the events that match it, then [`decide`](Self::decide).
///
/// The model can serve other commands of the same boundary: [`turn_to`](Self::turn_to) the next one, `apply` what has come
/// since, and `decide`. A handler can't tell, because what builds the model sees nothing of a command, and `decide` leaves
/// the model as it is.
///
/// If the answer is to widen, `apply` the events that the items add and `decide` again. Once a call has failed,
/// every later one gives the same failure.
pub struct Deciding {
    handler: Handler,
    command: Command,
    instance: Instance,
    bindings: CommandHandler,
    /// Made when it is first needed: a command that is refused in `boundary` needs none.
    model: Option<ResourceAny>,
}

impl Deciding {
    pub(crate) fn new(
        handler: Handler,
        command: Command,
        instance: Instance,
        bindings: CommandHandler,
    ) -> Self {
        Deciding { handler, command, instance, bindings, model: None }
    }

    /// The handler that decides.
    pub fn handler(&self) -> &Handler {
        &self.handler
    }

    /// The events that the decision depends on, or the refusal of a command that needs none to be refused.
    /// The items are as the guest gave them: whether they are scoped and well-formed is for the caller to see.
    ///
    /// # Errors
    ///
    /// The guest failed.
    pub fn boundary(&mut self) -> Result<Result<Vec<QueryItem>, Rejection>, Failure> {
        let (guest, command) = (self.bindings.weir_handler_handler(), &self.command);
        self.instance.call(Call::Boundary, |store| guest.call_boundary(store, command))
    }

    /// Turns to another command. The model stays as it is.
    pub fn turn_to(&mut self, command: &Command) {
        self.command = command.clone();
        self.instance.turn_to(command);
    }

    /// Bytes of memory that the instance holds.
    pub fn memory_bytes(&self) -> usize {
        self.instance.memory_bytes()
    }

    /// Shows the model more of the history, oldest first, in calls of bounded size. A deadline counts for
    /// each call.
    ///
    /// # Errors
    ///
    /// The guest failed.
    pub fn apply(&mut self, events: &[SequencedEvent]) -> Result<(), Failure> {
        let mut rest = events;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(chunk_length(rest));
            let model = self.model()?;
            let decision_model = self.bindings.weir_handler_handler().decision_model();
            self.instance.call(Call::Apply, |store| decision_model.call_apply(store, model, chunk))?;
            rest = after;
        }
        Ok(())
    }

    /// Asks for the decision. `widened` are the items of earlier answers to widen. The events of an `accept` have types that the handler said it writes; all else
    /// about them is for the caller to check.
    ///
    /// # Errors
    ///
    /// The guest failed, or accepted with an event of an undeclared type.
    pub fn decide(&mut self, widened: &[QueryItem]) -> Result<Decision, Failure> {
        let model = self.model()?;
        let (guest, command) = (self.bindings.weir_handler_handler(), &self.command);
        let decision = self
            .instance
            .call(Call::Decide, |store| guest.decision_model().call_decide(store, model, command, widened))?;
        match undeclared_type(&self.handler, &decision) {
            None => Ok(decision),
            Some(reason) => {
                Err(self.instance.fail(Call::Decide, FailureKind::Answer(Answer::Nonsense(reason))))
            }
        }
    }

    /// The failure of a guest whose answer to `call` breaks the contract in a way that only the caller can
    /// see, such as a tag that is not one. `reason` reads on after "it answered nonsense:".
    pub fn nonsense(&self, call: Call, reason: impl Into<String>) -> Failure {
        self.instance.failure(call, FailureKind::Answer(Answer::Nonsense(reason.into())))
    }

    /// What the guest has written to its standard output and error, or the end of it.
    pub fn stderr(&self) -> String {
        self.instance.output()
    }

    fn model(&mut self) -> Result<ResourceAny, Failure> {
        if let Some(model) = self.model {
            return Ok(model);
        }
        let guest = self.bindings.weir_handler_handler();
        // Part of the history, so that it does not depend on the command that happens to need it first.
        let model =
            self.instance.call(Call::Apply, |store| guest.decision_model().call_constructor(store))?;
        self.model = Some(model);
        Ok(model)
    }
}

/// How many of `events`, which are not none, go into the next call.
fn chunk_length(events: &[SequencedEvent]) -> usize {
    let mut bytes = 0;
    let fits = events.iter().take(CHUNK_EVENTS).take_while(|sequenced| {
        let before = bytes;
        bytes += size(&sequenced.event);
        before < CHUNK_BYTES
    });
    fits.count()
}

fn size(event: &Event) -> usize {
    event.event_type.len() + event.data.len() + event.tags.iter().map(String::len).sum::<usize>()
}

fn undeclared_type(handler: &Handler, decision: &Decision) -> Option<String> {
    let Decision::Accept(events) = decision else { return None };
    let event = events.iter().find(|event| !handler.event_types().contains(&event.event_type))?;
    Some(format!(
        "it wrote an event of type {:?}, which is not among the event types it describes",
        event.event_type
    ))
}

impl fmt::Debug for Deciding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deciding").field("handler", &self.handler).field("command", &self.command).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(bytes: usize) -> SequencedEvent {
        let event = Event { event_type: String::new(), tags: vec![], data: "x".repeat(bytes) };
        SequencedEvent { position: None, recorded_at: 0, event }
    }

    #[test]
    fn a_chunk_is_bounded_in_events_and_in_bytes_and_never_empty() {
        assert_eq!(chunk_length(&[event(2 * CHUNK_BYTES), event(1)]), 1);
        assert_eq!(chunk_length(&[event(CHUNK_BYTES - 1), event(1), event(1)]), 2);
        assert_eq!(chunk_length(&vec![event(1); CHUNK_EVENTS + 1]), CHUNK_EVENTS);
    }
}
