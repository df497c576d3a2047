//! `GET /healthz` (the process runs) and `GET /readyz` (it can take commands, in all of its stores).

use axum::extract::State;

use super::problem::Problem;
use crate::stores::Stores;

pub(super) async fn alive() -> &'static str {
    "alive\n"
}

pub(super) async fn ready(State(stores): State<Stores>) -> Result<&'static str, Problem> {
    for (store, ready) in stores.ready().await {
        ready.map_err(|error| Problem::from(error).in_store(store))?;
    }
    Ok("ready\n")
}
