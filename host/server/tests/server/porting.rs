//! A log written to a file and read back into another store.

use serde_json::{Value, json};

use crate::components::course_enrolment;
use crate::host::Host;
use crate::program::Run;
use crate::store::Store;

/// A log with everything that can be in one: a handler's events, others with line breaks in their data, metadata.
fn filled(store: &Store) -> Host {
    let host = Host::start(store).with(&[course_enrolment()]);
    for n in 0..5 {
        host.send("defineCourse", &json!({ "courseId": format!("c{n}"), "capacity": 1 })).accepted();
    }
    let body = "{\"events\":[{\"type\":\"A\",\"tags\":[\"x:1\",\"y:\\\"2\"],\"data\":{\r\n \"a\" : 1.0 },\"metadata\":{\"who\":\"me\"}}]}";
    let headers = [("weir-append-id", "mine"), ("weir-causation-id", "cause")];
    host.post("/v1/append", &headers, body.as_bytes()).unwrap().ok();
    store.drained();
    host
}

#[test]
fn an_exported_log_comes_back_as_it_was_under_every_strategy() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let from = Store::new();
    let host = filled(&from);
    let exported = file("log.ndjson");
    assert_eq!(
        Run::of(&["export", "--url", &host.at(""), &exported]).succeeded(),
        format!("exported 6 events to {exported}\n")
    );
    let complaint = Run::of(&["export", "--url", &host.at(""), &exported]).complained();
    assert!(complaint.contains("exists already"), "{complaint}");
    let log = std::fs::read_to_string(&exported).unwrap();
    assert_eq!(Run::of(&["export", "--url", &host.at("")]).succeeded(), log);

    for strategy in ["global", "boundary", "hybrid", "staging"] {
        let to = Store::new();
        let target = Host::start(&to);
        target.put("/v1/settings", &json!({ "strategy": strategy }).to_string()).ok();
        let url = target.at("");
        let said = Run::of(&["import", "--url", &url, &exported]).succeeded();
        assert_eq!(said, "imported: the log has 6 events\n");
        let again = crate::patience::eventually("the import can be followed", || {
            let again = Run::of(&["export", "--url", &url]).succeeded();
            (again.lines().count() == 6).then_some(again)
        });
        let without_cursor = |log: &str| -> Vec<Value> {
            let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            lines
                .map(|mut line| {
                    line.as_object_mut().unwrap().remove("cursor");
                    line
                })
                .collect()
        };
        assert_eq!(without_cursor(&again), without_cursor(&log), "{strategy}");
        if strategy != "boundary" {
            assert_eq!(again, log, "byte for byte");
        }
        // It goes on from there, and what was imported counts in a condition.
        let taken = json!({
            "events": [{ "type": "B", "data": 1 }],
            "condition": { "query": { "items": [{ "types": ["A"], "tags": ["x:1"] }] } },
        });
        target.post("/v1/append", &[], taken.to_string().as_bytes()).unwrap().problem(409, "conflict");
        let target = target.with(&[course_enrolment()]);
        target.send("defineCourse", &json!({ "courseId": "c0", "capacity": 1 })).rejected("course-exists");
        target.send("defineCourse", &json!({ "courseId": "c9", "capacity": 1 })).accepted();
        to.drained();
        let head = target.first_events(7, "")[6]["position"].clone();
        assert_eq!(head, 7);
    }
}

#[test]
fn an_import_that_was_cut_off_goes_on_and_one_made_twice_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let from = Store::new();
    let host = filled(&from);
    let log = Run::of(&["export", "--url", &host.at("")]).succeeded();
    let (whole, part) = (place.path().join("whole"), place.path().join("part"));
    std::fs::write(&whole, &log).unwrap();
    std::fs::write(&part, log.lines().take(2).map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let (whole, part) = (whole.to_str().unwrap(), part.to_str().unwrap());

    let to = Store::new();
    let target = Host::start(&to);
    let url = target.at("");
    Run::of(&["import", "--url", &url, part]).succeeded();
    let complaint = Run::of(&["import", "--url", &url, whole]).complained();
    assert!(complaint.contains("2 events already") && complaint.contains("--resume"), "{complaint}");
    assert_eq!(
        Run::of(&["import", "--url", &url, "--resume", whole]).succeeded(),
        "imported: the log has 6 events\n"
    );
    assert_eq!(Run::of(&["export", "--url", &url]).succeeded(), log);
    let complaint = Run::of(&["import", "--url", &url, "--resume", part]).complained();
    assert!(complaint.contains("more events than"), "{complaint}");

    // A batch that says where it belongs is not taken twice.
    let answer = target.post("/v1/import?expected_head=0", &[], log.as_bytes()).unwrap();
    assert!(answer.problem(409, "other-head").contains("ends at position 6"));
}

#[test]
fn a_line_that_is_no_event_is_named_and_nothing_of_its_batch_is_taken() {
    let store = Store::new();
    let host = Host::start(&store);
    let good = r#"{"type":"A","tags":[],"data":1,"recorded_at":"2026-01-01T00:00:00Z","command_id":"c"}"#;
    for (bad, why) in [
        ("{", "EOF"),
        (r#"{"type":"A"}"#, "missing field"),
        (&good.replace("\"A\"", "\"\""), "empty"),
        (&good.replace("2026-01-01", "yesterday"), "recorded_at"),
        (&good.replace("\"c\"}", "\"c\",\"handler\":\"h\",\"version\":\"xy\"}"), "SHA-256"),
        (&good.replace("\"tags\"", "\"tag\""), "unknown field `tag`"),
    ] {
        let detail =
            host.post("/v1/import?expected_head=0", &[], format!("{good}\n{bad}\n").as_bytes()).unwrap();
        let detail = detail.problem(400, "malformed-import");
        assert!(detail.contains("line 2: ") && (detail.contains(why) || why == "recorded_at"), "{detail}");
    }
    host.post("/v1/import", &[], good.as_bytes()).unwrap().problem(400, "malformed-import");
    assert!(host.events("").is_empty());
    host.post("/v1/import?expected_head=0", &[], good.as_bytes()).unwrap().ok();
    assert_eq!(host.events("")[0]["recorded_at"], "2026-01-01T00:00:00Z");
}
