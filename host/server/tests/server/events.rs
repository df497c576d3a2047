//! The log as its readers get it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::components::{self, unique};
use crate::host::{Host, shared};
use crate::patience::eventually;
use crate::store::Store;

fn positions(events: &[Value]) -> Vec<u64> {
    events.iter().map(|event| event["position"].as_u64().unwrap()).collect()
}

fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

/// A host whose log holds four events: the course c1 and two students in it, the course c2.
fn with_four_events(store: &Store) -> Host {
    let host = Host::start(store).with(&[components::course_enrolment()]);
    host.send("defineCourse", &json!({ "courseId": "c1", "capacity": 9 })).accepted();
    for student in ["s1", "s2"] {
        host.send("subscribeStudentToCourse", &json!({ "studentId": student, "courseId": "c1" })).accepted();
    }
    host.send("defineCourse", &json!({ "courseId": "c2", "capacity": 9 })).accepted();
    host.first_events(4, "");
    host
}

#[test]
fn an_event_is_a_line_with_all_that_the_log_knows_of_it() {
    let store = Store::new();
    let host = Host::start(&store).with(&[components::course_enrolment()]);
    let answer = host.send("defineCourse", &json!({ "courseId": "c1", "capacity": 9 })).accepted();
    let mut event = host.first_events(1, "").remove(0);
    let recorded_at = event["recorded_at"].take();
    let rfc3339 = &time::format_description::well_known::Rfc3339;
    assert!(time::OffsetDateTime::parse(recorded_at.as_str().unwrap(), rfc3339).is_ok(), "{recorded_at}");
    let expected = json!({
        "position": 1, "type": "CourseDefined", "tags": ["course:c1"], "data": { "courseId": "c1", "capacity": 9 },
        "recorded_at": null, "command_id": answer["command_id"], "correlation_id": answer["command_id"],
        "causation_id": null, "handler": "course-enrolment", "version": answer["version"],
    });
    assert_eq!(event, expected);
    assert_eq!(host.events("")[0]["recorded_at"], recorded_at);
}

#[test]
fn a_query_takes_any_of_the_types_and_all_of_the_tags() {
    let store = Store::new();
    let host = with_four_events(&store);
    for (query, expected) in [
        ("", vec![1, 2, 3, 4]),
        ("after=2", vec![3, 4]),
        ("after=4", vec![]),
        ("after=1000", vec![]),
        ("limit=2", vec![1, 2]),
        ("limit=0", vec![]),
        ("after=1&limit=2", vec![2, 3]),
        ("type=CourseDefined", vec![1, 4]),
        ("type=CourseDefined&type=StudentSubscribedToCourse", vec![1, 2, 3, 4]),
        ("type=CourseCapacityChanged", vec![]),
        ("tag=course:c1", vec![1, 2, 3]),
        ("tag=course:c1&tag=student:s2", vec![3]),
        ("tag=course:c2&tag=student:s2", vec![]),
        ("type=CourseDefined&tag=course%3Ac1", vec![1]),
        ("type=CourseDefined&tag=course:c1&after=1", vec![]),
        ("follow=true&limit=3", vec![1, 2, 3]),
        ("follow=true&limit=0", vec![]),
    ] {
        assert_eq!(positions(&host.events(query)), expected, "{query}");
    }
}

#[test]
fn server_sent_events_carry_their_positions_and_go_on_from_the_last_one() {
    let store = Store::new();
    let host = with_four_events(&store);
    let sent = |query: &str, headers: &[(&str, &str)]| -> Vec<String> {
        host.stream(query, &[&[("accept", "text/event-stream")], headers].concat()).collect()
    };
    let lines = sent("type=CourseDefined", &[]);
    let [id, data, last_id, _] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((&**id, &**last_id), ("id: 1", "id: 4"));
    let event = parsed(data.strip_prefix("data: ").unwrap());
    assert_eq!(event, host.events("limit=1")[0]);

    let ids = |lines: &[String]| -> Vec<String> {
        lines.iter().filter_map(|line| line.strip_prefix("id: ")).map(str::to_owned).collect()
    };
    let last = [("last-event-id", "2")];
    assert_eq!(ids(&sent("", &last)), ["3", "4"]);
    assert_eq!(ids(&sent("follow=true&limit=1", &last)), ["3"]);
    assert_eq!(ids(&sent("after=3", &last)), ["3", "4"], "who reconnects asks for the same URL again");
}

#[test]
fn the_body_of_server_sent_events_separates_them_by_empty_lines() {
    let store = Store::new();
    let host = with_four_events(&store);
    let request = host.agent().get(host.at("/v1/events?limit=2")).header("accept", "text/event-stream");
    let mut response = request.call().unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let body = response.body_mut().read_to_string().unwrap();
    assert_eq!(body.matches("\n\n").count(), 2, "{body}");
    assert!(
        body.starts_with("id: 1\ndata: {") && body.contains("}\n\nid: 2\ndata: {") && body.ends_with("}\n\n")
    );
}

#[test]
fn a_follower_waits_for_what_has_never_been() {
    let host = shared();
    let note = unique("later");
    let mut follower = host.follow(&format!("tag=note:{note}"));
    for n in 0..3 {
        host.send("accept", &json!({ "note": note, "n": n })).accepted();
        assert_eq!(parsed(&follower.next().unwrap())["data"]["n"], n);
    }
}

#[test]
fn followers_see_every_event_once_and_in_order_while_eight_writers_append() {
    const WRITERS: u64 = 8;
    const EACH: u64 = 40;
    let store = Store::new();
    let host = Host::start(&store).with(&[components::misbehaving()]);
    let everything = host.follow(&format!("limit={}", WRITERS * EACH));
    let one_writers = host.follow(&format!("tag=note:w3&limit={EACH}"));
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let host = &host;
            scope.spawn(move || {
                for n in 0..EACH {
                    host.send("accept", &json!({ "note": format!("w{writer}"), "n": n })).accepted();
                }
            });
        }
    });
    let all: Vec<Value> = everything.map(|line| parsed(&line)).collect();
    assert_eq!(positions(&all), (1..=WRITERS * EACH).collect::<Vec<_>>());
    let distinct: HashSet<&str> = all.iter().map(|event| event["command_id"].as_str().unwrap()).collect();
    assert_eq!(distinct.len() as u64, WRITERS * EACH);
    let numbers: Vec<u64> = one_writers.map(|line| parsed(&line)["data"]["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..EACH).collect::<Vec<_>>(), "in the order they were sent");
}

#[test]
fn a_plain_read_ends_although_the_log_grows() {
    let store = Store::new();
    let host = Host::start(&store).with(&[components::misbehaving()]);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..4 {
            let (host, done) = (&host, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    host.send("accept", &json!({ "note": format!("w{writer}") })).accepted();
                }
            });
        }
        // While it grows, each read ends, and holds at least what the one before did.
        let read = || positions(&host.events("")).len();
        let first = eventually("the log has grown", || Some(read()).filter(|length| *length > 0));
        let second = eventually("the log has grown", || Some(read()).filter(|length| *length > first));
        done.store(true, Ordering::Relaxed);
        assert!(second > first);
    });
}

#[test]
fn a_log_of_several_pages_is_read_whole() {
    let store = Store::new();
    let host = Host::start(&store).with(&[components::misbehaving()]);
    host.send("accept", &json!({ "note": "w" })).accepted();
    store.drained();
    store.session().run(
        "INSERT INTO events (position, staged_id, recorded_at, type, tags, command_id, data, bytes)
         SELECT n, n, now(), 'Noted', '{}', 'made up', '{}', 2 FROM generate_series(2, 1234) n",
    );
    assert_eq!(positions(&host.events("")), (1..=1234).collect::<Vec<_>>());
    assert_eq!(positions(&host.events("limit=700")), (1..=700).collect::<Vec<_>>());
    let event = host.events("after=1&limit=1").remove(0);
    assert_eq!((&event["handler"], &event["version"]), (&Value::Null, &Value::Null), "nobody's: {event}");
}

#[test]
fn a_follower_ends_when_its_host_does() {
    let store = Store::new();
    let host = Host::start(&store).with(&[components::misbehaving()]);
    let mut follower = host.follow("");
    host.send("accept", &json!({ "note": "w" })).accepted();
    assert!(follower.next().is_some());
    host.stop();
    assert_eq!(follower.next(), None);
}

#[test]
fn data_with_line_breaks_stays_one_event_and_cannot_pass_for_another() {
    let store = Store::new();
    let host = Host::start(&store).with(&[components::misbehaving()]);
    let forged = r#"{"position":777,"type":"Noted","tags":[],"data":{}}"#;
    store.session().run(&format!(
        "INSERT INTO staging (type, tags, keys, command_id, bytes, data)
         VALUES ('Noted', '{{note:raw}}', '{{}}', 'c', 0, E'[\n{forged}\r\n]')"
    ));
    let events = host.first_events(1, "");
    assert_eq!((&events[0]["position"], &events[0]["data"][0]["position"]), (&json!(1), &json!(777)));
    let lines = host.stream("limit=1&follow=true", &[("accept", "text/event-stream")]).collect::<Vec<_>>();
    assert_eq!(lines.len(), 2, "an id and one line of data: {lines:?}");
}

#[test]
fn a_reconnection_goes_on_behind_the_last_event_whatever_its_url_says() {
    let store = Store::new();
    let host = Host::start(&store).with(&[components::misbehaving()]);
    for n in 0..4 {
        host.send("accept", &json!({ "note": format!("n{n}") })).accepted();
    }
    host.first_events(4, "");
    let lines = host.stream("after=1&limit=1", &[("last-event-id", "3")]).collect::<Vec<_>>();
    let event: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(event["position"], 4);
}

#[test]
fn awkward_tags_and_data_come_back_as_they_went_in() {
    let host = shared();
    for awkward in [r#"a"b\c,{d}"#, "NULL", "{}", "straße 🦀", "%41&tag=x+y", "'; DROP TABLE events; --"] {
        let note = format!("{}{awkward}", unique("n"));
        let data = json!({ "note": note, "text": "\u{0}\u{1}\n🦀", "number": -0.1e-7, "deep": [[[[{}]]]] });
        host.send("accept", &data).accepted();
        let encoded: String = format!("note:{note}").bytes().map(|byte| format!("%{byte:02X}")).collect();
        let event = host.first_events(1, &format!("tag={encoded}")).remove(0);
        assert_eq!((&event["tags"], &event["data"]), (&json!([format!("note:{note}")]), &data));
        assert_eq!(host.events(&format!("tag={encoded}")), [event]);
    }
}
