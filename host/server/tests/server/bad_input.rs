//! Requests that can't be understood. Each is told why, and what would be.

use serde_json::json;

use crate::answer::{Answer, assert_says};
use crate::components::unique;
use crate::host::{Host, shared};

/// What a body is answered that is no command's data.
fn refused_body(body: &[u8], status: u16, kind: &str, parts: &[&str]) {
    let host = shared();
    for command in ["accept", "subscribeStudentToCourse"] {
        let answer = host.post(&format!("/v1/commands/{command}"), &[], body).unwrap();
        assert_says(&answer.problem(status, kind), parts);
    }
}

#[test]
fn an_empty_body_is_told_what_to_send_in_its_place() {
    refused_body(b"", 400, "malformed-body", &["it is empty", "send the command's data, {} if it has none"]);
}

#[test]
fn a_body_that_is_not_json_is_told_where_it_goes_wrong() {
    refused_body(b"{\"note\": nothing}", 400, "malformed-body", &["not JSON", "line 1 column 11"]);
    refused_body(b"{} {}", 400, "malformed-body", &["not JSON", "trailing characters"]);
    refused_body(b"{\"note\":", 400, "malformed-body", &["not JSON", "EOF"]);
}

#[test]
fn a_body_that_is_not_utf8_is_told_the_byte() {
    refused_body(b"{\"note\":\"\xff\"}", 400, "malformed-body", &["not UTF-8", "index 9"]);
}

#[test]
fn a_body_nested_without_end_is_refused() {
    refused_body(
        "[".repeat(100_000).as_bytes(),
        400,
        "malformed-body",
        &["too deeply nested", "recursion limit"],
    );
}

#[test]
fn a_body_that_is_too_large_is_told_the_limit_however_large_it_is() {
    for size in [(1 << 20) + 1, 2 << 20, 8 << 20] {
        let body = format!("\"{}\"", "x".repeat(size - 2));
        refused_body(body.as_bytes(), 413, "body-too-large", &["1048576 bytes"]);
    }
}

#[test]
fn a_body_that_its_handler_cannot_read_is_its_handlers_to_refuse() {
    let host = shared();
    let answer =
        host.send("subscribeStudentToCourse", &json!({ "studentId": 7 })).rejected("invalid-command");
    assert_eq!(answer["handler"], "course-enrolment");
    assert_says(answer["detail"].as_str().unwrap(), &["studentId"]);
}

#[test]
fn an_unknown_command_is_told_those_that_there_are() {
    let answer = shared().send("subscribeStudent", &json!({}));
    let parts = ["\"subscribeStudent\"", "subscribeStudentToCourse", "defineCourse", "widen-forever"];
    assert_says(&answer.problem(404, "unknown-command"), &parts);
}

#[test]
fn a_command_whose_name_is_not_text_is_a_problem_too() {
    let answer = shared().post("/v1/commands/%FF", &[], b"{}").unwrap();
    assert_says(&answer.problem(400, "malformed-path"), &["UTF-8"]);
}

#[test]
fn an_unknown_route_is_told_those_that_there_are() {
    for path in ["/", "/v1/command/defineCourse", "/v1/commands/", "/v2/events"] {
        let answer = shared().get(path);
        assert_says(
            &answer.problem(404, "no-such-route"),
            &[path, "POST /v1/commands/{name}", "GET /v1/events"],
        );
    }
}

#[test]
fn the_wrong_method_is_told_the_right_one() {
    let host = shared();
    let agent = host.agent();
    for answer in [
        host.get("/v1/commands/accept"),
        host.post("/v1/events", &[], b"{}").unwrap(),
        host.post("/readyz", &[], b"").unwrap(),
        Answer::of(agent.delete(host.at("/v1/handlers")).call().unwrap()),
        Answer::of(agent.put(host.at("/v1/commands/accept")).send("{}").unwrap()),
    ] {
        assert_says(&answer.problem(405, "method-not-allowed"), &["sent with POST", "read with GET"]);
    }
}

fn refused_query(query: &str, parts: &[&str]) {
    assert_says(&shared().get(&format!("/v1/events?{query}")).problem(400, "malformed-query"), parts);
}

#[test]
fn a_malformed_parameter_is_named_with_what_it_may_be() {
    refused_query("after=-1", &["after is", "neither a position nor a cursor", "\"-1\""]);
    refused_query("after=99999999999999999999", &["after is", "neither a position nor a cursor"]);
    refused_query("after=", &["after is", "neither a position nor a cursor", "\"\""]);
    refused_query("limit=ten", &["limit must be a whole number", "\"ten\""]);
    refused_query("follow=yes", &["follow must be true or false", "\"yes\""]);
    refused_query("type=", &["the type \"\"", "it is empty"]);
    refused_query("tag=a%0Ab", &["the tag \"a\\nb\"", "control character at byte 1"]);
    refused_query(&format!("tag={}", "x".repeat(201)), &["201 bytes, 200 is the most"]);
}

#[test]
fn an_unknown_parameter_is_told_those_that_there_are() {
    refused_query("since=3", &["no parameter \"since\"", "after, type, tag, limit and follow"]);
}

#[test]
fn a_malformed_last_event_id_is_named() {
    let host = shared();
    let request = host.agent().get(host.at("/v1/events")).header("last-event-id", "latest");
    let detail = Answer::of(request.call().unwrap()).problem(400, "malformed-query");
    assert_says(&detail, &["Last-Event-ID", "neither a position nor a cursor", "\"latest\""]);
}

#[test]
fn a_position_past_every_end_is_no_error() {
    assert_eq!(shared().events(&format!("after={}", u64::MAX)), Vec::<serde_json::Value>::new());
}

#[test]
fn a_type_that_nothing_has_is_told_those_that_there_are() {
    let detail = shared().get("/v1/events?type=CourseDefind").problem(404, "unknown-type");
    assert_says(&detail, &["\"CourseDefind\"", "CourseDefined, ", "Noted"]);
    assert_eq!(detail.matches("CourseDefined").count(), 1, "each once: {detail}");
}

#[test]
fn a_tag_that_nothing_has_is_told_how_tags_are_matched() {
    let tag = unique("cours");
    let detail = shared().get(&format!("/v1/events?tag={tag}")).problem(404, "unknown-tag");
    assert_says(&detail, &[&tag, "matched as a whole, such as course:c1"]);
}

#[test]
fn an_id_that_is_too_long_or_no_text_is_refused_by_the_name_of_its_header() {
    let host = shared();
    for (id, header) in [
        ("x".repeat(201), "weir-correlation-id"),
        ("x".repeat(5000), "weir-causation-id"),
        ("ü".into(), "weir-causation-id"),
        (String::new(), "weir-correlation-id"),
    ] {
        let answer = send_with_id(&host, header, &id);
        assert_says(&answer.problem(400, "malformed-id"), &[header, "1 to 200 bytes of visible ASCII"]);
    }
    send_with_id(&host, "weir-correlation-id", &"x".repeat(200)).accepted();
}

fn send_with_id(host: &Host, header: &str, id: &str) -> Answer {
    let data = json!({ "note": unique("id") }).to_string();
    host.post("/v1/commands/accept", &[(header, id)], data.as_bytes()).unwrap()
}
