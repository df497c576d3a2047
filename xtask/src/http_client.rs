//! How chores talk to a host.

use std::time::Duration;

use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};

/// The kind of problem in which the host itself cannot tell what came of a command or an append.
pub(crate) const OUTCOME_UNKNOWN: &str = "urn:weir:problem:outcome-unknown";

/// A client that keeps its connections, takes every status for an answer, and talks to this machine without a
/// proxy. Without a `patience` it waits for ever.
pub(crate) fn agent(patience: Option<Duration>) -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(patience)
        .proxy(None)
        .build()
        .new_agent()
}

/// An answer in full, however long it is.
pub(crate) fn read(mut response: Response<Body>) -> Result<(StatusCode, String), ureq::Error> {
    let body = response.body_mut().with_config().limit(u64::MAX).read_to_string()?;
    Ok((response.status(), body))
}

/// Whether the request cannot have reached anybody.
pub(crate) fn was_never_sent(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::ConnectionFailed => true,
        ureq::Error::Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        _ => false,
    }
}
