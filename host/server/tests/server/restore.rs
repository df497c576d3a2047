//! A logical dump of a store, restored into another cluster, whose transaction ids have nothing to do with its own.

use serde_json::{Value, json};

use crate::components::course_enrolment;
use crate::host::Host;
use crate::patience::eventually;
use crate::postgres::Postgres;
use crate::store::Store;

#[test]
fn a_dump_restored_into_another_cluster_goes_on_under_every_strategy() {
    let elsewhere = Postgres::start();
    for strategy in ["boundary", "staging", "hybrid", "global"] {
        moves(&elsewhere, strategy);
    }
}

fn moves(elsewhere: &Postgres, strategy: &str) {
    let store = Store::new();
    let host = Host::start(&store).with(&[course_enrolment()]);
    host.put("/v1/settings", &json!({ "strategy": strategy }).to_string()).ok();
    let define =
        |host: &Host, course: &str| host.send("defineCourse", &json!({ "courseId": course, "capacity": 1 }));
    for course in ["c1", "c2", "c3"] {
        define(&host, course).accepted();
    }
    let all = |host: &Host, count: usize| {
        eventually("all can be read", || Some(host.events("")).filter(|events| events.len() == count))
    };
    let before = all(&host, 3);
    let query = json!({ "items": [{ "types": ["CourseDefined"], "tags": ["course:c1"] }] });
    let read = host.post("/v1/read", &[], json!({ "query": query }).to_string().as_bytes()).unwrap();
    let end: Value = serde_json::from_str(read.body.lines().last().unwrap()).unwrap();
    // It has no time to flush this one; under `staging` the dump holds it as a staged row.
    define(&host, "c4").accepted();
    host.kill();

    let there = elsewhere.restore(&store);
    let moved = Host::start(&there);
    define(&moved, "c4").rejected("course-exists");
    define(&moved, "c5").accepted();
    let append = |n: i64, condition: Value| {
        let event = json!({ "type": "CourseDefined", "tags": ["course:c1"], "data": n });
        let body = json!({ "events": [event], "condition": condition });
        moved.post("/v1/append", &[], body.to_string().as_bytes()).unwrap()
    };
    let condition = json!({ "query": query, "token": end["token"] });
    append(1, condition.clone()).ok();
    append(2, condition).problem(409, "conflict");
    let after = all(&moved, 6);
    assert_eq!(after[..3], before[..], "{strategy}: what was followed before is where it was");
    let place = before[0]["cursor"].as_str().map_or_else(|| "1".to_owned(), str::to_owned);
    assert_eq!(moved.events(&format!("after={place}")), after[1..], "{strategy}: a cursor from before");
    if strategy != "boundary" {
        let positions: Vec<_> = after.iter().map(|event| event["position"].as_u64().unwrap()).collect();
        assert_eq!(positions, [1, 2, 3, 4, 5, 6], "{strategy}");
    }
    moved.stop();
    assert_eq!(Host::start(&there).events("").len(), 6, "{strategy}: and once more");
}
