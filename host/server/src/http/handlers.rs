//! `GET /v1/handlers`, and `POST /v1/handlers` with a component as the body.

use axum::{Json, body::Body, extract::State};
use serde::Serialize;
use weir_store::Deployed;

use super::{body, problem::Problem};
use crate::{handlers::Loaded, host::Host};

#[derive(Serialize)]
pub(super) struct Handler {
    handler: String,
    version: String,
    /// `activated` or `unchanged`; only in the answer to a deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    commands: Vec<String>,
    event_types: Vec<String>,
}

impl Handler {
    fn of(loaded: &Loaded, status: Option<&'static str>) -> Self {
        let handler = &loaded.handler;
        Self {
            handler: handler.name().to_owned(),
            version: handler.version().to_string(),
            status,
            commands: handler.commands().to_vec(),
            event_types: handler.event_types().to_vec(),
        }
    }
}

pub(super) async fn list(State(host): State<Host>) -> Json<Vec<Handler>> {
    Json(host.handlers.ready().iter().map(|loaded| Handler::of(loaded, None)).collect())
}

pub(super) async fn deploy(State(host): State<Host>, body: Body) -> Result<Json<Handler>, Problem> {
    let component = body::whole(body, super::COMPONENT_BYTES).await?;
    let (loaded, deployed) = host.handlers.deploy(component).await?;
    let status = match deployed {
        Deployed::Unchanged(_) => "unchanged",
        Deployed::Activated(_) | Deployed::CommandOwned { .. } => "activated",
    };
    Ok(Json(Handler::of(&loaded, Some(status))))
}
