//! Outcomes kept for callers who gave their request an id: the same id again gets the first answer.

use crate::{Error, Store};

/// A caller's id for a request, with what it must find again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// SHA-256 of what was asked for, or any other 32 bytes that differ where requests do.
    pub fingerprint: [u8; 32],
    /// The answer, JSON: what the caller is told now, and whoever asks again later.
    pub answer: String,
}

/// What became of a request with a certain id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptOutcome {
    /// As it was given.
    pub fingerprint: Vec<u8>,
    /// As it was given.
    pub answer: String,
}

impl Store {
    /// What became of the request with this id, if it has come to an end and is not too long ago.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn outcome(&self, id: &str) -> Result<Option<KeptOutcome>, Error> {
        let read = sqlx::query_as!(
            KeptOutcome,
            r#"SELECT fingerprint, answer::text AS "answer!" FROM outcomes WHERE id = $1"#,
            id
        )
        .fetch_optional(self.pool());
        self.bounded(read).await
    }

    /// Keeps the answer to a request that appends nothing; false if an answer is kept under that id already.
    ///
    /// # Errors
    /// Whatever the database says. It does no harm to try again.
    pub async fn keep_outcome(&self, id: &str, outcome: &Idempotency) -> Result<bool, Error> {
        let keep = sqlx::query_scalar!(
            r#"SELECT keep_outcome($1, $2, $3) AS "kept!""#,
            id,
            &outcome.fingerprint[..],
            outcome.answer
        )
        .fetch_one(self.pool());
        self.bounded(keep).await
    }

    /// Forgets outcomes that are older than the store keeps them, and returns how many.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn forget_outcomes(&self) -> Result<i32, Error> {
        let forget =
            sqlx::query_scalar!(r#"SELECT forget_outcomes(1000) AS "forgotten!""#).fetch_one(self.control());
        self.bounded(forget).await
    }
}
