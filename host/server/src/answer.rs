//! What became of a command: told to its caller, and kept for one who sends it again.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use weir_runtime::{Command, Handler, Rejection};
use weir_store::{Error, NewEvent};

/// What became of a command that a handler has decided on. Its JSON is kept in the store: fields may be added, and
/// must then be optional.
#[derive(Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) command_id: String,
    pub(crate) handler: String,
    /// The version's digest, in hexadecimal.
    pub(crate) version: String,
    /// 1, and one more for each conflict.
    pub(crate) attempts: u32,
    pub(crate) verdict: Verdict,
}

/// The decision that holds.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// The events are durable.
    Accepted(Vec<AppendedEvent>),
    /// Nothing was written.
    Rejected { code: String, message: String },
}

/// An event as it was appended. It gets its position a moment later: see `GET /v1/events`.
#[derive(Serialize, Deserialize)]
pub(crate) struct AppendedEvent {
    #[serde(rename = "type")]
    event_type: String,
    tags: Vec<String>,
    data: Box<RawValue>,
}

impl Answer {
    pub(crate) fn accepted(
        command: &Command,
        handler: &Handler,
        attempts: u32,
        events: &[NewEvent],
    ) -> Result<Self, Error> {
        let appended = |event: &NewEvent| {
            Ok(AppendedEvent {
                event_type: event.event_type().to_string(),
                tags: event.tags().iter().map(ToString::to_string).collect(),
                data: RawValue::from_string(event.data().as_str().to_owned())?,
            })
        };
        let events = events.iter().map(appended).collect::<Result<_, _>>().map_err(unexpected)?;
        Ok(Self::new(command, handler, attempts, Verdict::Accepted(events)))
    }

    pub(crate) fn rejected(
        command: &Command,
        handler: &Handler,
        attempts: u32,
        rejection: Rejection,
    ) -> Self {
        let Rejection { code, message } = rejection;
        Self::new(command, handler, attempts, Verdict::Rejected { code, message })
    }

    fn new(command: &Command, handler: &Handler, attempts: u32, verdict: Verdict) -> Self {
        let (command_id, handler, version) =
            (command.id.clone(), handler.name().to_owned(), handler.version().to_string());
        Self { command_id, handler, version, attempts, verdict }
    }

    pub(crate) fn to_json(&self) -> Result<String, Error> {
        serde_json::to_string(self).map_err(unexpected)
    }

    pub(crate) fn from_json(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(unexpected)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err, which gives the error away")]
fn unexpected(error: serde_json::Error) -> Error {
    Error::Unexpected(format!("an answer that can't be kept or read again: {error}"))
}
