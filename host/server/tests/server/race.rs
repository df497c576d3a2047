//! Many callers at once, who want the same few places.

use std::sync::Barrier;
use std::thread;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::components::course_enrolment;
use crate::host::Host;
use crate::store::Store;

const CLIENTS: usize = 64;
const CAPACITY: usize = 20;

/// Everybody subscribes at once, each at one host or the other.
fn subscribe_all(hosts: &[&Host], course_of: impl Fn(usize) -> String + Sync) -> Vec<Answer> {
    let together = Barrier::new(CLIENTS);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (host, together, course_of) = (hosts[client % hosts.len()], &together, &course_of);
                scope.spawn(move || {
                    let data = json!({ "studentId": format!("s{client}"), "courseId": course_of(client) });
                    together.wait();
                    host.send("subscribeStudentToCourse", &data)
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    })
}

fn exactly_the_capacity_gets_in(store: &Store, hosts: &[&Host]) {
    hosts[0].send("defineCourse", &json!({ "courseId": "c1", "capacity": CAPACITY })).accepted();
    let (accepted, refused): (Vec<_>, Vec<_>) =
        subscribe_all(hosts, |_| "c1".into()).into_iter().partition(|answer| answer.status == 200);
    assert_eq!((accepted.len(), refused.len()), (CAPACITY, CLIENTS - CAPACITY));
    accepted.into_iter().for_each(|answer| drop(answer.accepted()));
    refused.into_iter().for_each(|answer| drop(answer.rejected("course-full")));

    store.drained();
    let events = hosts[0].events("tag=course:c1&type=StudentSubscribedToCourse");
    let mut students: Vec<&Value> = events.iter().map(|event| &event["data"]["studentId"]).collect();
    students.sort_by_key(|student| student.as_str());
    students.dedup();
    assert_eq!((events.len(), students.len()), (CAPACITY, CAPACITY));
}

#[test]
fn a_course_takes_as_many_as_it_has_places_and_refuses_all_others() {
    let store = Store::new();
    let host = Host::start(&store).with(&[course_enrolment()]);
    exactly_the_capacity_gets_in(&store, &[&host]);
}

#[test]
fn two_hosts_of_one_store_share_the_places_of_a_course() {
    let store = Store::new();
    let here = Host::start(&store).with(&[course_enrolment()]);
    let there = Host::start(&store);
    exactly_the_capacity_gets_in(&store, &[&here, &there]);
}

#[test]
fn those_who_want_different_courses_never_get_in_each_others_way() {
    let store = Store::new();
    let host = Host::start(&store).with(&[course_enrolment()]);
    for course in 0..CLIENTS {
        host.send("defineCourse", &json!({ "courseId": format!("c{course}"), "capacity": 1 })).accepted();
    }
    for answer in subscribe_all(&[&host], |client| format!("c{client}")) {
        assert_eq!(answer.accepted()["attempts"], 1);
    }
}
