//! Holds the log against the rules and against what the clients were told.
//!
//! Nothing here trusts the host: the events are replayed in the order of their positions with the rules of
//! the course enrolment example written down once more.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Deserialize;
use serde_json::{Value, json};

use super::log::{Recorded, Written};
use super::plan::COURSES_PER_STUDENT;
use super::rush::{Answered, Outcome};
use crate::rule::Rule;

#[cfg(test)]
mod tests;

/// The code with which the handler refuses a subscription when there is no place left.
const COURSE_FULL: &str = "course-full";

pub(super) struct Verdict {
    pub(super) rules: Vec<Rule>,
    /// Positions that no event has, between 1 and the last one.
    pub(super) gaps: u64,
}

impl Verdict {
    pub(super) fn violations(&self) -> usize {
        self.rules.iter().map(|rule| rule.broken.len()).sum()
    }

    pub(super) fn is_clean(&self) -> bool {
        self.violations() == 0 && self.gaps == 0
    }
}

pub(super) fn check(log: &[Recorded], answers: &[Answered]) -> Verdict {
    let mut replay = Replay::default();
    for event in log {
        replay.apply(event);
    }
    let (gaps, disorder) = positions(log);
    let rules = vec![
        Rule { text: "Positions rise from 1, each of them once", broken: disorder },
        Rule { text: "No course is defined twice", broken: replay.defined_twice },
        Rule { text: "Nothing happens to a course that is not defined", broken: replay.unknown_course },
        Rule { text: "A changed capacity is another than before", broken: replay.same_capacity },
        Rule { text: "Never more students than places when one subscribes", broken: replay.overbooked },
        Rule { text: "No student is in a course twice", broken: replay.subscribed_twice },
        Rule { text: "No student has more than five courses", broken: replay.too_many_courses },
        Rule { text: "What was accepted is in the log, once, as answered", broken: promises(log, answers) },
        Rule { text: "What is in the log was asked for, and not refused", broken: strays(log, answers) },
        Rule {
            text: "A course that was called full had been full",
            broken: excuses(&replay.was_full, answers),
        },
    ];
    Verdict { rules, gaps }
}

/// The events of the example, as far as the rules need them.
#[derive(Deserialize)]
#[serde(tag = "type", content = "data", rename_all_fields = "camelCase")]
enum Fact {
    CourseDefined { course_id: String, capacity: u64 },
    CourseCapacityChanged { course_id: String, new_capacity: u64 },
    StudentSubscribedToCourse { student_id: String, course_id: String },
}

#[derive(Default)]
struct Course {
    capacity: u64,
    students: HashSet<String>,
}

#[derive(Default)]
struct Replay {
    courses: HashMap<String, Course>,
    courses_of: HashMap<String, usize>,
    was_full: HashSet<String>,

    defined_twice: Vec<String>,
    unknown_course: Vec<String>,
    same_capacity: Vec<String>,
    overbooked: Vec<String>,
    subscribed_twice: Vec<String>,
    too_many_courses: Vec<String>,
}

impl Replay {
    fn apply(&mut self, event: &Recorded) {
        let at = event.position;
        let Written { event_type, data, .. } = &event.written;
        // An event that is none of the example's is a stray, and reported as one.
        let Ok(fact) = Fact::deserialize(json!({ "type": event_type, "data": data })) else { return };
        match fact {
            Fact::CourseDefined { course_id, capacity } => self.define(at, course_id, capacity),
            Fact::CourseCapacityChanged { course_id, new_capacity } => {
                self.change_capacity(at, course_id, new_capacity);
            }
            Fact::StudentSubscribedToCourse { student_id, course_id } => {
                self.subscribe(at, student_id, course_id);
            }
        }
    }

    fn define(&mut self, at: u64, course_id: String, capacity: u64) {
        if self.courses.contains_key(&course_id) {
            self.defined_twice.push(format!("{course_id} again at position {at}"));
            return;
        }
        if capacity == 0 {
            self.was_full.insert(course_id.clone());
        }
        self.courses.insert(course_id, Course { capacity, students: HashSet::new() });
    }

    fn change_capacity(&mut self, at: u64, course_id: String, new_capacity: u64) {
        let Some(course) = self.courses.get_mut(&course_id) else {
            self.unknown_course.push(format!("{course_id} at position {at}"));
            return;
        };
        if course.capacity == new_capacity {
            self.same_capacity.push(format!("{course_id} still has {new_capacity} at position {at}"));
        }
        course.capacity = new_capacity;
        if course.students.len() as u64 >= new_capacity {
            self.was_full.insert(course_id);
        }
    }

    fn subscribe(&mut self, at: u64, student_id: String, course_id: String) {
        let Some(course) = self.courses.get_mut(&course_id) else {
            self.unknown_course.push(format!("{course_id} at position {at}"));
            return;
        };
        if course.students.contains(&student_id) {
            self.subscribed_twice.push(format!("{student_id} in {course_id} again at position {at}"));
            return;
        }
        let courses = self.courses_of.entry(student_id.clone()).or_default();
        *courses += 1;
        if *courses > COURSES_PER_STUDENT {
            self.too_many_courses.push(format!("{student_id} has {courses} at position {at}"));
        }
        course.students.insert(student_id);
        let (students, capacity) = (course.students.len() as u64, course.capacity);
        if students > capacity {
            self.overbooked.push(format!("{course_id} has {students} of {capacity} at position {at}"));
        }
        if students >= capacity {
            self.was_full.insert(course_id);
        }
    }
}

/// How many positions are missing, and which are not where they should be.
fn positions(log: &[Recorded]) -> (u64, Vec<String>) {
    let present: BTreeSet<u64> = log.iter().map(|event| event.position).filter(|&p| p > 0).collect();
    let last = present.last().copied().unwrap_or(0);
    let mut disorder = Vec::new();
    let mut before = 0;
    for event in log {
        if event.position <= before {
            disorder.push(format!("{} comes after {before}", event.position));
        }
        before = event.position;
    }
    (last - present.len() as u64, disorder)
}

fn by_command(log: &[Recorded]) -> HashMap<&str, Vec<&Written>> {
    let mut events: HashMap<&str, Vec<&Written>> = HashMap::new();
    for event in log {
        events.entry(event.command_id.as_deref().unwrap_or("")).or_default().push(&event.written);
    }
    events
}

/// Every accepted command whose events the log does not have exactly as the client was told.
fn promises(log: &[Recorded], answers: &[Answered]) -> Vec<String> {
    let logged = by_command(log);
    let mut broken = Vec::new();
    for answered in answers {
        let Outcome::Accepted { command_id, events } = &answered.outcome else { continue };
        let found = logged.get(command_id.as_str()).map_or(&[][..], Vec::as_slice);
        if !found.iter().copied().eq(events) {
            let (promised, found) = (events.len(), found.len());
            broken.push(format!("command {command_id}: {promised} promised, {found} found or changed"));
        }
    }
    broken
}

/// Every command whose events have no business in the log.
///
/// An event needs a command of this rush that asked for exactly this, one event for one command, and that
/// was accepted or whose answer was lost.
fn strays(log: &[Recorded], answers: &[Answered]) -> Vec<String> {
    let mut accepted: HashMap<&str, Wanted<'_>> = HashMap::new();
    let mut rejected: HashSet<&str> = HashSet::new();
    let mut unknown: Vec<Wanted<'_>> = Vec::new();
    for Answered { command, outcome, .. } in answers {
        let wanted = (command.event_type(), command.data());
        match outcome {
            Outcome::Accepted { command_id, .. } => drop(accepted.insert(command_id, wanted)),
            Outcome::Rejected { command_id, .. } => drop(rejected.insert(command_id)),
            Outcome::Unknown => unknown.push(wanted),
            Outcome::Exhausted => {}
        }
    }
    let mut strays = Vec::new();
    for (command_id, events) in by_command(log) {
        let is_wanted = |wanted: &Wanted<'_>| is_just(&events, wanted);
        if rejected.contains(command_id) {
            strays.push(format!("command {command_id} was refused"));
        } else if let Some(wanted) = accepted.get(command_id) {
            if !is_wanted(wanted) {
                strays.push(format!("command {command_id} asked for something else"));
            }
        } else if let Some(lost) = unknown.iter().position(is_wanted) {
            unknown.swap_remove(lost);
        } else {
            strays.push(format!("command {command_id:?} is none that was sent"));
        }
    }
    strays
}

/// The type and the data of the one event a command asks for.
type Wanted<'a> = (&'a str, Value);

fn is_just(events: &[&Written], (event_type, data): &Wanted<'_>) -> bool {
    matches!(events, [event] if event.event_type == *event_type && event.data == *data)
}

/// Every refusal for want of places in a course that never was without one.
fn excuses(was_full: &HashSet<String>, answers: &[Answered]) -> Vec<String> {
    let is_full =
        |outcome: &Outcome| matches!(outcome, Outcome::Rejected { code, .. } if code == COURSE_FULL);
    let refused: BTreeSet<&str> =
        answers.iter().filter(|a| is_full(&a.outcome)).map(|a| a.command.course()).collect();
    refused.into_iter().filter(|&course| !was_full.contains(course)).map(str::to_owned).collect()
}
