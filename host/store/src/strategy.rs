//! The locking strategies.

use std::{fmt, str::FromStr};

/// How appends of a store keep out of each other's way, and when events get their position. After the article "DCB on
/// Postgres", whose four strategies these are; the argument for each stands in `migrations/`, in the file that
/// is named after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// One lock for the whole store, position at the insert.
    Global,
    /// A lock for each key, position at the insert: fast, with gaps, and followers need an opaque cursor.
    Boundary,
    /// A lock for each key for the check, one for the store for the insert.
    Hybrid,
    /// A lock for each key; a flusher gives the positions afterwards.
    Staging,
}

impl Strategy {
    /// All of them, in the article's order.
    pub const ALL: [Self; 4] = [Self::Global, Self::Boundary, Self::Hybrid, Self::Staging];

    /// Its name, as the store has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Boundary => "boundary",
            Self::Hybrid => "hybrid",
            Self::Staging => "staging",
        }
    }

    /// Whether positions run without a gap, and so a position alone is a cursor.
    pub fn gap_free(self) -> bool {
        self != Self::Boundary
    }

    /// Whether appends with different keys commit in parallel.
    pub fn parallel(self) -> bool {
        matches!(self, Self::Boundary | Self::Staging)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|strategy| strategy.as_str() == text);
        known.ok_or_else(|| {
            format!("there is no strategy \"{text}\"; there are global, boundary, hybrid and staging")
        })
    }
}
