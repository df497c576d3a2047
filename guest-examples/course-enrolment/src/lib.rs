//! Courses have a capacity, a student subscribes to at most five of them.
//!
//! Neither a course nor a student alone can guard both rules. A subscription depends on what happened to its
//! course and on what happened to its student, and on nothing else: that is its boundary.

use std::collections::{BTreeMap, BTreeSet};

use weir_guest::prelude::*;

const MAX_COURSES_OF_A_STUDENT: usize = 5;

commands! {
    enum Command {
        DefineCourse { course_id: Id, capacity: u32 },
        ChangeCourseCapacity { course_id: Id, new_capacity: u32 },
        SubscribeStudentToCourse { student_id: Id, course_id: Id },
    }
}

events! {
    enum Event: EventType {
        CourseDefined { course_id: Id, capacity: u32 } tags [tag("course", course_id)],
        CourseCapacityChanged { course_id: Id, new_capacity: u32 } tags [tag("course", course_id)],
        StudentSubscribedToCourse { student_id: Id, course_id: Id }
            tags [tag("student", student_id), tag("course", course_id)],
    }
}

/// What the events say of the courses and students that they name.
#[derive(Default)]
struct Enrolment {
    capacities: BTreeMap<Id, u32>,
    students_in_course: BTreeMap<Id, u32>,
    courses_of_student: BTreeMap<Id, BTreeSet<Id>>,
}

export!(Enrolment);

impl Handler for Enrolment {
    const NAME: &'static str = "course-enrolment";
    type Command = Command;
    type Event = Event;

    fn boundary(command: &Command, _: &Context) -> Result<Query, Rejection> {
        use EventType::{CourseCapacityChanged, CourseDefined, StudentSubscribedToCourse};
        Ok(match command {
            Command::DefineCourse { course_id, .. } => {
                Query::new().item([CourseDefined], [tag("course", course_id)])
            }
            Command::ChangeCourseCapacity { course_id, .. } => {
                Query::new().item([CourseDefined, CourseCapacityChanged], [tag("course", course_id)])
            }
            Command::SubscribeStudentToCourse { student_id, course_id } => Query::new()
                .item(
                    [CourseDefined, CourseCapacityChanged, StudentSubscribedToCourse],
                    [tag("course", course_id)],
                )
                .item([StudentSubscribedToCourse], [tag("student", student_id)]),
        })
    }

    fn apply(&mut self, event: Event, _: &Recorded) {
        match event {
            Event::CourseDefined { course_id, capacity } => {
                self.capacities.insert(course_id, capacity);
            }
            Event::CourseCapacityChanged { course_id, new_capacity } => {
                self.capacities.insert(course_id, new_capacity);
            }
            Event::StudentSubscribedToCourse { student_id, course_id } => {
                *self.students_in_course.entry(course_id.clone()).or_default() += 1;
                self.courses_of_student.entry(student_id).or_default().insert(course_id);
            }
        }
    }

    fn decide(&self, command: Command, _: &Context) -> Decision<Event> {
        let event = match command {
            Command::DefineCourse { course_id, capacity } => self.define_course(course_id, capacity)?,
            Command::ChangeCourseCapacity { course_id, new_capacity } => {
                self.change_course_capacity(course_id, new_capacity)?
            }
            Command::SubscribeStudentToCourse { student_id, course_id } => {
                self.subscribe_student(student_id, course_id)?
            }
        };
        Ok(vec![event])
    }
}

impl Enrolment {
    fn define_course(&self, course_id: Id, capacity: u32) -> Result<Event, Rejection> {
        if self.capacities.contains_key(&course_id) {
            return reject("course-exists", format!(r#"Course with id "{course_id}" already exists"#));
        }
        Ok(Event::CourseDefined { course_id, capacity })
    }

    fn change_course_capacity(&self, course_id: Id, new_capacity: u32) -> Result<Event, Rejection> {
        if new_capacity == self.capacity(&course_id)? {
            let message = format!("New capacity {new_capacity} is the same as the current capacity");
            return reject("capacity-unchanged", message);
        }
        Ok(Event::CourseCapacityChanged { course_id, new_capacity })
    }

    fn subscribe_student(&self, student_id: Id, course_id: Id) -> Result<Event, Rejection> {
        if self.students(&course_id) >= self.capacity(&course_id)? {
            return reject("course-full", format!(r#"Course "{course_id}" is already fully booked"#));
        }
        if let Some(courses) = self.courses_of_student.get(&student_id) {
            if courses.contains(&course_id) {
                return reject("already-subscribed", "Student already subscribed to this course");
            }
            if courses.len() >= MAX_COURSES_OF_A_STUDENT {
                let message = format!("Student already subscribed to {MAX_COURSES_OF_A_STUDENT} courses");
                return reject("too-many-courses", message);
            }
        }
        Ok(Event::StudentSubscribedToCourse { student_id, course_id })
    }

    fn capacity(&self, course_id: &Id) -> Result<u32, Rejection> {
        let unknown = || Rejection::new("course-unknown", format!(r#"Course "{course_id}" does not exist"#));
        self.capacities.get(course_id).copied().ok_or_else(unknown)
    }

    fn students(&self, course_id: &Id) -> u32 {
        self.students_in_course.get(course_id).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
