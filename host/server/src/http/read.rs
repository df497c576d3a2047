//! `POST /v1/read`: all events that match a query, numbered or not, in one snapshot, and the token to append with.

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use weir_store::{Error, Query, ReadOptions, Reading};

use super::{body, line, problem::Problem, query::QueryBody};
use crate::host::Host;

/// What is left out: every event, all of them, oldest first.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Wanted {
    query: Option<QueryBody>,
    /// Only those behind this position.
    after: u64,
    /// Only those before this position.
    before: Option<u64>,
    backwards: bool,
    limit: Option<u64>,
}

/// The last line. An answer without it was cut off.
#[derive(Serialize)]
struct End {
    token: String,
    /// The highest position of the log at the time.
    head: u64,
}

pub(super) async fn read(State(host): State<Host>, body: Body) -> Result<Response, Problem> {
    let bad = |detail: String| Problem::bad_request("malformed-read", "The read can't be understood", detail);
    let body = body::whole(body, super::BODY_BYTES).await?;
    let wanted: Wanted = if body.is_empty() {
        Wanted::default()
    } else {
        serde_json::from_slice(&body).map_err(|error| bad(error.to_string()))?
    };
    let query = match &wanted.query {
        Some(query) => query.parse().map_err(bad)?,
        None => Query::everything(),
    };
    let options = ReadOptions {
        after: wanted.after,
        before: wanted.before,
        backwards: wanted.backwards,
        with_origin: true,
    };
    // The first statement runs before the answer begins: what goes wrong there can still be said.
    let reading = host.store.begin_read(&query, options).await?;
    let answer = Answer { host, reading, left: wanted.limit.unwrap_or(u64::MAX), ended: false };
    let body = Body::from_stream(stream::try_unfold(answer, |mut answer| async move {
        Ok::<_, Error>(answer.next().await?.map(|chunk| (chunk, answer)))
    }));
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, body).into_response())
}

struct Answer {
    host: Host,
    reading: Reading,
    left: u64,
    ended: bool,
}

impl Answer {
    /// The next piece of the body; none at its end.
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        if self.ended {
            return Ok(None);
        }
        if self.host.shutdown.is_cancelled() {
            return Err(Error::Unavailable("the host is shutting down".into()));
        }
        let events = if self.left == 0 { None } else { self.reading.next().await? };
        let unexpected = |error: serde_json::Error| Error::Unexpected(error.to_string());
        let mut text = String::new();
        let Some(events) = events else {
            self.ended = true;
            let end = End { token: self.reading.token().to_string(), head: self.reading.head() };
            text += &serde_json::to_string(&end).map_err(unexpected)?;
            text.push('\n');
            return Ok(Some(text.into()));
        };
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX);
        for event in events.iter().take(wanted) {
            text += &line::read(event).map_err(unexpected)?;
            text.push('\n');
            self.left -= 1;
        }
        Ok(Some(text.into()))
    }
}
