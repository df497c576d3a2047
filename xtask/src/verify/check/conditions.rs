//! Every condition again, at the place in the log that its append was given.

use std::collections::HashSet;

use super::super::evidence::{Answer, Append, Condition, EventId};
use super::index::Index;
use super::some;

/// Appends before which the log, in the order in which it is followed, has something that their read did not see, or lacks
/// something that it did see.
pub(super) fn broken_in_order(index: &Index<'_>, appends: &[Append]) -> Vec<String> {
    broken(index, appends, |own, place| place < own)
}

/// The same by position, where that is another order.
pub(super) fn broken_by_position(index: &Index<'_>, appends: &[Append]) -> Vec<String> {
    let lies_before = |own, place| {
        let at = index.position(own);
        match index.strategy_at(at).numbers_in_order() {
            true => place < own,
            false => index.position(place) < at,
        }
    };
    broken(index, appends, lies_before)
}

/// `lies_before` is asked with the place of an append's last event and that of another one's event. The last event, because
/// nothing that matches can come between the first and the last either.
fn broken(index: &Index<'_>, appends: &[Append], lies_before: impl Fn(usize, usize) -> bool) -> Vec<String> {
    let mut broken = Vec::new();
    for append in appends {
        let Some(condition) = &append.condition else { continue };
        let Some(own) = append.events.iter().filter_map(|event| index.place(event.id)).max() else {
            continue;
        };
        let own_events: HashSet<EventId> = append.events.iter().map(|event| event.id).collect();
        let (seen, beyond) = seen(condition);
        let before: HashSet<EventId> = index
            .matching(condition.query())
            .into_iter()
            .filter(|&place| index.position(place) > beyond && lies_before(own, place))
            .map(|place| index.event(place).id)
            .filter(|id| !own_events.contains(id))
            .collect();
        if before != seen {
            let unseen = some(before.difference(&seen).copied());
            let not_before = some(seen.difference(&before).copied());
            broken.push(format!(
                "{} at position {}: not seen and before it: {unseen}; seen and not before it: {not_before}",
                append.events[0].id,
                index.position(own),
            ));
        }
    }
    broken
}

/// Conflicts although all that matches was seen.
pub(super) fn groundless_conflicts(index: &Index<'_>, appends: &[Append]) -> Vec<String> {
    let mut groundless = Vec::new();
    for append in appends.iter().filter(|append| append.was(Answer::Conflict)) {
        let id = append.events[0].id;
        let Some(condition) = &append.condition else {
            groundless.push(format!("{id} has no condition"));
            continue;
        };
        // A token of an epoch that has ended may say too little of clauses without a key.
        if index.epochs.len() > 1 && !condition.query().is_scoped() {
            continue;
        }
        let (seen, beyond) = seen(condition);
        let news = |place: usize| index.position(place) > beyond && !seen.contains(&index.event(place).id);
        if !index.matching(condition.query()).into_iter().any(news) {
            groundless.push(format!("{id}, of whose query all was seen"));
        }
    }
    groundless
}

/// What a condition takes for seen, of the events past a position; those up to it are seen in any case.
fn seen(condition: &Condition) -> (HashSet<EventId>, u64) {
    match condition {
        Condition::NothingSince(read) => (read.seen.iter().map(|seen| seen.id).collect(), read.beyond),
        Condition::NothingAfter(_, position) => (HashSet::new(), *position),
    }
}
