//! What Prometheus collects.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::components::{course_enrolment, misbehaving};
use crate::host::Host;
use crate::patience::eventually;
use crate::postgres::Postgres;
use crate::program::Run;
use crate::store::Store;

/// A scrape, every line of which is valid: series by name and labels, without the store's.
struct Scrape(BTreeMap<String, f64>);

impl Scrape {
    fn of(host: &Host, store: &Store) -> Self {
        let answer = host.get("/metrics");
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
        let body = answer.body.strip_suffix("# EOF\n").expect("it ends with its mark");
        let (mut types, mut series) = (BTreeMap::new(), BTreeMap::new());
        let mut family = String::new();
        for line in body.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                let [kind, name, rest] = comment.splitn(3, ' ').collect::<Vec<_>>().try_into().expect(line);
                assert!(name.starts_with("weir_") && !rest.is_empty(), "{line}");
                match kind {
                    "HELP" => assert!(rest.ends_with('.'), "{line}"),
                    "TYPE" => {
                        let new = types.insert(name.to_owned(), rest.to_owned()).is_none();
                        assert!(new, "described twice: {line}");
                        family = name.to_owned();
                    }
                    "UNIT" => assert!(name.ends_with(&format!("_{rest}")), "{line}"),
                    _ => panic!("{line}"),
                }
                continue;
            }
            let (name_and_labels, value) = line.rsplit_once(' ').expect(line);
            let (name, labels) = name_and_labels.split_once('{').unwrap_or((name_and_labels, "}"));
            let suffix =
                name.strip_prefix(&family).unwrap_or_else(|| panic!("apart from its family: {line}"));
            let suffixes: &[&str] = match types[&family].as_str() {
                "counter" => &["_total"],
                "gauge" => &[""],
                "histogram" => &["_sum", "_count", "_bucket"],
                "info" => &["_info"],
                other => panic!("{other}"),
            };
            assert!(suffixes.contains(&suffix), "{line}");
            let mut rest = Vec::new();
            for label in labels.strip_suffix('}').expect(line).split(',').filter(|label| !label.is_empty()) {
                let (key, value) = label.split_once("=\"").expect(line);
                let value = value.strip_suffix('"').expect(line);
                match key {
                    "store" => assert_eq!(value, store.schema),
                    _ => rest.push(format!("{key}={value}")),
                }
            }
            assert!(labels.contains("store=") || suffix == "_info", "{line}");
            let key = [&[name.trim_start_matches("weir_").to_owned()], &rest[..]].concat().join(" ");
            let new = series.insert(key, value.parse().expect(line)).is_none();
            assert!(new, "twice: {line}");
        }
        Self(series)
    }

    fn get(&self, series: &str) -> f64 {
        *self.0.get(series).unwrap_or_else(|| panic!("no {series} in {:#?}", self.0))
    }

    fn all(&self, expected: &[(&str, f64)]) {
        for (series, value) in expected {
            assert!((self.get(series) - value).abs() < f64::EPSILON, "{series} is {}", self.get(series));
        }
    }

    fn names(&self) -> BTreeSet<&str> {
        self.0.keys().filter_map(|series| series.split(' ').next()).collect()
    }
}

#[test]
fn counters_move_with_what_becomes_of_commands() {
    let store = Store::new();
    let host = Host::start(&store).with(&[course_enrolment(), misbehaving()]);
    let outcomes = ["accepted", "rejected", "conflict", "failed", "overloaded"];
    let commands = outcomes.map(|outcome| format!("commands_total outcome={outcome}"));
    let before = Scrape::of(&host, &store);
    let zero: Vec<(&str, f64)> = commands.iter().map(|series| (series.as_str(), 0.0)).collect();
    before.all(&zero);
    before.all(&[
        ("command_attempts_total", 0.0),
        ("appends_total outcome=appended", 0.0),
        ("appends_total outcome=conflict", 0.0),
        ("handlers state=ready", 2.0),
        ("handlers state=unready", 0.0),
        ("store_up", 1.0),
        (concat!("build_info version=", env!("CARGO_PKG_VERSION")), 1.0),
    ]);

    let course = json!({ "courseId": "c1", "capacity": 1 });
    host.send("defineCourse", &course).accepted();
    host.send("subscribeStudentToCourse", &json!({ "studentId": "s1", "courseId": "c1" })).accepted();
    host.send("defineCourse", &course).problem(422, "rejected");
    host.send("nosuch", &json!({})).problem(404, "unknown-command");
    host.send("panic", &json!({ "note": "n" })).problem(500, "handler-failed");
    store.drained();
    let lines = host.follow("");
    let after = eventually("this host has counted its flushes", || {
        Some(Scrape::of(&host, &store)).filter(|scrape| scrape.get("flushed_events_total") > 1.0)
    });
    after.all(&[
        ("commands_total outcome=accepted", 2.0),
        ("commands_total outcome=rejected", 1.0),
        ("commands_total outcome=failed", 2.0),
        ("commands_total outcome=conflict", 0.0),
        ("command_attempts_total", 4.0),
        ("command_conflicts_total", 0.0),
        ("command_duration_seconds_count", 5.0),
        ("command_duration_seconds_bucket le=+Inf", 5.0),
        ("handler_run_seconds_count handler=course-enrolment", 9.0),
        ("commands_under_way", 0.0),
        ("followers", 1.0),
        ("head_position", 2.0),
        ("staged_events", 0.0),
        ("flush_lag_seconds", 0.0),
        ("flushed_events_total", 2.0),
        ("flusher_leads", 1.0),
    ]);
    assert!(after.get("handler_run_seconds_sum handler=course-enrolment") > 0.0);
    assert!(after.get("flushes_total") >= 1.0);
    assert!(after.get("table_bytes table=events") > 0.0);
    assert!(after.get("connections pool=appends state=idle") >= 1.0);
    drop(lines);
    eventually("the stream has been closed", || {
        (Scrape::of(&host, &store).get("followers") < 0.5).then_some(())
    });
}

#[test]
fn a_conflict_is_counted_although_the_command_is_accepted_in_the_end() {
    let store = Store::new();
    // Commands of one host do not conflict.
    let hosts = [(); 3].map(|()| Host::start(&store).with(&[course_enrolment()]));
    hosts[0].send("defineCourse", &json!({ "courseId": "c1", "capacity": 100 })).accepted();
    let mut session = store.session();
    session.hold_up_appends();
    std::thread::scope(|scope| {
        for (host, student) in hosts.iter().zip(["s1", "s2", "s3"]) {
            scope.spawn(move || {
                let data = json!({ "studentId": student, "courseId": "c1" });
                host.send("subscribeStudentToCourse", &data).accepted()
            });
        }
        session.held_up(3);
        session.let_on();
    });
    let scrapes = hosts.each_ref().map(|host| Scrape::of(host, &store));
    let sum = |series| scrapes.iter().map(|scrape| scrape.get(series)).sum::<f64>();
    let (attempts, conflicts) = (sum("command_attempts_total"), sum("command_conflicts_total"));
    assert!(conflicts >= 2.0 && (attempts - conflicts - 4.0).abs() < f64::EPSILON, "{attempts} {conflicts}");
    assert!((sum("commands_total outcome=accepted") - 4.0).abs() < f64::EPSILON);
    assert!(sum("commands_total outcome=conflict") < f64::EPSILON);
}

#[test]
fn appends_without_a_handler_are_counted_by_what_became_of_them() {
    let store = Store::new();
    let host = Host::start(&store);
    let body = |condition: &str| {
        let events = r#"[{"type":"A","tags":["x:1"],"data":1}]"#;
        format!(r#"{{"events":{events}{condition}}}"#)
    };
    let id = [("Weir-Append-Id", "mine")];
    let append = |body: &str| host.post("/v1/append", &id, body.as_bytes()).unwrap();
    append(&body("")).ok();
    append(&body("")).ok();
    let none = r#","condition":{"query":{"items":[{"types":["A"],"tags":["x:1"]}]}}"#;
    host.post("/v1/append", &[], body(none).as_bytes()).unwrap().problem(409, "conflict");
    let unscoped = r#","condition":{"query":{"items":[{"types":["A"]}]}}"#;
    host.post("/v1/append", &[], body(unscoped).as_bytes()).unwrap().problem(400, "condition-refused");
    Scrape::of(&host, &store).all(&[
        ("appends_total outcome=appended", 1.0),
        ("appends_total outcome=repeated", 1.0),
        ("appends_total outcome=conflict", 1.0),
        ("appends_total outcome=failed", 1.0),
        ("appends_total outcome=overloaded", 0.0),
        ("commands_total outcome=accepted", 0.0),
    ]);
}

#[test]
fn what_holds_the_log_back_is_measured() {
    let store = Store::new();
    let host = Host::start(&store);
    Run::of(&["strategy", "set", "boundary", "--url", &host.url]).succeeded();
    let mut session = store.session();
    session.run("BEGIN; SELECT txid_current()");
    let first = eventually("it is seen", || {
        Some(Scrape::of(&host, &store).get("held_back_seconds")).filter(|seconds| *seconds > 0.0)
    });
    eventually("it goes on", || (Scrape::of(&host, &store).get("held_back_seconds") > first).then_some(()));
}

/// What only the store knows.
const OF_THE_STORE: [&str; 6] = [
    "head_position",
    "staged_events",
    "flush_lag_seconds",
    "held_back_seconds",
    "outcomes_kept",
    "table_bytes",
];

fn answers_without_the_store(host: &Host, store: &Store, known: &Scrape) {
    let began = Instant::now();
    let scrape = Scrape::of(host, store);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    scrape.all(&[("store_up", 0.0), ("handlers state=ready", 1.0)]);
    let missing: Vec<_> = known.names().difference(&scrape.names()).copied().collect();
    let mut expected = OF_THE_STORE.to_vec();
    expected.sort_unstable();
    assert_eq!(missing, expected);
}

#[test]
fn a_scrape_is_answered_without_the_database_and_with_it_again_when_it_is_back() {
    let mut postgres = Postgres::start();
    let store = postgres.store();
    let host = Host::start(&store).with(&[misbehaving()]);
    let known = Scrape::of(&host, &store);
    known.all(&[("store_up", 1.0)]);

    let frozen = postgres.freeze(&store);
    // More often than there are connections for it.
    for _ in 0..6 {
        answers_without_the_store(&host, &store, &known);
    }
    drop(frozen);
    let back = || (Scrape::of(&host, &store).get("store_up") > 0.5).then_some(());
    eventually("the store answers again", back);

    postgres.stop();
    answers_without_the_store(&host, &store, &known);
    postgres.start_again();
    eventually("the store is there again", back);
    host.stop();
}
