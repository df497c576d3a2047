//! `GET /metrics`: what Prometheus collects.

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};

use super::problem::Problem;
use crate::{metrics, stores::Stores};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) async fn scrape(State(stores): State<Stores>) -> Result<Response, Problem> {
    let text = metrics::text(stores.all()).await.map_err(|error| {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Problem::new(status, "metrics-failed", "The metrics can't be written", error.to_string())
    })?;
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response())
}
