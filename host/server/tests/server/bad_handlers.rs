//! Handlers that fail, each for its own caller alone, who is told which, in what version, where and why.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::answer::assert_says;
use crate::components::{course_enrolment, misbehaving, short, unique};
use crate::host::{Host, shared};
use crate::store::Store;

/// Sends a command that fails, and expects the failure to be told and to leave nothing behind.
fn fails(host: &Host, command: &str, call: &str, parts: &[&str]) {
    let handlers = host.get("/v1/handlers").ok();
    let ours =
        handlers.as_array().unwrap().iter().find(|handler| handler["handler"] == "misbehaving").unwrap();
    let version = short(ours["version"].as_str().unwrap());

    let note = unique(command);
    let detail = host.send(command, &json!({ "note": note })).problem(500, "handler-failed");
    let who = format!("handler \"misbehaving\" (version {version}) failed in {call}: ");
    assert!(detail.starts_with(&who), "{detail}");
    for part in parts {
        assert!(detail.contains(part), "{part:?} is missing in: {detail}");
    }
    host.send("accept", &json!({ "note": note })).accepted();
    let events = host.first_events(1, &format!("tag=note:{note}"));
    assert_eq!(events[0]["data"], json!({ "note": note }), "the failed command has left something");
}

#[test]
fn a_panic_is_told_with_its_message() {
    fails(&shared(), "panic", "decide", &["it trapped: ", "the decision is to panic"]);
    fails(&shared(), "panic-in-boundary", "boundary", &["it trapped: ", "no boundary today"]);
}

#[test]
fn an_exit_is_told() {
    fails(&shared(), "exit", "decide", &["it trapped: ", "exit"]);
}

#[test]
fn an_event_that_a_handler_trips_over_fails_those_that_read_it_and_no_others() {
    let store = Store::new();
    let host = Host::start(&store).with(&[misbehaving()]);
    host.send("accept", &json!({ "poison": true })).accepted();
    let detail = host.send("accept", &json!({})).problem(500, "handler-failed");
    assert!(
        detail.contains("failed in apply: it trapped: ") && detail.contains("this event is poison"),
        "{detail}"
    );
    host.send("accept", &json!({ "note": "elsewhere" })).accepted();
}

#[test]
fn a_loop_is_stopped_at_its_deadline() {
    let store = Store::new();
    let host = Host::start_with(&store, &["--guest-milliseconds", "300"]).with(&[misbehaving()]);
    let began = Instant::now();
    fails(&host, "loop", "decide", &["it ran longer than 300ms"]);
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn one_that_allocates_without_end_is_told_its_limit() {
    fails(&shared(), "allocate", "decide", &["MiB of memory, its limit is 64 MiB"]);
}

#[test]
fn a_malformed_type_is_told() {
    fails(&shared(), "bad-type", "decide", &["it answered nonsense: ", "an event of type \"No\\nted\""]);
    fails(&shared(), "empty-type", "decide", &["it answered nonsense: ", "an event of type \"\""]);
}

#[test]
fn a_type_that_the_handler_did_not_declare_is_told() {
    fails(&shared(), "undeclared-type", "decide", &["nonsense", "\"Undeclared\""]);
}

#[test]
fn a_malformed_tag_is_told_by_event_and_reason() {
    fails(&shared(), "bad-tag", "decide", &["event 0: the tag \" tag\\u{7}\" is malformed: "]);
}

#[test]
fn malformed_data_is_told_by_event_and_reason() {
    fails(&shared(), "bad-data", "decide", &["event 0: the data of Noted can't be stored: it is not JSON"]);
    fails(
        &shared(),
        "deep-data",
        "decide",
        &["event 0: the data of Noted can't be stored: ", "too deeply nested"],
    );
}

#[test]
fn an_answer_without_measure_is_told_its_limit() {
    fails(&shared(), "huge-answer", "decide", &["its answer is larger than 16 MiB"]);
    fails(&shared(), "many-events", "decide", &["its answer is larger than 16 MiB"]);
}

#[test]
fn an_unscoped_boundary_is_told_by_query_item() {
    fails(&shared(), "unscoped", "boundary", &["it answered nonsense: query item 0 (Noted) names no tag"]);
    fails(
        &shared(),
        "unscoped-no-type",
        "boundary",
        &["it answered nonsense: query item 0", "names no event type"],
    );
}

#[test]
fn a_boundary_that_is_widened_without_end_or_by_nothing_new_is_told() {
    fails(&shared(), "widen-forever", "decide", &["nonsense: it widened the boundary more than 4 times"]);
    fails(&shared(), "widen-by-nothing", "decide", &["nonsense: it widened the boundary by nothing"]);
}

#[test]
fn words_on_the_standard_error_are_no_failure() {
    let data = json!({ "note": unique("stderr") });
    assert_eq!(shared().send("stderr", &data).accepted()["attempts"], 1);
}

#[test]
fn eight_callers_of_a_handler_that_fails_disturb_nobody_else() {
    let store = Store::new();
    let host = Host::start_with(&store, &["--guest-milliseconds", "2000"])
        .with(&[course_enrolment(), misbehaving()]);
    let still_failing = AtomicUsize::new(8);
    thread::scope(|scope| {
        for command in ["loop", "allocate", "panic", "loop", "allocate", "panic", "loop", "huge-answer"] {
            let (host, still_failing) = (&host, &still_failing);
            scope.spawn(move || {
                host.send(command, &json!({ "note": unique("many") })).problem(500, "handler-failed");
                still_failing.fetch_sub(1, Ordering::Relaxed);
            });
        }
        let mut meanwhile = 0;
        while still_failing.load(Ordering::Relaxed) > 0 {
            let data: Value = json!({ "courseId": unique("c"), "capacity": 3 });
            assert_eq!(host.send("defineCourse", &data).accepted()["handler"], "course-enrolment");
            meanwhile += 1;
        }
        assert!(meanwhile > 0);
    });
    assert_says(&host.get("/readyz").body, &["ready"]);
}
