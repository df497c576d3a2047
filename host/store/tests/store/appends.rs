//! The append condition and its read token.

use sqlx::Connection;
use weir_store::{Error, Outcome, Strategy, bounds};

use crate::fixture::{Fixture, data, event, query, raw_append, raw_status};

every_strategy! {
    what_the_read_saw_staged_is_no_conflict_once_it_is_flushed,
    an_append_without_condition_is_seen_by_a_condition_that_is_checked_at_the_same_moment,
    two_first_writers_do_not_both_succeed,
    events_of_one_append_do_not_conflict_with_each_other,
    a_connection_that_would_check_on_an_old_snapshot_is_refused,
    too_much_at_once_is_refused_before_anything_is_written,
    an_event_that_matches_and_was_not_seen_is_a_conflict_staged_or_flushed,
}

async fn an_event_that_matches_and_was_not_seen_is_a_conflict_staged_or_flushed(f: Fixture) {
    for flushed in [false, true] {
        let f = Fixture::new(f.strategy().await).await;
        let b = query(&[(&["A"], &["x:1"]), (&["B"], &["y:1", "z:1"])]);
        let token = f.read(&b).await.token;
        // None of these matches: another tag, another type, one tag of two.
        f.append(&[event("A", &["x:2"], "1"), event("C", &["x:1"], "2"), event("B", &["y:1"], "3")], None)
            .await;
        if flushed {
            f.flush().await;
        }
        let mine = [event("A", &["x:9"], "4")];
        assert_eq!(f.append(&mine, Some((&b, &token))).await, Outcome::Appended);

        f.append(&[event("B", &["z:1", "w:1", "y:1"], "5")], None).await;
        if flushed {
            f.flush().await;
        }
        assert_eq!(f.append(&mine, Some((&b, &token))).await, Outcome::Conflict);
        assert_eq!(data(&f.read(&query(&[(&["A"], &["x:9"])])).await), ["4"], "a conflict writes nothing");
    }
}

async fn what_the_read_saw_staged_is_no_conflict_once_it_is_flushed(f: Fixture) {
    let b = query(&[(&["A"], &["x:1"])]);
    f.append(&[event("A", &["x:1"], "1")], None).await;
    let token = f.read(&b).await.token;
    f.flush().await;
    assert_eq!(f.append(&[event("A", &["x:1"], "2")], Some((&b, &token))).await, Outcome::Appended);
    f.flush().await;
    assert_eq!(f.append(&[event("A", &["x:1"], "3")], Some((&b, &token))).await, Outcome::Conflict);
}

/// What a token of one high-water mark would miss: the read sees id 2 of a boundary, id 1 commits later.
#[tokio::test]
async fn a_lower_id_of_the_same_boundary_that_commits_later_is_a_conflict() {
    let cases = [(Strategy::Staging, false), (Strategy::Staging, true), (Strategy::Boundary, false)];
    for (strategy, flushed) in cases {
        let f = Fixture::new(strategy).await;
        let b = query(&[(&["A"], &["x:1"]), (&["A"], &["y:1"])]);
        let (lower, higher) = (event("A", &["x:1"], "\"lower\""), event("A", &["y:1"], "\"higher\""));
        f.append(std::slice::from_ref(&lower), None).await; // so that raw_append finds the keys

        let mut connection = f.raw().await;
        let mut transaction = connection.begin().await.unwrap();
        raw_append(&mut transaction, &lower).await;
        f.append(&[higher], None).await;
        let read = f.read(&b).await;
        assert_eq!(data(&read), ["\"lower\"", "\"higher\""], "the second \"lower\" has not committed");
        transaction.commit().await.unwrap();
        if flushed {
            f.flush().await;
        }
        assert_eq!(f.append(&[event("A", &["x:1"], "2")], Some((&b, &read.token))).await, Outcome::Conflict);
    }
}

async fn an_append_without_condition_is_seen_by_a_condition_that_is_checked_at_the_same_moment(f: Fixture) {
    let b = query(&[(&["A"], &["x:1"])]);
    let theirs = event("A", &["x:1"], "1");
    f.append(std::slice::from_ref(&theirs), None).await;
    let token = f.read(&b).await.token;
    let outcome = f.outcome_beside(&theirs, event("A", &["y:1"], "2"), &b, &token).await;
    assert_eq!(outcome, Outcome::Conflict, "the check must look after the wait, not before");
}

async fn two_first_writers_do_not_both_succeed(f: Fixture) {
    let b = query(&[(&["A"], &["x:1"])]);
    let token = f.read(&b).await.token;
    let first = [event("A", &["x:1"], "1")];
    assert_eq!(f.append(&first, Some((&b, &token))).await, Outcome::Appended);
    assert_eq!(f.append(&first, Some((&b, &token))).await, Outcome::Conflict);
}

async fn events_of_one_append_do_not_conflict_with_each_other(f: Fixture) {
    let b = query(&[(&["A"], &["x:1"])]);
    let token = f.read(&b).await.token;
    let twins = [event("A", &["x:1"], "1"), event("A", &["x:1"], "2")];
    assert_eq!(f.append(&twins, Some((&b, &token))).await, Outcome::Appended);
    f.flush().await;
    let expected: Vec<_> = [(1, "1"), (2, "2")].map(|(p, d)| (p, "A".to_owned(), d.to_owned())).into();
    assert_eq!(f.log().await, expected);
}

async fn a_connection_that_would_check_on_an_old_snapshot_is_refused(f: Fixture) {
    let mut connection = f.raw().await;
    let mut transaction = connection.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    let strategy = f.strategy().await;
    let status = raw_status(&mut transaction, strategy).await;
    assert_eq!(status, "isolation");
    let flushed = sqlx::query("SELECT flush(1)").fetch_one(&mut *transaction).await;
    assert!(flushed.is_err());
    drop(transaction);
    f.flush().await;
    assert!(f.log().await.is_empty(), "nothing was written");
}

async fn too_much_at_once_is_refused_before_anything_is_written(f: Fixture) {
    let provenance = weir_store::Provenance::default();
    let refused = async |events: &[weir_store::NewEvent]| {
        let append = weir_store::Append {
            events,
            condition: None,
            provenance: &provenance,
            idempotency: None,
            builds_on: &[],
        };
        f.store.append(append).await.unwrap_err()
    };
    let many = vec![event("A", &["x:1"], "1"); bounds::EVENTS + 1];
    assert!(matches!(refused(&many).await, Error::TooManyEvents(n) if n == bounds::EVENTS + 1));

    let tags: Vec<Vec<String>> =
        (0..40).map(|event| (0..30).map(|tag| format!("t:{event}-{tag}")).collect()).collect();
    let wide: Vec<_> = tags
        .iter()
        .map(|tags| event("A", &tags.iter().map(String::as_str).collect::<Vec<_>>(), "1"))
        .collect();
    assert!(matches!(refused(&wide).await, Error::TooManyLocks(1200)));
    f.flush().await;
    assert!(f.log().await.is_empty(), "nothing was written");
}
