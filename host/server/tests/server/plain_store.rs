//! The store for programs that are no handlers: read and append over HTTP and from a shell.

use serde_json::{Value, json};

use crate::answer::{Answer, assert_says};
use crate::host::Host;
use crate::patience::eventually;
use crate::program::Run;
use crate::store::Store;

fn append(host: &Host, body: &Value) -> Answer {
    append_as(host, body, &[])
}

fn append_as(host: &Host, body: &Value, headers: &[(&str, &str)]) -> Answer {
    host.post("/v1/append", headers, body.to_string().as_bytes()).unwrap()
}

fn event(event_type: &str, tags: &[&str], data: &Value) -> Value {
    json!({ "type": event_type, "tags": tags, "data": data })
}

fn query(types: &[&str], tags: &[&str]) -> Value {
    json!({ "items": [{ "types": types, "tags": tags }] })
}

/// The events of a read, and its last line.
fn read(host: &Host, body: &Value) -> (Vec<Value>, Value) {
    let answer = host.post("/v1/read", &[], body.to_string().as_bytes()).unwrap();
    assert_eq!((answer.status, &*answer.content_type), (200, "application/x-ndjson"), "{answer:?}");
    let mut lines: Vec<Value> = answer.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let end = lines.pop().unwrap();
    assert!(end["token"].is_string(), "{end}");
    (lines, end)
}

fn data(events: &[Value]) -> Vec<&Value> {
    events.iter().map(|event| &event["data"]).collect()
}

#[test]
fn what_was_read_can_be_decided_on_and_a_match_that_came_since_is_a_conflict() {
    let store = Store::new();
    let host = Host::start(&store);
    for strategy in ["staging", "global", "boundary", "hybrid"] {
        host.put("/v1/settings", &json!({ "strategy": strategy }).to_string()).ok();
        let (mine, other) = (format!("x:{strategy}"), format!("y:{strategy}"));
        let q = query(&["A", "B"], &[&mine]);
        let (events, end) = read(&host, &json!({ "query": q }));
        assert!(events.is_empty());
        let body = json!({
            "events": [event("A", &[&mine, &other], &json!(1)), event("B", &[&mine], &json!(2))],
            "condition": { "query": q, "token": end["token"] },
        });
        let answer = append(&host, &body).ok();
        assert_eq!(answer["outcome"], "appended");
        let detail = append(&host, &body).problem(409, "conflict");
        assert_says(&detail, &["read again"]);

        let (events, end) = read(&host, &json!({ "query": q }));
        assert_eq!(data(&events), [&json!(1), &json!(2)], "{strategy}");
        assert_eq!(events[0]["command_id"], answer["id"]);
        assert_eq!(events[0]["tags"], json!([mine, other]));
        let elsewhere = json!({ "events": [event("A", &["z:1"], &json!(3))], "condition": { "query": q, "token": end["token"] } });
        append(&host, &elsewhere).ok();
        append(&host, &elsewhere).ok();
    }
}

#[test]
fn a_log_is_read_forwards_and_backwards_between_positions_and_up_to_a_limit() {
    let store = Store::new();
    let host = Host::start(&store);
    for n in 1..=5 {
        let body = json!({ "events": [event("A", &["x:1"], &json!(n)), event("B", &[], &json!(-n))] });
        append(&host, &body).ok();
    }
    store.drained();
    append(&host, &json!({ "events": [event("A", &["x:1"], &json!(6))] })).ok();
    let items = json!({ "items": [{ "types": ["A"] }] });
    let seen = |wanted: Value| {
        let (events, end) = read(&host, &wanted);
        assert!(end["head"].as_u64().is_some_and(|head| head >= 10));
        events.iter().map(|event| event["data"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(
        seen(json!({})),
        [1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6],
        "what is not numbered yet is read too"
    );
    assert_eq!(seen(json!({ "backwards": true, "limit": 3 })), [6, -5, 5]);
    assert_eq!(seen(json!({ "query": items, "backwards": true })), [6, 5, 4, 3, 2, 1]);
    assert_eq!(seen(json!({ "query": items, "after": 3, "before": 9 })), [3, 4]);
    assert_eq!(
        seen(json!({ "query": items, "after": 2, "before": 9, "backwards": true, "limit": 2 })),
        [4, 3]
    );
    assert_eq!(seen(json!({ "limit": 0 })), [0_i64; 0]);
}

#[test]
fn a_position_serves_as_a_token_where_positions_come_in_order_and_nothing_stands_for_the_whole_log() {
    let store = Store::new();
    let host = Host::start(&store);
    append(&host, &json!({ "events": [event("A", &["x:1"], &json!(1))] })).ok();
    store.drained();
    let with = |condition: Value| {
        append(&host, &json!({ "events": [event("B", &[], &json!(2))], "condition": condition }))
    };
    let q = query(&["A"], &["x:1"]);
    with(json!({ "query": q })).problem(409, "conflict");
    with(json!({ "query": q, "after": 0 })).problem(409, "conflict");
    with(json!({ "query": query(&["A"], &["x:2"]) })).ok();
    with(json!({ "query": q, "after": 1 })).ok();
    let detail = with(json!({ "query": q, "after": 1000 })).problem(400, "position-is-no-token");
    assert_says(&detail, &["position 1000", "token of a read"]);
    host.put("/v1/settings", &json!({ "strategy": "boundary" }).to_string()).ok();
    append(&host, &json!({ "events": [event("A", &["x:3"], &json!(1))] })).ok();
    with(json!({ "query": q, "after": 4 })).problem(400, "position-is-no-token");
    with(json!({ "query": query(&["A"], &["x:2"]) })).ok();
}

#[test]
fn an_append_with_an_id_is_made_once_and_the_id_belongs_to_its_events() {
    let store = Store::new();
    let (host, other) = (Host::start(&store), Host::start(&store));
    let q = query(&["A"], &["x:1"]);
    let body = json!({ "events": [event("A", &["x:1"], &json!(1))], "condition": { "query": q } });
    let headers =
        [("weir-append-id", "mine"), ("weir-correlation-id", "talk"), ("weir-causation-id", "cause")];
    assert_eq!(append_as(&host, &body, &headers).ok(), json!({ "outcome": "appended", "id": "mine" }));
    assert_eq!(append_as(&other, &body, &headers).ok(), json!({ "outcome": "appended", "id": "mine" }));
    let (events, _) = read(&host, &json!({ "query": q }));
    assert_eq!(events.len(), 1);
    assert_eq!(
        (&events[0]["command_id"], &events[0]["correlation_id"], &events[0]["causation_id"]),
        (&json!("mine"), &json!("talk"), &json!("cause"))
    );
    let else_ = json!({ "events": [event("A", &["x:1"], &json!(2))] });
    let detail = append_as(&host, &else_, &headers).problem(409, "append-id-reused");
    assert_says(&detail, &["mine"]);
    // A conflict leaves the id free.
    let conflicting = json!({ "events": [event("B", &[], &json!(3))], "condition": { "query": q } });
    append_as(&host, &conflicting, &[("weir-append-id", "again")]).problem(409, "conflict");
    let free = json!({ "events": [event("B", &[], &json!(3))] });
    append_as(&host, &free, &[("weir-append-id", "again")]).ok();
}

#[test]
fn what_can_not_be_appended_or_read_is_refused_with_the_place_and_the_reason() {
    let store = Store::new();
    let host = Host::start(&store);
    let say = |body: Value| append(&host, &body).problem(400, "malformed-append");
    assert_says(&say(json!({ "events": [] })), &["no events"]);
    assert_says(&say(json!({ "event": [] })), &["unknown field `event`"]);
    assert_says(
        &say(json!({ "events": [event("A", &["x:1"], &json!(1)), event("", &[], &json!(1))] })),
        &["event 1", "empty"],
    );
    assert_says(
        &say(json!({ "events": [event("A", &[" x"], &json!(1))] })),
        &["event 0", "\" x\"", "white space"],
    );
    let many: Vec<String> = (0..33).map(|n| format!("t:{n}")).collect();
    assert_says(
        &say(json!({ "events": [{ "type": "A", "tags": many, "data": 1 }] })),
        &["event 0", "33 tags, 32 is the most"],
    );
    let deep = "[".repeat(200) + &"]".repeat(200);
    let body = format!(r#"{{"events":[{{"type":"A","data":{deep}}}]}}"#);
    host.post("/v1/append", &[], body.as_bytes()).unwrap().problem(400, "malformed-append");
    let a = event("A", &["x:1"], &json!(1));
    let with = |condition: Value| json!({ "events": [a], "condition": condition });
    assert_says(&say(with(json!({ "query": { "items": [] } }))), &["names no item"]);
    assert_says(&say(with(json!({ "query": query(&["A"], &["x:1"]), "token": "r2.1" }))), &["no read token"]);
    assert_says(
        &say(with(json!({ "query": query(&["A"], &["x:1"]), "token": "r1.1.-.1", "after": 1 }))),
        &["one of them"],
    );
    let detail =
        append(&host, &with(json!({ "query": query(&["A"], &[]) }))).problem(400, "condition-refused");
    assert_says(&detail, &["query item 0", "(A)", "no tag"]);
    let foreign = read(&host, &json!({ "query": query(&["A"], &["x:2"]) })).1["token"].clone();
    let detail = append(&host, &with(json!({ "query": query(&["A"], &["x:1"]), "token": foreign })))
        .problem(400, "condition-refused");
    assert_says(&detail, &["another query"]);
    let detail = append(&host, &json!({ "events": vec![a.clone(); 501] })).problem(400, "append-too-large");
    assert_says(&detail, &["501 events", "500 is the most"]);
    host.post("/v1/read", &[], b"7").unwrap().problem(400, "malformed-read");
    let answer = host.post("/v1/read", &[], br#"{"limit":-1}"#).unwrap();
    answer.problem(400, "malformed-read");
    assert!(host.events("").is_empty(), "none of this left a trace");
}

#[test]
fn metadata_and_data_come_back_as_they_were_given() {
    let store = Store::new();
    let host = Host::start(&store);
    let body = "{\"events\":[{\"type\":\"A\",\"tags\":[],\"data\":{ \"b\" : 1,\n\"a\":1.0 },\"metadata\":{\"who\":\"me\"}}]}";
    Answer::ok(host.post("/v1/append", &[], body.as_bytes()).unwrap());
    let lines = host.first_events(1, "");
    assert_eq!(lines[0]["data_text"], "{ \"b\" : 1,\n\"a\":1.0 }");
    assert_eq!((&lines[0]["data"]["b"], &lines[0]["metadata"]), (&json!(1), &json!({ "who": "me" })));
    let (events, _) = read(&host, &json!({}));
    assert_eq!(events[0]["metadata"], json!({ "who": "me" }));
}

#[test]
fn from_a_shell_an_event_is_appended_unless_one_like_it_is_there() {
    let store = Store::new();
    let host = Host::start(&store);
    let url = host.at("");
    let user = ["append", "--url", &url, "UserCreated", r#"{"name":"ann"}"#, "--tag", "user:ann"];
    let unless = ["--unless-type", "UserCreated", "--unless-tag", "user:ann"];
    assert!(Run::of(&[&user[..], &unless].concat()).succeeded().starts_with("appended 1 ("));
    let again = Run::of(&[&user[..], &unless].concat());
    assert_eq!((again.code, again.stdout.starts_with("conflict: ")), (Some(2), true), "{again:?}");

    let said = Run::of(&["read", "--url", &url, "--type", "UserCreated", "--tag", "user:ann"]).succeeded();
    let token = said.lines().last().unwrap().strip_prefix("token ").unwrap().to_owned();
    assert!(said.contains(r#"UserCreated [user:ann] {"name":"ann"}"#), "{said}");
    let token = ["--token", &token];
    Run::of(&[&user[..], &unless, &token].concat()).succeeded();
    assert_eq!(Run::of(&[&user[..], &unless, &token].concat()).code, Some(2));

    let mut several = crate::program::weir(&["append", "--url", &url, "--events", "-", "--id", "three"]);
    let lines = "{\"type\":\"A\",\"tags\":[],\"data\":1}\n\n{\"type\":\"B\",\"data\":2}\n";
    assert_eq!(Run::of_command(&mut several, lines).succeeded(), "appended 2 (three)\n");
    let complaint = Run::of(&["append", "--url", &url, "A", "{", "--tag", "x"]).complained();
    assert!(complaint.contains("not JSON"), "{complaint}");
    let complaint = Run::of(&["append", "--url", &url, "A", "--after", "3"]).complained();
    assert!(complaint.contains("--unless-type"), "{complaint}");
    eventually("all are numbered", || (host.events("").len() == 4).then_some(()));
    let backwards = Run::of(&["read", "--url", &url, "--backwards", "--limit", "1", "--json"]).succeeded();
    let first: Value = serde_json::from_str(backwards.lines().next().unwrap()).unwrap();
    assert_eq!((&first["type"], &first["position"]), (&json!("B"), &json!(4)));
}
