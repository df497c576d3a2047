//! `POST /v1/import`: lines of another log, as `GET /v1/events` gives them, in their order.

use axum::{
    Json,
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
};
use serde::{Deserialize, Serialize};
use weir_store::ImportError;

use super::{body, line, problem::Problem};
use crate::host::Host;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    /// The position at which the log must end for these lines to follow: 0 for an empty one.
    expected_head: u64,
}

#[derive(Serialize)]
pub(super) struct Imported {
    imported: usize,
    /// Where the log ends now: `expected_head` for the lines that follow.
    head: u64,
}

pub(super) async fn import(
    State(host): State<Host>,
    parameters: Result<Query<Parameters>, QueryRejection>,
    body: Body,
) -> Result<Json<Imported>, Problem> {
    let bad =
        |detail: String| Problem::bad_request("malformed-import", "The import can't be understood", detail);
    let Query(Parameters { expected_head }) = parameters.map_err(|rejection| bad(rejection.body_text()))?;
    let text = String::from_utf8(body::whole(body, super::EVENTS_BYTES).await?)
        .map_err(|error| bad(format!("it is not UTF-8: {error}")))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let events = lines
        .map(|(at, text)| line::imported(text).map_err(|error| bad(format!("line {}: {error}", at + 1))));
    let events = events.collect::<Result<Vec<_>, _>>()?;

    // A task of its own, as for an append.
    let commands = host.commands.clone();
    let task = commands.spawn(async move {
        let head = host.store.import(expected_head, &events).await?;
        Ok::<_, ImportError>(Imported { imported: events.len(), head })
    });
    match task.await {
        Ok(Ok(imported)) => Ok(Json(imported)),
        Ok(Err(ImportError::Store(error))) => Err(error.into()),
        Ok(Err(error @ ImportError::OtherHead { head, .. })) => {
            let problem =
                Problem::new(StatusCode::CONFLICT, "other-head", "The log ends elsewhere", error.to_string());
            Err(problem.with("head", head))
        }
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}
