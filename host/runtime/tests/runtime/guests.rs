//! The guests, and what every test says to them.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use weir_runtime::{
    Command, Deciding, Decision, Event, Failure, Handler, Limits, Runtime, RuntimeConfig, SequencedEvent,
};

/// A component that `cargo xtask guests` built.
pub(crate) fn component(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/guests/target/wasm32-wasip2/release/{name}.wasm"));
    std::fs::read(&path)
        .unwrap_or_else(|error| panic!("{} ({error}): run `cargo xtask guests` first", path.display()))
}

/// Limits under which no guest but one that loops meets its deadline, on a machine that is busy besides.
pub(crate) fn limits() -> Limits {
    Limits { call_deadline: Duration::from_secs(60), ..Limits::default() }
}

/// The deadline of [`impatient`].
pub(crate) const SOON: Duration = Duration::from_millis(100);

pub(crate) fn runtime_with(limits: Limits) -> Runtime {
    Runtime::new(RuntimeConfig { cache_dir: None, limits, max_instances: 16 }).unwrap()
}

/// One runtime for all tests that need nothing special: compiling takes its time.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| runtime_with(limits()))
}

/// The handler that fails on request, loaded once.
pub(crate) fn misbehaving() -> &'static Handler {
    static HANDLER: OnceLock<Handler> = OnceLock::new();
    HANDLER.get_or_init(|| runtime().load(&component("misbehaving")).unwrap())
}

/// The same handler, in a runtime that stops a loop soon.
pub(crate) fn impatient() -> &'static Handler {
    static HANDLER: OnceLock<Handler> = OnceLock::new();
    HANDLER.get_or_init(|| {
        let runtime = runtime_with(Limits { call_deadline: SOON, ..Limits::default() });
        runtime.load(&component("misbehaving")).unwrap()
    })
}

pub(crate) fn command(name: &str, data: &str) -> Command {
    Command {
        id: "0198f3a0-0000-7000-8000-000000000001".into(),
        name: name.into(),
        data: data.into(),
        received_at: 1_700_000_000_123,
        principal: None,
    }
}

pub(crate) fn event(event_type: &str, tag: &str, data: &str) -> SequencedEvent {
    SequencedEvent {
        position: Some(1),
        recorded_at: 1_700_000_000_000,
        event: Event { event_type: event_type.into(), tags: vec![tag.into()], data: data.into() },
    }
}

/// Asks for the boundary, shows `history` and asks for the decision.
pub(crate) fn decide_in(deciding: &mut Deciding, history: &[SequencedEvent]) -> Result<Decision, Failure> {
    deciding.boundary()?.expect("the boundary is not refused");
    deciding.apply(history)?;
    deciding.decide(&[])
}

/// One whole attempt at a command.
pub(crate) fn decide(handler: &Handler, name: &str, data: &str) -> Result<Decision, Failure> {
    decide_in(&mut handler.begin(&command(name, data))?, &[])
}

/// The only event of an `accept`.
pub(crate) fn accepted(decision: Decision) -> Event {
    match decision {
        Decision::Accept(mut events) if events.len() == 1 => events.remove(0),
        other => panic!("not one event: {other:?}"),
    }
}
