//! What writers were told, and what became of it.

use super::super::evidence::{Answer, Append, EventId};
use super::index::Index;
use super::{Sent, some};

/// Appends that were acknowledged and are not in the log as they should be.
pub(super) fn kept(index: &Index<'_>, appends: &[Append]) -> Vec<String> {
    let mut broken = Vec::new();
    for append in appends.iter().filter(|append| append.was(Answer::Appended)) {
        let missing = missing(index, append);
        let places: Vec<usize> = append.events.iter().filter_map(|event| index.place(event.id)).collect();
        if !missing.is_empty() {
            broken.push(format!("{} missing of {}", some(missing), name(append)));
        } else if !places.is_sorted() {
            broken.push(format!("the events of {} stand in another order", name(append)));
        }
    }
    broken
}

/// Events of appends that were not made, and appends of which only some of the events are there.
pub(super) fn nothing_more(index: &Index<'_>, appends: &[Append]) -> Vec<String> {
    let mut broken = Vec::new();
    for append in appends.iter().filter(|append| !append.was(Answer::Appended)) {
        let missing = missing(index, append).len();
        if missing == append.events.len() {
            continue;
        }
        if !append.was(Answer::Lost) {
            broken.push(format!("{} was answered with {:?}", name(append), append.answers));
        } else if missing > 0 {
            broken.push(format!("{missing} of {} are missing of {}", append.events.len(), name(append)));
        }
    }
    broken
}

/// Events of the log that were sent otherwise, or by nobody.
pub(super) fn verbatim(index: &Index<'_>, sent: &Sent<'_>) -> Vec<String> {
    let mut altered = Vec::new();
    for logged in index.log {
        let id = logged.event.id;
        match sent.get(&id) {
            None => altered.push(format!("{id} at position {} is nobody's", logged.position)),
            Some((append, n)) => {
                if append.events[*n] != logged.event {
                    altered.push(format!("{:?} is logged as {:?}", append.events[*n], logged.event));
                }
                if append.command_id.as_ref().is_some_and(|id| *id != logged.command_id) {
                    altered.push(format!("{id} has the command id {}", logged.command_id));
                }
            }
        }
    }
    altered
}

/// The condition was the same each time, and a conflict stays one; so does an append that was made.
pub(super) fn two_answers(appends: &[Append]) -> Vec<String> {
    let both = |append: &&Append| append.was(Answer::Appended) && append.was(Answer::Conflict);
    appends.iter().filter(both).map(|append| format!("{}: {:?}", name(append), append.answers)).collect()
}

fn missing(index: &Index<'_>, append: &Append) -> Vec<EventId> {
    append.events.iter().map(|event| event.id).filter(|id| index.place(*id).is_none()).collect()
}

fn name(append: &Append) -> String {
    format!("the append of {}", some(append.events.iter().map(|event| event.id)))
}
