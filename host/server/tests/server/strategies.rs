//! The strategy of a store, changed while hosts serve it.

use std::thread;

use serde_json::{Value, json};

use crate::answer::assert_says;
use crate::components::{course_enrolment, misbehaving};
use crate::host::Host;
use crate::patience::eventually;
use crate::program::Run;
use crate::store::Store;

const STRATEGIES: [&str; 4] = ["boundary", "hybrid", "global", "staging"];

fn set(host: &Host, strategy: &str) -> String {
    Run::of(&["strategy", "--url", &host.at(""), "set", strategy]).succeeded()
}

fn define(host: &Host, course: &str) {
    host.send("defineCourse", &json!({ "courseId": course, "capacity": 1 })).accepted();
}

fn course(event: &Value) -> String {
    event["data"]["courseId"].as_str().unwrap().to_owned()
}

/// All the events, when there are so many: under `boundary` any transaction of the cluster may hold them back.
fn all(host: &Host, count: usize) -> Vec<Value> {
    eventually("all events can be read", || Some(host.events("")).filter(|events| events.len() == count))
}

#[test]
fn a_follower_sees_every_event_once_across_all_strategies_on_two_hosts() {
    let store = Store::new();
    let here = Host::start(&store).with(&[course_enrolment()]);
    let there = Host::start(&store);
    eventually("the other host has the handler", || {
        (there.get("/v1/handlers").json().as_array()?.len() == 1).then_some(())
    });
    let lines = here.follow("");
    let mut expected = Vec::new();
    for strategy in STRATEGIES {
        let said = set(&there, strategy);
        assert!(said.starts_with(&format!("The store's strategy is {strategy}: ")), "{said}");
        assert!(said.contains(&format!("[{strategy}]")), "{said}");
        for (name, host) in [("here", &here), ("there", &there)] {
            let course = format!("{strategy}-{name}");
            define(host, &course);
            expected.push(course);
        }
    }
    let seen: Vec<Value> =
        lines.take(expected.len()).map(|line| serde_json::from_str(&line).unwrap()).collect();
    assert_eq!(seen.iter().map(course).collect::<Vec<_>>(), expected);
    assert_eq!(all(&there, expected.len()).iter().map(course).collect::<Vec<_>>(), expected);

    // Reading on behind any of them gives the rest: by its cursor where it has one, else by its position.
    for (at, event) in seen.iter().enumerate() {
        let place = event["cursor"].as_str().map_or_else(|| event["position"].to_string(), str::to_owned);
        let rest = here.events(&format!("after={place}"));
        assert_eq!(rest.iter().map(course).collect::<Vec<_>>(), expected[at + 1..], "{place}");
    }
    let opaque = seen.iter().filter(|event| event["cursor"].is_string()).map(course);
    assert_eq!(opaque.collect::<Vec<_>>(), ["boundary-here", "boundary-there"]);
}

#[test]
fn commands_go_on_while_the_strategy_changes() {
    let store = Store::new();
    let host = Host::start(&store).with(&[course_enrolment()]);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|client| {
                let host = &host;
                scope.spawn(move || (0..40).for_each(|n| define(host, &format!("c{client}-{n}"))))
            })
            .collect();
        for strategy in STRATEGIES.iter().cycle() {
            if clients.iter().all(thread::ScopedJoinHandle::is_finished) {
                break;
            }
            set(&host, strategy);
        }
    });
    set(&host, "staging");
    assert_eq!(all(&host, 160).len(), 160);
}

#[test]
fn a_position_is_told_to_be_no_cursor_where_it_is_none() {
    let store = Store::new();
    let host = Host::start(&store).with(&[course_enrolment()]);
    set(&host, "boundary");
    define(&host, "c1");
    define(&host, "c2");
    let detail = host.get("/v1/events?after=1").problem(400, "position-is-no-cursor");
    assert_says(&detail, &["position 1", "`boundary`", "use the cursor"]);
    let detail = host.get("/v1/events?after=b1.x").problem(400, "malformed-query");
    assert_says(&detail, &["after", "b1.x"]);
}

#[test]
fn an_unscoped_boundary_is_a_matter_of_the_store() {
    let store = Store::new();
    let host = Host::start(&store).with(&[misbehaving()]);
    let refused = host.send("unscoped", &json!({})).problem(500, "handler-failed");
    assert_says(
        &refused,
        &["query item 0 (Noted) names no tag", "weir settings set unscoped-conditions true"],
    );
    let allow = |rule: &str| {
        let set = ["settings", "--url", &host.at(""), "set", "unscoped-conditions", rule];
        assert!(Run::of(&set).succeeded().contains(&format!("unscoped-conditions  {rule}\n")));
    };
    allow("true");
    host.send("unscoped", &json!({})).accepted();
    allow("false");
    host.send("unscoped", &json!({})).problem(500, "handler-failed");
}

#[test]
fn a_strategy_that_there_is_not_is_complained_of_with_those_that_there_are() {
    let complaint = Run::of(&["strategy", "set", "optimistic"]).complained();
    assert_says(&complaint, &["\"optimistic\"", "global, boundary, hybrid and staging"]);
}
