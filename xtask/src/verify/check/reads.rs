//! What reads have shown, whatever came of the appends behind them.

use std::collections::{HashMap, HashSet};

use super::super::evidence::{Append, Condition, EventId, Read};
use super::index::Index;
use super::{Sent, some};

/// Events that are not in the log, or elsewhere in it, or came twice in one read, or match nothing.
pub(super) fn phantoms(index: &Index<'_>, appends: &[Append]) -> Vec<String> {
    let mut phantoms = Vec::new();
    for (reader, read) in reads(appends) {
        let mut shown = HashSet::new();
        for seen in &read.seen {
            let id = seen.id;
            if !shown.insert(id) {
                phantoms.push(format!("{id} twice in the read of {reader}"));
            }
            let Some(place) = index.place(id) else {
                phantoms.push(format!("{id} in the read of {reader} is not in the log"));
                continue;
            };
            let at = index.position(place);
            if seen.position.is_some_and(|position| position != at) {
                phantoms.push(format!("{id} at {:?} in the read of {reader} has {at}", seen.position));
            }
            if !read.query.matches(index.event(place)) || at <= read.beyond {
                phantoms.push(format!("{id} in the read of {reader} was not asked for"));
            }
        }
    }
    phantoms
}

/// Reads that miss something of which somebody had heard before they began.
pub(super) fn stale(index: &Index<'_>, appends: &[Append], sent: &Sent<'_>) -> Vec<String> {
    let mut stale = Vec::new();
    for (reader, read) in reads(appends) {
        let seen: HashSet<EventId> = read.seen.iter().map(|seen| seen.id).collect();
        let known_before = |id: &EventId| {
            let acknowledged = sent.get(id).and_then(|(append, _)| append.acknowledged);
            acknowledged.is_some_and(|at| at < read.began)
        };
        let missed: Vec<EventId> = index
            .matching(&read.query)
            .into_iter()
            .filter(|&place| index.position(place) > read.beyond)
            .map(|place| index.event(place).id)
            .filter(|id| !seen.contains(id))
            .filter(known_before)
            .collect();
        if !missed.is_empty() {
            stale.push(format!("the read of {reader} misses {}", some(missed)));
        }
    }
    stale
}

/// Reads that show two events of one boundary the other way round than the log.
pub(super) fn disorder(index: &Index<'_>, appends: &[Append]) -> Vec<String> {
    let mut disorder = Vec::new();
    for (reader, read) in reads(appends) {
        let mut last: HashMap<(&str, &str), usize> = HashMap::new();
        for place in read.seen.iter().filter_map(|seen| index.place(seen.id)) {
            let event = index.event(place);
            for tag in &event.tags {
                if last.insert((&event.event_type, tag), place).is_some_and(|before| before > place) {
                    disorder.push(format!("{} of {tag} in the read of {reader}", event.id));
                }
            }
        }
    }
    disorder
}

/// The reads, each with the first event of the append that it was for.
fn reads(appends: &[Append]) -> impl Iterator<Item = (EventId, &Read)> {
    appends.iter().filter_map(|append| match &append.condition {
        Some(Condition::NothingSince(read)) => Some((append.events[0].id, read)),
        _ => None,
    })
}
