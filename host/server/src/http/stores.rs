//! `GET /v1/stores`: the stores of this host; and what is said of one that there is not.

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
    http::{StatusCode, Uri},
};
use serde::Serialize;

use super::problem::Problem;
use crate::stores::Stores;

#[derive(Serialize)]
pub(super) struct Store {
    store: String,
    /// Whether it is the one of the routes that name none.
    default: bool,
    ready: bool,
    /// Why it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) async fn list(State(stores): State<Stores>) -> Json<Vec<Store>> {
    let default = stores.default_store().store.name();
    let listed = stores.ready().await.into_iter().map(|(name, ready)| Store {
        store: name.to_owned(),
        default: name == default,
        ready: ready.is_ok(),
        error: ready.err().map(|error| error.to_string()),
    });
    Json(listed.collect())
}

/// Whatever lies below `/v1/stores/{store}` and is no route of a store that there is.
pub(super) async fn missing(
    State(stores): State<Stores>,
    path: Result<Path<Vec<(String, String)>>, PathRejection>,
    uri: Uri,
) -> Problem {
    let name = match &path {
        Ok(Path(parts)) => parts.first().map_or("", |(_, name)| name.as_str()),
        Err(_) => "",
    };
    if name.is_empty() || stores.names().any(|known| known == name) {
        return Problem::no_such_route(uri.path());
    }
    let known: Vec<_> = stores.names().collect();
    let detail = format!("this host has no store {name:?}; it has: {}", known.join(", "));
    Problem::new(StatusCode::NOT_FOUND, "unknown-store", "Unknown store", detail)
}
