//! The answers to commands, and what they leave in the log.

use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::components;
use crate::components::unique;
use crate::host::{Host, shared};
use crate::store::Store;

#[test]
fn an_accepted_command_is_answered_with_its_events() {
    let host = shared();
    let version = version_of(&host, "course-enrolment");
    let (course, student) = (unique("c"), unique("s"));
    let tag = format!("course:{course}");
    let mut answer = host.send("defineCourse", &json!({ "courseId": course, "capacity": 2 })).accepted();
    let id = answer["command_id"].take();
    assert_eq!(id.as_str().unwrap().parse::<Uuid>().unwrap().get_version_num(), 7, "{id}");
    let defined =
        json!({ "type": "CourseDefined", "tags": [tag], "data": { "courseId": course, "capacity": 2 } });
    let expected = json!({
        "outcome": "accepted", "command_id": null, "handler": "course-enrolment", "version": version,
        "attempts": 1, "events": [defined],
    });
    assert_eq!(answer, expected);

    let subscribe = json!({ "studentId": student, "courseId": course });
    let answer = host.send("subscribeStudentToCourse", &subscribe).accepted();
    assert_eq!(answer["events"][0]["tags"], json!([format!("student:{student}"), tag]));
}

#[test]
fn a_rejected_command_is_answered_with_code_and_reason_and_leaves_nothing() {
    let host = shared();
    let (course, version) = (unique("c"), version_of(&host, "course-enrolment"));
    let define = json!({ "courseId": course, "capacity": 2 });
    host.send("defineCourse", &define).accepted();
    let mut answer = host.send("defineCourse", &define).rejected("course-exists");
    assert!(answer["command_id"].take().as_str().unwrap().parse::<Uuid>().is_ok());
    let expected = json!({
        "type": "urn:weir:problem:rejected", "title": "Rejected", "status": 422,
        "detail": format!("Course with id \"{course}\" already exists"),
        "outcome": "rejected", "code": "course-exists", "command_id": null, "handler": "course-enrolment",
        "version": version, "attempts": 1,
    });
    assert_eq!(answer, expected);
    host.send("changeCourseCapacity", &json!({ "courseId": course, "newCapacity": 3 })).accepted();
    let types: Vec<Value> = host
        .first_events(2, &format!("tag=course:{course}"))
        .iter()
        .map(|event| event["type"].clone())
        .collect();
    assert_eq!(types, ["CourseDefined", "CourseCapacityChanged"]);
}

#[test]
fn the_ids_of_the_callers_conversation_are_in_the_log() {
    let host = shared();
    let note = unique("ids");
    let data = json!({ "note": note }).to_string();
    let ids = [("weir-correlation-id", "order 17"), ("weir-causation-id", "mail-4")];
    let first = host.post("/v1/commands/accept", &ids, data.as_bytes()).unwrap().accepted();
    let second = host.post("/v1/commands/accept", &[], data.as_bytes()).unwrap().accepted();
    let events = host.first_events(2, &format!("tag=note:{note}"));
    let ids = |event: &Value| ["command_id", "correlation_id", "causation_id"].map(|id| event[id].clone());
    assert_eq!(ids(&events[0]), [first["command_id"].clone(), "order 17".into(), "mail-4".into()]);
    let own = &second["command_id"];
    assert_eq!(
        ids(&events[1]),
        [own.clone(), own.clone(), Value::Null],
        "it begins a conversation of its own"
    );
}

#[test]
fn a_conflict_costs_an_attempt_and_the_second_decision_sees_the_first_ones_event() {
    let store = Store::new();
    // Commands of one host do not conflict.
    let hosts = [(); 2].map(|()| Host::start(&store).with(&[components::misbehaving()]));
    let mut session = store.session();
    session.hold_up_appends();
    let mut answers = thread::scope(|scope| {
        let count = |host: &Host| host.send("count", &json!({ "tag": "t" })).accepted();
        let senders = hosts.each_ref().map(|host| scope.spawn(move || count(host)));
        // Both have decided: one waits for the table, the other for the first one's lock.
        session.held_up(2);
        session.let_on();
        senders.map(|sender| sender.join().unwrap())
    });
    answers.sort_by_key(|answer| answer["attempts"].as_u64());
    let told =
        answers.map(|answer| (answer["attempts"].clone(), answer["events"][0]["data"]["seen"].clone()));
    assert_eq!(told, [(1.into(), 0.into()), (2.into(), 1.into())]);
}

#[test]
fn a_wider_boundary_shows_the_decision_what_it_asked_for() {
    let host = shared();
    let (note, next) = (unique("widen"), unique("next"));
    host.send("count", &json!({ "tag": next })).accepted();
    let answer = host.send("widen", &json!({ "note": note, "next": next })).accepted();
    assert_eq!((&answer["events"][0]["data"], &answer["attempts"]), (&json!({ "seen": 1 }), &1.into()));
    let answer = host.send("widen", &json!({ "note": note, "next": unique("never") })).accepted();
    assert_eq!(answer["events"][0]["data"], json!({ "seen": 0 }));
}

#[test]
fn a_wider_boundary_is_guarded_like_the_first() {
    let store = Store::new();
    let host = Host::start(&store).with(&[components::misbehaving()]);
    let other = Host::start(&store).with(&[components::misbehaving()]);
    host.send("count", &json!({ "tag": "next" })).accepted();
    store.drained();
    let mut session = store.session();
    session.hold_up_appends();
    let (counted, widened) = thread::scope(|scope| {
        let count = scope.spawn(|| host.send("count", &json!({ "tag": "next" })).accepted());
        session.held_up(1);
        let widen = scope.spawn(|| other.send("widen", &json!({ "note": "n", "next": "next" })).accepted());
        session.held_up(2);
        session.let_on();
        (count.join().unwrap(), widen.join().unwrap())
    });
    assert_eq!(counted["attempts"], 1);
    assert_eq!(widened["attempts"], 2, "what it widened to had changed");
    assert_eq!(widened["events"][0]["data"]["seen"], 2);
}

#[test]
fn a_handlers_clock_stands_at_the_time_of_the_command() {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let host = shared();
    let before = now();
    let answer = host.send("clock", &json!({ "note": unique("clock") })).accepted();
    let after = now();
    let reading = &answer["events"][0]["data"];
    let time = reading["now"].as_u64().unwrap();
    assert!((before..=after).contains(&time), "{before} <= {time} <= {after}");
    // A UUID of version 7 begins with the time it was made: that of the command's acceptance.
    let id: Uuid = answer["command_id"].as_str().unwrap().parse().unwrap();
    let made = u64::try_from(id.as_u128() >> 80).unwrap();
    assert!(made.abs_diff(time) <= 1, "{made} and {time}");
    assert_eq!((&reading["slept"], &reading["variables"]), (&0.into(), &json!([])));
}

#[test]
fn every_decision_sees_the_event_of_the_one_before() {
    let host = shared();
    let tag = unique("counted");
    let seen: Vec<Value> = (0..20)
        .map(|_| host.send("count", &json!({ "tag": tag })).accepted()["events"][0]["data"]["seen"].clone())
        .collect();
    assert_eq!(seen, (0..20).map(Value::from).collect::<Vec<_>>());
}

fn version_of(host: &Host, handler: &str) -> Value {
    let handlers = host.get("/v1/handlers").ok();
    handlers.as_array().unwrap().iter().find(|entry| entry["handler"] == handler).unwrap()["version"].clone()
}
