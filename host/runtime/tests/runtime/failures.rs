//! A handler that fails, one way per command.

use std::time::{Duration, Instant};

use weir_runtime::{Answer, Call, Failure, FailureKind, Limits};

use crate::guests::{
    SOON, accepted, command, component, decide, decide_in, event, impatient, limits, misbehaving,
    runtime_with,
};

fn failure(name: &str) -> Failure {
    decide(misbehaving(), name, "{}").unwrap_err()
}

/// What every failure says first.
fn sentence(rest: &str) -> String {
    format!("handler \"misbehaving\" (version {}) {rest}", misbehaving().version().short())
}

#[test]
fn a_panic_is_told_with_its_message() {
    let failure = failure("panic");
    let text = failure.to_string();
    let start =
        sentence("failed in decide: it trapped: wasm `unreachable` instruction executed; its stderr: ");
    assert!(text.starts_with(&start), "{text}");
    assert!(text.contains("panicked at") && text.contains("the decision is to panic"), "{text}");
    assert!(!text.contains("backtrace:") && !text.contains("0x"), "{text}");
    assert_eq!((failure.call, failure.version), (Call::Decide, *misbehaving().version()));
}

#[test]
fn the_call_that_failed_is_named() {
    let mut deciding = misbehaving().begin(&command("panic-in-boundary", "{}")).unwrap();
    let failure = deciding.boundary().unwrap_err();
    assert_eq!(failure.call, Call::Boundary);
    assert!(failure.to_string().contains("failed in boundary: it trapped"), "{failure}");

    let mut deciding = misbehaving().begin(&command("accept", "{}")).unwrap();
    let failure = deciding.apply(&[event("Noted", "note:none", r#"{"poison":true}"#)]).unwrap_err();
    assert_eq!(failure.call, Call::Apply);
    assert!(failure.to_string().contains("this event is poison"), "{failure}");
}

#[test]
fn an_exit_is_a_failure() {
    let text = failure("exit").to_string();
    assert_eq!(
        text,
        sentence("failed in decide: it trapped: it exited, with failure; a handler answers instead")
    );
}

#[test]
fn a_loop_ends_at_the_deadline() {
    let mut deciding = impatient().begin(&command("loop", "{}")).unwrap();
    let begun = Instant::now();
    let failure = decide_in(&mut deciding, &[]).unwrap_err();
    let took = begun.elapsed();
    assert_eq!(failure.kind, FailureKind::Deadline(SOON));
    assert_eq!(failure.to_string(), sentence("failed in decide: it ran longer than 100ms"));
    assert!(took >= SOON && took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn memory_ends_at_the_limit() {
    let failure = failure("allocate");
    let FailureKind::Memory { asked, limit } = failure.kind else { panic!("{failure}") };
    assert_eq!(limit, Limits::default().memory_bytes);
    assert!(asked > limit && asked < limit + (8 << 20), "{asked}");
    let text = failure.to_string();
    assert!(text.starts_with(&sentence("failed in decide: it asked for 6")), "{text}");
    assert!(text.ends_with(" MiB of memory, its limit is 64 MiB"), "{text}");
}

#[test]
fn a_handler_that_starts_larger_than_its_limit_is_not_loaded() {
    let small = runtime_with(Limits { memory_bytes: 1 << 20, ..limits() });
    let error = small.load(&component("misbehaving")).unwrap_err().to_string();
    assert!(error.contains("memory"), "{error}");
}

#[test]
fn an_answer_that_is_too_large_is_not_taken() {
    for name in ["huge-answer", "many-events"] {
        let failure = failure(name);
        assert_eq!(failure.kind, FailureKind::Answer(Answer::TooLarge(16 << 20)), "{name}");
        assert_eq!(failure.to_string(), sentence("failed in decide: its answer is larger than 16 MiB"));
    }
}

#[test]
fn an_event_of_an_undeclared_type_is_nonsense() {
    for (name, event_type) in [("undeclared-type", "Undeclared"), ("empty-type", ""), ("bad-type", "No\nted")]
    {
        let start = sentence("failed in decide: it answered nonsense: it wrote an event of type");
        let expected = format!("{start} {event_type:?}, which is not among the event types it describes");
        assert_eq!(failure(name).to_string(), expected);
    }
}

#[test]
fn the_caller_can_call_an_answer_nonsense() {
    let mut deciding = misbehaving().begin(&command("bad-tag", "{}")).unwrap();
    decide_in(&mut deciding, &[]).unwrap();
    let failure = deciding.nonsense(Call::Decide, "a tag ends in a space");
    assert_eq!(
        failure.to_string(),
        sentence("failed in decide: it answered nonsense: a tag ends in a space")
    );
}

#[test]
fn a_failed_instance_gives_the_same_failure_again() {
    let mut deciding = misbehaving().begin(&command("panic", "{}")).unwrap();
    let failure = decide_in(&mut deciding, &[]).unwrap_err();
    assert_eq!(deciding.decide(&[]).unwrap_err(), failure);
    assert_eq!(deciding.boundary().unwrap_err(), failure);
    assert_eq!(deciding.apply(&[event("Noted", "t", "{}")]).unwrap_err(), failure);
}

#[test]
fn a_failure_leaves_the_others_as_they_are() {
    let mut before = misbehaving().begin(&command("count", r#"{"tag":"t"}"#)).unwrap();
    before.apply(&[event("Counted", "t", "{}")]).unwrap();
    for name in ["panic", "exit", "allocate", "huge-answer"] {
        failure(name);
        accepted(decide(misbehaving(), "accept", "{}").unwrap());
    }
    assert_eq!(accepted(before.decide(&[]).unwrap()).data, r#"{"seen":1}"#);
}
