//! How a store says that it is doing, and its settings.

use std::time::Duration;

use sqlx::{Connection, Executor};
use weir_store::{
    Depth, Error, Idempotency, InvalidOutcomesKept, OutcomesKept, SettingsChange, StoreStatus, Strategy,
};

use crate::fixture::{Fixture, event, raw_append};

every_strategy! {
    a_transaction_that_has_written_and_idles_is_named_as_what_holds_the_log_back,
    a_status_tells_the_head_the_epochs_and_the_sizes,
    outcomes_are_forgotten_after_the_time_that_the_store_is_set_to,
    a_status_that_can_not_be_had_in_time_is_given_up,
}

async fn status(f: &Fixture) -> StoreStatus {
    f.store.status(Duration::from_secs(20)).await.unwrap()
}

fn exactly(rows: u64) -> Depth {
    Depth { rows, exact: true }
}

async fn a_transaction_that_has_written_and_idles_is_named_as_what_holds_the_log_back(f: Fixture) {
    let theirs = event("A", &["x:1"], "1");
    f.append(std::slice::from_ref(&theirs), None).await;
    let mut connection = f.raw().await;
    let name = format!("idler {}", f.config.schema.as_str());
    sqlx::query("SELECT set_config('application_name', $1, false)")
        .bind(&name)
        .execute(&mut connection)
        .await
        .unwrap();
    let mut transaction = connection.begin().await.unwrap();
    raw_append(&mut transaction, &theirs).await;
    let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut *transaction).await.unwrap();

    // Other tests have transactions too; theirs end.
    let (held_back, again) = loop {
        let seen = status(&f).await.held_back.expect("one is running");
        if seen.pid == Some(pid) {
            break (seen, status(&f).await.held_back.unwrap());
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((held_back.application, held_back.state.as_str()), (name, "idle in transaction"));
    assert_eq!(again.pid, Some(pid));
    assert!(again.running > held_back.running && held_back.running > Duration::ZERO);

    transaction.commit().await.unwrap();
    let after = status(&f).await;
    assert!(after.sees_all_transactions, "the tests' role may see everything");
    assert!(after.held_back.is_none_or(|other| other.pid != Some(pid)));
}

async fn a_status_tells_the_head_the_epochs_and_the_sizes(f: Fixture) {
    let before = status(&f).await;
    assert_eq!((before.head, before.staged, before.flush_lag), (0, exactly(0), Duration::ZERO));
    assert_eq!(before.lease, None);
    f.append(&[event("A", &["x:1"], "1"), event("A", &["x:2"], "2")], None).await;
    f.flush().await;
    let strategy = f.strategy().await;
    let other = if strategy == Strategy::Global { Strategy::Hybrid } else { Strategy::Global };
    f.store.set_strategy(other).await.unwrap();

    let status = status(&f).await;
    assert_eq!(status.settings, f.store.settings().await.unwrap());
    assert_eq!((status.head, status.staged), (2, exactly(0)));
    let epochs: Vec<_> = status.epochs.iter().map(|e| (e.number, e.after_position, e.strategy)).collect();
    let from_the_default = strategy != Strategy::Staging;
    let number = if from_the_default { 3 } else { 2 };
    assert_eq!(epochs[epochs.len() - 2..], [(number - 1, 0, strategy), (number, 2, other)]);
    assert!(status.epochs.is_sorted_by_key(|epoch| epoch.began_at));
    let bytes = status.bytes;
    assert!(bytes.events > 0 && bytes.event_keys > 0 && bytes.staging > 0 && bytes.staged_keys > 0);
}

async fn outcomes_are_forgotten_after_the_time_that_the_store_is_set_to(f: Fixture) {
    assert_eq!(status(&f).await.settings.outcomes_kept.seconds(), 7 * 24 * 60 * 60);
    let outcome = Idempotency { fingerprint: [7; 32], answer: "1".into() };
    for id in ["old", "young"] {
        assert!(f.store.keep_outcome(id, &outcome).await.unwrap());
    }
    let an_hour_ago = "UPDATE outcomes SET recorded_at = now() - interval '1 hour' WHERE id = 'old'";
    f.raw().await.execute(an_hour_ago).await.unwrap();
    let keep_for = |seconds| {
        let outcomes_kept = Some(OutcomesKept::from_seconds(seconds).unwrap());
        f.store.change_settings(SettingsChange { outcomes_kept, ..SettingsChange::default() })
    };
    keep_for(3700).await.unwrap();
    assert_eq!(f.store.forget_outcomes().await.unwrap(), 0);
    assert_eq!(status(&f).await.outcomes, exactly(2));
    let before = f.strategy().await;
    assert!(!keep_for(3500).await.unwrap(), "the strategy is what it was");
    assert_eq!(f.strategy().await, before);
    assert_eq!(f.store.settings().await.unwrap().outcomes_kept.seconds(), 3500);
    assert_eq!(f.store.forget_outcomes().await.unwrap(), 1);
    assert_eq!(f.store.outcome("old").await.unwrap(), None);
    assert_eq!(status(&f).await.outcomes, exactly(1));
}

async fn a_status_that_can_not_be_had_in_time_is_given_up(f: Fixture) {
    let mut connection = f.raw().await;
    let mut transaction = connection.begin().await.unwrap();
    transaction.execute("LOCK TABLE store IN ACCESS EXCLUSIVE MODE").await.unwrap();
    // More often than there are connections for it: none may be lost.
    for _ in 0..10 {
        let error = f.store.status(Duration::from_millis(20)).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
    }
    transaction.rollback().await.unwrap();
    status(&f).await;
}

#[test]
fn outcomes_are_kept_for_a_minute_at_least_and_ten_years_at_most() {
    for seconds in [60, 315_360_000] {
        assert_eq!(OutcomesKept::from_seconds(seconds).unwrap().seconds(), seconds);
    }
    for seconds in [0, 59, 315_360_001, u64::MAX] {
        assert_eq!(OutcomesKept::from_seconds(seconds), Err(InvalidOutcomesKept(seconds)));
    }
}

#[tokio::test]
async fn what_is_staged_is_counted_and_its_age_is_the_oldest_ones() {
    let f = Fixture::new(Strategy::Staging).await;
    assert_eq!(f.store.staged_depth().await.unwrap(), 0);
    for n in 1..=5 {
        f.append(&[event("A", &["x:1"], "1")], None).await;
        assert_eq!(status(&f).await.staged, exactly(n));
        assert_eq!(f.store.staged_depth().await.unwrap(), n);
    }
    let an_hour_ago = "UPDATE staging SET recorded_at = now() - interval '1 hour' WHERE id = 1";
    f.raw().await.execute(an_hour_ago).await.unwrap();
    let lag = status(&f).await.flush_lag;
    assert!((3600..3700).contains(&lag.as_secs()), "{lag:?}");

    f.flush().await;
    let flushed = status(&f).await;
    assert_eq!((flushed.staged, flushed.flush_lag, flushed.head), (exactly(0), Duration::ZERO, 5));
    assert_eq!(f.store.staged_depth().await.unwrap(), 0);
    // Behind what has been numbered it is as exact.
    f.append(&[event("A", &["x:1"], "1"), event("A", &["x:1"], "1")], None).await;
    assert_eq!((status(&f).await.staged, f.store.staged_depth().await.unwrap()), (exactly(2), 2));
}

#[tokio::test]
async fn ids_that_were_lost_do_not_make_staging_look_deep() {
    let f = Fixture::new(Strategy::Staging).await;
    let e = event("A", &["x:1"], "1");
    f.append(std::slice::from_ref(&e), None).await;
    f.flush().await;
    let mut connection = f.raw().await;
    let mut transaction = connection.begin().await.unwrap();
    transaction.execute("SELECT nextval('staging_id_seq') FROM generate_series(1, 50000)").await.unwrap();
    raw_append(&mut transaction, &e).await;
    transaction.rollback().await.unwrap();
    assert_eq!((status(&f).await.staged, f.store.staged_depth().await.unwrap()), (exactly(0), 0));
    f.append(std::slice::from_ref(&e), None).await;
    assert_eq!((status(&f).await.staged, f.store.staged_depth().await.unwrap()), (exactly(1), 1));
}

#[tokio::test]
async fn an_event_whose_append_committed_late_is_staged_although_later_ones_are_numbered() {
    let f = Fixture::new(Strategy::Staging).await;
    let (late, early) = (event("A", &["x:1"], "1"), event("A", &["x:2"], "2"));
    f.append(&[late.clone(), early.clone()], None).await;
    f.flush().await;
    let mut connection = f.raw().await;
    let mut transaction = connection.begin().await.unwrap();
    raw_append(&mut transaction, &late).await;
    f.append(&[early], None).await;
    let mut flusher = f.flusher();
    assert!(flusher.run_once().await.unwrap());
    assert_eq!(status(&f).await.staged, exactly(0));
    transaction.commit().await.unwrap();
    let status = status(&f).await;
    assert_eq!((status.staged, f.store.staged_depth().await.unwrap()), (exactly(1), 1));
    assert!(status.flush_lag > Duration::ZERO);
}

#[tokio::test]
async fn a_deep_staging_is_estimated_from_above() {
    let f = Fixture::new(Strategy::Staging).await;
    let e = event("A", &["x:1"], "1");
    f.append(std::slice::from_ref(&e), None).await;
    f.flush().await;
    let fill = "INSERT INTO staging (type, tags, keys, command_id, data, bytes)
                SELECT 'A', '{x:1}', '{1}', 'c', '1', 1 FROM generate_series(1, 10000)";
    f.raw().await.execute(fill).await.unwrap();
    assert_eq!(status(&f).await.staged, exactly(10_000));
    f.append(std::slice::from_ref(&e), None).await;
    f.append(std::slice::from_ref(&e), None).await;
    let deep = status(&f).await.staged;
    assert!(!deep.exact && (10_002..10_100).contains(&deep.rows), "{deep:?}");
    assert_eq!(f.store.staged_depth().await.unwrap(), deep.rows);
}

#[tokio::test]
async fn the_lease_names_the_flusher_that_leads_and_it_counts_what_it_does() {
    let f = Fixture::new(Strategy::Staging).await;
    let (mut first, mut second) = (f.flusher(), f.flusher());
    for _ in 0..3 {
        f.append(&[event("A", &["x:1"], "1")], None).await;
        assert!(first.run_once().await.unwrap());
        assert!(!second.run_once().await.unwrap());
    }
    let (leader, follower) = (first.stats(), second.stats());
    assert_eq!((leader.leads(), leader.flushes(), leader.events()), (true, 3, 3));
    assert_eq!((follower.leads(), follower.flushes(), follower.events()), (false, 0, 0));
    let lease = status(&f).await.lease.unwrap();
    assert_eq!((lease.holder, lease.expired), (first.id(), false));

    f.raw().await.execute("UPDATE flusher_lease SET expires_at = now() - interval '1 second'").await.unwrap();
    assert!(status(&f).await.lease.unwrap().expired);
    assert!(second.run_once().await.unwrap());
    assert_eq!(status(&f).await.lease.unwrap().holder, second.id());
}

#[tokio::test]
async fn settings_are_changed_all_or_none() {
    let f = Fixture::new(Strategy::Staging).await;
    let before = f.store.settings().await.unwrap();
    let change = SettingsChange {
        strategy: Some(Strategy::Hybrid),
        unscoped_conditions: Some(true),
        outcomes_kept: Some(OutcomesKept::from_seconds(3600).unwrap()),
    };
    let mut connection = f.raw().await;
    connection.execute("ALTER TABLE store ADD CHECK (outcomes_kept > interval '2 hours')").await.unwrap();
    f.store.change_settings(change).await.unwrap_err();
    assert_eq!(f.store.refresh_settings().await.unwrap(), before);

    connection.execute("ALTER TABLE store DROP CONSTRAINT store_outcomes_kept_check").await.unwrap();
    assert!(f.store.change_settings(change).await.unwrap());
    let after = f.store.settings().await.unwrap();
    assert_eq!(
        (Some(after.strategy), Some(after.unscoped_conditions), Some(after.outcomes_kept)),
        (change.strategy, change.unscoped_conditions, change.outcomes_kept)
    );
}
