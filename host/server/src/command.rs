//! The life of a command: accept, find the handler, boundary, then in a batch with others decision read, decide and append,
//! answer.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use uuid::Uuid;
use weir_runtime::{Call, Command, QueryItem};
use weir_store::{Idempotency, Json, Provenance, Query};

use crate::{
    answer::Answer,
    batch::{Entry, Settled},
    handlers::{Loaded, NotFound},
    host::Host,
    translate,
};

/// Attempts at one command before its caller hears of the conflict.
const ATTEMPTS: u32 = 40;
/// No attempt begins later than this after the command was accepted.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a handler may widen the boundary of one attempt.
const WIDENINGS: u32 = 4;

/// What a caller sends.
pub(crate) struct Request {
    pub(crate) name: String,
    pub(crate) data: Json,
    /// The caller's own id for the command: sent again, it gets the first answer again.
    pub(crate) id: Option<String>,
    pub(crate) correlation_id: Option<String>,
    pub(crate) causation_id: Option<String>,
}

/// Why a command has no answer. The caller may send it again, except where `OutcomeUnknown` says so.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    NotFound(#[from] NotFound),
    #[error("{0} commands are under way already, which is the most this host takes on: try again shortly")]
    Overloaded(usize),
    #[error(
        "the command id \"{0}\" was given to another command before: each command needs an id of its own"
    )]
    IdReused(String),
    #[error(transparent)]
    Handler(#[from] weir_runtime::Failure),
    #[error(
        "after {0} attempts the events that the decision depends on had changed again each time; nothing was \
         recorded"
    )]
    Conflict(u32),
    #[error(transparent)]
    Store(#[from] weir_store::Error),
}

/// Takes one command from acceptance to its answer. Runs to its end even if the caller has gone.
///
/// What it shares with others, from the decision read to the append, is in [`batch`](crate::batch).
pub(crate) async fn handle(host: &Host, request: Request) -> Result<Answer, Failure> {
    let _place = host.accept().map_err(Failure::Overloaded)?;
    if let Some(earlier) = earlier_answer(host, &request).await? {
        return Ok(earlier);
    }
    let command = accept(&request);
    let handler = host.handlers.find(&command.name)?;
    let (guest, declared) = host.guest(&handler, &command, weir_runtime::Deciding::boundary).await?;
    let settings = host.store.settings().await?;
    let boundary = match declared {
        Ok(items) => {
            translate::boundary(items, settings).map_err(|reason| guest.nonsense(Call::Boundary, reason))?
        }
        Err(rejection) => {
            let answer = Answer::rejected(&command, &handler.handler, 1, rejection);
            return keep(host, &request, answer).await;
        }
    };
    drop(guest);

    let mut attempt = Attempt { number: 1, boundary: boundary.clone(), widened: Vec::new(), alone: false };
    let began = Instant::now();
    let mut widenings = 0;
    host.metrics.attempts().inc();
    loop {
        match decided_in_a_batch(host, &request, &command, &handler, &attempt).await {
            Settled::Appended(answer) => return Ok(answer),
            Settled::Answered(answer) => return keep(host, &request, answer).await,
            Settled::Repeated => {
                return earlier_answer(host, &request).await?.ok_or(Failure::Conflict(attempt.number));
            }
            Settled::Failed(failure) => return Err(failure),
            Settled::Again => {}
            Settled::Alone => attempt.alone = true,
            Settled::Widen(items) => {
                let nonsense = |reason| handler.handler.nonsense(Call::Decide, reason);
                widenings += 1;
                if widenings > WIDENINGS {
                    let reason = format!("it widened the boundary more than {WIDENINGS} times");
                    return Err(nonsense(reason).into());
                }
                attempt.boundary =
                    translate::widened(&attempt.boundary, items.clone(), settings).map_err(nonsense)?;
                attempt.widened.extend(items);
            }
            Settled::Conflict => {
                host.metrics.conflicts().inc();
                if attempt.number == ATTEMPTS || began.elapsed() > PATIENCE {
                    return Err(Failure::Conflict(attempt.number));
                }
                step_aside(attempt.number).await;
                host.metrics.attempts().inc();
                widenings = 0;
                attempt = Attempt {
                    number: attempt.number + 1,
                    boundary: boundary.clone(),
                    widened: Vec::new(),
                    alone: false,
                };
            }
        }
    }
}

/// How a command goes into its next batch.
struct Attempt {
    number: u32,
    /// What was declared, and what decisions have widened it by since.
    boundary: Query,
    widened: Vec<QueryItem>,
    alone: bool,
}

async fn decided_in_a_batch(
    host: &Host,
    request: &Request,
    command: &Command,
    handler: &Loaded,
    attempt: &Attempt,
) -> Settled {
    let (settled, answer) = oneshot::channel();
    host.queue.enter(Entry {
        command: command.clone(),
        handler: handler.clone(),
        boundary: attempt.boundary.clone(),
        keys: attempt.boundary.lock_keys(),
        unscoped: attempt.boundary.unscoped().is_some(),
        widened: attempt.widened.clone(),
        provenance: Provenance {
            command_id: command.id.clone(),
            correlation_id: request.correlation_id.clone(),
            causation_id: request.causation_id.clone(),
            version_id: Some(handler.version_id),
        },
        fingerprint: request.id.is_some().then(|| fingerprint(request)),
        attempts: attempt.number,
        alone: attempt.alone,
        settled,
    });
    // Only a batch that has panicked drops the other end.
    answer.await.unwrap_or_else(|_| {
        let why = "the batch of this command has failed on the way";
        Settled::Failed(Failure::Store(weir_store::Error::OutcomeUnknown(why.to_owned())))
    })
}

/// The answer that this command has had before, if it has an id of its caller's and has.
async fn earlier_answer(host: &Host, request: &Request) -> Result<Option<Answer>, Failure> {
    let Some(id) = &request.id else { return Ok(None) };
    match host.store.outcome(id).await? {
        None => Ok(None),
        Some(kept) if kept.fingerprint == fingerprint(request) => Ok(Some(Answer::from_json(&kept.answer)?)),
        Some(_) => Err(Failure::IdReused(id.clone())),
    }
}

/// Keeps an answer that comes without an append; the first one, if the command was sent twice at once.
async fn keep(host: &Host, request: &Request, answer: Answer) -> Result<Answer, Failure> {
    if let (Some(id), Some(outcome)) = (&request.id, idempotency(request, &answer)?)
        && !host.store.keep_outcome(id, &outcome).await?
    {
        return Ok(earlier_answer(host, request).await?.unwrap_or(answer));
    }
    Ok(answer)
}

/// What to keep of a command, if it has an id of its caller's.
fn idempotency(request: &Request, answer: &Answer) -> Result<Option<Idempotency>, Failure> {
    if request.id.is_none() {
        return Ok(None);
    }
    Ok(Some(Idempotency { fingerprint: fingerprint(request), answer: answer.to_json()? }))
}

fn fingerprint(request: &Request) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(request.name.as_bytes());
    hash.update([0]);
    hash.update(request.data.as_str().as_bytes());
    hash.finalize().into()
}

fn accept(request: &Request) -> Command {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Command {
        id: request.id.clone().unwrap_or_else(|| Uuid::now_v7().to_string()),
        name: request.name.clone(),
        data: request.data.as_str().to_owned(),
        received_at: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        principal: None,
    }
}

/// Waits a random while that grows with the attempts, so that those who lost to each other don't meet again.
async fn step_aside(attempts: u32) {
    let most = 1u128 << attempts.min(6);
    let wait = Uuid::new_v4().as_u128() % (most * 1000);
    tokio::time::sleep(Duration::from_micros(u64::try_from(wait).unwrap_or_default())).await;
}
