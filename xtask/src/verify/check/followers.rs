//! What followers were sent, against the log.

use std::collections::HashMap;

use super::super::evidence::{Delivered, Followed};
use super::index::Index;

pub(super) fn failed(index: &Index<'_>, followers: &[Followed]) -> Vec<String> {
    followers.iter().flat_map(|follower| failures(index, follower)).collect()
}

fn failures(index: &Index<'_>, follower: &Followed) -> Vec<String> {
    let due: Vec<Delivered> = index
        .log
        .iter()
        .filter(|logged| follower.wants(&logged.event))
        .map(|logged| Delivered { id: logged.event.id, line: logged.line })
        .collect();
    if due == follower.delivered {
        return Vec::new();
    }
    let ranks: HashMap<_, _> = due.iter().enumerate().map(|(rank, due)| (due.id, rank)).collect();
    let mut times = vec![0; due.len()];
    let mut failures = Vec::new();
    let mut fail = |what: String| failures.push(format!("{} {what}", follower.name));
    let mut last = None;
    for delivered in &follower.delivered {
        let id = delivered.id;
        let Some(&rank) = ranks.get(&id) else {
            fail(format!("was sent {id}, which it should not have been"));
            continue;
        };
        times[rank] += 1;
        if times[rank] > 1 {
            fail(format!("was sent {id} again"));
        } else if Some(rank) < last {
            fail(format!("was sent {id} late"));
        } else {
            last = Some(rank);
        }
        if due[rank].line != delivered.line {
            fail(format!("was sent another text of {id} than the log has"));
        }
    }
    for (due, _) in due.iter().zip(times).filter(|(_, times)| *times == 0) {
        fail(format!("was not sent {}", due.id));
    }
    failures
}
