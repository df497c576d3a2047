//! Holds a finished log against what writers were told and followers were sent.
//!
//! Nothing here trusts the store. Each append is put back to its place in the log, and what stands before it is
//! compared with what its read had seen.

mod conditions;
mod followers;
mod index;
mod order;
mod promises;
mod reads;

use std::collections::HashMap;

use super::evidence::{Append, EventId, Evidence};
use crate::rule::Rule;

use self::index::Index;

#[cfg(test)]
mod tests;

pub(super) struct Verdict {
    pub(super) rules: Vec<Rule>,
    /// Positions that no event has, between 1 and the last one. Under `boundary` there may be some.
    pub(super) gaps: u64,
    /// How often a lower position follows a higher one. Under `boundary` that may be.
    pub(super) out_of_order: usize,
}

impl Verdict {
    pub(super) fn violations(&self) -> usize {
        self.rules.iter().map(|rule| rule.broken.len()).sum()
    }
}

pub(super) fn check(evidence: &Evidence) -> Verdict {
    let Evidence { appends, log, epochs, followers, surprises } = evidence;
    let index = Index::of(log, epochs);
    let sent = sent_events(appends);
    let positions = order::positions(&index);
    let rules = vec![
        Rule { text: "Each event and each position is in the log once", broken: order::twice(&index) },
        Rule { text: "No position is missing, but under `boundary`", broken: positions.missing },
        Rule { text: "Positions rise, but under `boundary`", broken: positions.falling },
        Rule {
            text: "What was acknowledged is in the log, in its own order",
            broken: promises::kept(&index, appends),
        },
        Rule {
            text: "What was refused is not in the log, and what was lost is there whole or not at all",
            broken: promises::nothing_more(&index, appends),
        },
        Rule { text: "Every event of the log is as it was sent", broken: promises::verbatim(&index, &sent) },
        Rule {
            text: "Under `global` and `hybrid` the events of an append stand together",
            broken: order::torn_apart(&index, appends),
        },
        Rule { text: "An append is not answered in two ways", broken: promises::two_answers(appends) },
        Rule {
            text: "Each condition holds at its append's place in the log",
            broken: conditions::broken_in_order(&index, appends),
        },
        Rule {
            text: "Each condition holds at its append's place by position, too",
            broken: conditions::broken_by_position(&index, appends),
        },
        Rule {
            text: "A conflict has an event for its reason",
            broken: conditions::groundless_conflicts(&index, appends),
        },
        Rule { text: "A read shows events of the log, each once", broken: reads::phantoms(&index, appends) },
        Rule {
            text: "A read shows what was acknowledged before it began",
            broken: reads::stale(&index, appends, &sent),
        },
        Rule {
            text: "A read shows the events of a boundary in the order of the log",
            broken: reads::disorder(&index, appends),
        },
        Rule {
            text: "The events of a boundary stand in the order in which they were appended",
            broken: order::boundaries(&index, &sent),
        },
        Rule {
            text: "Each follower was sent each event once, in the order of the log",
            broken: followers::failed(&index, followers),
        },
        Rule { text: "Every answer is one that the run explains", broken: surprises.clone() },
    ];
    Verdict { rules, gaps: positions.gaps, out_of_order: positions.out_of_order }
}

/// Which append an event belongs to, and where in it the event stands.
type Sent<'a> = HashMap<EventId, (&'a Append, usize)>;

fn sent_events(appends: &[Append]) -> Sent<'_> {
    let mut sent = HashMap::new();
    for append in appends {
        sent.extend(append.events.iter().enumerate().map(|(n, event)| (event.id, (append, n))));
    }
    sent
}

/// Some of the events, for people.
fn some(ids: impl IntoIterator<Item = EventId>) -> String {
    const SHOWN: usize = 4;
    let ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
    match ids.len() {
        0 => "none".to_owned(),
        n if n > SHOWN => format!("{} and {} more", ids[..SHOWN].join(", "), n - SHOWN),
        _ => ids.join(", "),
    }
}
