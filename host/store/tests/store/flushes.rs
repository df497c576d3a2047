//! The flusher: positions without a gap, one leader, harmless if there are two.

use futures_util::future::{join, join_all};
use sqlx::{Connection, Executor};
use tokio_util::sync::CancellationToken;
use weir_store::Strategy;

use crate::fixture::{Fixture, event, flush};

async fn stage(f: &Fixture, from: usize, to: usize) {
    for n in from..to {
        f.append(&[event("A", &["x:1"], &n.to_string())], None).await;
    }
}

fn expected(n: u64) -> Vec<(u64, String, String)> {
    (0..n).map(|n| (n + 1, "A".to_owned(), n.to_string())).collect()
}

#[tokio::test]
async fn a_flush_that_is_rolled_back_leaves_no_gap() {
    let f = Fixture::new(Strategy::Staging).await;
    stage(&f, 0, 3).await;
    f.flush().await;
    stage(&f, 3, 6).await;
    let mut connection = f.raw().await;
    let mut transaction = connection.begin().await.unwrap();
    assert_eq!(flush(&mut transaction).await, 3);
    transaction.rollback().await.unwrap();
    assert_eq!(f.store.staged_count().await.unwrap(), 3, "they are staged as before");
    f.flush().await;
    assert_eq!(f.log().await, expected(6));
}

#[tokio::test]
async fn two_flushers_at_once_are_only_one_too_many() {
    let f = Fixture::new(Strategy::Staging).await;
    let appends = stage(&f, 0, 200);
    let done = CancellationToken::new();
    let flushers = join_all((0..3).map(|_| async {
        let mut connection = f.raw().await;
        while !done.is_cancelled() {
            connection.execute("SELECT flush(7)").await.unwrap();
        }
    }));
    let appends = async {
        appends.await;
        done.cancel();
    };
    join(appends, flushers).await;
    f.flush().await;
    assert_eq!(f.log().await, expected(200));
    assert_eq!(f.store.staged_count().await.unwrap(), 0);
}

#[tokio::test]
async fn one_flusher_leads_and_another_takes_over_when_the_lease_has_run_out() {
    let f = Fixture::new(Strategy::Staging).await;
    let (mut first, mut second) = (f.flusher(), f.flusher());
    assert!(first.run_once().await.unwrap());
    assert!(!second.run_once().await.unwrap(), "the first one leads");
    stage(&f, 0, 2).await;
    assert!(first.run_once().await.unwrap());
    assert_eq!(f.log().await, expected(2));

    // The first one says nothing for the length of a lease.
    f.raw().await.execute("UPDATE flusher_lease SET expires_at = now() - interval '1 second'").await.unwrap();
    stage(&f, 2, 4).await;
    assert!(second.run_once().await.unwrap());
    assert_eq!(f.log().await, expected(4));
}

#[tokio::test]
async fn a_running_flusher_wakes_for_an_append_and_hands_over_when_it_stops() {
    let f = Fixture::new(Strategy::Staging).await;
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(f.flusher().run(shutdown.clone()));
    let watch = weir_store::HeadWatch::new(f.store.clone());
    let mut head = watch.head();
    let watching = tokio::spawn(watch.run(shutdown.clone()));
    stage(&f, 0, 5).await;
    head.wait_for(|head| *head == 5).await.unwrap();
    stage(&f, 5, 8).await;
    shutdown.cancel();
    running.await.unwrap();
    watching.await.unwrap();
    assert_eq!(f.log().await, expected(8), "what was staged last is flushed before it stops");
    assert!(f.flusher().run_once().await.unwrap(), "the lease was given up, not left to run out");
}

#[tokio::test]
async fn keys_of_staged_rows_go_with_them() {
    let f = Fixture::new(Strategy::Staging).await;
    f.append(&[event("A", &["x:1", "y:1"], "1"), event("B", &[], "2")], None).await;
    f.flush().await;
    let mut connection = f.raw().await;
    let left: i64 =
        sqlx::query_scalar("SELECT count(*) FROM staged_keys").fetch_one(&mut connection).await.unwrap();
    let keys: i64 =
        sqlx::query_scalar("SELECT count(*) FROM event_keys").fetch_one(&mut connection).await.unwrap();
    assert_eq!((left, keys), (0, 2), "an event without tags has a place in the log and no key");
}

#[tokio::test]
async fn a_flush_of_large_events_is_bounded_in_bytes_and_goes_on_until_nothing_is_left() {
    let f = Fixture::new(Strategy::Staging).await;
    let large = format!("\"{}\"", "x".repeat(1_000_000));
    for _ in 0..3 {
        f.append(&vec![event("A", &["x:1"], &large); 8], None).await;
    }
    let moved = flush(&mut f.raw().await).await;
    assert!((1..=9).contains(&moved), "{moved} events of a megabyte in one flush");
    assert!(f.flusher().run_once().await.unwrap());
    assert_eq!(f.log().await.len(), 24);
}

#[tokio::test]
async fn appends_wait_for_a_flusher_that_is_behind_and_are_told_so_if_it_stays_behind() {
    let f = Fixture::new(Strategy::Staging).await;
    let mut config = f.config.clone();
    config.deadline = std::time::Duration::from_millis(400);
    let store = weir_store::Store::new(&config).unwrap();
    for _ in 0..41 {
        f.append(&vec![event("A", &["x:1"], "1"); 500], None).await;
    }
    let mine = [event("B", &[], "2")];
    let provenance = weir_store::Provenance::default();
    let append = weir_store::Append {
        events: &mine,
        condition: None,
        provenance: &provenance,
        idempotency: None,
        builds_on: &[],
    };
    // Somebody else leads, and does nothing; this one looks.
    let lease = "INSERT INTO flusher_lease (holder, expires_at) VALUES (gen_random_uuid(), now() + interval '1 hour')";
    f.raw().await.execute(lease).await.unwrap();
    assert!(!weir_store::Flusher::new(store.clone()).run_once().await.unwrap());
    let error = store.append(append).await.unwrap_err();
    assert!(matches!(&error, weir_store::Error::Busy(why) if why.contains("flusher is behind")), "{error}");
    f.flush().await;
    let look = async { weir_store::Flusher::new(store.clone()).run_once().await.unwrap() };
    let (outcome, _) = join(store.append(append), look).await;
    assert_eq!(outcome.unwrap(), weir_store::Outcome::Appended);
}

#[tokio::test]
async fn a_leader_that_hangs_is_replaced_within_three_seconds() {
    let f = Fixture::new(Strategy::Staging).await;
    let mut hanging = f.flusher();
    assert!(hanging.run_once().await.unwrap());
    let shutdown = CancellationToken::new();
    let other = tokio::spawn(f.flusher().run(shutdown.clone()));
    stage(&f, 0, 1).await;
    let flushed = async {
        while f.store.head().await.unwrap() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(3), flushed).await.expect("nobody has taken over");
    shutdown.cancel();
    other.await.unwrap();
}

#[tokio::test]
async fn a_flusher_at_work_raises_the_floor() {
    let f = Fixture::new(Strategy::Staging).await;
    let mut flusher = f.flusher();
    let floor = async || -> i64 {
        sqlx::query_scalar("SELECT staging_floor()").fetch_one(&mut f.raw().await).await.unwrap()
    };
    while floor().await < 20_000 {
        f.append(&vec![event("A", &["x:1"], "1"); 500], None).await;
        assert!(flusher.run_once().await.unwrap());
        assert!(f.store.head().await.unwrap() < 200_000, "it should have been raised by now");
    }
    f.append(&[event("A", &["x:1"], "2")], None).await;
    assert!(flusher.run_once().await.unwrap());
    let log = f.store.head().await.unwrap();
    assert_eq!(f.read(&crate::fixture::query(&[(&["A"], &["x:1"])])).await.events.len() as u64, log);
}
