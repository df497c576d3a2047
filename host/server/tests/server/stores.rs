//! Several stores behind one host.

use std::net::TcpListener;
use std::thread;

use serde_json::{Value, json};
use sqlx::postgres::PgListener;

use crate::answer::{Answer, assert_says};
use crate::components::{course_enrolment, misbehaving};
use crate::host::Host;
use crate::patience::eventually;
use crate::postgres::Postgres;
use crate::program::{Run, weir};
use crate::store::{Session, Store};

/// A route of the store that is named.
fn at(store: &Store, route: &str) -> String {
    format!("/v1/stores/{}{route}", store.schema)
}

/// Starts a host whose default store is the first one.
fn host_of(default: &Store, further: &Store, arguments: &[&str]) -> Host {
    let named = format!("{}={}", further.schema, further.url);
    Host::start_with(default, &[&["--store", &named][..], arguments].concat())
}

fn deploy(host: &Host, store: &Store, component: &[u8]) {
    host.post(&at(store, "/handlers"), &[], component).unwrap().ok();
}

fn send(host: &Host, store: &Store, command: &str, data: &Value) -> Answer {
    host.post(&at(store, &format!("/commands/{command}")), &[], data.to_string().as_bytes()).unwrap()
}

fn accept(host: &Host, store: &Store) -> Answer {
    send(host, store, "accept", &json!({ "note": "n" }))
}

/// The whole log.
fn events(host: &Host, store: &Store) -> Vec<Value> {
    store.drained();
    let answer = host.get(&at(store, "/events"));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn two_stores_of_a_database_have_nothing_in_common() {
    let (one, two) = (Store::new(), Store::new());
    // Without a URL the further one is in the same database.
    let host = Host::start_with(&one, &["--store", &two.schema]);
    host.deploy(&course_enrolment()).ok();
    assert_eq!(host.get(&at(&two, "/handlers")).ok(), json!([]));
    let define = |capacity: u32| json!({ "courseId": "c1", "capacity": capacity });
    send(&host, &two, "defineCourse", &define(1)).problem(404, "unknown-command");
    deploy(&host, &two, &course_enrolment());
    deploy(&host, &two, &misbehaving());
    assert_eq!(host.get("/v1/handlers").ok().as_array().unwrap().len(), 1);

    let with_id = |store: &Store, capacity: u32| {
        let (path, data) = (at(store, "/commands/defineCourse"), define(capacity).to_string());
        host.post(&path, &[("weir-command-id", "id-1")], data.as_bytes()).unwrap()
    };
    // The same course, and the same id for another command.
    let (first, second) = (with_id(&one, 1).accepted(), with_id(&two, 2).accepted());
    assert_eq!(with_id(&one, 1).accepted(), first);
    assert_eq!(with_id(&two, 2).accepted(), second);
    for (store, capacity) in [(&one, 1), (&two, 2)] {
        let log = events(&host, store);
        assert_eq!(log.len(), 1);
        assert_eq!((&log[0]["position"], &log[0]["data"]), (&1.into(), &define(capacity)));
    }

    let changed = host.agent().put(host.at(&at(&two, "/settings"))).send(r#"{"strategy":"global"}"#);
    assert_eq!(Answer::of(changed.unwrap()).ok()["strategy"], "global");
    assert_eq!(host.get("/v1/settings").ok()["strategy"], "staging");
}

#[test]
fn the_default_store_is_reached_by_its_name_too() {
    let (one, two) = (Store::new(), Store::new());
    let host = host_of(&one, &two, &[]).with(&[misbehaving()]);
    accept(&host, &one).accepted();
    assert_eq!(events(&host, &one), host.events(""));
    assert_eq!(host.get(&at(&one, "/handlers")).ok(), host.get("/v1/handlers").ok());
    assert_eq!(events(&host, &two), Vec::<Value>::new());
}

#[test]
fn locks_of_one_store_do_not_hold_up_the_other() {
    let (one, two) = (Store::new(), Store::new());
    let host = host_of(&one, &two, &["--statement-seconds", "60"]);
    deploy(&host, &one, &misbehaving());
    deploy(&host, &two, &misbehaving());
    let mut session = one.session();
    session.hold_up_appends();
    thread::scope(|scope| {
        let held_up = scope.spawn(|| accept(&host, &one));
        // It holds the key of the same type and tag.
        session.held_up(1);
        accept(&host, &two).accepted();
        session.let_on();
        held_up.join().unwrap().accepted();
    });

    for store in [&one, &two] {
        let changed = host.agent().put(host.at(&at(store, "/settings"))).send(r#"{"strategy":"global"}"#);
        assert_eq!(Answer::of(changed.unwrap()).status, 200);
    }
    session.run("BEGIN; LOCK TABLE events IN SHARE MODE");
    thread::scope(|scope| {
        let held_up = scope.spawn(|| accept(&host, &one));
        // It holds the lock of its whole store.
        waiting(
            &mut session,
            "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) \
            WHERE NOT granted AND relation = 'events'::regclass AND query LIKE '%append(%'",
            1,
        );
        accept(&host, &two).accepted();
        session.let_on();
        held_up.join().unwrap().accepted();
    });
    assert_eq!((events(&host, &one).len(), events(&host, &two).len()), (2, 2));
}

/// Waits until so many statements wait for a lock.
fn waiting(session: &mut Session, query: &'static str, wanted: i64) {
    eventually("they wait for the lock", || {
        // A transaction sees one snapshot of other sessions' activity, unless it asks for a new one.
        session.run("SELECT pg_stat_clear_snapshot()");
        (session.ask::<i64>(query) >= wanted).then_some(())
    });
}

#[test]
fn notifications_are_for_the_followers_of_one_store() {
    let (one, two) = (Store::new(), Store::new());
    let host = host_of(&one, &two, &[]);
    deploy(&host, &one, &misbehaving());
    deploy(&host, &two, &misbehaving());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(async {
        let mut listener = PgListener::connect(&two.url).await.unwrap();
        listener.listen(&format!("weir_{}", two.schema)).await.unwrap();
        listener
    });
    for _ in 0..3 {
        accept(&host, &one).accepted();
    }
    assert_eq!(events(&host, &one).len(), 3);
    accept(&host, &two).accepted();
    runtime.block_on(async {
        let mut listener = listener;
        let first = listener.recv().await.unwrap();
        assert_eq!(first.payload(), "1", "the end of the other store's log");
    });
}

#[test]
fn commands_that_hang_in_one_store_leave_the_other_instances() {
    let (one, two) = (Store::new(), Store::new());
    // One for each store and two for both.
    let host = host_of(&one, &two, &["--instances", "4", "--statement-seconds", "60"]);
    deploy(&host, &one, &misbehaving());
    deploy(&host, &two, &misbehaving());
    let mut session = two.session();
    session.run("BEGIN; LOCK TABLE events IN ACCESS EXCLUSIVE MODE");
    thread::scope(|scope| {
        let hanging: Vec<_> = (0..8).map(|_| scope.spawn(|| accept(&host, &two))).collect();
        waiting(
            &mut session,
            "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) \
            WHERE NOT granted AND relation = 'events'::regclass AND query LIKE '%decision_read(%'",
            1,
        );
        for _ in 0..4 {
            accept(&host, &one).accepted();
        }
        session.let_on();
        hanging.into_iter().for_each(|command| drop(command.join().unwrap().accepted()));
    });
}

#[test]
fn a_database_that_is_down_concerns_its_store_only() {
    let mut postgres = Postgres::start();
    let (one, two) = (Store::new(), postgres.store());
    let host = host_of(&one, &two, &[]);
    deploy(&host, &one, &misbehaving());
    deploy(&host, &two, &misbehaving());
    accept(&host, &two).accepted();
    let listed = |ready: bool| {
        let mut stores = host.get("/v1/stores").ok();
        let error = stores[1].as_object_mut().unwrap().remove("error");
        let expected = json!([
            { "store": one.schema, "default": true, "ready": true },
            { "store": two.schema, "default": false, "ready": ready },
        ]);
        assert_eq!(stores, expected);
        error
    };
    assert_eq!(listed(true), None);
    assert_eq!(host.get("/readyz").status, 200);

    postgres.stop();
    let answer = accept(&host, &two);
    assert_eq!(answer.retry_after.as_deref(), Some("1"), "{answer:?}");
    answer.problem(503, "store-unavailable");
    accept(&host, &one).accepted();
    assert_says(listed(false).unwrap().as_str().unwrap(), &["the database is not available"]);
    let detail = host.get("/readyz").problem(503, "store-unavailable");
    assert_says(&detail, &[&format!("store \"{}\": ", two.schema), "not available"]);
    let status = host.get(&at(&two, "/status")).ok();
    assert_eq!((&status["store"], status["store_problem"].is_string()), (&Value::Null, true));
    assert_eq!(host.get(&at(&one, "/status")).ok()["store"]["name"], *one.schema);
    let metrics = host.get("/metrics").body;
    for (store, up) in [(&one, "1"), (&two, "0")] {
        let series = format!("weir_store_up{{store=\"{}\"}} {up}", store.schema);
        assert!(metrics.contains(&series), "{metrics}");
    }
    let marked = |line: &str| line.contains(&*two.schema) && line.contains("the flusher failed");
    eventually("the log says which store", || host.log().lines().any(marked).then_some(()));
    postgres.start_again();
    eventually("it is ready again", || (host.get("/readyz").status == 200).then_some(()));
    accept(&host, &two).accepted();
    assert_eq!((events(&host, &one).len(), events(&host, &two).len()), (1, 2));
    host.stop();
}

#[test]
fn a_schema_that_is_gone_concerns_its_store_only() {
    let (one, two) = (Store::new(), Store::new());
    let host = host_of(&one, &two, &[]);
    deploy(&host, &one, &misbehaving());
    deploy(&host, &two, &misbehaving());
    let mut session = two.session();
    session.run(&format!("ALTER SCHEMA {0} RENAME TO {0}_gone", two.schema));
    assert_says(&accept(&host, &two).problem(500, "store-failed"), &["the store is not set up"]);
    assert_says(&host.get("/readyz").problem(500, "store-failed"), &[&two.schema, "not set up"]);
    accept(&host, &one).accepted();

    session.run(&format!("ALTER SCHEMA {0}_gone RENAME TO {0}", two.schema));
    eventually("it is ready again", || (host.get("/readyz").status == 200).then_some(()));
    accept(&host, &two).accepted();
    assert_eq!((events(&host, &one).len(), events(&host, &two).len()), (1, 1));
}

#[test]
fn every_store_is_drained_at_the_end() {
    let (one, two) = (Store::new(), Store::new());
    let host = host_of(&one, &two, &["--statement-seconds", "60"]);
    let stores = [&one, &two];
    stores.iter().for_each(|store| deploy(&host, store, &misbehaving()));
    let mut sessions = stores.map(Store::session);
    sessions.iter_mut().for_each(Session::hold_up_appends);
    thread::scope(|scope| {
        let host = &host;
        let senders = stores.map(|store| scope.spawn(move || accept(host, store)));
        sessions.iter_mut().for_each(|session| session.held_up(1));
        host.terminate();
        eventually("it is stopping", || host.log().contains("stopping").then_some(()));
        sessions.iter_mut().for_each(Session::let_on);
        senders.into_iter().for_each(|sender| drop(sender.join().unwrap().accepted()));
    });
    host.ended();
    for session in &mut sessions {
        assert_eq!(session.ask::<i64>("SELECT count(*) FROM events"), 1);
        assert_eq!(session.ask::<i64>("SELECT count(*) FROM staging"), 0, "the last flush is the host's own");
        assert_eq!(session.ask::<i64>("SELECT count(*) FROM flusher_lease"), 0);
    }
}

#[test]
fn a_store_that_there_is_not_is_told_with_those_that_there_are() {
    let (one, two) = (Store::new(), Store::new());
    let host = host_of(&one, &two, &[]);
    let names = format!("it has: {}, {}", one.schema, two.schema);
    for path in ["/v1/stores/nowhere/events", "/v1/stores/nowhere/no/such/route", "/v1/stores/nowhere"] {
        let detail = host.get(path).problem(404, "unknown-store");
        assert_says(&detail, &["no store \"nowhere\"", &names]);
    }
    host.post("/v1/stores/no%2Fwhere/commands/accept", &[], b"{}").unwrap().problem(404, "unknown-store");
    let detail = host.get(&at(&two, "/no/such/route")).problem(404, "no-such-route");
    assert_says(&detail, &[&at(&two, "/no/such/route"), "GET /v1/stores"]);
    for path in [at(&two, ""), "/v1/stores/%FF/events".into(), "/v1/stores//events".into()] {
        host.get(&path).problem(404, "no-such-route");
    }
    host.post(&at(&two, "/events"), &[], b"").unwrap().problem(405, "method-not-allowed");
    host.post("/v1/stores", &[], b"").unwrap().problem(405, "method-not-allowed");
}

#[test]
fn a_store_that_can_not_be_served_ends_the_start_and_is_named() {
    let (one, two) = (Store::new(), Store::new());
    let none = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    Run::of(&["migrate", "--database-url", &one.url, "--schema", &one.schema]).succeeded();
    let serve = |further: &str| {
        let (url, schema) = (&*one.url, &*one.schema);
        Run::of(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--database-url",
            url,
            "--schema",
            schema,
            "--store",
            further,
        ])
        .complained()
    };
    let named = format!("store \"{}\": ", two.schema);
    assert_says(&serve(&two.schema), &[&named, "the store is not set up", "run `weir migrate`"]);
    let unreachable = format!("{}=postgres://weir:secret@{none}/weir", two.schema);
    let complaint = serve(&unreachable);
    assert_says(&complaint, &[&named, "the database is not available"]);
    assert!(!complaint.contains("secret"), "{complaint}");
}

#[test]
fn a_name_that_can_not_be_one_is_complained_of_without_its_password() {
    let migrate = |further: &[&str]| {
        let mut migrate = weir(&["migrate", "--database-url", "postgres://weir@127.0.0.1:1/weir"]);
        migrate.args(further.iter().flat_map(|store| ["--store", store]));
        Run::of_command(&mut migrate, "").complained()
    };
    assert_says(&migrate(&["weir"]), &["\"weir\" is named twice", "the default one (--schema)"]);
    let twice = "\"b\" is named twice";
    assert_says(&migrate(&["b", "b"]), &[twice]);
    assert_says(&migrate(&["b", "a,b=postgres://weir@127.0.0.1:1/other"]), &[twice]);
    assert_says(&migrate(&["Weir"]), &["\"Weir\" can't name a store", "lower-case letters", "--store"]);
    assert_says(&migrate(&["b="]), &["\"b\" has an empty URL"]);
    for nameless in ["postgres://weir:secret@127.0.0.1/weir", "postgres://weir:secret@127.0.0.1/weir?a=b"] {
        let complaint = migrate(&[nameless]);
        assert_says(&complaint, &["has a URL and no name", "NAME=URL"]);
        assert!(!complaint.contains("secret"), "{complaint}");
    }
}

#[test]
fn migrate_brings_all_up_to_date() {
    let (one, two, three) = (Store::new(), Store::new(), Store::new());
    let mut migrate = weir(&["migrate", "--database-url", &one.url, "--schema", &one.schema]);
    migrate.env("WEIR_STORES", format!("{}, {}={},", two.schema, three.schema, three.url));
    let printed = Run::of_command(&mut migrate, "").succeeded();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 3, "{printed}");
    for (line, store) in lines.into_iter().zip([&one, &two, &three]) {
        assert_says(line, &[&format!("\"{}\" is up to date", store.schema)]);
        assert_eq!(store.session().ask::<i64>("SELECT count(*) FROM events"), 0);
    }
}

#[test]
fn dev_sets_all_up_and_deploys_in_the_default_one() {
    let (one, two) = (Store::new(), Store::new());
    let folder = tempfile::tempdir().unwrap();
    let handler = folder.path().join("handler.wasm");
    std::fs::write(&handler, misbehaving()).unwrap();
    let mut dev = weir(&["dev", "--listen", "127.0.0.1:0", "--database-url", &one.url]);
    dev.args(["--schema", &one.schema, "--store", &two.schema]).arg(&handler);
    let host = Host::spawn(dev.env("WEIR_GUEST_MILLISECONDS", "20000"));
    accept(&host, &one).accepted();
    assert_eq!(host.get(&at(&two, "/handlers")).ok(), json!([]));
    host.stop();
}

#[test]
fn every_client_can_choose_the_store() {
    let (one, two) = (Store::new(), Store::new());
    let host = host_of(&one, &two, &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("handler.wasm").display().to_string();
    std::fs::write(&file, misbehaving()).unwrap();
    let there = |arguments: &[&str]| {
        Run::of(&[arguments, &["--url", &host.url, "--store", &two.schema]].concat()).succeeded()
    };
    assert_says(&there(&["deploy", &file]), &["misbehaving ", " is active"]);
    assert!(there(&["send", "accept", r#"{"note":"n"}"#]).starts_with("accepted accept "));
    let printed = there(&["events", "--follow", "--limit", "1"]);
    assert_says(&printed, &["Noted [note:n]"]);
    assert!(there(&["strategy", "set", "hybrid"]).starts_with("The store's strategy is hybrid: "));

    assert_eq!(host.get("/v1/handlers").ok(), json!([]));
    assert_eq!(host.get("/v1/settings").ok()["strategy"], "staging");
    assert_eq!(Run::of(&["events", "--url", &host.url]).succeeded(), "");

    let mut by_environment = weir(&["events", "--url", &host.url]);
    by_environment.env("WEIR_STORE", &two.schema);
    assert_eq!(Run::of_command(&mut by_environment, "").succeeded(), printed);
    let complaint = Run::of(&["events", "--url", &host.url, "--store", "nowhere"]).complained();
    assert_says(&complaint, &["Unknown store: ", "\"nowhere\"", &one.schema, &two.schema]);
}
