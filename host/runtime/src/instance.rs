//! One instance of a handler: the store it lives in, and how a call into it is bounded and ends.

use std::sync::Arc;

use wasmtime::{Engine, PoolConcurrencyLimitError, Store, Trap};

use crate::bindings::Command;
use crate::engine::ticks;
use crate::failure::{Answer, Call, Failure, FailureKind};
use crate::limits::{Limiter, Limits};
use crate::pure_wasi::World;
use crate::version::Version;

/// What the host keeps for an instance.
pub(crate) struct State {
    limiter: Limiter,
    pub(crate) world: World,
}

/// Whose instance it is, for the failures it may have.
#[derive(Clone)]
pub(crate) struct Identity {
    /// `None` while the handler has not described itself.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) version: Version,
}

/// A store with one instance in it.
///
/// ```text
///   fresh ──call──▶ alive ──call──▶ alive ── … ──call that fails──▶ failed ──any call──▶ the same failure
/// ```
///
/// After a trap the guest's memory is in the middle of something, so a failed instance is never entered again.
pub(crate) struct Instance {
    store: Store<State>,
    identity: Identity,
    limits: Limits,
    failed: Option<Failure>,
}

impl Instance {
    /// A store without an instance; the first call makes it.
    pub(crate) fn new(engine: &Engine, identity: Identity, limits: &Limits, world: World) -> Self {
        let mut store = Store::new(engine, State { limiter: Limiter::new(limits), world });
        store.limiter(|state| &mut state.limiter);
        store.epoch_deadline_trap();
        Instance { store, identity, limits: limits.clone(), failed: None }
    }

    /// Runs one call into the guest, within the deadline, with the clocks and random numbers of that call.
    pub(crate) fn call<T>(
        &mut self,
        call: Call,
        enter: impl FnOnce(&mut Store<State>) -> wasmtime::Result<T>,
    ) -> Result<T, Failure> {
        if let Some(failure) = &self.failed {
            return Err(failure.clone());
        }
        self.store.set_epoch_deadline(ticks(self.limits.call_deadline));
        self.store.set_hostcall_fuel(self.limits.answer_bytes);
        self.store.data_mut().world.enter(call);
        enter(&mut self.store).map_err(|error| self.fail(call, self.what_happened(call, &error)))
    }

    /// The calls that follow are about another command.
    pub(crate) fn turn_to(&mut self, command: &Command) {
        self.store.data_mut().world.turn_to(command);
    }

    /// Bytes of linear memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.store.data().limiter.granted()
    }

    /// Gives the instance up, for a reason that the guest or its answer gave.
    pub(crate) fn fail(&mut self, call: Call, kind: FailureKind) -> Failure {
        let failure = self.failure(call, kind);
        self.failed = Some(failure.clone());
        failure
    }

    pub(crate) fn failure(&self, call: Call, kind: FailureKind) -> Failure {
        Failure {
            handler: self.identity.name.as_deref().map(str::to_owned),
            version: self.identity.version,
            call,
            kind,
            stderr: self.output(),
        }
    }

    /// What the guest wrote to its standard output and error, or the end of it.
    pub(crate) fn output(&self) -> String {
        self.store.data().world.output.text()
    }

    fn what_happened(&self, call: Call, error: &wasmtime::Error) -> FailureKind {
        if let Some(asked) = self.store.data().limiter.denied() {
            return FailureKind::Memory { asked, limit: self.limits.memory_bytes };
        }
        if let Some(Refusal(reason)) = error.downcast_ref() {
            return FailureKind::Trap(reason.clone());
        }
        match error.downcast_ref::<Trap>() {
            Some(Trap::Interrupt) => return FailureKind::Deadline(self.limits.call_deadline),
            Some(trap) => return FailureKind::Trap(trap_reason(*trap)),
            None => {}
        }
        let reason = error.root_cause().to_string();
        if reason.contains("fuel allocated for hostcalls has been exhausted") {
            // Wasmtime keeps the type of this error to itself.
            FailureKind::Answer(Answer::TooLarge(self.limits.answer_bytes))
        } else if call == Call::Start || error.is::<PoolConcurrencyLimitError>() {
            FailureKind::Instantiate(reason)
        } else {
            // Neither the guest's code nor a stub of ours: wasmtime could not make sense of a value.
            FailureKind::Answer(Answer::Nonsense(reason))
        }
    }
}

/// Wasmtime's own words, without its prefix.
fn trap_reason(trap: Trap) -> String {
    let text = trap.to_string();
    text.strip_prefix("wasm trap: ").unwrap_or(&text).to_owned()
}

/// The host's reason to end a guest's call, in a clause with "it" for the guest.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refusal(String);

/// An error that ends the guest's call as a trap with this reason.
pub(crate) fn refusal(reason: impl Into<String>) -> wasmtime::Error {
    wasmtime::Error::new(Refusal(reason.into()))
}
