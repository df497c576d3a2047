//! `GET /v1/strategy` and `PUT /v1/strategy`: the settings that hold for every host of the store.

use axum::{Json, body::Body, extract::State};
use serde::{Deserialize, Serialize};
use weir_store::Strategy;

use super::{body, problem::Problem};
use crate::host::Host;

/// Bytes of the settings.
const BODY_BYTES: usize = 4096;

#[derive(Serialize)]
pub(super) struct Settings {
    strategy: &'static str,
    unscoped_conditions: bool,
    /// Under `boundary`: how long the oldest transaction of the cluster has held events back from those who
    /// follow the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_back_ms: Option<u64>,
}

/// What is left out stays as it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    strategy: Option<String>,
    unscoped_conditions: Option<bool>,
}

pub(super) async fn show(State(host): State<Host>) -> Result<Json<Settings>, Problem> {
    let settings = host.store.refresh_settings().await?;
    let held_back = if settings.strategy.gap_free() { None } else { Some(host.store.held_back().await?) };
    Ok(Json(Settings {
        strategy: settings.strategy.as_str(),
        unscoped_conditions: settings.unscoped_conditions,
        held_back_ms: held_back.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    }))
}

pub(super) async fn change(State(host): State<Host>, body: Body) -> Result<Json<Settings>, Problem> {
    let bad = |detail: String| {
        Problem::bad_request("malformed-settings", "The settings can't be understood", detail)
    };
    let body = body::whole(body, BODY_BYTES).await?;
    let wanted: Wanted = serde_json::from_slice(&body).map_err(|error| bad(error.to_string()))?;
    let strategy = wanted.strategy.map(|name| name.parse::<Strategy>().map_err(bad)).transpose()?;
    if let Some(allowed) = wanted.unscoped_conditions {
        host.store.allow_unscoped_conditions(allowed).await?;
    }
    if let Some(strategy) = strategy {
        host.store.set_strategy(strategy).await?;
    }
    show(State(host)).await
}
