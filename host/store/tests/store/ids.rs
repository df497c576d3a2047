//! Ids of the caller's: a request is carried out once, and its answer kept.

use futures_util::future::join_all;
use sqlx::Executor;
use weir_store::{Append, Condition, Idempotency, NewEvent, Outcome, Provenance, Query, ReadToken};

use crate::fixture::{Fixture, data, event, query};

every_strategy! {
    an_append_is_made_once_for_an_id_and_keeps_its_answer,
    of_many_appends_with_one_id_at_once_one_is_made,
    an_append_that_failed_its_condition_leaves_its_id_free,
}

fn idempotency(answer: &str) -> Idempotency {
    Idempotency { fingerprint: [7; 32], answer: answer.to_owned() }
}

async fn append(
    f: &Fixture,
    id: &str,
    events: &[NewEvent],
    condition: Option<(&Query, &ReadToken)>,
    answer: &str,
) -> Outcome {
    let provenance = Provenance { command_id: id.into(), ..Provenance::default() };
    let condition = condition.map(|(query, token)| Condition { query, token });
    let idempotency = idempotency(answer);
    let append = Append {
        events,
        condition,
        provenance: &provenance,
        idempotency: Some(&idempotency),
        builds_on: &[],
    };
    f.store.append(append).await.unwrap()
}

async fn an_append_is_made_once_for_an_id_and_keeps_its_answer(f: Fixture) {
    let b = query(&[(&["A"], &["x:1"])]);
    let token = f.read(&b).await.token;
    assert_eq!(
        append(&f, "id-1", &[event("A", &["x:1"], "1")], Some((&b, &token)), "\"first\"").await,
        Outcome::Appended
    );
    // The second time the condition would fail, too: it is the first answer that counts.
    for events in [[event("A", &["x:1"], "2")], [event("B", &["y:1"], "2")]] {
        assert_eq!(append(&f, "id-1", &events, Some((&b, &token)), "\"second\"").await, Outcome::Repeated);
        f.flush().await;
    }
    let kept = f.store.outcome("id-1").await.unwrap().unwrap();
    assert_eq!((kept.answer.as_str(), kept.fingerprint), ("\"first\"", vec![7; 32]));
    assert_eq!(f.store.outcome("id-2").await.unwrap(), None);
    assert_eq!(f.log().await.len(), 1);
}

async fn of_many_appends_with_one_id_at_once_one_is_made(f: Fixture) {
    // They share no key but the id's.
    let tags: Vec<String> = (0..12).map(|n| format!("x:{n}")).collect();
    let appends = tags.iter().map(|tag| {
        let f = &f;
        async move { append(f, "same", &[event("A", &[tag], "1")], None, "1").await }
    });
    let made = join_all(appends).await.into_iter().filter(|outcome| *outcome == Outcome::Appended).count();
    assert_eq!(made, 1);
    f.flush().await;
    assert_eq!(f.log().await.len(), 1);
}

async fn an_append_that_failed_its_condition_leaves_its_id_free(f: Fixture) {
    let b = query(&[(&["A"], &["x:1"])]);
    let stale = f.read(&b).await.token;
    f.append(&[event("A", &["x:1"], "1")], None).await;
    let mine = [event("A", &["x:1"], "2")];
    assert_eq!(append(&f, "id", &mine, Some((&b, &stale)), "1").await, Outcome::Conflict);
    assert_eq!(f.store.outcome("id").await.unwrap(), None);
    let fresh = f.read(&b).await.token;
    assert_eq!(append(&f, "id", &mine, Some((&b, &fresh)), "1").await, Outcome::Appended);
    assert_eq!(data(&f.read(&b).await), ["1", "2"]);
}

#[tokio::test]
async fn an_answer_without_an_append_is_kept_once_and_forgotten_when_it_is_old() {
    let f = Fixture::new(weir_store::Strategy::Staging).await;
    assert!(f.store.keep_outcome("id", &idempotency("\"no\"")).await.unwrap());
    assert!(!f.store.keep_outcome("id", &idempotency("\"yes\"")).await.unwrap());
    assert_eq!(f.store.outcome("id").await.unwrap().unwrap().answer, "\"no\"");
    assert_eq!(f.store.forget_outcomes().await.unwrap(), 0, "it is young");
    f.raw().await.execute("UPDATE outcomes SET recorded_at = now() - interval '8 days'").await.unwrap();
    assert_eq!(f.store.forget_outcomes().await.unwrap(), 1);
    assert_eq!(f.store.outcome("id").await.unwrap(), None);
}
