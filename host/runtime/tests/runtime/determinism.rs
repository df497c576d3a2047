//! The same command gives the same bytes, wherever and however often it is decided.

use weir_runtime::{Command, Handler};

use crate::guests::{accepted, command, component, decide_in, event, limits, misbehaving, runtime_with};

fn reading(handler: &Handler, command: &Command) -> String {
    accepted(decide_in(&mut handler.begin(command).unwrap(), &[]).unwrap()).data
}

#[test]
fn the_same_command_gives_the_same_bytes_in_any_instance_of_any_runtime() {
    let clock = command("clock", "{}");
    let first = reading(misbehaving(), &clock);
    assert_eq!(reading(misbehaving(), &clock), first);
    let elsewhere = runtime_with(limits()).load(&component("misbehaving")).unwrap();
    assert_eq!(reading(&elsewhere, &clock), first);
}

#[test]
fn another_command_has_other_random_numbers() {
    let clock = command("clock", "{}");
    let other = Command { id: "0198f3a0-0000-7000-8000-000000000002".into(), ..clock.clone() };
    assert_ne!(reading(misbehaving(), &clock), reading(misbehaving(), &other));
}

#[test]
fn random_numbers_do_not_hang_on_what_was_called_before() {
    let clock = command("clock", "{}");
    let mut deciding = misbehaving().begin(&clock).unwrap();
    for _ in 0..3 {
        deciding.boundary().unwrap().unwrap();
        deciding.apply(&[event("Counted", "t", "{}")]).unwrap();
    }
    let random = |data: &str| data.split_once("\"random\"").map(|(_, rest)| rest.to_owned()).unwrap();
    let data = accepted(deciding.decide(&[]).unwrap()).data;
    assert_eq!(random(&data), random(&reading(misbehaving(), &clock)));
}

#[test]
fn clocks_stand_still_at_the_time_of_the_command_and_nothing_else_can_be_seen() {
    let data = reading(misbehaving(), &command("clock", "{}"));
    for part in [
        r#""now":1700000000123"#,
        r#""slept":0"#,
        r#""arguments":[]"#,
        r#""variables":[]"#,
        r#""file":false"#,
    ] {
        assert!(data.contains(part), "no {part} in {data}");
    }
    assert!(!data.contains(r#""random":[0,0,0,0"#), "{data}");
}

#[test]
fn a_command_at_time_zero_has_clocks_too() {
    let data = reading(misbehaving(), &Command { received_at: 0, ..command("clock", "{}") });
    assert!(data.contains(r#""now":0"#), "{data}");
}
