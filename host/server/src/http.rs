//! HTTP under `/v1`. Each route is a file; what goes wrong is a [`problem::Problem`].
//!
//! Every store has the same routes, below `/v1/stores/{store}`; those of the default store are below `/v1` as well.

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
mod stores;

use axum::{
    Router,
    extract::Request,
    http::HeaderMap,
    middleware::{Next, from_fn},
    routing::{any, get, post},
};
use tokio::net::TcpListener;
use tracing::Instrument;

use crate::{host::Host, stores::Stores};
use problem::Problem;

/// Bytes of a request's body, except a component's.
const BODY_BYTES: usize = 1024 * 1024;
/// Bytes of a request's body that holds many events.
const EVENTS_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of a component.
const COMPONENT_BYTES: usize = 64 * 1024 * 1024;

/// Serves until the stores are told to shut down and the requests under way have been answered.
pub(crate) async fn serve(listener: TcpListener, stores: Stores) -> std::io::Result<()> {
    let shutdown = stores.shutdown.clone();
    axum::serve(listener, routes(stores)).with_graceful_shutdown(shutdown.cancelled_owned()).await
}

fn routes(stores: Stores) -> Router {
    let mut routes = Router::new()
        .nest("/v1", of_store(stores.default_store().clone()))
        .route("/v1/stores", get(stores::list))
        .route("/v1/stores/{store}", any(stores::missing))
        .route("/v1/stores/{store}/{*rest}", any(stores::missing))
        .route("/metrics", get(metrics::scrape))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready));
    // A name is that of a schema, and has no character that means something in a path.
    for host in stores.all() {
        routes = routes.nest(&format!("/v1/stores/{}", host.store.name()), of_store(host.clone()));
    }
    routes
        .method_not_allowed_fallback(async || Problem::method_not_allowed())
        .fallback(async |uri: axum::http::Uri| Problem::no_such_route(uri.path()))
        .with_state(stores)
}

/// The routes of one store.
fn of_store(host: Host) -> Router<Stores> {
    let span = host.span.clone();
    Router::new()
        .route("/commands/{name}", post(commands::submit))
        .route("/events", get(events::read))
        .route("/read", post(read::read))
        .route("/append", post(append::append))
        .route("/import", post(import::import))
        .route("/handlers", get(handlers::list).post(handlers::deploy))
        .route("/settings", get(settings::show).put(settings::change))
        .route("/status", get(status::show))
        .route_layer(from_fn(move |request: Request, next: Next| next.run(request).instrument(span.clone())))
        .with_state(host)
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
