//! `GET /v1/events`: the log, from a position, by type and tag, to its end or for ever.
//!
//! | parameter | meaning | default |
//! | --- | --- | --- |
//! | `after` | begin behind this position, or behind an event's `cursor` where it has one | 0; a header `Last-Event-ID` goes before it |
//! | `type` | events of this type; may be repeated: any of them | all |
//! | `tag` | events with this tag; may be repeated: all of them | all |
//! | `limit` | end after so many events | none |
//! | `follow` | `true`: wait for more at the end of the log | `false` |
//!
//! NDJSON, or server-sent events where the caller accepts `text/event-stream`.

use std::{fmt::Write, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use tokio::time::Instant;
use weir_store::{Cursor, Filter, LoggedEvent};

use super::{line, problem::Problem};
use crate::{host::Host, metrics::OpenStream};

/// Events of one page: what a stream holds in memory.
const PAGE: u32 = 500;
/// A follower with nothing to see is sent a sign of life so often.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// How often to look, under `boundary`, whether a transaction that held events back has ended.
const LATE_COMMIT_POLL: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Ndjson,
    ServerSent,
}

struct Wanted {
    after: Cursor,
    filter: Filter,
    limit: Option<u64>,
    follow: bool,
}

pub(super) async fn read(
    State(host): State<Host>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let wanted = parse(query, &headers)?;
    if !wanted.follow {
        refuse_unknown(&host, &wanted.filter).await?;
    }
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let format = if accepts.contains("text/event-stream") { Format::ServerSent } else { Format::Ndjson };
    // A plain read ends where the log ended when it began, however fast it grows.
    let until = if wanted.follow { None } else { Some(host.store.end().await?) };
    let open = wanted.follow.then(|| host.metrics.follower());
    let mut follower = Follower {
        head: host.head.clone(),
        host,
        filter: wanted.filter,
        after: wanted.after,
        left: wanted.limit.unwrap_or(u64::MAX),
        until,
        at_end: false,
        quiet_since: Instant::now(),
        format,
        ready: Vec::new(),
        _open: open,
    };
    // The first page is fetched before the answer begins: what goes wrong there can still be said.
    follower.look().await?;
    let body = Body::from_stream(stream::try_unfold(follower, |mut follower| async move {
        Ok::<_, weir_store::Error>(follower.next().await?.map(|chunk| (chunk, follower)))
    }));
    let content_type = match format {
        Format::Ndjson => "application/x-ndjson",
        Format::ServerSent => "text/event-stream",
    };
    Ok(([(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "no-store")], body).into_response())
}

struct Follower {
    host: Host,
    head: tokio::sync::watch::Receiver<u64>,
    filter: Filter,
    after: Cursor,
    left: u64,
    until: Option<Cursor>,
    at_end: bool,
    quiet_since: Instant,
    format: Format,
    ready: Vec<LoggedEvent>,
    /// Counted while it is open, if it waits for more.
    _open: Option<OpenStream>,
}

impl Follower {
    /// The next piece of the body; none at its end.
    async fn next(&mut self) -> Result<Option<Bytes>, weir_store::Error> {
        loop {
            if self.left == 0 || self.host.shutdown.is_cancelled() {
                return Ok(None);
            }
            if !self.ready.is_empty() {
                let events = std::mem::take(&mut self.ready);
                self.left -= events.len() as u64;
                let text: Result<String, _> = events.iter().map(|event| self.line(event)).collect();
                let text = text.map_err(|error| weir_store::Error::Unexpected(error.to_string()))?;
                return Ok(Some(text.into()));
            }
            if self.at_end {
                return Ok(None);
            }
            if !self.look().await? || !self.ready.is_empty() || self.until.is_some() {
                continue;
            }
            // Where positions do not become visible in order, the head does not tell when there is more.
            let in_order = self.host.store.settings().await?.strategy.gap_free();
            tokio::select! {
                _ = self.head.changed() => {}
                () = self.host.shutdown.cancelled() => {}
                () = tokio::time::sleep(LATE_COMMIT_POLL), if !in_order => {}
                () = tokio::time::sleep_until(self.quiet_since + SIGN_OF_LIFE) => {
                    self.quiet_since = Instant::now();
                    return Ok(Some(self.sign_of_life()));
                }
            }
        }
    }

    /// Fetches the next page; true if it was the last one for now.
    async fn look(&mut self) -> Result<bool, weir_store::Error> {
        // Seen before the page is read: what comes after it wakes whoever waits.
        self.head.borrow_and_update();
        let limit = u32::try_from(self.left).unwrap_or(PAGE).min(PAGE);
        let page = self.host.store.page(self.after, &self.filter, limit).await?;
        self.after = page.next;
        self.ready = page.events;
        if let Some(until) = self.until {
            let fetched = self.ready.len();
            self.ready.retain(|event| !event.cursor.is_past(&until));
            self.at_end = page.caught_up || self.ready.len() < fetched || !until.is_past(&self.after);
        }
        if !self.ready.is_empty() {
            self.quiet_since = Instant::now();
        }
        Ok(page.caught_up)
    }

    fn sign_of_life(&self) -> Bytes {
        match self.format {
            Format::Ndjson => "\n".into(),
            Format::ServerSent => ": still here\n\n".into(),
        }
    }

    fn line(&self, event: &LoggedEvent) -> Result<String, serde_json::Error> {
        let json = line::logged(event)?;
        let mut line = String::with_capacity(json.len() + 64);
        let written = match self.format {
            Format::Ndjson => writeln!(line, "{json}"),
            Format::ServerSent => writeln!(line, "id: {}\ndata: {json}\n", event.cursor),
        };
        written.map_err(|error| serde::ser::Error::custom(error.to_string())).map(|()| line)
    }
}

fn parse(
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
    headers: &HeaderMap,
) -> Result<Wanted, Problem> {
    let bad =
        |detail: String| Problem::bad_request("malformed-query", "The query can't be understood", detail);
    let Query(parameters) = query.map_err(|rejection| bad(rejection.body_text()))?;
    let number = |name: &str, value: &str| {
        value.parse::<u64>().map_err(|_| bad(format!("{name} must be a whole number, and is {value:?}")))
    };
    let place = |name: &str, value: &str| {
        value.parse::<Cursor>().map_err(|error| bad(format!("{name} is {value:?}, and {error}")))
    };
    let mut wanted = Wanted { after: Cursor::START, filter: Filter::default(), limit: None, follow: false };
    for (name, value) in parameters {
        match name.as_str() {
            "after" => wanted.after = place("after", &value)?,
            "limit" => wanted.limit = Some(number("limit", &value)?),
            "follow" => {
                wanted.follow = value
                    .parse()
                    .map_err(|_| bad(format!("follow must be true or false, and is {value:?}")))?;
            }
            "type" => {
                let event_type = value
                    .parse()
                    .map_err(|error| bad(format!("the type {value:?} can't be one: {error}")))?;
                wanted.filter.event_types.push(event_type);
            }
            "tag" => {
                let tag =
                    value.parse().map_err(|error| bad(format!("the tag {value:?} can't be one: {error}")))?;
                wanted.filter.tags.push(tag);
            }
            _ => {
                return Err(bad(format!(
                    "there is no parameter {name:?}; there are after, type, tag, limit and follow"
                )));
            }
        }
    }
    // An EventSource that reconnects asks for the same URL again, and says in the header how far it has come.
    if let Some(id) = headers.get("last-event-id") {
        wanted.after = place("the header Last-Event-ID", id.to_str().unwrap_or_default())?;
    }
    Ok(wanted)
}

/// A type or tag that nothing has is most likely misspelt, and an empty answer would hide it. One who follows
/// may wait for what has never been, though.
async fn refuse_unknown(host: &Host, filter: &Filter) -> Result<(), Problem> {
    let unknown = |kind: &str, title: &'static str, detail: String| {
        Problem::new(StatusCode::NOT_FOUND, kind, title, detail)
    };
    let in_log = if filter.event_types.is_empty() { Vec::new() } else { host.store.event_types().await? };
    for event_type in &filter.event_types {
        let ready = host.handlers.ready();
        let declared = || ready.iter().flat_map(|loaded| loaded.handler.event_types());
        if !in_log.contains(event_type) && !declared().any(|name| name == event_type.as_str()) {
            let mut known: Vec<&str> = declared().map(String::as_str).collect();
            known.extend(in_log.iter().map(weir_store::EventType::as_str));
            known.sort_unstable();
            known.dedup();
            let detail = format!(
                "no event of the log has the type {:?} and no handler writes it; known are: {}",
                event_type.as_str(),
                if known.is_empty() { "none".into() } else { known.join(", ") }
            );
            return Err(unknown("unknown-type", "Unknown event type", detail));
        }
    }
    for tag in &filter.tags {
        if !host.store.knows_tag(tag).await? {
            let detail = format!(
                "no event of the log carries the tag {:?}; a tag is matched as a whole, such as course:c1",
                tag.as_str()
            );
            return Err(unknown("unknown-tag", "Unknown tag", detail));
        }
    }
    Ok(())
}
