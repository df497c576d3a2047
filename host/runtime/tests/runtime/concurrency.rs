//! Many threads, one handler.

use std::thread;

use weir_runtime::FailureKind;

use crate::guests::{
    accepted, command, component, decide, decide_in, event, impatient, limits, misbehaving, runtime_with,
};

#[test]
fn many_threads_decide_with_one_handler() {
    thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for count in 0..100 {
                    let tag = format!("t{thread}");
                    let mut deciding =
                        misbehaving().begin(&command("count", &format!(r#"{{"tag":{tag:?}}}"#))).unwrap();
                    let history = vec![event("Counted", &tag, "{}"); count];
                    let counted = accepted(decide_in(&mut deciding, &history).unwrap());
                    assert_eq!(counted.data, format!(r#"{{"seen":{count}}}"#));
                }
            });
        }
    });
}

#[test]
fn a_deadline_stops_its_own_instance_only() {
    thread::scope(|scope| {
        let looping = scope.spawn(|| decide(impatient(), "loop", "{}"));
        let mut others = 0;
        while others == 0 || !looping.is_finished() {
            accepted(decide(impatient(), "accept", "{}").unwrap());
            others += 1;
        }
        let failure = looping.join().unwrap().unwrap_err();
        assert!(matches!(failure.kind, FailureKind::Deadline(_)), "{failure}");
    });
}

#[test]
fn one_instance_too_many_fails_and_says_so() {
    let runtime = runtime_with(limits());
    let handler = runtime.load(&component("misbehaving")).unwrap();
    let mut held: Vec<_> = (0..16).map(|_| handler.begin(&command("accept", "{}")).unwrap()).collect();
    let failure = handler.begin(&command("accept", "{}")).unwrap_err();
    assert!(matches!(failure.kind, FailureKind::Instantiate(_)), "{failure}");
    assert!(
        failure.to_string().contains("failed to start: the host could not make an instance"),
        "{failure}"
    );
    held.pop();
    handler.begin(&command("accept", "{}")).unwrap();
}

#[test]
fn an_attempt_can_move_between_threads() {
    let mut deciding = misbehaving().begin(&command("accept", "{}")).unwrap();
    thread::spawn(move || accepted(decide_in(&mut deciding, &[]).unwrap())).join().unwrap();
}
