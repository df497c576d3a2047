//! Where events stand, and in which order.

use std::collections::HashSet;
use std::time::Duration;

use super::super::evidence::Append;
use super::Sent;
use super::index::Index;

pub(super) struct Positions {
    /// Where positions promise to have no gap and there is one.
    pub(super) missing: Vec<String>,
    /// Where they promise to rise and do not.
    pub(super) falling: Vec<String>,
    /// The same, promised or not.
    pub(super) gaps: u64,
    pub(super) out_of_order: usize,
}

pub(super) fn positions(index: &Index<'_>) -> Positions {
    let mut found = Positions { missing: Vec::new(), falling: Vec::new(), gaps: 0, out_of_order: 0 };
    for pair in index.log.windows(2) {
        let (before, position) = (pair[0].position, pair[1].position);
        if position <= before {
            found.out_of_order += 1;
            if index.strategy_at(position).numbers_in_order() || index.strategy_at(before).numbers_in_order()
            {
                found.falling.push(format!("{position} comes behind {before}"));
            }
        }
    }
    let mut present: Vec<u64> = index.log.iter().map(|logged| logged.position).collect();
    present.sort_unstable();
    present.dedup();
    let mut before = 0;
    for position in present {
        let gap = position - before - 1;
        found.gaps += gap;
        // A gap at the end of an epoch belongs to that epoch.
        if gap > 0 && (before + 1..position).any(|gone| index.strategy_at(gone).numbers_in_order()) {
            found.missing.push(format!("{} to {}", before + 1, position - 1));
        }
        before = position;
    }
    found
}

/// Events and positions that come up more than once.
pub(super) fn twice(index: &Index<'_>) -> Vec<String> {
    let (mut ids, mut positions) = (HashSet::new(), HashSet::new());
    let mut twice = Vec::new();
    for logged in index.log {
        let (id, position) = (logged.event.id, logged.position);
        if !ids.insert(id) {
            twice.push(format!("event {id} again at position {position}"));
        }
        if !positions.insert(position) {
            twice.push(format!("position {position} again with event {id}"));
        }
    }
    twice
}

pub(super) fn torn_apart(index: &Index<'_>, appends: &[Append]) -> Vec<String> {
    let mut torn = Vec::new();
    for append in appends {
        let positions: Vec<u64> = append
            .events
            .iter()
            .filter_map(|event| index.place(event.id))
            .map(|place| index.position(place))
            .collect();
        let together = positions.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        if positions.iter().any(|&at| index.strategy_at(at).keeps_appends_together()) && !together {
            torn.push(format!("{} at {positions:?}", append.events[0].id));
        }
    }
    torn
}

/// Events that share a type and a tag and stand in another order than they were appended in: by the writers' clock, or,
/// where the order of the log is not that of positions, by position.
pub(super) fn boundaries(index: &Index<'_>, sent: &Sent<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for ((event_type, tag), places) in index.boundaries() {
        let mut latest_sent = Duration::ZERO;
        let mut highest = 0;
        for &place in places {
            let (id, position) = (index.event(place).id, index.position(place));
            if position < highest {
                wrong.push(format!(
                    "{id} at position {position} of {event_type} {tag} comes behind {highest}"
                ));
            }
            highest = highest.max(position);
            let Some((append, _)) = sent.get(&id) else { continue };
            if append.acknowledged.is_some_and(|at| at < latest_sent) {
                wrong.push(format!("{id} of {event_type} {tag} comes behind one that was sent later"));
            }
            latest_sent = latest_sent.max(append.sent);
        }
    }
    wrong.sort_unstable();
    wrong
}
