//! Each check is shown a log that is broken in its own way, because a check that cannot fail checks nothing.

use std::time::Duration;

use super::super::plan::Command;
use super::*;

/// A course with two places, two students in it, and a third one who was refused: nothing to complain of.
struct World {
    log: Vec<Recorded>,
    answers: Vec<Answered>,
}

impl World {
    fn sound() -> Self {
        let mut world = Self { log: Vec::new(), answers: Vec::new() };
        world.accept("define", define("c1", 2));
        world.accept("first", subscribe("s1", "c1"));
        world.accept("second", subscribe("s2", "c1"));
        world.answer(subscribe("s3", "c1"), rejected("third", COURSE_FULL));
        world
    }

    /// The command is accepted and recorded.
    fn accept(&mut self, command_id: &str, command: Command) {
        let events = vec![event(&command)];
        self.record(command_id, &command);
        self.answer(command, Outcome::Accepted { command_id: command_id.to_owned(), events });
    }

    fn record(&mut self, command_id: &str, command: &Command) {
        let position = self.log.len() as u64 + 1;
        let command_id = Some(command_id.to_owned());
        self.log.push(Recorded { position, command_id, written: event(command) });
    }

    fn answer(&mut self, command: Command, outcome: Outcome) {
        self.answers.push(Answered { command, outcome, conflicts: 0, latency: Duration::ZERO });
    }

    /// Asserts that the verdict finds just this: one broken rule, once.
    #[track_caller]
    fn breaks(&self, text: &str) {
        let verdict = check(&self.log, &self.answers);
        assert_eq!(verdict.gaps, 0);
        assert!(!verdict.is_clean());
        let broken: Vec<_> = verdict.rules.iter().flat_map(|r| r.broken.iter().map(|_| r.text)).collect();
        assert_eq!(broken, [text]);
    }

    #[track_caller]
    fn is_sound(&self) {
        let verdict = check(&self.log, &self.answers);
        let broken: Vec<_> = verdict.rules.iter().flat_map(|rule| &rule.broken).collect();
        assert!(verdict.is_clean(), "{broken:?}");
    }
}

fn define(course: &str, capacity: u64) -> Command {
    Command::DefineCourse { course_id: course.to_owned(), capacity }
}

fn change(course: &str, new_capacity: u64) -> Command {
    Command::ChangeCapacity { course_id: course.to_owned(), new_capacity }
}

fn subscribe(student: &str, course: &str) -> Command {
    Command::Subscribe { student_id: student.to_owned(), course_id: course.to_owned() }
}

fn rejected(command_id: &str, code: &str) -> Outcome {
    Outcome::Rejected { command_id: command_id.to_owned(), code: code.to_owned(), detail: String::new() }
}

fn event(command: &Command) -> Written {
    Written {
        event_type: command.event_type().to_owned(),
        tags: BTreeSet::from([format!("course:{}", command.course())]),
        data: command.data(),
    }
}

#[test]
fn a_sound_log_breaks_nothing() {
    World::sound().is_sound();
}

#[test]
fn a_course_may_shrink_below_its_students() {
    let mut world = World::sound();
    world.accept("shrink", change("c1", 1));
    world.is_sound();
}

#[test]
fn a_missing_position_is_a_gap() {
    let mut world = World::sound();
    world.log[2].position = 5;
    let verdict = check(&world.log, &world.answers);
    assert_eq!((verdict.gaps, verdict.violations()), (2, 0));
    assert!(!verdict.is_clean());
}

#[test]
fn a_log_that_does_not_start_at_one_has_a_gap() {
    let mut world = World::sound();
    for event in &mut world.log {
        event.position += 1;
    }
    assert_eq!(check(&world.log, &world.answers).gaps, 1);
}

#[test]
fn a_position_that_is_there_twice() {
    let mut world = World::sound();
    world.log[2].position = 2;
    world.breaks("Positions rise from 1, each of them once");
}

#[test]
fn positions_in_another_order() {
    let mut world = World::sound();
    (world.log[1].position, world.log[2].position) = (3, 2);
    world.breaks("Positions rise from 1, each of them once");
}

#[test]
fn a_course_that_is_defined_twice() {
    let mut world = World::sound();
    world.accept("again", define("c1", 2));
    world.breaks("No course is defined twice");
}

#[test]
fn a_subscription_to_a_course_that_is_not_defined() {
    let mut world = World::sound();
    world.accept("lost", subscribe("s1", "c9"));
    world.breaks("Nothing happens to a course that is not defined");
}

#[test]
fn a_new_capacity_that_is_the_old_one() {
    let mut world = World::sound();
    world.accept("same", change("c1", 2));
    world.breaks("A changed capacity is another than before");
}

#[test]
fn one_student_more_than_places() {
    let mut world = World::sound();
    world.accept("fourth", subscribe("s4", "c1"));
    world.breaks("Never more students than places when one subscribes");
}

#[test]
fn a_student_more_in_a_course_that_has_shrunk() {
    let mut world = World::sound();
    world.accept("grow", change("c1", 9));
    world.accept("shrink", change("c1", 2));
    world.accept("fourth", subscribe("s4", "c1"));
    world.breaks("Never more students than places when one subscribes");
}

#[test]
fn a_student_who_is_in_a_course_twice() {
    let mut world = World::sound();
    world.accept("grow", change("c1", 9));
    world.accept("again", subscribe("s1", "c1"));
    world.breaks("No student is in a course twice");
}

#[test]
fn a_student_with_a_sixth_course() {
    let mut world = World::sound();
    for course in ["c2", "c3", "c4", "c5", "c6"] {
        world.accept(&format!("define {course}"), define(course, 1));
        world.accept(&format!("subscribe {course}"), subscribe("s1", course));
    }
    world.breaks("No student has more than five courses");
}

#[test]
fn an_accepted_command_that_is_not_in_the_log() {
    let mut world = World::sound();
    world.log.pop();
    world.answers.pop();
    world.breaks("What was accepted is in the log, once, as answered");
}

#[test]
fn an_event_that_says_something_else_than_the_answer() {
    let mut world = World::sound();
    world.log[2].written.tags.insert("student:s9".to_owned());
    world.breaks("What was accepted is in the log, once, as answered");
}

#[test]
fn an_accepted_command_that_is_in_the_log_twice() {
    let mut world = World::sound();
    world.accept("grow", change("c1", 3));
    world.record("grow", &change("c1", 3));
    let broken: Vec<_> = check(&world.log, &world.answers)
        .rules
        .iter()
        .filter(|rule| !rule.broken.is_empty())
        .map(|rule| rule.text)
        .collect();
    assert!(broken.contains(&"What was accepted is in the log, once, as answered"), "{broken:?}");
}

#[test]
fn an_event_of_a_command_that_was_refused() {
    let mut world = World::sound();
    world.answer(change("c1", 9), rejected("refused", "no"));
    world.record("refused", &change("c1", 9));
    world.breaks("What is in the log was asked for, and not refused");
}

#[test]
fn an_event_of_a_command_that_nobody_sent() {
    let mut world = World::sound();
    world.record("nobody", &change("c1", 9));
    world.breaks("What is in the log was asked for, and not refused");
}

#[test]
fn an_event_that_its_command_did_not_ask_for() {
    let mut world = World::sound();
    world.accept("grow", change("c1", 9));
    world.answers.last_mut().unwrap().command = change("c1", 8);
    world.breaks("What is in the log was asked for, and not refused");
}

#[test]
fn a_command_whose_answer_was_lost_may_be_in_the_log_or_not() {
    let mut world = World::sound();
    world.answer(change("c1", 9), Outcome::Unknown);
    world.is_sound();
    world.record("lost", &change("c1", 9));
    world.is_sound();
}

#[test]
fn a_command_whose_answer_was_lost_may_be_in_the_log_only_once() {
    let mut world = World::sound();
    world.answer(define("c2", 9), Outcome::Unknown);
    world.record("lost", &define("c2", 9));
    world.record("found", &define("c2", 9));
    let verdict = check(&world.log, &world.answers);
    let strays = verdict.rules.iter().find(|rule| rule.text.starts_with("What is in the log")).unwrap();
    assert_eq!(strays.broken.len(), 1);
}

#[test]
fn a_course_that_was_called_full_and_never_was() {
    let mut world = World::sound();
    world.accept("define c2", define("c2", 1));
    world.answer(subscribe("s1", "c2"), rejected("excuse", COURSE_FULL));
    world.breaks("A course that was called full had been full");
}

#[test]
fn a_course_that_shrank_to_its_students_was_full() {
    let mut world = World::sound();
    world.accept("define c2", define("c2", 5));
    world.accept("only", subscribe("s1", "c2"));
    world.accept("shrink", change("c2", 1));
    world.answer(subscribe("s2", "c2"), rejected("full", COURSE_FULL));
    world.is_sound();
}
