//! `POST /v1/commands/{name}`: the body is the command's data, JSON.

use axum::{
    Json,
    body::Body,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use super::{body, problem::Problem};
use crate::{
    answer::{Answer, AppendedEvent, Verdict},
    command::{self, Request},
    host::Host,
};

#[derive(Serialize)]
struct Accepted {
    outcome: &'static str,
    command_id: String,
    handler: String,
    version: String,
    attempts: u32,
    events: Vec<AppendedEvent>,
}

pub(super) async fn submit(
    State(host): State<Host>,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let Path(name) = name.map_err(|rejection| {
        Problem::bad_request("malformed-path", "The path can't be understood", rejection.body_text())
    })?;
    let request = Request {
        name,
        id: super::id(&headers, "weir-command-id")?,
        data: data(body::whole(body, super::BODY_BYTES).await?)?,
        correlation_id: super::id(&headers, "weir-correlation-id")?,
        causation_id: super::id(&headers, "weir-causation-id")?,
    };
    let name = request.name.clone();
    let began = std::time::Instant::now();
    // A task of its own: a caller that hangs up does not stop a command half-way.
    let commands = host.commands.clone();
    let task = commands.spawn(async move {
        let result = command::handle(&host, request).await;
        host.metrics.ended(&result, began.elapsed());
        result
    });
    let result = match task.await {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    };
    let ms = began.elapsed().as_secs_f64() * 1000.0;
    match &result {
        Ok(Answer { verdict: Verdict::Accepted(events), attempts, .. }) => {
            tracing::debug!(command = name, events = events.len(), attempts, "accepted in {ms:.1} ms");
        }
        Ok(Answer { verdict: Verdict::Rejected { code, message }, .. }) => {
            tracing::debug!(command = name, code, "rejected in {ms:.1} ms: {message}");
        }
        Err(failure) => tracing::warn!(command = name, "failed in {ms:.1} ms: {failure}"),
    }
    answer(result?)
}

fn answer(answer: Answer) -> Result<Response, Problem> {
    let Answer { command_id, handler, version, attempts, verdict } = answer;
    match verdict {
        Verdict::Accepted(events) => {
            let outcome = "accepted";
            Ok(Json(Accepted { outcome, command_id, handler, version, attempts, events }).into_response())
        }
        Verdict::Rejected { code, message } => {
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "rejected", "Rejected", message)
                .with("outcome", "rejected")
                .with("code", code)
                .with("command_id", command_id)
                .with("handler", handler)
                .with("version", version)
                .with("attempts", attempts))
        }
    }
}

fn data(body: Vec<u8>) -> Result<weir_store::Json, Problem> {
    let bad = |detail: String| Problem::bad_request("malformed-body", "The body is not JSON", detail);
    if body.is_empty() {
        return Err(bad("it is empty; send the command's data, {} if it has none".into()));
    }
    let text = String::from_utf8(body).map_err(|error| bad(format!("it is not UTF-8: {error}")))?;
    weir_store::Json::try_from(text).map_err(|error| bad(error.to_string()))
}
