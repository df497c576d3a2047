//! What goes wrong, as RFC 9457 problem details: the one place that maps errors to HTTP.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::{
    command::Failure,
    handlers::{DeployError, NotFound},
};

/// The body of an answer that is no success.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    /// `urn:weir:problem:` and a kind that programs can rely on.
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    /// For people: what, where, and what to do.
    detail: String,
    /// Only for a command that was refused, or whose fate is unknown.
    #[serde(flatten)]
    more: serde_json::Map<String, serde_json::Value>,
    #[serde(skip)]
    retry_after_seconds: Option<u32>,
}

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        kind: &str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            kind: format!("urn:weir:problem:{kind}"),
            title,
            status: status.as_u16(),
            detail: detail.into(),
            more: serde_json::Map::new(),
            retry_after_seconds: None,
        }
    }

    pub(crate) fn bad_request(kind: &str, title: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, kind, title, detail)
    }

    pub(crate) fn no_such_route(path: &str) -> Self {
        let detail = format!(
            "there is nothing at {path}; there are POST /v1/commands/{{name}}, GET /v1/events, POST /v1/read, \
             /v1/append and /v1/import, GET and POST /v1/handlers, GET and PUT /v1/settings, GET /v1/status, all of them \
             under /v1/stores/{{store}}/ for a store by name, GET /v1/stores, /metrics, /healthz and /readyz"
        );
        Self::new(StatusCode::NOT_FOUND, "no-such-route", "No such route", detail)
    }

    pub(crate) fn method_not_allowed() -> Self {
        let detail = "commands and handlers are sent with POST, the settings with PUT, and everything is read with GET";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "Method not allowed", detail)
    }

    /// Says which store it is about.
    pub(crate) fn in_store(mut self, name: &str) -> Self {
        self.detail = format!("store \"{name}\": {}", self.detail);
        self
    }

    pub(crate) fn with(mut self, key: &str, value: impl Into<serde_json::Value>) -> Self {
        self.more.insert(key.to_owned(), value.into());
        self
    }

    fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }
}

impl From<weir_store::Error> for Problem {
    fn from(error: weir_store::Error) -> Self {
        use weir_store::Error;
        let detail = error.to_string();
        match error {
            Error::Unavailable(_) | Error::Busy(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "store-unavailable",
                "The store is not available",
                detail,
            )
            .retry_after(1),
            // No Retry-After: sent again, the command might take effect twice.
            Error::OutcomeUnknown(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "outcome-unknown",
                "The outcome is unknown",
                detail,
            ),
            Error::TooManyEvents(_) | Error::TooManyLocks(_) => {
                Self::bad_request("append-too-large", "The append is too large", detail)
            }
            Error::PositionIsNoToken(_) => {
                Self::bad_request("position-is-no-token", "A position is no read token here", detail)
            }
            Error::PositionIsNoCursor(_) => {
                Self::bad_request("position-is-no-cursor", "A position is no cursor here", detail)
            }
            Error::Unscoped(_) | Error::ForeignToken => {
                Self::bad_request("condition-refused", "The condition can't be used", detail)
            }
            Error::OutOfLocks
            | Error::NotMigrated
            | Error::Isolation
            | Error::Database(_)
            | Error::Unexpected(_) => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "store-failed", "The store failed", detail)
            }
        }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        let detail = failure.to_string();
        match failure {
            Failure::NotFound(NotFound::Unknown { .. }) => {
                Self::new(StatusCode::NOT_FOUND, "unknown-command", "Unknown command", detail)
            }
            Failure::NotFound(NotFound::Unready { .. }) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "handler-not-ready",
                "The handler is not ready",
                detail,
            ),
            Failure::Overloaded(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", "Too many commands at once", detail)
                    .retry_after(1)
            }
            Failure::IdReused(_) => {
                Self::new(StatusCode::CONFLICT, "command-id-reused", "The command id was used before", detail)
            }
            Failure::Handler(_) => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "handler-failed", "The handler failed", detail)
            }
            Failure::Conflict(attempts) => Self::new(StatusCode::CONFLICT, "conflict", "Conflict", detail)
                .with("attempts", attempts)
                .retry_after(1),
            // What a caller of the store has asked for itself, here the handler has.
            Failure::Store(weir_store::Error::TooManyEvents(_) | weir_store::Error::TooManyLocks(_)) => {
                Self::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "append-too-large",
                    "The append is too large",
                    detail,
                )
            }
            Failure::Store(error) => error.into(),
        }
    }
}

impl From<DeployError> for Problem {
    fn from(error: DeployError) -> Self {
        let detail = error.to_string();
        match error {
            DeployError::Refused { .. } => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "component-refused",
                "The component can't be deployed",
                detail,
            ),
            DeployError::CommandOwned { .. } => {
                Self::new(StatusCode::CONFLICT, "command-owned", "Another handler has that command", detail)
            }
            DeployError::Store(error) => error.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after = self.retry_after_seconds;
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
