//! The locks of an append: who waits for whom, and in which order.

use std::time::Duration;

use futures_util::future::join_all;
use sqlx::{Connection, Row};
use weir_store::{Outcome, Strategy};

use crate::fixture::{Fixture, append, event, query, raw_append};

every_strategy! {
    a_condition_on_any_one_tag_waits_for_an_event_that_carries_it,
    appends_over_many_shared_keys_in_any_order_never_deadlock,
}

#[tokio::test]
async fn disjoint_boundaries_never_wait_for_each_other() {
    for strategy in [Strategy::Boundary, Strategy::Staging] {
        let f = Fixture::new(strategy).await;
        let held = event("A", &["x:1"], "1");
        f.append(std::slice::from_ref(&held), None).await;
        let mut connection = f.raw().await;
        let mut transaction = connection.begin().await.unwrap();
        raw_append(&mut transaction, &held).await;

        // While that transaction is open: another tag, another type, a condition on either, and plain reads.
        let b = query(&[(&["A"], &["x:2"]), (&["B"], &["x:1"])]);
        let others = async {
            let token = f.read(&b).await.token;
            let mine = [event("A", &["x:2"], "2"), event("B", &["x:1"], "3")];
            f.append(&mine, Some((&b, &token))).await
        };
        let outcome = tokio::time::timeout(Duration::from_secs(10), others).await;
        assert_eq!(outcome.expect("it waits for a boundary that is not its own"), Outcome::Appended);
        transaction.rollback().await.unwrap();
    }
}

/// An event is written under every one of its tags: whichever of them a condition looks under, they meet.
async fn a_condition_on_any_one_tag_waits_for_an_event_that_carries_it(f: Fixture) {
    let theirs = event("A", &["x:1", "y:1", "z:1"], "1");
    f.append(std::slice::from_ref(&theirs), None).await;
    for tag in ["x:1", "y:1", "z:1"] {
        let b = query(&[(&["A"], &[tag])]);
        let token = f.read(&b).await.token;
        let outcome = f.outcome_beside(&theirs, event("C", &["c:1"], "2"), &b, &token).await;
        assert_eq!(outcome, Outcome::Conflict, "{tag}");
    }
}

/// Two conditions on one boundary that write elsewhere hold its key together.
#[tokio::test]
async fn those_who_only_look_do_not_wait_for_each_other() {
    for strategy in [Strategy::Boundary, Strategy::Staging] {
        let f = Fixture::new(strategy).await;
        let mut connection = f.raw().await;
        f.append(&[event("A", &["x:1"], "1")], None).await;
        let key: i64 = sqlx::query("SELECT key FROM staged_keys UNION ALL SELECT key FROM event_keys")
            .fetch_one(&mut connection)
            .await
            .unwrap()
            .get(0);
        let mut transaction = connection.begin().await.unwrap();
        sqlx::query("SELECT pg_advisory_xact_lock_shared($1 # store_salt())")
            .bind(key)
            .execute(&mut *transaction)
            .await
            .unwrap();
        let b = query(&[(&["A"], &["x:1"])]);
        let token = f.read(&b).await.token;
        let mine = [event("B", &["y:1"], "2")];
        let outcome =
            tokio::time::timeout(Duration::from_secs(10), f.append(&mine, Some((&b, &token)))).await;
        assert_eq!(outcome.expect("it waits for another reader"), Outcome::Appended);
        transaction.rollback().await.unwrap();
    }
}

/// Were locks not taken in the order of what is really locked, these would deadlock within moments.
async fn appends_over_many_shared_keys_in_any_order_never_deadlock(f: Fixture) {
    let writers = (0..8usize).map(|writer| {
        let store = f.store.clone();
        tokio::spawn(async move {
            for round in 0..40usize {
                let tags: Vec<String> =
                    (0..5).map(|n| format!("t:{}", (writer * 3 + round * 7 + n * 11) % 9)).collect();
                let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
                let events = [event("A", &tags, "1"), event("B", &tags[..2], "2")];
                let b = query(&[(&["B", "A"], &[tags[4]])]);
                let token = store.read(&b).await.unwrap().token;
                append(&store, &events, Some((&b, &token))).await;
            }
        })
    });
    for writer in join_all(writers).await {
        writer.unwrap();
    }
}

#[tokio::test]
async fn stores_in_one_database_do_not_share_locks() {
    let (one, other) = (Fixture::new(Strategy::Staging).await, Fixture::new(Strategy::Global).await);
    let same = event("A", &["x:1"], "1");
    one.append(std::slice::from_ref(&same), None).await;
    let mut connection = one.raw().await;
    let mut transaction = connection.begin().await.unwrap();
    raw_append(&mut transaction, &same).await;
    let outcome = tokio::time::timeout(Duration::from_secs(10), other.append(&[same], None)).await;
    assert_eq!(outcome.expect("it waits for another store"), Outcome::Appended);
    transaction.rollback().await.unwrap();
}
