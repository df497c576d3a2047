//! An event as one line of JSON: what is read, followed, exported and imported.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use time::format_description::well_known::Rfc3339;
use weir_store::{
    Cursor, EventType, ImportedEvent, Json, LoggedEvent, NewEvent, Origin, SequencedEvent, Tag,
};

#[derive(Serialize)]
struct Line<'a> {
    /// None while the event is staged.
    position: Option<u64>,
    /// Only where a position is no place to go on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    #[serde(rename = "type")]
    event_type: &'a EventType,
    tags: &'a [Tag],
    data: &'a RawValue,
    /// The data byte for byte, where they have line breaks: those end no line here, and come as spaces in `data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    data_text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a RawValue>,
    recorded_at: String,
    #[serde(flatten)]
    origin: Option<OriginLine<'a>>,
}

#[derive(Serialize)]
struct OriginLine<'a> {
    command_id: &'a str,
    correlation_id: &'a str,
    causation_id: Option<&'a str>,
    handler: Option<&'a str>,
    /// The digest of the handler's version, in hexadecimal.
    version: Option<String>,
}

/// A line of the log, without its end.
pub(super) fn logged(event: &LoggedEvent) -> Result<String, serde_json::Error> {
    line(&Line {
        position: Some(event.position),
        cursor: (event.cursor != Cursor::at(event.position)).then(|| event.cursor.to_string()),
        event_type: &event.event_type,
        tags: &event.tags,
        data: raw(&event.data)?,
        data_text: text(&event.data),
        metadata: event.metadata.as_ref().map(raw).transpose()?,
        recorded_at: time(event.recorded_at)?,
        origin: Some(origin(&event.origin)),
    })
}

/// The same for an event of a decision read.
pub(super) fn read(event: &SequencedEvent) -> Result<String, serde_json::Error> {
    line(&Line {
        position: event.position,
        cursor: None,
        event_type: &event.event_type,
        tags: &event.tags,
        data: raw(&event.data)?,
        data_text: text(&event.data),
        metadata: event.metadata.as_ref().map(raw).transpose()?,
        recorded_at: time(event.recorded_at)?,
        origin: event.origin.as_ref().map(origin),
    })
}

fn line(line: &Line<'_>) -> Result<String, serde_json::Error> {
    // A line break would end the line here and could pass off the rest as an event of its own. In JSON they stand
    // between tokens only, where a space means the same.
    Ok(serde_json::to_string(line)?.replace(['\n', '\r'], " "))
}

fn raw(json: &Json) -> Result<&RawValue, serde_json::Error> {
    serde_json::from_str(json.as_str())
}

fn text(data: &Json) -> Option<&str> {
    Some(data.as_str()).filter(|text| text.contains(['\n', '\r']))
}

fn time(time: time::OffsetDateTime) -> Result<String, serde_json::Error> {
    time.format(&Rfc3339).map_err(serde::ser::Error::custom)
}

fn origin(origin: &Origin) -> OriginLine<'_> {
    let hex = |digest: &[u8]| digest.iter().map(|byte| format!("{byte:02x}")).collect();
    OriginLine {
        command_id: &origin.command_id,
        correlation_id: &origin.correlation_id,
        causation_id: origin.causation_id.as_deref(),
        handler: origin.handler.as_ref().map(|(name, _)| name.as_str()),
        version: origin.handler.as_ref().map(|(_, digest)| hex(digest)),
    }
}

/// A line that is imported. Its position and cursor are those of the log it comes from, and are not kept.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ImportedLine {
    #[serde(rename = "position")]
    _position: Option<u64>,
    #[serde(rename = "cursor")]
    _cursor: Option<String>,
    #[serde(rename = "type")]
    event_type: String,
    tags: Vec<String>,
    data: Box<RawValue>,
    data_text: Option<String>,
    metadata: Option<Box<RawValue>>,
    #[serde(with = "time::serde::rfc3339")]
    recorded_at: time::OffsetDateTime,
    command_id: String,
    correlation_id: Option<String>,
    causation_id: Option<String>,
    handler: Option<String>,
    version: Option<String>,
}

/// The event of a line; the error says what is wrong with it.
pub(super) fn imported(line: &str) -> Result<ImportedEvent, String> {
    let line: ImportedLine = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let data = line.data_text.unwrap_or_else(|| line.data.get().to_owned());
    let digest = line.version.as_deref().map(digest).transpose()?;
    Ok(ImportedEvent {
        event: event(&line.event_type, &line.tags, data, line.metadata.as_deref())?,
        recorded_at: line.recorded_at,
        origin: Origin {
            correlation_id: line.correlation_id.unwrap_or_else(|| line.command_id.clone()),
            command_id: line.command_id,
            causation_id: line.causation_id,
            handler: line.handler.zip(digest),
        },
    })
}

/// An event of these parts; the error says what is wrong with it.
pub(super) fn event(
    event_type: &str,
    tags: &[String],
    data: String,
    metadata: Option<&RawValue>,
) -> Result<NewEvent, String> {
    let tags = super::query::tags(tags)?;
    // What is said besides need not be kept byte for byte, and so stays on its line.
    let metadata =
        metadata.map(|metadata| Json::try_from(metadata.get().replace(['\n', '\r'], " "))).transpose();
    let event = NewEvent::new(
        super::query::event_type(event_type)?,
        tags,
        Json::try_from(data).map_err(|error| format!("its data can't be taken: {error}"))?,
    );
    let event =
        event.map_err(|tags| format!("it has {tags} tags, {} is the most", weir_store::bounds::TAGS))?;
    Ok(event.with_metadata(metadata.map_err(|error| format!("its metadata can't be taken: {error}"))?))
}

fn digest(hex: &str) -> Result<Vec<u8>, String> {
    let digest = (0..hex.len())
        .step_by(2)
        .map(|at| hex.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()));
    let digest: Option<Vec<u8>> = digest.collect();
    digest
        .filter(|digest| digest.len() == 32)
        .ok_or_else(|| format!("its version {hex:?} is no SHA-256 in hexadecimal"))
}
