//! `GET /healthz` (the process runs) and `GET /readyz` (it can take commands).

use axum::extract::State;

use super::problem::Problem;
use crate::host::Host;

pub(super) async fn alive() -> &'static str {
    "alive\n"
}

pub(super) async fn ready(State(host): State<Host>) -> Result<&'static str, Problem> {
    host.store.ready().await?;
    Ok("ready\n")
}
