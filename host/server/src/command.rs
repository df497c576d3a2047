//! The life of a command: accept, find the handler, boundary, decision read, decide, append, answer.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};
use uuid::Uuid;
use weir_runtime::{Call, Command, Decision, Rejection};
use weir_store::{
    Append, Condition, Idempotency, Json, NewEvent, Outcome, Provenance, Query, ReadOptions, ReadToken,
};

use crate::{
    answer::Answer,
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
#[derive(Debug, thiserror::Error)]
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
pub(crate) async fn handle(host: &Host, request: Request) -> Result<Answer, Failure> {
    let _place = host.accept().map_err(Failure::Overloaded)?;
    if let Some(earlier) = earlier_answer(host, &request).await? {
        return Ok(earlier);
    }
    let command = accept(&request);
    let handler = host.handlers.find(&command.name)?;
    let provenance = Provenance {
        command_id: command.id.clone(),
        correlation_id: request.correlation_id.clone(),
        causation_id: request.causation_id.clone(),
        version_id: Some(handler.version_id),
    };

    let began = Instant::now();
    let mut attempts = 0;
    loop {
        attempts += 1;
        host.metrics.attempts().inc();
        let (boundary, token, events) = match decide(host, &handler, &command).await? {
            Decided::Accept { boundary, token, events } => (boundary, token, events),
            Decided::Reject(rejection) => {
                let answer = Answer::rejected(&command, &handler.handler, attempts, rejection);
                return keep(host, &request, answer).await;
            }
        };
        let answer = Answer::accepted(&command, &handler.handler, attempts, &events)?;
        if events.is_empty() {
            return keep(host, &request, answer).await;
        }
        let idempotency = idempotency(&request, &answer)?;
        let condition = Some(Condition { query: &boundary, token: &token });
        let append = Append {
            events: &events,
            condition,
            provenance: &provenance,
            idempotency: idempotency.as_ref(),
            builds_on: &[],
        };
        let outcome = host.store.append(append).await?;
        if matches!(outcome, Outcome::Conflict | Outcome::Undermined) {
            host.metrics.conflicts().inc();
        }
        match outcome {
            Outcome::Appended => return Ok(answer),
            Outcome::Repeated => {
                return earlier_answer(host, &request).await?.ok_or(Failure::Conflict(attempts));
            }
            Outcome::Conflict if attempts == ATTEMPTS || began.elapsed() > PATIENCE => {
                return Err(Failure::Conflict(attempts));
            }
            Outcome::Conflict | Outcome::Undermined => step_aside(attempts).await,
        }
    }
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

/// One attempt's decision, and what it rests on.
enum Decided {
    Accept { boundary: Query, token: ReadToken, events: Vec<NewEvent> },
    Reject(Rejection),
}

async fn decide(host: &Host, handler: &Loaded, command: &Command) -> Result<Decided, Failure> {
    let (mut guest, declared) = host.guest(handler, command, weir_runtime::Deciding::boundary).await?;
    let settings = host.store.settings().await?;
    let mut boundary = match declared {
        Ok(items) => {
            translate::boundary(items, settings).map_err(|reason| guest.nonsense(Call::Boundary, reason))?
        }
        Err(rejection) => return Ok(Decided::Reject(rejection)),
    };
    let mut widened = Vec::new();
    for _ in 0..=WIDENINGS {
        let mut read = host.store.begin_read(&boundary, ReadOptions::default()).await?;
        let mut history = translate::history(read.next().await?.unwrap_or_default());
        while !read.is_done() {
            (guest, ()) = guest.call(move |guest| guest.apply(&history)).await?;
            history = translate::history(read.next().await?.unwrap_or_default());
        }
        let asked_for = widened.clone();
        let (decided, decision) = guest
            .call(move |guest| {
                guest.apply(&history)?;
                guest.decide(&asked_for)
            })
            .await?;
        let nonsense = |reason| decided.nonsense(Call::Decide, reason);
        match decision {
            Decision::Accept(events) => {
                let events = translate::events(events).map_err(nonsense)?;
                return Ok(Decided::Accept { boundary, token: read.token().clone(), events });
            }
            Decision::Reject(rejection) => return Ok(Decided::Reject(rejection)),
            Decision::Widen(items) => {
                widened.extend_from_slice(&items);
                boundary = translate::widened(&boundary, items, settings).map_err(nonsense)?;
            }
        }
        // The wider read holds the first one's events too: it needs a model that has seen none.
        drop(decided);
        (guest, ()) = host.guest(handler, command, |_| Ok(())).await?;
    }
    Err(guest.nonsense(Call::Decide, format!("it widened the boundary more than {WIDENINGS} times")).into())
}

/// Waits a random while that grows with the attempts, so that those who lost to each other don't meet again.
async fn step_aside(attempts: u32) {
    let most = 1u128 << attempts.min(6);
    let wait = Uuid::new_v4().as_u128() % (most * 1000);
    tokio::time::sleep(Duration::from_micros(u64::try_from(wait).unwrap_or_default())).await;
}
