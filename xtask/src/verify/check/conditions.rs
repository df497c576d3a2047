//! Every condition again, at the place in the log that its append was given.

use std::collections::HashSet;

use super::super::evidence::{Answer, Append, Condition, EventId};
use super::index::Index;
use super::some;

/// Appends before which the log, in the order in which it is followed, has something that their read did not see, or lacks
/// something that it did see.
pub(super) fn broken_in_order(index: &Index<'_>, appends: &[Append]) -> Vec<String> {
    appends.iter().filter_map(|append| broken(index, append, |own, place| place < own)).collect()
}

/// The same by position, where that is another order.
pub(super) fn broken_by_position(index: &Index<'_>, appends: &[Append]) -> Vec<String> {
    let has_another_order = |append: &&Append| {
        last_place(index, append)
            .is_some_and(|own| !index.strategy_at(index.position(own)).numbers_in_order())
    };
    let lies_before = |own, place| index.position(place) < index.position(own);
    appends.iter().filter(has_another_order).filter_map(|append| broken(index, append, lies_before)).collect()
}

/// Where an append's last event stands. It is the last one that counts, because nothing that matches can come between the
/// first and the last either.
fn last_place(index: &Index<'_>, append: &Append) -> Option<usize> {
    append.events.iter().filter_map(|event| index.place(event.id)).max()
}

/// `lies_before` is asked with the place of an append's last event and that of another one's event.
fn broken(index: &Index<'_>, append: &Append, lies_before: impl Fn(usize, usize) -> bool) -> Option<String> {
    let condition = append.condition.as_ref()?;
    let own = last_place(index, append)?;
    let own_events: HashSet<EventId> = append.events.iter().map(|event| event.id).collect();
    let (seen, beyond) = seen(condition);
    let before: HashSet<EventId> = index
        .matching(condition.query())
        .into_iter()
        .filter(|&place| index.position(place) > beyond && lies_before(own, place))
        .map(|place| index.event(place).id)
        .filter(|id| !own_events.contains(id))
        .collect();
    if before == seen {
        return None;
    }
    let unseen = some(before.difference(&seen).copied());
    let not_before = some(seen.difference(&before).copied());
    Some(format!(
        "{} at position {}: not seen and before it: {unseen}; seen and not before it: {not_before}",
        append.events[0].id,
        index.position(own),
    ))
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
        let (seen, beyond) = seen(condition);
        // A token of an epoch that has ended may say too little of clauses without a key; and where positions become visible
        // in any order, of those that were not asked for some may not have been there.
        let has_switched = index.epochs.iter().any(|epoch| epoch.after > 0);
        let any_order = index.epochs.iter().any(|epoch| !epoch.strategy.numbers_in_order());
        if has_switched && !condition.query().is_scoped() || any_order && beyond > 0 {
            continue;
        }
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
