//! The read token: what a decision read saw.

use std::{fmt, str::FromStr};

use crate::{NewEvent, Query, append::Place, lock_key::clauses};

/// What a decision read saw, as far as a later append must know it. Opaque to everyone but the store.
///
/// It holds, for each clause of the query, a position up to which everything was seen, and the staged ids of the
/// *matching* events. An event that matches the condition is new if it is staged and not among those ids, or lies past
/// that position and was not among them when it was staged (a flush in between is no conflict). Where that
/// can't tell, for items without a key under the strategy `boundary`, the snapshot itself is kept.
///
/// It serves only conditions whose query is the one that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadToken {
    /// The query that was read; none for a token that serves any.
    pub(crate) query: Option<u64>,
    /// For each clause of the query, in their order; empty for a token that serves any query.
    pub(crate) seen: Vec<Seen>,
    /// Set in a token that serves any query: that everything up to this position was seen.
    pub(crate) position: Option<i64>,
    /// An epoch and a `pg_snapshot`.
    pub(crate) snapshot: Option<String>,
}

/// What was seen of a clause.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Seen {
    /// Everything up to this position.
    pub(crate) after: i64,
    /// Staged ids of matching events, ascending.
    pub(crate) staged: Vec<i64>,
}

impl ReadToken {
    /// The token of a read that saw nothing, for any query: any event that matches is new.
    pub fn nothing_seen() -> Self {
        Self::default()
    }

    /// The claim to have seen everything up to a position, for any query. An append accepts it only where positions become
    /// visible in their own order; every staged event is new to it.
    pub fn at(position: u64) -> Self {
        let position = i64::try_from(position).unwrap_or(i64::MAX);
        Self { position: (position > 0).then_some(position), ..Self::default() }
    }

    /// Whether a later read can leave out what this one saw.
    pub fn can_be_read_on(&self) -> bool {
        self.snapshot.is_none()
    }

    /// The token of one who has seen what this one says of `query` and, besides, an event that was appended since, to a
    /// certain place.
    ///
    /// Where that is a position, an append under a condition with this very query must have been made in the same batch:
    /// its check is what tells that nothing else that matches lies below.
    pub fn and_own(&mut self, query: &Query, event: &NewEvent, place: Place) {
        for (clause, seen) in clauses(query).iter().zip(&mut self.seen) {
            match place {
                _ if !clause.matches(event) => {}
                Place::Staged(id) => seen.staged.push(id),
                Place::Position(position) => seen.after = seen.after.max(position),
            }
        }
    }

    /// What was seen of a query of so many clauses; none if the token is another query's.
    pub(crate) fn of_query(&self, query: u64, clauses: usize) -> Option<Vec<Seen>> {
        match self.query {
            None => {
                let seen = Seen { after: self.position.unwrap_or(0), staged: Vec::new() };
                Some(vec![seen; clauses])
            }
            Some(mine) if mine == query && self.seen.len() == clauses => Some(self.seen.clone()),
            Some(_) => None,
        }
    }

    /// What the check has to know besides: see `append()` in migrations/.
    pub(crate) fn snapshot(&self) -> Option<&str> {
        if self.position.is_some() { Some("position") } else { self.snapshot.as_deref() }
    }
}

impl fmt::Display for ReadToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (query, snapshot) = (self.query.unwrap_or_default(), self.snapshot.as_deref().unwrap_or("-"));
        write!(f, "r1.{query:016x}.{snapshot}.")?;
        for (at, seen) in self.seen.iter().enumerate() {
            let separator = if at == 0 { "" } else { "_" };
            write!(f, "{separator}{}", seen.after)?;
            for id in &seen.staged {
                write!(f, "+{id}")?;
            }
        }
        Ok(())
    }
}

/// The text is no read token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no read token that this version of Weir has given out")]
pub struct InvalidToken;

impl FromStr for ReadToken {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let rest = text.strip_prefix("r1.").ok_or(InvalidToken)?;
        let mut parts = rest.split('.');
        let (Some(query), Some(snapshot), Some(clauses), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(InvalidToken);
        };
        let query = u64::from_str_radix(query, 16).map_err(|_| InvalidToken)?;
        let snapshot = match snapshot {
            "-" => None,
            text => Some(checked_snapshot(text)?.to_owned()),
        };
        let seen = if clauses.is_empty() {
            Vec::new()
        } else {
            clauses.split('_').map(seen).collect::<Result<_, _>>()?
        };
        Ok(Self { query: Some(query), seen, position: None, snapshot })
    }
}

fn number(text: &str) -> Result<i64, InvalidToken> {
    // Digits alone: no sign.
    if text.bytes().all(|b| b.is_ascii_digit()) {
        text.parse().map_err(|_| InvalidToken)
    } else {
        Err(InvalidToken)
    }
}

fn seen(text: &str) -> Result<Seen, InvalidToken> {
    let mut numbers = text.split('+').map(number);
    let after = numbers.next().ok_or(InvalidToken)??;
    Ok(Seen { after, staged: numbers.collect::<Result<_, _>>()? })
}

/// An epoch and a snapshot, `3/100:105:101,103`, so that no other text reaches the database as one.
fn checked_snapshot(text: &str) -> Result<&str, InvalidToken> {
    let (epoch, snapshot) = text.split_once('/').ok_or(InvalidToken)?;
    number(epoch)?;
    let mut parts = snapshot.split(':');
    let (Some(min), Some(max), Some(running), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(InvalidToken);
    };
    let (min, max) = (number(min)?, number(max)?);
    let mut last = min - 1;
    for xid in running.split(',').filter(|_| !running.is_empty()) {
        let xid = number(xid)?;
        if xid <= last || xid >= max {
            return Err(InvalidToken);
        }
        last = xid;
    }
    if min < 1 || min > max { Err(InvalidToken) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_from_its_text() {
        let seen = |after, staged: &[i64]| Seen { after, staged: staged.to_vec() };
        for (clauses, snapshot) in [
            (vec![], None),
            (vec![seen(0, &[])], None),
            (vec![seen(120, &[3, 4]), seen(7, &[])], Some("2/100:105:101,103")),
        ] {
            let token = ReadToken {
                query: Some(0xfeed),
                seen: clauses,
                position: None,
                snapshot: snapshot.map(str::to_owned),
            };
            assert_eq!(token.to_string().parse(), Ok(token));
        }
    }

    #[test]
    fn what_is_no_token_is_refused_before_it_gets_to_the_database() {
        for text in [
            "",
            "12",
            "r1",
            "r1..-.1",
            "r1.xyz.-.1",
            "r1.1.-.-1",
            "r1.1.-.1+",
            "r1.1.-.1.2",
            "r1.1.-.99999999999999999999",
            "r1.1.100:105:.1",
            "r1.1.1/105:100:.1",
            "r1.1.1/100:105:107.1",
            "r1.1.1/100:105:103,101.1",
            "r1.1.'; DROP.1",
        ] {
            assert_eq!(text.parse::<ReadToken>(), Err(InvalidToken), "{text}");
        }
    }
}
