//! The commands that talk to a host: `send`, `events`, `deploy`; and `migrate`.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::answer::assert_says;
use crate::components::{self, unique};
use crate::host::{Host, shared};
use crate::patience::Lines;
use crate::program::{Run, ended, weir};
use crate::store::Store;

fn send(host: &Host, command: &str, data: &str) -> Run {
    Run::of(&["send", command, data, "--url", &host.url])
}

#[test]
fn send_prints_the_events_of_an_accepted_command_and_ends_with_0() {
    let host = shared();
    let course = unique("c");
    let printed =
        send(&host, "defineCourse", &json!({ "courseId": course, "capacity": 2 }).to_string()).succeeded();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 2, "{printed}");
    assert!(lines[0].starts_with("accepted defineCourse ("), "{printed}");
    assert!(lines[1].starts_with(&format!("  CourseDefined [course:{course}] {{")), "{printed}");
}

#[test]
fn send_prints_the_reason_of_a_refusal_and_ends_with_2() {
    let host = shared();
    let run = send(&host, "subscribeStudentToCourse", r#"{"studentId":"s","courseId":"nowhere"}"#);
    assert_eq!((run.code, &*run.stderr), (Some(2), ""), "{run:?}");
    let expected = "rejected subscribeStudentToCourse: Course \"nowhere\" does not exist (course-unknown)\n";
    assert_eq!(run.stdout, expected);
}

#[test]
fn send_complains_of_everything_else_in_one_line_and_ends_with_1() {
    let host = shared();
    assert_says(
        &send(&host, "nosuch", "{}").complained(),
        &["Unknown command: ", "\"nosuch\"", "defineCourse"],
    );
    assert_says(
        &send(&host, "defineCourse", "{courseId:1}").complained(),
        &["not JSON", "it was: {courseId:1}"],
    );
    assert_says(&send(&host, "defineCourse", "@no/such.json").complained(), &["can't read no/such.json"]);
    let failed = send(&host, "empty-type", &json!({ "note": unique("n") }).to_string()).complained();
    assert_says(&failed, &["The handler failed: ", "\"misbehaving\""]);
    // A panic's message has lines of its own, and still the complaint is one.
    let failed = send(&host, "panic", &json!({ "note": unique("n") }).to_string()).complained();
    assert_says(&failed, &["The handler failed: ", "the decision is to panic"]);
}

#[test]
fn send_reads_its_data_from_a_file_or_the_standard_input() {
    let host = shared();
    let data = || json!({ "courseId": unique("c"), "capacity": 2 }).to_string();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data.json");
    fs::write(&file, data()).unwrap();
    let printed = send(&host, "defineCourse", &format!("@{}", file.display())).succeeded();
    assert!(printed.starts_with("accepted "), "{printed}");

    let mut command = weir(&["send", "defineCourse", "-", "--url", &host.url]);
    let printed = Run::of_command(&mut command, &data()).succeeded();
    assert!(printed.starts_with("accepted "), "{printed}");
}

#[test]
fn without_a_host_the_complaint_says_what_to_do() {
    for arguments in [
        &["send", "x"][..],
        &["status"],
        &["settings"],
        &["events"],
        &["events", "--follow"],
        &["deploy", file!()],
    ] {
        let mut command = weir(arguments);
        command
            .env("WEIR_URL", "http://127.0.0.1:1")
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let line = Run::of_command(&mut command, "").complained();
        assert_says(&line, &["no answer from a host at http://127.0.0.1:1", "weir dev", "--url"]);
    }
}

#[test]
fn events_prints_a_line_for_each_event() {
    let host = shared();
    let (course, student) = (unique("c"), unique("s"));
    host.send("defineCourse", &json!({ "courseId": course, "capacity": 2 })).accepted();
    host.send("subscribeStudentToCourse", &json!({ "studentId": student, "courseId": course })).accepted();
    let tag = format!("course:{course}");
    let logged = host.first_events(2, &format!("tag={tag}"));

    let arguments = ["events", "--tag", &tag, "--url", &host.url];
    let printed = Run::of(&arguments).succeeded();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 2, "{printed}");
    assert!(lines[0].contains(&format!("  CourseDefined [{tag}] {{")), "{printed}");
    assert!(
        lines[1].contains(&format!("  StudentSubscribedToCourse [student:{student}, {tag}] {{")),
        "{printed}"
    );
    assert!(lines[0].trim_start().starts_with(&format!("{}  20", logged[0]["position"])), "{printed}");

    let printed = Run::of(&[&arguments[..], &["--json"]].concat()).succeeded();
    let lines: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, logged);

    let after = logged[0]["position"].to_string();
    let more =
        ["--after", &after, "--type", "CourseDefined", "--type", "StudentSubscribedToCourse", "--limit", "1"];
    let printed = Run::of(&[&arguments[..], &more, &["--follow"]].concat()).succeeded();
    assert!(printed.contains("StudentSubscribedToCourse") && printed.lines().count() == 1, "{printed}");
}

#[test]
fn events_complains_of_a_type_or_tag_that_nothing_has() {
    let url = &shared().url;
    let line = Run::of(&["events", "--type", "CourseDefind", "--url", url]).complained();
    assert_says(&line, &["Unknown event type: ", "CourseDefined"]);
    let line = Run::of(&["events", "--tag", "a b&c=d", "--url", url]).complained();
    assert_says(&line, &["Unknown tag: ", "\"a b&c=d\""]);
}

#[test]
fn events_ends_without_a_complaint_when_its_reader_has_seen_enough() {
    let host = shared();
    let note = unique("head");
    host.send("accept", &json!({ "note": note })).accepted();
    let mut command = weir(&["events", "--follow", "--tag", &format!("note:{note}"), "--url", &host.url]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 1];
    let mut stdout = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut stdout, &mut first).unwrap();
    drop(stdout);
    host.send("accept", &json!({ "note": note })).accepted();
    assert!(ended(&mut child).success());
    assert_eq!(Lines::of(child.stderr.take().unwrap()).next(), None);
}

#[test]
fn deploy_says_what_is_active_now() {
    let store = Store::new();
    let host = Host::start(&store);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("handler.wasm").display().to_string();
    fs::write(&file, components::course_enrolment()).unwrap();
    let deploy = || Run::of(&["deploy", &file, "--url", &host.url]);
    let printed = deploy().succeeded();
    assert_says(
        &printed,
        &["course-enrolment ", " is active and handles defineCourse, changeCourseCapacity, "],
    );
    assert_says(&deploy().succeeded(), &["course-enrolment ", "was active already, nothing changed"]);

    fs::write(&file, components::misbehaving()).unwrap();
    deploy().succeeded();
    fs::write(&file, components::rival()).unwrap();
    let line = deploy().complained();
    assert_says(&line, &[&file, "Another handler has that command", "\"misbehaving\""]);
    let line = Run::of(&["deploy", "no/such.wasm", "--url", &host.url]).complained();
    assert_says(&line, &["can't read no/such.wasm"]);
}

#[test]
fn migrate_can_be_run_again() {
    let store = Store::new();
    let migrate =
        || Run::of(&["migrate", "--database-url", &store.url, "--schema", &store.schema]).succeeded();
    let first = migrate();
    assert_says(&first, &[&store.schema, "is up to date"]);
    assert_eq!(migrate(), first);

    let mut by_environment = weir(&["migrate"]);
    by_environment.env("DATABASE_URL", &store.url).env("WEIR_SCHEMA", &store.schema);
    assert_eq!(Run::of_command(&mut by_environment, "").succeeded(), first);
}

#[test]
fn every_command_has_its_help() {
    for command in ["dev", "serve", "migrate", "deploy", "settings", "status", "send", "events"] {
        let help = Run::of(&[command, "--help"]).succeeded();
        assert!(help.contains(&format!("Usage: weir {command}")), "{help}");
        assert!(Run::of(&["help", command]).succeeded().contains("Usage: "));
    }
    let help = Run::of(&["--help"]).succeeded();
    assert!(
        ["dev", "serve", "migrate", "deploy", "settings", "status", "send", "events"]
            .iter()
            .all(|name| help.contains(name)),
        "{help}"
    );
    assert_eq!(Run::of(&["--version"]).succeeded(), concat!("weir ", env!("CARGO_PKG_VERSION"), "\n"));
}
