//! `GET /v1/status`: how the host and its store are doing.

use axum::{Json, extract::State};

use crate::{host::Host, status::Status};

/// 200 while the database is down, too: then the host's part is all the more of interest.
pub(super) async fn show(State(host): State<Host>) -> Json<Status> {
    Json(Status::of(&host).await)
}
