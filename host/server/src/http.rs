//! HTTP under `/v1`. Each route is a file; what goes wrong is a [`problem::Problem`].

mod body;
mod commands;
mod events;
mod handlers;
mod health;
mod problem;
mod strategy;

use axum::{
    Router,
    routing::{get, post},
};
use tokio::net::TcpListener;

use crate::host::Host;
use problem::Problem;

/// Bytes of a request's body, except a component's.
const BODY_BYTES: usize = 1024 * 1024;
/// Bytes of a component.
const COMPONENT_BYTES: usize = 64 * 1024 * 1024;

/// Serves until the host is told to shut down and the requests under way have been answered.
pub(crate) async fn serve(listener: TcpListener, host: Host) -> std::io::Result<()> {
    let shutdown = host.shutdown.clone();
    let routes = Router::new()
        .route("/v1/commands/{name}", post(commands::submit))
        .route("/v1/events", get(events::read))
        .route("/v1/handlers", get(handlers::list).post(handlers::deploy))
        .route("/v1/strategy", get(strategy::show).put(strategy::change))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .method_not_allowed_fallback(async || Problem::method_not_allowed())
        .fallback(async |uri: axum::http::Uri| Problem::no_such_route(uri.path()))
        .with_state(host);
    axum::serve(listener, routes).with_graceful_shutdown(shutdown.cancelled_owned()).await
}
