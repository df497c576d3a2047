//! The two requests that writers send: `POST /v1/read` and `POST /v1/append`.

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use ureq::Agent;
use ureq::http::StatusCode;

use super::evidence::{Answer, Event, Query, Seen};
use super::line;
use crate::http_client::{OUTCOME_UNKNOWN, read as read_body, was_never_sent};

#[derive(Serialize)]
struct ReadBody<'a> {
    query: &'a Query,
    after: u64,
    backwards: bool,
}

/// What a read has shown.
pub(super) struct Shown {
    /// In the order of the log.
    pub(super) seen: Vec<Seen>,
    pub(super) token: String,
    pub(super) head: u64,
}

#[derive(Deserialize)]
struct ReadLine<'a> {
    position: Option<u64>,
    #[serde(borrow)]
    data: &'a RawValue,
}

#[derive(Deserialize)]
struct ReadEnd {
    token: String,
    head: u64,
}

/// None, if the host did not answer, or not to the end, for want of a database or a life. An error, if it has answered in a
/// way that nothing explains.
pub(super) fn read(
    agent: &Agent,
    host: &str,
    query: &Query,
    beyond: u64,
    backwards: bool,
) -> Result<Option<Shown>> {
    let body = ReadBody { query, after: beyond, backwards };
    let Ok((status, text)) = agent.post(format!("{host}/v1/read")).send_json(body).and_then(read_body) else {
        return Ok(None);
    };
    match status {
        StatusCode::OK => {}
        StatusCode::SERVICE_UNAVAILABLE => return Ok(None),
        _ => bail!("a read was answered with {status} {text}"),
    }
    let Some((end, events)) = text.lines().collect::<Vec<_>>().split_last().map(|(e, l)| (*e, l.to_vec()))
    else {
        return Ok(None);
    };
    let Ok(ReadEnd { token, head }) = serde_json::from_str(end) else { return Ok(None) };
    let mut seen = events.into_iter().map(seen).collect::<Result<Vec<_>>>()?;
    if backwards {
        seen.reverse();
    }
    Ok(Some(Shown { seen, token, head }))
}

fn seen(text: &str) -> Result<Seen> {
    let not_understood = || format!("not a line of a read: {text}");
    let line: ReadLine<'_> = serde_json::from_str(text).with_context(not_understood)?;
    let id = line::identity(line.data).with_context(not_understood)?;
    Ok(Seen { id, position: line.position })
}

/// What is asked for, ready to be sent as often as needed.
pub(super) struct AppendRequest {
    pub(super) id: Option<String>,
    pub(super) body: String,
}

#[derive(Serialize)]
struct AppendBody<'a> {
    events: Vec<EventBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<ConditionBody<'a>>,
}

#[derive(Serialize)]
struct EventBody<'a> {
    #[serde(rename = "type")]
    event_type: &'a str,
    tags: Vec<&'a str>,
    data: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a RawValue>,
}

/// A query, and what was seen of it: neither a token nor a position stands for nothing.
#[derive(Serialize)]
pub(super) struct ConditionBody<'a> {
    pub(super) query: &'a Query,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<u64>,
}

impl AppendRequest {
    pub(super) fn new(
        id: Option<String>,
        events: &[Event],
        condition: Option<ConditionBody<'_>>,
    ) -> Result<Self> {
        let events = events.iter().map(|event| {
            Ok(EventBody {
                event_type: &event.event_type,
                tags: event.tags.iter().map(String::as_str).collect(),
                data: serde_json::from_str(&event.data)?,
                metadata: event.metadata.as_deref().map(serde_json::from_str).transpose()?,
            })
        });
        let body = AppendBody { events: events.collect::<Result<_>>()?, condition };
        Ok(Self { id, body: serde_json::to_string(&body)? })
    }
}

/// What came of one try.
pub(super) enum Reply {
    Known {
        answer: Answer,
        /// The append's id, if it was made.
        id: Option<String>,
    },
    /// The id has other events.
    IdReused,
    /// A position can't stand for a read there.
    PositionRefused,
    /// An answer that nothing explains, with what it says. What came of the events is unknown.
    Surprise(String),
}

impl Reply {
    /// What it says, if nothing explains it.
    pub(super) fn in_words(&self) -> &str {
        match self {
            Self::Known { .. } => "an answer",
            Self::IdReused => "its id has other events",
            Self::PositionRefused => "a position is no token",
            Self::Surprise(words) => words,
        }
    }
}

#[derive(Deserialize)]
struct Appended {
    id: String,
}

#[derive(Deserialize)]
struct Problem {
    #[serde(rename = "type")]
    kind: String,
}

pub(super) fn append(agent: &Agent, host: &str, request: &AppendRequest) -> Reply {
    let known = |answer| Reply::Known { answer, id: None };
    let mut post = agent.post(format!("{host}/v1/append")).content_type("application/json");
    if let Some(id) = &request.id {
        post = post.header("Weir-Append-Id", id);
    }
    let (status, text) = match post.send(&request.body).and_then(read_body) {
        Ok(answer) => answer,
        Err(error) if was_never_sent(&error) => return known(Answer::Refused),
        Err(_) => return known(Answer::Lost),
    };
    if status == StatusCode::OK {
        return match serde_json::from_str::<Appended>(&text) {
            Ok(appended) => Reply::Known { answer: Answer::Appended, id: Some(appended.id) },
            Err(_) => Reply::Surprise(format!("{status} {text}")),
        };
    }
    let kind = serde_json::from_str::<Problem>(&text).map(|problem| problem.kind).unwrap_or_default();
    match (status.as_u16(), kind.as_str()) {
        (409, "urn:weir:problem:conflict") => known(Answer::Conflict),
        (409, "urn:weir:problem:append-id-reused") => Reply::IdReused,
        (503, OUTCOME_UNKNOWN) => known(Answer::Lost),
        (503, _) => known(Answer::Refused),
        (400, "urn:weir:problem:position-is-no-token") => Reply::PositionRefused,
        _ => Reply::Surprise(format!("{status} {text}")),
    }
}
