use weir_guest::Id;
use weir_guest::testing::Scenario;

use super::{Command, Enrolment, Event};

fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

fn defined(course: &str, capacity: u32) -> Event {
    Event::CourseDefined { course_id: id(course), capacity }
}

fn changed(course: &str, new_capacity: u32) -> Event {
    Event::CourseCapacityChanged { course_id: id(course), new_capacity }
}

fn subscribed(student: &str, course: &str) -> Event {
    Event::StudentSubscribedToCourse { student_id: id(student), course_id: id(course) }
}

fn define(course: &str, capacity: u32) -> Command {
    Command::DefineCourse { course_id: id(course), capacity }
}

fn change(course: &str, new_capacity: u32) -> Command {
    Command::ChangeCourseCapacity { course_id: id(course), new_capacity }
}

fn subscribe(student: &str, course: &str) -> Command {
    Command::SubscribeStudentToCourse { student_id: id(student), course_id: id(course) }
}

mod define_course {
    use super::*;

    #[test]
    fn a_new_course_is_defined() {
        Enrolment::given([]).when(define("c1", 10)).then([defined("c1", 10)]);
    }

    #[test]
    fn a_course_is_defined_once() {
        let message = r#"Course with id "c1" already exists"#;
        for capacity in [10, 20] {
            Enrolment::given([defined("c1", 10)])
                .when(define("c1", capacity))
                .then_rejected("course-exists", message);
        }
    }

    #[test]
    fn other_courses_do_not_matter() {
        Enrolment::given([defined("c1", 10), changed("c1", 5), subscribed("s1", "c1")])
            .when(define("c2", 10))
            .then([defined("c2", 10)]);
    }

    #[test]
    fn a_course_without_seats_is_a_course() {
        Enrolment::given([]).when(define("c1", 0)).then([defined("c1", 0)]);
    }
}

mod change_course_capacity {
    use super::*;

    #[test]
    fn the_capacity_changes() {
        Enrolment::given([defined("c1", 10)]).when(change("c1", 15)).then([changed("c1", 15)]);
    }

    #[test]
    fn the_course_must_exist() {
        Enrolment::given([defined("c1", 15)])
            .when(change("c0", 15))
            .then_rejected("course-unknown", r#"Course "c0" does not exist"#);
    }

    #[test]
    fn the_capacity_must_be_another() {
        let message = "New capacity 15 is the same as the current capacity";
        for history in [vec![defined("c1", 15)], vec![defined("c1", 10), changed("c1", 15)]] {
            Enrolment::given(history).when(change("c1", 15)).then_rejected("capacity-unchanged", message);
        }
    }

    #[test]
    fn the_capacity_may_return_to_what_it_was() {
        Enrolment::given([defined("c1", 10), changed("c1", 15)])
            .when(change("c1", 10))
            .then([changed("c1", 10)]);
    }

    #[test]
    fn the_capacity_may_fall_below_the_number_of_students() {
        Enrolment::given([defined("c1", 10), subscribed("s1", "c1"), subscribed("s2", "c1")])
            .when(change("c1", 1))
            .then([changed("c1", 1)]);
    }
}

mod subscribe_student_to_course {
    use super::*;

    const FULL: (&str, &str) = ("course-full", r#"Course "c1" is already fully booked"#);
    const ALREADY: (&str, &str) = ("already-subscribed", "Student already subscribed to this course");
    const TOO_MANY: (&str, &str) = ("too-many-courses", "Student already subscribed to 5 courses");

    /// The courses `other1`, `other2`, … exist, and the student is in each.
    fn in_other_courses(student: &str, number: usize) -> Vec<Event> {
        (1..=number)
            .map(|n| format!("other{n}"))
            .flat_map(|course| [defined(&course, 10), subscribed(student, &course)])
            .collect()
    }

    #[test]
    fn a_student_subscribes() {
        Enrolment::given([defined("c1", 10)]).when(subscribe("s1", "c1")).then([subscribed("s1", "c1")]);
    }

    #[test]
    fn the_course_must_exist() {
        Enrolment::given([defined("c1", 10)])
            .when(subscribe("s1", "c0"))
            .then_rejected("course-unknown", r#"Course "c0" does not exist"#);
    }

    #[test]
    fn the_last_seat_is_taken_once() {
        let one_left = [defined("c1", 2), subscribed("s1", "c1")];
        Enrolment::given(one_left.clone()).when(subscribe("s2", "c1")).then([subscribed("s2", "c1")]);
        Enrolment::given(one_left)
            .and([subscribed("s2", "c1")])
            .when(subscribe("s3", "c1"))
            .then_rejected(FULL.0, FULL.1);
    }

    #[test]
    fn a_course_without_seats_is_full() {
        Enrolment::given([defined("c1", 0)]).when(subscribe("s1", "c1")).then_rejected(FULL.0, FULL.1);
    }

    #[test]
    fn the_latest_capacity_counts() {
        let grown = [defined("c1", 1), subscribed("s1", "c1"), changed("c1", 2)];
        Enrolment::given(grown.clone()).when(subscribe("s2", "c1")).then([subscribed("s2", "c1")]);
        Enrolment::given(grown)
            .and([changed("c1", 1)])
            .when(subscribe("s2", "c1"))
            .then_rejected(FULL.0, FULL.1);
    }

    #[test]
    fn students_of_other_courses_take_no_seat() {
        Enrolment::given([defined("c1", 1), defined("c2", 1), subscribed("s2", "c2")])
            .when(subscribe("s1", "c1"))
            .then([subscribed("s1", "c1")]);
    }

    #[test]
    fn a_student_subscribes_to_a_course_once() {
        Enrolment::given([defined("c1", 10), subscribed("s1", "c1")])
            .when(subscribe("s1", "c1"))
            .then_rejected(ALREADY.0, ALREADY.1);
    }

    #[test]
    fn five_courses_are_the_most() {
        Enrolment::given(in_other_courses("s1", 4))
            .and([defined("c1", 10)])
            .when(subscribe("s1", "c1"))
            .then([subscribed("s1", "c1")]);
        Enrolment::given(in_other_courses("s1", 5))
            .and([defined("c1", 10)])
            .when(subscribe("s1", "c1"))
            .then_rejected(TOO_MANY.0, TOO_MANY.1);
    }

    #[test]
    fn courses_of_other_students_do_not_count() {
        Enrolment::given(in_other_courses("s2", 5))
            .and([defined("c1", 10)])
            .when(subscribe("s1", "c1"))
            .then([subscribed("s1", "c1")]);
    }

    #[test]
    fn an_unknown_course_is_named_before_too_many_courses() {
        Enrolment::given(in_other_courses("s1", 5))
            .when(subscribe("s1", "c0"))
            .then_rejected("course-unknown", r#"Course "c0" does not exist"#);
    }

    #[test]
    fn a_full_course_is_named_before_a_subscription_to_it() {
        Enrolment::given([defined("c1", 1), subscribed("s1", "c1")])
            .when(subscribe("s1", "c1"))
            .then_rejected(FULL.0, FULL.1);
    }

    #[test]
    fn a_full_course_is_named_before_too_many_courses() {
        Enrolment::given(in_other_courses("s1", 5))
            .and([defined("c1", 0)])
            .when(subscribe("s1", "c1"))
            .then_rejected(FULL.0, FULL.1);
    }

    #[test]
    fn a_subscription_is_named_before_too_many_courses() {
        Enrolment::given(in_other_courses("s1", 4))
            .and([defined("c1", 10), subscribed("s1", "c1")])
            .when(subscribe("s1", "c1"))
            .then_rejected(ALREADY.0, ALREADY.1);
    }
}

#[test]
fn malformed_commands_are_refused() {
    for (name, data, message) in [
        ("defineCourse", r#"{"courseId":"c1"}"#, ": missing field `capacity` at line 1 column 17"),
        (
            "defineCourse",
            r#"{"courseId":"c1","capacity":-1}"#,
            ".capacity: invalid value: integer `-1`, expected u32 at line 1 column 30",
        ),
        (
            "defineCourse",
            r#"{"courseId":"","capacity":1}"#,
            ".courseId: must not be empty at line 1 column 14",
        ),
        (
            "changeCourseCapacity",
            r#"{"courseId":"c1","capacity":1}"#,
            ".capacity: unknown field `capacity`, expected `courseId` or `newCapacity` at line 1 column 27",
        ),
        (
            "subscribeStudentToCourse",
            r#"{"studentId":"s1","courseId":" c1"}"#,
            ".courseId: must not begin or end with white space at line 1 column 35",
        ),
        (
            "subscribeStudentToCourse",
            r#"{"studentId":"s1\u0000","courseId":"c1"}"#,
            ".studentId: must not contain control characters at line 1 column 23",
        ),
    ] {
        Enrolment::given([])
            .when_sent(name, data)
            .then_rejected("invalid-command", &format!("{name}{message}"));
    }
}
