//! Commands that are decided together, and on models that stay warm: nobody can tell, but for the conflicts that are gone.

use std::thread;

use serde_json::{Value, json};

use crate::components::{course_enrolment, misbehaving, version};
use crate::host::Host;
use crate::store::Store;

/// How many events with the tag the decision has seen, and in how many attempts it was made.
fn count(host: &Host, tag: &str) -> (u64, u64) {
    let answer = host.send("count", &json!({ "tag": tag })).accepted();
    (answer["events"][0]["data"]["seen"].as_u64().unwrap(), answer["attempts"].as_u64().unwrap())
}

fn set(host: &Host, strategy: &str) {
    let url = host.at("/v1/settings");
    let answer = host.agent().put(url).send_json(json!({ "strategy": strategy })).unwrap();
    assert_eq!(answer.status(), 200);
}

#[test]
fn commands_of_one_boundary_see_each_other_in_turn_and_do_not_conflict() {
    let store = Store::new();
    let host = Host::start(&store).with(&[misbehaving()]);
    for strategy in ["staging", "boundary", "hybrid", "global"] {
        set(&host, strategy);
        let mut seen: Vec<u64> = thread::scope(|scope| {
            let commands: Vec<_> = (0..40).map(|_| scope.spawn(|| count(&host, strategy))).collect();
            let answers = commands.into_iter().map(|command| command.join().unwrap());
            answers
                .map(|(seen, attempts)| {
                    assert_eq!(attempts, 1, "{strategy}");
                    seen
                })
                .collect()
        });
        seen.sort_unstable();
        assert!(seen.iter().copied().eq(0..40), "{strategy}: {seen:?}");
    }
}

#[test]
fn a_warm_model_is_shown_what_other_hosts_have_appended_under_every_strategy() {
    let store = Store::new();
    let hosts = [(); 2].map(|()| Host::start(&store).with(&[misbehaving()]));
    let mut expected = 0;
    for round in 0..3 {
        for strategy in ["staging", "boundary", "global", "hybrid"] {
            set(&hosts[round % 2], strategy);
            for host in [&hosts[0], &hosts[1], &hosts[1], &hosts[0]] {
                assert_eq!(count(host, "t"), (expected, 1), "{strategy}, round {round}");
                expected += 1;
            }
            // By a program that is no handler, too.
            let event = json!({ "type": "Counted", "tags": ["t"], "data": {} });
            let event = json!({ "events": [event] }).to_string();
            hosts[0].post("/v1/append", &[], event.as_bytes()).unwrap().ok();
            expected += 1;
        }
        store.drained();
    }
}

#[test]
fn hosts_that_race_for_one_boundary_lose_and_invent_nothing() {
    let store = Store::new();
    let hosts = [(); 3].map(|()| Host::start(&store).with(&[misbehaving()]));
    let mut seen: Vec<u64> = thread::scope(|scope| {
        let callers: Vec<_> = (0..24)
            .map(|n| {
                let host = &hosts[n % 3];
                scope.spawn(move || (0..4).map(|_| count(host, "t").0).collect::<Vec<_>>())
            })
            .collect();
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    });
    seen.sort_unstable();
    assert!(seen.iter().copied().eq(0..96), "{seen:?}");
}

#[test]
fn a_handler_that_fails_costs_its_batch_mates_nothing() {
    let store = Store::new();
    let host = Host::start(&store).with(&[misbehaving()]);
    thread::scope(|scope| {
        let good: Vec<_> = (0..12).map(|_| scope.spawn(|| count(&host, "t"))).collect();
        let bad: Vec<_> = (0..6)
            .map(|n| {
                let host = &host;
                scope.spawn(move || host.send("panic", &json!({ "note": format!("n{n}") })))
            })
            .collect();
        bad.into_iter().for_each(|command| drop(command.join().unwrap().problem(500, "handler-failed")));
        let mut seen: Vec<u64> = good.into_iter().map(|command| command.join().unwrap().0).collect();
        seen.sort_unstable();
        assert!(seen.iter().copied().eq(0..12), "{seen:?}");
    });
}

#[test]
fn a_new_version_does_not_get_the_models_of_the_one_before() {
    let store = Store::new();
    let host = Host::start(&store).with(&[course_enrolment()]);
    let define = |course: &str| host.send("defineCourse", &json!({ "courseId": course, "capacity": 1 }));
    define("c1").accepted();
    define("c1").rejected("course-exists");
    let before: Value = define("c2").accepted()["version"].clone();
    host.deploy(&version(&course_enrolment(), "two")).ok();
    let after = define("c1").rejected("course-exists");
    assert_ne!(after["version"], before);
}
