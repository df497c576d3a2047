//! Whether what a handler says of itself can be.

use std::collections::HashSet;

use crate::bindings::Description;

const LONGEST_HANDLER_NAME: usize = 100;
const LONGEST_NAME: usize = 200;

/// The reason, if not.
pub(super) fn check(description: &Description) -> Result<(), String> {
    let Description { name, commands, event_types } = description;
    if !is_handler_name(name) {
        return Err(format!(
            "its name is {name:?}, and a name is 1 to {LONGEST_HANDLER_NAME} of `a-z`, `0-9` and `-`"
        ));
    }
    if commands.is_empty() {
        return Err("it handles no command".into());
    }
    commands.iter().try_for_each(|command| check_name("a command", command))?;
    event_types.iter().try_for_each(|event_type| check_name("an event type", event_type))?;
    let mut seen = HashSet::new();
    match commands.iter().find(|command| !seen.insert(*command)) {
        Some(twice) => Err(format!("it names the command {twice:?} twice")),
        None => Ok(()),
    }
}

fn is_handler_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=LONGEST_HANDLER_NAME).contains(&name.len()) && name.bytes().all(allowed)
}

fn check_name(what: &str, name: &str) -> Result<(), String> {
    let problem = if name.is_empty() {
        "is empty"
    } else if name.len() > LONGEST_NAME {
        return Err(format!("the name of {what} has {} bytes, more than {LONGEST_NAME}", name.len()));
    } else if name.chars().any(char::is_control) {
        "has a control character in it"
    } else if name.trim() != name {
        "has white space at an end"
    } else {
        return Ok(());
    };
    Err(format!("the name of {what}, {name:?}, {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(name: &str, commands: &[&str], event_types: &[&str]) -> String {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let description =
            Description { name: name.into(), commands: owned(commands), event_types: owned(event_types) };
        check(&description).err().unwrap_or_default()
    }

    #[test]
    fn a_description_says_which_of_its_parts_cannot_be() {
        let long = "x".repeat(201);
        assert_eq!(problem("course-enrolment", &["define-course"], &["CourseDefined"]), "");
        assert!(problem("", &["c"], &[]).starts_with("its name is \"\""));
        assert!(problem("Course", &["c"], &[]).starts_with("its name is \"Course\""));
        assert!(problem(&"x".repeat(101), &["c"], &[]).starts_with("its name is"));
        assert_eq!(problem("h", &[], &[]), "it handles no command");
        assert_eq!(problem("h", &["c", "d", "c"], &[]), "it names the command \"c\" twice");
        assert_eq!(problem("h", &[""], &[]), "the name of a command, \"\", is empty");
        assert_eq!(problem("h", &[&long], &[]), "the name of a command has 201 bytes, more than 200");
        assert_eq!(
            problem("h", &["c"], &["a\nb"]),
            "the name of an event type, \"a\\nb\", has a control character in it"
        );
        assert_eq!(
            problem("h", &["c"], &[" a"]),
            "the name of an event type, \" a\", has white space at an end"
        );
    }
}
