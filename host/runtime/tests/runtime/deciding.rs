//! A handler that does what it should.

use weir_runtime::{Decision, QueryItem, Version};

use crate::guests::{accepted, command, component, decide, decide_in, event, misbehaving};

#[test]
fn a_handler_is_what_it_describes() {
    let handler = misbehaving();
    assert_eq!(handler.name(), "misbehaving");
    assert_eq!(*handler.version(), Version::of(&component("misbehaving")));
    assert!(handler.commands().contains(&"accept".to_owned()));
    assert_eq!(handler.event_types(), ["Noted", "Counted"]);
}

#[test]
fn a_command_is_accepted_with_an_event() {
    let mut deciding = misbehaving().begin(&command("accept", r#"{"note":"n1"}"#)).unwrap();
    let boundary = deciding.boundary().unwrap().unwrap();
    assert_eq!(boundary, [QueryItem { event_types: vec!["Noted".into()], tags: vec!["note:n1".into()] }]);
    let noted = accepted(deciding.decide(&[]).unwrap());
    assert_eq!((noted.event_type.as_str(), noted.tags.as_slice()), ("Noted", &["note:n1".to_owned()][..]));
    assert_eq!(noted.data, r#"{"note":"n1"}"#);
}

#[test]
fn a_command_is_rejected_in_the_decision_or_in_the_boundary() {
    let Decision::Reject(rejection) = decide(misbehaving(), "reject", "{}").unwrap() else { panic!() };
    assert_eq!(rejection.code, "refused");

    let mut deciding = misbehaving().begin(&command("accept", "not json")).unwrap();
    assert_eq!(deciding.boundary().unwrap().unwrap_err().code, "malformed");
}

#[test]
fn a_decision_that_widens_is_asked_for_again_with_more_events() {
    let mut deciding = misbehaving().begin(&command("widen", r#"{"next":"tag"}"#)).unwrap();
    let Decision::Widen(items) = decide_in(&mut deciding, &[]).unwrap() else { panic!("it did not widen") };
    assert_eq!(items, [QueryItem { event_types: vec!["Counted".into()], tags: vec!["tag".into()] }]);
    deciding.apply(&[event("Counted", "tag", "{}")]).unwrap();
    assert_eq!(accepted(deciding.decide(&items).unwrap()).data, r#"{"seen":1}"#);
}

#[test]
fn a_history_in_many_chunks_is_applied_in_full() {
    let history = vec![event("Counted", "t", "{}"); 10_500];
    let mut deciding = misbehaving().begin(&command("count", r#"{"tag":"t"}"#)).unwrap();
    let counted = accepted(decide_in(&mut deciding, &history).unwrap());
    assert_eq!(counted.data, r#"{"seen":10500}"#);
}

#[test]
fn a_history_larger_than_the_guests_memory_is_applied_in_full() {
    let large = format!("{:?}", "x".repeat(200_000));
    let history = vec![event("Counted", "t", &large); 500];
    let mut deciding = misbehaving().begin(&command("count", r#"{"tag":"t"}"#)).unwrap();
    assert_eq!(accepted(decide_in(&mut deciding, &history).unwrap()).data, r#"{"seen":500}"#);
}

#[test]
fn deciding_twice_gives_the_same_decision() {
    let mut deciding = misbehaving().begin(&command("count", r#"{"tag":"t"}"#)).unwrap();
    let first = decide_in(&mut deciding, &[event("Counted", "t", "{}")]).unwrap();
    assert_eq!(deciding.decide(&[]).unwrap(), first);
}

#[test]
fn what_a_guest_prints_is_kept_up_to_a_bound() {
    let mut deciding = misbehaving().begin(&command("stderr", "{}")).unwrap();
    accepted(decide_in(&mut deciding, &[]).unwrap());
    let printed = deciding.stderr();
    assert!(printed.ends_with("line 9999 of far too much\n"), "{printed:?}");
    assert!(printed.starts_with("[…]") && printed.len() < (16 << 10) + 10, "{}", printed.len());
}
