//! Request bodies.

use std::time::Duration;

use axum::{body::Body, http::StatusCode};
use futures_util::StreamExt;
use tokio::time::Instant;

use super::problem::Problem;

/// How much of a body that is too large is read on, and for how long, before the answer. A connection that is closed
/// while the caller still sends is reset, and the answer that says why is lost with it.
const PATIENCE_BYTES: usize = 64 * 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(5);
/// A caller that sends nothing for so long has gone.
const SILENCE: Duration = Duration::from_secs(30);

/// The whole of a body that may have `most` bytes.
pub(super) async fn whole(body: Body, most: usize) -> Result<Vec<u8>, Problem> {
    let mut stream = body.into_data_stream();
    let (mut kept, mut too_much) = (Vec::new(), 0);
    let mut deadline = None;
    loop {
        let wait = match deadline {
            None => tokio::time::timeout(SILENCE, stream.next()).await,
            Some(deadline) => tokio::time::timeout_at(deadline, stream.next()).await,
        };
        match wait {
            Ok(Some(Ok(piece))) if deadline.is_none() && kept.len() + piece.len() <= most => {
                kept.extend(piece);
            }
            Ok(Some(Ok(piece))) => {
                too_much += piece.len();
                deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
                if too_much > PATIENCE_BYTES {
                    return Err(too_large(most));
                }
            }
            Ok(None) if deadline.is_none() => return Ok(kept),
            Ok(None) => return Err(too_large(most)),
            Err(_) if deadline.is_some() => return Err(too_large(most)),
            Ok(Some(Err(error))) => return Err(unread(&error.to_string())),
            Err(_) => return Err(unread(&format!("nothing came for {} s", SILENCE.as_secs()))),
        }
    }
}

fn too_large(most: usize) -> Problem {
    let detail = format!("it may have {most} bytes here");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", "The body is too large", detail)
}

fn unread(why: &str) -> Problem {
    Problem::bad_request("unreadable-body", "The body can't be read", why)
}
