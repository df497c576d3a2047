//! A host that is told to stop.

use std::thread;

use serde_json::json;

use crate::components::misbehaving;
use crate::host::Host;
use crate::patience::eventually;
use crate::store::Store;

#[test]
fn commands_under_way_get_their_answers_and_the_host_ends_well() {
    const COMMANDS: i64 = 8;
    let store = Store::new();
    let host = Host::start_with(&store, &["--statement-seconds", "60"]).with(&[misbehaving()]);
    let mut session = store.session();
    session.hold_up_appends();
    thread::scope(|scope| {
        let senders: Vec<_> = (0..COMMANDS)
            .map(|n| {
                let host = &host;
                scope.spawn(move || host.send("accept", &json!({ "note": format!("n{n}") })))
            })
            .collect();
        session.held_up(1);
        eventually("all are under way", || {
            (host.get("/v1/status").json()["host"]["commands_under_way"] == COMMANDS).then_some(())
        });
        host.terminate();
        eventually("it is stopping", || host.log().contains("stopping").then_some(()));
        session.let_on();
        senders.into_iter().for_each(|sender| drop(sender.join().unwrap().accepted()));
    });
    host.ended();

    let numbered: i64 = session.ask("SELECT count(*) FROM events");
    let staged: i64 = session.ask("SELECT count(*) FROM staging");
    assert_eq!((numbered, staged), (COMMANDS, 0), "the last flush is the host's own");
}

#[test]
fn nobody_new_is_let_in_once_it_is_told() {
    let store = Store::new();
    let host = Host::start_with(&store, &["--statement-seconds", "60"]).with(&[misbehaving()]);
    let mut session = store.session();
    session.hold_up_appends();
    thread::scope(|scope| {
        let sender = scope.spawn(|| host.send("accept", &json!({ "note": "n" })));
        session.held_up(1);
        host.terminate();
        eventually("new callers are turned away", || {
            let fresh = ureq::Agent::new_with_defaults();
            fresh.get(host.at("/healthz")).call().is_err().then_some(())
        });
        session.let_on();
        sender.join().unwrap().accepted();
    });
    host.ended();
}

#[test]
fn a_loop_does_not_hold_up_the_end() {
    let store = Store::new();
    let host = Host::start_with(&store, &["--guest-milliseconds", "2000"]).with(&[misbehaving()]);
    thread::scope(|scope| {
        let sender = scope.spawn(|| host.try_send("loop", &json!({})));
        // Most likely it is at it by then; if not, it is turned away.
        for n in 0..5 {
            host.send("accept", &json!({ "note": format!("n{n}") })).accepted();
        }
        host.terminate();
        if let Ok(answer) = sender.join().unwrap() {
            answer.problem(500, "handler-failed");
        }
    });
    host.ended();
}
