//! What a run leaves behind for the check: what was asked for and answered, the log, and what its followers saw.
//!
//! Times are counted from the run's start.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde::Serialize;

/// One of the four ways in which a store locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Strategy {
    Global,
    Boundary,
    Hybrid,
    Staging,
}

impl Strategy {
    pub(super) const ALL: [Self; 4] = [Self::Global, Self::Boundary, Self::Hybrid, Self::Staging];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Boundary => "boundary",
            Self::Hybrid => "hybrid",
            Self::Staging => "staging",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name)
    }

    /// Whether positions come without a gap and in the order in which the log is followed.
    pub(super) fn numbers_in_order(self) -> bool {
        self != Self::Boundary
    }

    /// Whether nobody else's events can come between those of one append.
    pub(super) fn keeps_appends_together(self) -> bool {
        matches!(self, Self::Global | Self::Hybrid)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// By what an event is known wherever it comes up: a number in its data that no other event of the run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct EventId(pub(super) u64);

impl EventId {
    pub(super) fn of(writer: u32, n: u32) -> Self {
        Self(u64::from(writer) << 32 | u64::from(n))
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0 >> 32, self.0 & u64::from(u32::MAX))
    }
}

/// An event as its writer sent it, or as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) id: EventId,
    pub(super) event_type: String,
    pub(super) tags: BTreeSet<String>,
    /// JSON, which is kept byte for byte.
    pub(super) data: String,
    pub(super) metadata: Option<String>,
}

/// Matches the events that have one of the types, if there are any, and all of the tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Item {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) types: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tags: Vec<String>,
}

impl Item {
    pub(super) fn matches(&self, event: &Event) -> bool {
        (self.types.is_empty() || self.types.contains(&event.event_type))
            && self.tags.iter().all(|tag| event.tags.contains(tag))
    }
}

/// Matches what one of its items matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Query {
    pub(super) items: Vec<Item>,
}

impl Query {
    pub(super) fn matches(&self, event: &Event) -> bool {
        self.items.iter().any(|item| item.matches(event))
    }

    /// Whether each item has a type and a tag, so that the store has something to lock.
    pub(super) fn is_scoped(&self) -> bool {
        self.items.iter().all(|item| !item.types.is_empty() && !item.tags.is_empty())
    }
}

/// A read that was answered in full.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) query: Query,
    /// Only events past this position were asked for.
    pub(super) beyond: u64,
    pub(super) began: Duration,
    /// In the order of the log.
    pub(super) seen: Vec<Seen>,
}

/// An event that a read showed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) id: EventId,
    /// None, while it was staged.
    pub(super) position: Option<u64>,
}

/// On what condition an append was asked for.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    /// That nothing matches the read's query which the read has not seen.
    NothingSince(Read),
    /// That nothing past a position matches; 0 for nothing at all.
    NothingAfter(Query, u64),
}

impl Condition {
    pub(super) fn query(&self) -> &Query {
        match self {
            Self::NothingSince(read) => &read.query,
            Self::NothingAfter(query, _) => query,
        }
    }
}

/// What a writer was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Appended,
    Conflict,
    /// Nothing was written, says the host, for a reason that has to do with no event.
    Refused,
    /// The answer was lost, or the host could not tell: the events may be in the log or not.
    Lost,
}

/// An append that somebody asked for, once or several times with one id.
#[derive(Clone, Debug)]
pub(super) struct Append {
    /// The id that the writer gave it, or that the answer says it was given.
    pub(super) command_id: Option<String>,
    pub(super) events: Vec<Event>,
    pub(super) condition: Option<Condition>,
    /// When it was first sent.
    pub(super) sent: Duration,
    /// When a writer first heard that it was made.
    pub(super) acknowledged: Option<Duration>,
    /// One for each time that it was sent.
    pub(super) answers: Vec<Answer>,
}

impl Append {
    pub(super) fn was(&self, answer: Answer) -> bool {
        self.answers.contains(&answer)
    }
}

/// An event of the log.
#[derive(Clone, Debug)]
pub(super) struct Logged {
    pub(super) event: Event,
    pub(super) position: u64,
    pub(super) command_id: String,
    pub(super) line: LineHash,
}

/// Stands for a line of the log as a whole: whoever reads it gets the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineHash(u64);

impl LineHash {
    pub(super) fn of(line: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// A part of the log with one strategy: the events past a position, up to where the next part begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    pub(super) after: u64,
    pub(super) strategy: Strategy,
}

/// All that a follower was sent, over all its connections.
#[derive(Clone, Debug)]
pub(super) struct Followed {
    pub(super) name: String,
    /// What it asked for: events with all of these tags.
    pub(super) tags: Vec<String>,
    pub(super) delivered: Vec<Delivered>,
}

impl Followed {
    pub(super) fn wants(&self, event: &Event) -> bool {
        self.tags.iter().all(|tag| event.tags.contains(tag))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delivered {
    pub(super) id: EventId,
    pub(super) line: LineHash,
}

/// Everything.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    pub(super) appends: Vec<Append>,
    /// In the order in which it is followed.
    pub(super) log: Vec<Logged>,
    /// In order; the first one begins behind position 0.
    pub(super) epochs: Vec<Epoch>,
    pub(super) followers: Vec<Followed>,
    /// Answers that nothing in the run explains.
    pub(super) surprises: Vec<String>,
}
