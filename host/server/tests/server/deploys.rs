//! Handlers come, change and stay.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::answer::assert_says;
use crate::components::{self, misbehaving, rival, unique, version};
use crate::host::Host;
use crate::patience::eventually;
use crate::store::Store;

fn accept(host: &Host) -> Value {
    host.send("accept", &json!({ "note": unique("n") })).accepted()
}

#[test]
fn a_deployment_says_what_it_activated_and_a_second_one_that_nothing_changed() {
    let store = Store::new();
    let host = Host::start(&store);
    assert_eq!(host.get("/v1/handlers").ok(), json!([]));
    let detail = host.send("accept", &json!({})).problem(404, "unknown-command");
    assert_says(&detail, &["\"accept\"", "none, no handler is deployed"]);

    let mut first = host.deploy(&components::course_enrolment()).ok();
    let digest = first["version"].as_str().unwrap();
    assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digest}");
    let expected = json!({
        "handler": "course-enrolment", "version": digest, "status": "activated",
        "commands": ["defineCourse", "changeCourseCapacity", "subscribeStudentToCourse"],
        "event_types": ["CourseDefined", "CourseCapacityChanged", "StudentSubscribedToCourse"],
    });
    assert_eq!(first, expected);
    assert_eq!(host.deploy(&components::course_enrolment()).ok()["status"], "unchanged");
    first.as_object_mut().unwrap().remove("status");
    assert_eq!(host.get("/v1/handlers").ok(), json!([first]));
}

#[test]
fn an_earlier_version_can_be_made_active_again() {
    let store = Store::new();
    let host = Host::start(&store);
    let (one, two) = (misbehaving(), version(&misbehaving(), "two"));
    let first = host.deploy(&one).ok();
    assert_eq!(host.deploy(&two).ok()["status"], "activated");
    let again = host.deploy(&one).ok();
    assert_eq!((&again["status"], &again["version"]), (&"activated".into(), &first["version"]));
    assert_eq!(accept(&host)["version"], first["version"]);
}

#[test]
fn a_new_version_takes_over_without_a_failed_command() {
    let store = Store::new();
    let host = Host::start(&store);
    let first = host.deploy(&misbehaving()).ok()["version"].clone();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let senders: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut versions = vec![accept(&host)["version"].clone()];
                    while !done.load(Ordering::Relaxed) {
                        versions.push(accept(&host)["version"].clone());
                    }
                    versions
                })
            })
            .collect();
        eventually("commands are under way", || (host.events("").len() >= 8).then_some(()));
        let second = host.deploy(&version(&misbehaving(), "two")).ok()["version"].clone();
        assert_ne!(first, second);
        assert_eq!(accept(&host)["version"], second, "in force once the deployment is answered");
        done.store(true, Ordering::Relaxed);
        for sender in senders {
            let versions = sender.join().unwrap();
            let turn = versions.iter().position(|version| *version == second).unwrap_or(versions.len());
            let (before, after) = versions.split_at(turn);
            assert!(before.iter().all(|version| *version == first), "{versions:?}");
            assert!(after.iter().all(|version| *version == second), "{versions:?}");
        }
    });
}

#[test]
fn a_command_that_another_handler_has_is_refused_with_its_owner() {
    let store = Store::new();
    let host = Host::start(&store).with(&[misbehaving()]);
    let detail = host.deploy(&rival()).problem(409, "command-owned");
    assert_says(
        &detail,
        &["belongs to the handler \"misbehaving\" already", "rename it, or remove it there first"],
    );
    let handlers = host.get("/v1/handlers").ok();
    assert_eq!(handlers.as_array().unwrap().len(), 1, "{handlers}");
    assert_eq!(accept(&host)["handler"], "misbehaving");
}

#[test]
fn every_host_of_a_store_takes_a_deployment_up() {
    let store = Store::new();
    let (here, there) = (Host::start(&store), Host::start(&store));
    let first = here.deploy(&misbehaving()).ok()["version"].clone();
    let version_there = || there.get("/v1/handlers").ok().pointer("/0/version").cloned();
    eventually("the other host has it", || version_there().filter(|version| *version == first));
    assert_eq!(accept(&there)["version"], first);

    let second = here.deploy(&version(&misbehaving(), "two")).ok()["version"].clone();
    eventually("the other host has it", || version_there().filter(|version| *version == second));
    assert_eq!(accept(&there)["version"], second);
}

#[test]
fn a_handler_is_there_after_a_restart() {
    let store = Store::new();
    let host = Host::start(&store).with(&[misbehaving()]);
    let before = accept(&host)["version"].clone();
    host.stop();
    assert_eq!(accept(&Host::start(&store))["version"], before);
}

#[test]
fn a_version_that_this_host_cannot_load_is_named_and_the_others_are_served() {
    let store = Store::new();
    let host = Host::start(&store).with(&[misbehaving()]);
    // As a host of another version of Weir might, which takes more than this one does.
    store.session().run("SELECT deploy('from-elsewhere', 'not for us', ARRAY['travel'], '{}')");
    let refused = || Some(host.send("travel", &json!({}))).filter(|answer| answer.status != 404);
    let detail = eventually("the host has seen it", refused).problem(503, "handler-not-ready");
    let version = "a7d21bbe2650";
    let parts = [
        &*format!("\"from-elsewhere\" (version {version}) can't be run on this host"),
        "this is a text file",
    ];
    assert_says(&detail, &parts);
    accept(&host);

    let host = Host::start(&store);
    host.send("travel", &json!({})).problem(503, "handler-not-ready");
    accept(&host);
}
