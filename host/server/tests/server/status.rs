//! How a host and its store say that they are doing.

use serde_json::{Value, json};

use crate::answer::assert_says;
use crate::components::{course_enrolment, misbehaving};
use crate::host::Host;
use crate::patience::eventually;
use crate::postgres::Postgres;
use crate::program::Run;
use crate::store::Store;

fn status(host: &Host) -> Value {
    host.get("/v1/status").ok()
}

/// The status of a host that leads, when its flusher has numbered so many events.
fn leading(host: &Host, flushed: u64) -> Value {
    eventually("it leads and flushes", || {
        Some(status(host)).filter(|status| {
            let (flusher, lease) = (&status["host"]["flusher"], &status["store"]["flusher_lease"]);
            lease["holder"] == flusher["id"]
                && lease["expired"] == json!(false)
                && flusher["flushed_events"] == flushed
        })
    })
}

#[test]
fn a_status_has_the_store_and_this_host() {
    let store = Store::new();
    let host = Host::start(&store).with(&[course_enrolment()]);
    host.send("defineCourse", &json!({ "courseId": "c1", "capacity": 1 })).accepted();
    let lines = host.follow("");
    let seen = leading(&host, 1);

    let of_host = &seen["host"];
    assert_eq!(of_host["version"], env!("CARGO_PKG_VERSION"));
    assert!(of_host["uptime_seconds"].as_f64().unwrap() > 0.0);
    assert_eq!((&of_host["commands_under_way"], &of_host["followers"]), (&json!(0), &json!(1)));
    assert_eq!(of_host["handlers"][0]["handler"], "course-enrolment");
    assert_eq!(of_host["handlers"][0]["ready"], true);
    let flusher = &of_host["flusher"];
    assert_eq!((&flusher["leads"], &flusher["flushes"]), (&json!(true), &json!(1)));

    let of_store = &seen["store"];
    assert_eq!((&of_store["name"], &of_store["head"]), (&json!(store.schema), &json!(1)));
    assert_eq!(of_store["settings"], host.get("/v1/settings").ok());
    assert_eq!(of_store["staged"], json!({ "events": 0, "exact": true, "lag_seconds": 0.0 }));
    assert_eq!(of_store["epochs"].as_array().unwrap().len(), 1);
    assert_eq!(of_store["outcomes"], json!({ "kept": 0, "exact": true }));
    assert!(of_store["bytes"]["events"].as_u64().unwrap() > 0);
    assert_eq!(seen["store_problem"], Value::Null);
    drop(lines);
}

#[test]
fn a_host_that_does_not_flush_says_so_and_who_does() {
    let store = Store::new();
    let first = Host::start(&store);
    let leader = leading(&first, 0);
    let second = Host::start(&store);
    let seen = status(&second);
    assert_eq!(seen["host"]["flusher"]["leads"], false);
    assert_eq!(seen["store"]["flusher_lease"]["holder"], leader["host"]["flusher"]["id"]);
    first.stop();
    eventually("the other host takes over", || {
        (status(&second)["host"]["flusher"]["leads"] == json!(true)).then_some(())
    });
}

#[test]
fn commands_that_are_held_up_and_a_flusher_that_falls_behind_are_seen() {
    let store = Store::new();
    let host = Host::start_with(&store, &["--statement-seconds", "60"]).with(&[misbehaving()]);
    let mut session = store.session();
    session.hold_up_appends();
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| host.send("accept", &json!({ "note": "n" })).accepted());
        session.held_up(1);
        assert_eq!(status(&host)["host"]["commands_under_way"], 1);
        session.let_on();
        sender.join().unwrap();
    });
    store.drained();

    // Nobody flushes while somebody else holds the flushers' lock.
    session.run("BEGIN; SELECT pg_advisory_xact_lock(hashtext(current_schema()), 2)");
    for _ in 0..3 {
        host.send("accept", &json!({ "note": "n" })).accepted();
    }
    let staged = status(&host)["store"]["staged"].clone();
    assert_eq!((&staged["events"], &staged["exact"]), (&json!(3), &json!(true)));
    assert!(staged["lag_seconds"].as_f64().unwrap() > 0.0);
    let printed = Run::of(&["status", "--url", &host.url]).succeeded();
    assert!(printed.contains("\nstaged         3 events, the oldest for "), "{printed}");
    session.let_on();
    store.drained();
}

#[test]
fn the_transaction_that_holds_the_log_back_can_be_found() {
    let store = Store::new();
    let host = Host::start(&store);
    Run::of(&["strategy", "set", "boundary", "--url", &host.url]).succeeded();
    let mut session = store.session();
    let name = format!("idler {}", store.schema);
    session.run(&format!("SET application_name TO '{name}'; BEGIN; SELECT txid_current()"));
    let pid: i32 = session.ask("SELECT pg_backend_pid()");
    // Other tests have transactions too; theirs end.
    let seen = eventually("it is the oldest one", || {
        Some(status(&host)["store"]["held_back"].clone()).filter(|by| by["pid"] == pid)
    });
    assert_eq!((&seen["application"], &seen["state"]), (&json!(name), &json!("idle in transaction")));
    let printed = Run::of(&["status", "--url", &host.url]).succeeded();
    assert!(printed.contains("\noldest writer  holds the log back; runs for "), "{printed}");
    assert!(printed.contains(&format!(": process {pid} ({name}), idle in transaction\n")), "{printed}");
}

#[test]
fn a_status_is_a_table_for_people_and_json_for_programs() {
    let store = Store::new();
    let host = Host::start(&store).with(&[course_enrolment(), misbehaving()]);
    host.post(
        "/v1/commands/defineCourse",
        &[("Weir-Command-Id", "mine")],
        br#"{"courseId":"c1","capacity":1}"#,
    )
    .unwrap()
    .accepted();
    leading(&host, 1);
    let printed = Run::of(&["status", "--url", &host.url]).succeeded();
    for part in [
        concat!("host           weir ", env!("CARGO_PKG_VERSION"), " at http://127.0.0.1:"),
        "\ncommands       0 under way, 0 streams reading on\n",
        "\nhandlers       course-enrolment ",
        "\n               misbehaving ",
        "\nflusher        at work; 1 event numbered in 1 flush\n",
        &format!("\nstore          {}, strategy staging\n", store.schema),
        "\nlog            ends at position 1\n",
        "\nstaged         nothing\n",
        ", this host's, until 20",
        "\noutcomes       1 kept, for 7d each\n",
        "\nconditions     without a type or a tag are refused\n",
        "\nepochs         1 behind position 0, staging, since 20",
        "\ntables         events ",
    ] {
        assert!(printed.contains(part), "{part:?} is missing in:\n{printed}");
    }
    let json = Run::of(&["status", "--json", "--url", &host.url]).succeeded();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["store"]["head"], json.as_object().unwrap().len()), (&json!(1), 3));
}

#[test]
fn a_host_has_a_status_while_the_database_is_down() {
    let mut postgres = Postgres::start();
    let store = postgres.store();
    let host = Host::start(&store).with(&[misbehaving()]);
    postgres.stop();
    let seen = status(&host);
    assert_eq!((&seen["store"], &seen["host"]["handlers"][0]["ready"]), (&Value::Null, &json!(true)));
    assert_says(seen["store_problem"].as_str().unwrap(), &["the database is not available"]);
    let run = Run::of(&["status", "--url", &host.url]);
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.contains("misbehaving"), "{run:?}");
    assert_says(&run.stderr, &["weir: the store can't be asked: the database is not available"]);
    postgres.start_again();
    eventually("it can be asked again", || status(&host)["store"].is_object().then_some(()));
    host.stop();
}
