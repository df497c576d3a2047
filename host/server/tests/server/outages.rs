//! Postgres goes away, hangs, or is slow: an error within a deadline, and service again without a restart.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::answer::{Answer, assert_says};
use crate::components::{misbehaving, unique};
use crate::host::Host;
use crate::patience::eventually;
use crate::postgres::Postgres;
use crate::reader::Reader;
use crate::store::Store;

fn accept(host: &Host, note: &str) -> Answer {
    host.send("accept", &json!({ "note": note }))
}

/// Runs a command into an outage.
fn fails_in_time(host: &Host, within: Duration) {
    let began = Instant::now();
    let answer = accept(host, &unique("lost"));
    let took = began.elapsed();
    assert!(took < within, "{took:?}");
    assert_eq!(answer.retry_after.as_deref(), Some("1"), "{answer:?}");
    assert_says(&answer.problem(503, "store-unavailable"), &["the database is not available: "]);
}

#[test]
fn a_postgres_that_is_down_is_told_at_once_and_used_again_when_it_is_back() {
    let mut postgres = Postgres::start();
    let store = postgres.store();
    let host = Host::start(&store).with(&[misbehaving()]);
    let mut reader = Reader::of(&host);
    accept(&host, "before").accepted();
    reader.expect(1, "before");

    postgres.stop();
    fails_in_time(&host, Duration::from_secs(10));
    fails_in_time(&host, Duration::from_secs(10));
    assert_says(&host.get("/v1/events").problem(503, "store-unavailable"), &["not available"]);
    assert_says(&host.deploy(&misbehaving()).problem(503, "store-unavailable"), &["not available"]);
    host.get("/readyz").problem(503, "store-unavailable");
    assert_eq!(host.get("/healthz").status, 200);

    postgres.start_again();
    eventually("it is ready again", || (host.get("/readyz").status == 200).then_some(()));
    accept(&host, "after").accepted();
    reader.expect(2, "after");
    host.stop();
}

#[test]
fn a_postgres_that_hangs_is_given_up_within_the_deadline_and_used_again_when_it_goes_on() {
    let postgres = Postgres::start();
    let store = postgres.store();
    let host = Host::start_with(&store, &["--statement-seconds", "2"]).with(&[misbehaving()]);
    let mut reader = Reader::of(&host);
    accept(&host, "before").accepted();
    reader.expect(1, "before");

    let frozen = postgres.freeze(&store);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| fails_in_time(&host, Duration::from_secs(10)));
        }
    });
    host.get("/readyz").problem(503, "store-unavailable");
    assert_eq!(host.get("/healthz").status, 200);

    drop(frozen);
    eventually("it is ready again", || (host.get("/readyz").status == 200).then_some(()));
    let answer =
        eventually("it takes commands again", || Some(accept(&host, "after")).filter(|a| a.status == 200));
    answer.accepted();
    reader.expect(2, "after");
    host.stop();
}

#[test]
fn a_connection_that_dies_during_an_append_leaves_its_outcome_unknown() {
    let store = Store::new();
    let host = Host::start(&store).with(&[misbehaving()]);
    let mut session = store.session();
    session.hold_up_appends();
    thread::scope(|scope| {
        let sender = scope.spawn(|| accept(&host, "n"));
        session.held_up(1);
        let killed: i64 = session.ask(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_locks JOIN pg_stat_activity USING (pid)
              WHERE NOT granted AND relation = 'staged_keys'::regclass AND query LIKE '%append(%'",
        );
        assert_eq!(killed, 1);
        let answer = sender.join().unwrap();
        assert_eq!(answer.retry_after, None, "sent again, it might take effect twice: {answer:?}");
        assert_says(&answer.problem(503, "outcome-unknown"), &["may or may not have taken the events"]);
    });
    session.let_on();
    accept(&host, "n").accepted();
    assert_eq!(host.first_events(1, "tag=note:n").len(), 1);
}

#[test]
fn a_lock_that_is_held_for_too_long_fails_the_command_and_writes_nothing() {
    let store = Store::new();
    let host = Host::start_with(&store, &["--statement-seconds", "1"]).with(&[misbehaving()]);
    let mut session = store.session();
    session.hold_up_appends();
    let answer = accept(&host, "n");
    assert_eq!(answer.retry_after.as_deref(), Some("1"));
    assert_says(&answer.problem(503, "store-unavailable"), &["the database was too busy", "lock timeout"]);
    session.let_on();
    accept(&host, "n").accepted();
    store.drained();
    assert_eq!(host.events("tag=note:n").len(), 1);
}

#[test]
fn a_reader_goes_on_where_it_was_when_its_host_is_back() {
    let store = Store::new();
    let host = Host::start(&store).with(&[misbehaving()]);
    let mut reader = Reader::of(&host);
    accept(&host, "before").accepted();
    reader.expect(1, "before");
    let address = host.url.trim_start_matches("http://").to_owned();
    host.kill();

    let host = Host::start_with(&store, &["--listen", &address]);
    accept(&host, "after").accepted();
    reader.expect(2, "after");
}
