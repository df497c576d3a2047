//! What the students of the rush want: the commands, in the order in which the clients take them.
//!
//! The same numbers give the same plan. What comes of it still differs a little from run to run, because
//! the clients run at the same time.

use fastrand::Rng;
use serde::Serialize;
use serde_json::Value;

/// How many courses a student may be subscribed to: the rule of the example's handler.
pub(super) const COURSES_PER_STUDENT: usize = 5;

/// A course nobody ever defines.
const UNKNOWN_COURSE: &str = "c0";

/// A command of the course enrolment example. It serialises as the command's data, which is also the data
/// of the one event that is recorded if the command is accepted.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(super) enum Command {
    DefineCourse { course_id: String, capacity: u64 },
    ChangeCapacity { course_id: String, new_capacity: u64 },
    Subscribe { student_id: String, course_id: String },
}

impl Command {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::DefineCourse { .. } => "defineCourse",
            Self::ChangeCapacity { .. } => "changeCourseCapacity",
            Self::Subscribe { .. } => "subscribeStudentToCourse",
        }
    }

    /// The type of the event that records the command.
    pub(super) fn event_type(&self) -> &'static str {
        match self {
            Self::DefineCourse { .. } => "CourseDefined",
            Self::ChangeCapacity { .. } => "CourseCapacityChanged",
            Self::Subscribe { .. } => "StudentSubscribedToCourse",
        }
    }

    pub(super) fn data(&self) -> Value {
        serde_json::to_value(self).expect("strings and numbers are always JSON")
    }

    pub(super) fn course(&self) -> &str {
        match self {
            Self::DefineCourse { course_id, .. }
            | Self::ChangeCapacity { course_id, .. }
            | Self::Subscribe { course_id, .. } => course_id,
        }
    }
}

/// The size of a rush.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) students: usize,
    pub(super) courses: usize,
    pub(super) seed: u64,
}

pub(super) struct Plan {
    /// What comes before the doors open: every course, once.
    pub(super) courses: Vec<Command>,
    pub(super) rush: Vec<Command>,
}

/// Plans a rush in which every rule of the example gets its chance to be broken.
///
/// Every student comes at a moment of their own and sends all applications at about that moment, as with
/// several browser tabs, so that the limit of courses a student is contended as the places of a course are.
pub(super) fn plan(size: Size) -> Plan {
    let mut rng = Rng::with_seed(size.seed);
    let places: Vec<u64> = (0..size.courses).map(|_| rng.u64(10..=60)).collect();
    let courses = places.iter().enumerate().map(|(i, &capacity)| define(i, capacity)).collect();

    let mut timed = Vec::new();
    for student in 0..size.students {
        let arrival = rng.f64();
        let applications = if rng.f64() < 0.05 {
            eager_applications(&mut rng, student, size.courses)
        } else {
            applications(&mut rng, student, size.courses)
        };
        timed.extend(applications.into_iter().map(|command| (arrival + rng.f64() * 0.005, command)));
    }
    for (course, &capacity) in places.iter().enumerate() {
        timed.extend(capacity_changes(&mut rng, course, capacity));
        if rng.f64() < 0.25 {
            timed.push((rng.f64(), define(course, capacity)));
        }
    }
    timed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    Plan { courses, rush: timed.into_iter().map(|(_, command)| command).collect() }
}

/// One to four applications, most of them to popular courses; a few are sent twice, and a few have a typing
/// error in them.
fn applications(rng: &mut Rng, student: usize, courses: usize) -> Vec<Command> {
    let mut applications: Vec<Command> =
        (0..rng.usize(1..=4)).map(|_| subscribe(student, &course_id(popular(rng, courses)))).collect();
    if rng.f64() < 0.05 {
        applications.push(applications[0].clone());
    }
    if rng.f64() < 0.02 {
        applications.push(subscribe(student, UNKNOWN_COURSE));
    }
    applications
}

/// More courses than anyone may have, and the less wanted ones, where there are places left to be refused.
fn eager_applications(rng: &mut Rng, student: usize, courses: usize) -> Vec<Command> {
    let mut choice: Vec<usize> = (courses / 3..courses).collect();
    rng.shuffle(&mut choice);
    choice
        .iter()
        .take(COURSES_PER_STUDENT + 3)
        .map(|&course| subscribe(student, &course_id(course)))
        .collect()
}

/// A third of the courses grows, a third shrinks, perhaps below the number of its students. Some changes are
/// asked for a second time, when there is nothing left to change.
fn capacity_changes(rng: &mut Rng, course: usize, capacity: u64) -> Vec<(f64, Command)> {
    let new_capacity = match rng.usize(0..3) {
        0 => capacity + rng.u64(5..=15),
        1 => capacity - rng.u64(1..=8),
        _ => return Vec::new(),
    };
    let at = rng.f64();
    let change = Command::ChangeCapacity { course_id: course_id(course), new_capacity };
    let again = (rng.f64() < 0.5).then(|| (at + 0.02, change.clone()));
    [(at, change)].into_iter().chain(again).collect()
}

/// A course by popularity: the first one is the most wanted, and the last few are almost overlooked.
fn popular(rng: &mut Rng, courses: usize) -> usize {
    (rng.f64().powi(2) * courses as f64) as usize
}

fn define(course: usize, capacity: u64) -> Command {
    Command::DefineCourse { course_id: course_id(course), capacity }
}

fn subscribe(student: usize, course_id: &str) -> Command {
    Command::Subscribe { student_id: format!("s{}", student + 1), course_id: course_id.to_owned() }
}

fn course_id(course: usize) -> String {
    format!("c{}", course + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_plan_and_another_one_does_not() {
        let size = Size { students: 50, courses: 8, seed: 1 };
        let rush = |seed| format!("{:?}", plan(Size { seed, ..size }).rush);
        assert_eq!(rush(1), rush(1));
        assert_ne!(rush(1), rush(2));
    }

    #[test]
    fn there_are_more_applicants_than_places() {
        let plan = plan(Size { students: 1000, courses: 40, seed: 1 });
        let applications = plan.rush.iter().filter(|c| matches!(c, Command::Subscribe { .. })).count();
        let places: u64 = plan
            .courses
            .iter()
            .map(|command| match command {
                Command::DefineCourse { capacity, .. } => *capacity,
                _ => 0,
            })
            .sum();
        assert!(applications as u64 > places, "{applications} applications for {places} places");
    }
}
