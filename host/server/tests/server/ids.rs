//! Commands with an id of their caller's: sent again, they get their first answer again.

use std::thread;

use serde_json::{Value, json};

use crate::answer::{Answer, assert_says};
use crate::components::course_enrolment;
use crate::host::Host;
use crate::store::Store;

fn send(host: &Host, id: &str, command: &str, data: &Value) -> Answer {
    host.post(&format!("/v1/commands/{command}"), &[("weir-command-id", id)], data.to_string().as_bytes())
        .unwrap()
}

fn define(host: &Host, id: &str, course: &str) -> Answer {
    send(host, id, "defineCourse", &json!({ "courseId": course, "capacity": 1 }))
}

#[test]
fn a_command_sent_again_gets_its_first_answer_on_any_host_and_happens_once() {
    let store = Store::new();
    let here = Host::start(&store).with(&[course_enrolment()]);
    let first = define(&here, "my-1", "c1");
    let there = Host::start(&store);
    for host in [&here, &there] {
        let again = define(host, "my-1", "c1");
        assert_eq!((again.status, &again.body), (200, &first.body));
    }
    let first = first.accepted();
    assert_eq!(first["command_id"], "my-1");
    let events = here.first_events(1, "");
    assert_eq!(events[0]["command_id"], "my-1");
    store.drained();
    assert_eq!(here.events("").len(), 1);
}

#[test]
fn a_refusal_is_kept_too() {
    let store = Store::new();
    let host = Host::start(&store).with(&[course_enrolment()]);
    let subscribe = json!({ "studentId": "s1", "courseId": "c1" });
    let first = send(&host, "my-1", "subscribeStudentToCourse", &subscribe);
    define(&host, "my-2", "c1").accepted();
    let again = send(&host, "my-1", "subscribeStudentToCourse", &subscribe);
    assert_eq!(again.body, first.body);
    again.rejected("course-unknown");
    send(&host, "my-3", "subscribeStudentToCourse", &subscribe).accepted();
}

#[test]
fn another_command_under_the_same_id_is_a_mistake() {
    let store = Store::new();
    let host = Host::start(&store).with(&[course_enrolment()]);
    define(&host, "my-1", "c1").accepted();
    let detail = define(&host, "my-1", "c2").problem(409, "command-id-reused");
    assert_says(&detail, &["\"my-1\"", "an id of its own"]);
    define(&host, "my-2", "c2").accepted();
}

#[test]
fn a_command_that_is_sent_again_while_it_is_still_running_happens_once() {
    let store = Store::new();
    let here = Host::start(&store).with(&[course_enrolment()]);
    let there = Host::start(&store).with(&[course_enrolment()]);
    let mut session = store.session();
    session.hold_up_appends();
    let answers = thread::scope(|scope| {
        let callers: Vec<_> = [&here, &there, &here, &there]
            .into_iter()
            .map(|host| scope.spawn(move || define(host, "my-1", "c1").accepted()))
            .collect();
        // One of each host; its like waits for it there.
        session.held_up(2);
        session.let_on();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    store.drained();
    assert_eq!(here.events("").len(), 1);
}
