//! `GET /v1/settings` and `PUT /v1/settings`: what holds for every host of the store.

use axum::{Json, body::Body, extract::State};
use serde::Deserialize;
use weir_store::{OutcomesKept, SettingsChange, Strategy};

use super::{body, problem::Problem};
use crate::{host::Host, status::Settings};

/// Bytes of the settings.
const BODY_BYTES: usize = 4096;

/// What is left out stays as it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    strategy: Option<String>,
    unscoped_conditions: Option<bool>,
    outcomes_kept_seconds: Option<u64>,
}

pub(super) async fn show(State(host): State<Host>) -> Result<Json<Settings>, Problem> {
    Ok(Json(Settings::of(host.store.refresh_settings().await?)))
}

pub(super) async fn change(State(host): State<Host>, body: Body) -> Result<Json<Settings>, Problem> {
    let bad = |detail: String| {
        Problem::bad_request("malformed-settings", "The settings can't be understood", detail)
    };
    let body = body::whole(body, BODY_BYTES).await?;
    let wanted: Wanted = serde_json::from_slice(&body).map_err(|error| bad(error.to_string()))?;
    let outcomes_kept = wanted.outcomes_kept_seconds.map(OutcomesKept::from_seconds).transpose();
    let change = SettingsChange {
        strategy: wanted.strategy.map(|name| name.parse::<Strategy>().map_err(bad)).transpose()?,
        unscoped_conditions: wanted.unscoped_conditions,
        outcomes_kept: outcomes_kept.map_err(|error| bad(error.to_string()))?,
    };
    host.store.change_settings(change).await?;
    show(State(host)).await
}
