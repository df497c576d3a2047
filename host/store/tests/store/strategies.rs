//! A store's strategy, and changing it while the store is in use.

use futures_util::future::join_all;
use sqlx::{Connection, Executor};
use tokio_util::sync::CancellationToken;
use weir_store::{Cursor, Error, Filter, Outcome, Strategy};

use crate::fixture::{Fixture, data, event, query, raw_append, raw_status};

every_strategy! {
    a_follower_sees_every_event_once_and_in_order_while_others_append,
    a_change_of_strategy_is_seen_by_an_append_that_waited_for_it,
    a_token_stays_good_across_a_change_of_strategy,
}

/// Runs beside four writers, one of which holds its transactions open for a while, so that what it writes becomes
/// visible late.
async fn a_follower_sees_every_event_once_and_in_order_while_others_append(f: Fixture) {
    const EACH: usize = 60;
    let done = CancellationToken::new();
    let flusher = tokio::spawn(f.flusher().run(done.clone()));
    let late = event("Late", &["late:1"], "0");
    f.append(std::slice::from_ref(&late), None).await;
    let writers = (0..3).map(|writer| {
        let store = f.store.clone();
        tokio::spawn(async move {
            for n in 0..EACH {
                let tag = format!("writer:{writer}");
                crate::fixture::append(&store, &[event("Own", &[&tag], &n.to_string())], None).await;
            }
        })
    });
    let slow = async {
        let mut connection = f.raw().await;
        for _ in 0..EACH / 10 {
            let mut transaction = connection.begin().await.unwrap();
            raw_append(&mut transaction, &late).await;
            transaction.execute("SELECT pg_sleep(0.02)").await.unwrap();
            transaction.commit().await.unwrap();
        }
    };
    let expected = 3 * EACH + EACH / 10 + 1;
    let follow = async {
        let (mut place, mut seen) = (Cursor::START, Vec::new());
        while seen.len() < expected {
            let page = f.store.page(place, &Filter::default(), 7).await.unwrap();
            seen.extend(page.events);
            place = page.next;
        }
        seen
    };
    let writing = async {
        let (writers, ()) = futures_util::future::join(join_all(writers), slow).await;
        writers.into_iter().for_each(|writer| writer.unwrap());
    };
    let both = futures_util::future::join(follow, writing);
    let (seen, ()) =
        tokio::time::timeout(std::time::Duration::from_secs(60), both).await.expect("something was skipped");
    done.cancel();
    flusher.await.unwrap();

    let mut positions: Vec<u64> = seen.iter().map(|event| event.position).collect();
    if f.strategy().await.gap_free() {
        assert!(positions.iter().copied().eq(1..=expected as u64), "{positions:?}");
    }
    positions.sort_unstable();
    positions.dedup();
    assert_eq!(positions.len(), expected, "something came twice");
    for writer in 0..3 {
        let tag = format!("writer:{writer}");
        let own = seen.iter().filter(|event| event.tags.iter().any(|t| t.as_str() == tag));
        let order: Vec<String> = own.map(|event| event.data.as_str().to_owned()).collect();
        assert_eq!(order, (0..EACH).map(|n| n.to_string()).collect::<Vec<_>>(), "{tag}");
    }
}

async fn a_change_of_strategy_is_seen_by_an_append_that_waited_for_it(f: Fixture) {
    let before = f.strategy().await;
    let after = if before == Strategy::Hybrid { Strategy::Boundary } else { Strategy::Hybrid };
    let e = event("A", &["x:1"], "1");
    f.append(std::slice::from_ref(&e), None).await;

    let (mut connection, mut observer) = (f.raw().await, f.raw().await);
    let mut transaction = connection.begin().await.unwrap();
    sqlx::query("SELECT set_strategy($1)").bind(after.as_str()).execute(&mut *transaction).await.unwrap();
    let store = f.store.clone();
    let waiting =
        tokio::spawn(async move { crate::fixture::append(&store, &[event("A", &["x:1"], "2")], None).await });
    f.until_someone_waits_for_the_store(&mut observer).await;
    transaction.commit().await.unwrap();
    assert_eq!(waiting.await.unwrap(), Outcome::Appended, "a host finds out, and does it the new way");
    assert_eq!(f.strategy().await, after);
    assert_eq!(data(&f.read(&query(&[(&["A"], &["x:1"])])).await), ["1", "2"]);

    // Whoever insists on the old one is told.
    let status = raw_status(&mut observer, before).await;
    assert_eq!(status, "strategy");
}

async fn a_token_stays_good_across_a_change_of_strategy(f: Fixture) {
    for after in Strategy::ALL {
        let before = f.strategy().await;
        let (tag, other) = (format!("x:{after}"), format!("y:{after}"));
        let b = query(&[(&["A"], &[&tag]), (&["B"], &[&other])]);
        f.append(&[event("A", &[&tag], "1"), event("B", &[&other], "2")], None).await;
        let token = f.read(&b).await.token;
        f.store.set_strategy(after).await.unwrap();
        let case = format!("{before} to {after}");
        let mine = [event("A", &[&tag], "3")];
        assert_eq!(f.append(&mine, Some((&b, &token))).await, Outcome::Appended, "{case}: nothing is new");
        assert_eq!(f.append(&mine, Some((&b, &token))).await, Outcome::Conflict, "{case}: that was new");
    }
}

#[tokio::test]
async fn a_change_of_strategy_loses_and_reorders_nothing_while_appends_run() {
    let f = Fixture::new(Strategy::Staging).await;
    let done = CancellationToken::new();
    let flusher = tokio::spawn(f.flusher().run(done.clone()));
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (store, done) = (f.store.clone(), done.clone());
            tokio::spawn(async move {
                let tag = format!("writer:{writer}");
                let b = query(&[(&["A"], &[&tag])]);
                let mut count = 0;
                while !done.is_cancelled() {
                    let read = store.read(&b).await.unwrap();
                    assert_eq!(read.events.len(), count);
                    let mine = [event("A", &[&tag], &count.to_string())];
                    let outcome = crate::fixture::append(&store, &mine, Some((&b, &read.token))).await;
                    assert_eq!(outcome, Outcome::Appended, "nobody else writes here");
                    count += 1;
                }
                count
            })
        })
        .collect();
    for round in 0..12 {
        let strategy = Strategy::ALL[(round * 3) % 4];
        f.store.set_strategy(strategy).await.unwrap();
        let head = f.store.head().await.unwrap();
        while f.store.head().await.unwrap() < head + 10 {
            assert!(!writers.iter().any(tokio::task::JoinHandle::is_finished), "a writer has given up");
            tokio::task::yield_now().await;
        }
    }
    done.cancel();
    let mut counts = Vec::new();
    for writer in writers {
        counts.push(writer.await.unwrap());
    }
    flusher.await.unwrap();
    f.flush().await;
    let seen = f.follow(Cursor::START, &Filter::default(), 50).await;
    assert_eq!(seen.len(), counts.iter().sum::<usize>());
    for (writer, count) in counts.iter().enumerate() {
        let tag = format!("writer:{writer}");
        let own = seen.iter().filter(|event| event.tags[0].as_str() == tag);
        assert!(own.map(|e| e.data.as_str().to_owned()).eq((0..*count).map(|n| n.to_string())), "{tag}");
    }
}

#[tokio::test]
async fn a_position_is_no_cursor_where_positions_become_visible_out_of_order() {
    let f = Fixture::new(Strategy::Boundary).await;
    f.append(&[event("A", &[], "1"), event("A", &[], "2")], None).await;
    f.flush().await;
    let error = f.store.page(Cursor::at(1), &Filter::default(), 10).await.unwrap_err();
    assert!(matches!(error, Error::PositionIsNoCursor(1)), "{error}");
    let events = f.follow(Cursor::START, &Filter::default(), 10).await;
    let rest = f.follow(events[0].cursor.to_string().parse().unwrap(), &Filter::default(), 10).await;
    assert_eq!(rest.len(), 1);
}

#[tokio::test]
async fn an_event_that_commits_late_is_waited_for_and_not_skipped() {
    let f = Fixture::new(Strategy::Boundary).await;
    let (early, late) = (event("A", &["x:1"], "\"early\""), event("B", &["y:1"], "\"late\""));
    f.append(&[early.clone(), late.clone()], None).await;
    f.flush().await;
    let after = f.follow(Cursor::START, &Filter::default(), 10).await[1].cursor;

    let mut connection = f.raw().await;
    let mut transaction = connection.begin().await.unwrap();
    raw_append(&mut transaction, &late).await;
    f.append(&[early], None).await;
    assert!(
        f.follow(after, &Filter::default(), 10).await.is_empty(),
        "the older transaction is still running"
    );
    transaction.commit().await.unwrap();
    f.flush().await;
    let events = f.follow(after, &Filter::default(), 10).await;
    assert_eq!(events.iter().map(|e| e.data.as_str()).collect::<Vec<_>>(), ["\"late\"", "\"early\""]);
}

/// Whoever asks for a page has found out about the epochs a moment before, or, if its host stood still, seconds before.
#[tokio::test]
async fn a_page_of_an_epoch_that_has_ended_meanwhile_shows_nothing_of_a_later_one() {
    let f = Fixture::new(Strategy::Boundary).await;
    let ours = "SELECT max(number) FROM epochs";
    let epoch: i32 = sqlx::query_scalar(ours).fetch_one(&mut f.raw().await).await.unwrap();
    f.append(&[event("A", &["x:1"], "1")], None).await;
    for strategy in [Strategy::Hybrid, Strategy::Boundary] {
        f.store.set_strategy(strategy).await.unwrap();
        f.append(&[event("A", &["x:1"], strategy.as_str().len().to_string().as_str())], None).await;
    }
    f.flush().await;
    let page = "SELECT position FROM log_page_by_xid(0, 0, $1, '{}', '{}', 100) WHERE position IS NOT NULL";
    let positions: Vec<i64> =
        sqlx::query_scalar(page).bind(epoch).fetch_all(&mut f.raw().await).await.unwrap();
    assert_eq!(positions, [1]);
    assert_eq!(f.follow(Cursor::START, &Filter::default(), 10).await.len(), 3);
}
