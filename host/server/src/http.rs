//! HTTP under `/v1`. Each route is a file; what goes wrong is a [`problem::Problem`].

mod append;
mod body;
mod commands;
mod events;
mod handlers;
mod health;
mod import;
mod line;
mod metrics;
mod problem;
mod query;
mod read;
mod settings;
mod status;

use axum::{
    Router,
    http::HeaderMap,
    routing::{get, post},
};
use tokio::net::TcpListener;

use crate::host::Host;
use problem::Problem;

/// Bytes of a request's body, except a component's.
const BODY_BYTES: usize = 1024 * 1024;
/// Bytes of a request's body that holds many events.
const EVENTS_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of a component.
const COMPONENT_BYTES: usize = 64 * 1024 * 1024;

/// Serves until the host is told to shut down and the requests under way have been answered.
pub(crate) async fn serve(listener: TcpListener, host: Host) -> std::io::Result<()> {
    let shutdown = host.shutdown.clone();
    let routes = Router::new()
        .route("/v1/commands/{name}", post(commands::submit))
        .route("/v1/events", get(events::read))
        .route("/v1/read", post(read::read))
        .route("/v1/append", post(append::append))
        .route("/v1/import", post(import::import))
        .route("/v1/handlers", get(handlers::list).post(handlers::deploy))
        .route("/v1/settings", get(settings::show).put(settings::change))
        .route("/v1/status", get(status::show))
        .route("/metrics", get(metrics::scrape))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .method_not_allowed_fallback(async || Problem::method_not_allowed())
        .fallback(async |uri: axum::http::Uri| Problem::no_such_route(uri.path()))
        .with_state(host);
    axum::serve(listener, routes).with_graceful_shutdown(shutdown.cancelled_owned()).await
}

/// An id that the caller may give: visible ASCII, at most 200 bytes.
fn id(headers: &HeaderMap, name: &'static str) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    match value.to_str() {
        Ok(id) if !id.is_empty() && id.len() <= 200 => Ok(Some(id.to_owned())),
        _ => Err(Problem::bad_request(
            "malformed-id",
            "A header can't be understood",
            format!("{name} must be 1 to 200 bytes of visible ASCII"),
        )),
    }
}
