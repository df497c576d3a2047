//! `POST /v1/append`: events from a program that is no handler, under a condition of its own.

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use uuid::Uuid;
use weir_store::{Append, Condition, Idempotency, NewEvent, Outcome, Provenance, Query, ReadToken};

use super::{body, line, problem::Problem, query::ConditionBody};
use crate::{host::Host, metrics::AppendOutcome};

/// What is kept as the answer to an append. Whoever sends it again is told what it is asking for.
const ANSWER: &str = r#"{"outcome":"appended"}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    events: Vec<EventBody>,
    condition: Option<ConditionBody>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventBody {
    #[serde(rename = "type")]
    event_type: String,
    #[serde(default)]
    tags: Vec<String>,
    data: Box<RawValue>,
    metadata: Option<Box<RawValue>>,
}

/// The events are durable. Whoever follows the log knows them by the id, which is their `command_id`.
#[derive(Serialize)]
pub(super) struct Appended {
    outcome: &'static str,
    id: String,
}

pub(super) async fn append(
    State(host): State<Host>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Appended>, Problem> {
    let id = super::id(&headers, "weir-append-id")?;
    let provenance = Provenance {
        command_id: id.clone().unwrap_or_else(|| Uuid::now_v7().to_string()),
        correlation_id: super::id(&headers, "weir-correlation-id")?,
        causation_id: super::id(&headers, "weir-causation-id")?,
        version_id: None,
    };
    let (events, condition) = parse(&body::whole(body, super::EVENTS_BYTES).await?)?;
    let fingerprint = fingerprint(&events);
    let idempotency = id.is_some().then(|| Idempotency { fingerprint, answer: ANSWER.to_owned() });

    // A task of its own: a caller that hangs up does not leave a connection in the middle of a statement.
    let commands = host.commands.clone();
    let task = commands.spawn(async move {
        let _place = host.accept().map_err(|most| {
            host.metrics.appends(AppendOutcome::Overloaded).inc();
            crate::command::Failure::Overloaded(most)
        })?;
        let condition = condition.as_ref().map(|(query, token)| Condition { query, token });
        let append = Append {
            events: &events,
            condition,
            provenance: &provenance,
            idempotency: idempotency.as_ref(),
            builds_on: &[],
        };
        let outcome = host.store.append(append).await;
        host.metrics.appends(AppendOutcome::of(&outcome)).inc();
        match outcome? {
            Outcome::Appended => {}
            Outcome::Repeated => same_as_before(&host, &provenance.command_id, fingerprint).await?,
            Outcome::Conflict | Outcome::Undermined => return Err(conflict()),
        }
        Ok(Json(Appended { outcome: "appended", id: provenance.command_id }))
    });
    match task.await {
        Ok(answer) => answer,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

type Parsed = (Vec<NewEvent>, Option<(Query, ReadToken)>);

fn parse(body: &[u8]) -> Result<Parsed, Problem> {
    let bad =
        |detail: String| Problem::bad_request("malformed-append", "The append can't be understood", detail);
    let wanted: Wanted = serde_json::from_slice(body).map_err(|error| bad(error.to_string()))?;
    if wanted.events.is_empty() {
        return Err(bad("it has no events: there is nothing to append".into()));
    }
    let events = wanted.events.into_iter().enumerate().map(|(at, event)| {
        let EventBody { event_type, tags, data, metadata } = event;
        line::event(&event_type, &tags, data.get().to_owned(), metadata.as_deref())
            .map_err(|error| bad(format!("event {at}: {error}")))
    });
    let condition = wanted.condition.map(|condition| condition.parse()).transpose().map_err(bad)?;
    Ok((events.collect::<Result<_, _>>()?, condition))
}

/// What is asked for under an id: these events. The condition may be another one when an append is tried again.
fn fingerprint(events: &[NewEvent]) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    };
    add("append");
    for event in events {
        add(event.event_type().as_str());
        add(&event.tags().len().to_string());
        for tag in event.tags() {
            add(tag.as_str());
        }
        add(event.data().as_str());
        add(event.metadata().map_or("", weir_store::Json::as_str));
    }
    hash.finalize().into()
}

async fn same_as_before(host: &Host, id: &str, fingerprint: [u8; 32]) -> Result<(), Problem> {
    match host.store.outcome(id).await? {
        Some(kept) if kept.fingerprint == fingerprint => Ok(()),
        Some(_) => Err(Problem::new(
            StatusCode::CONFLICT,
            "append-id-reused",
            "The append id was used before",
            format!(
                "the id {id:?} was given to other events, or to a command, before: each append needs one of its own"
            ),
        )),
        // It was forgotten between the two statements: as old as that, it may be anybody's.
        None => Err(conflict()),
    }
}

fn conflict() -> Problem {
    let detail = "an event that matches the condition has come in since the read; nothing was appended: read again, and \
                  decide again";
    Problem::new(StatusCode::CONFLICT, "conflict", "Conflict", detail).with("outcome", "conflict")
}
