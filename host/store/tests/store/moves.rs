//! A store whose dump was restored into another cluster. (The server's tests do it with two real ones.)

use sqlx::Executor;
use weir_store::{Cursor, Filter, Outcome, Store};

use crate::fixture::{Fixture, data, event, query};

every_strategy! {
    a_store_that_comes_to_another_cluster_goes_on_and_is_followed_in_order,
}

async fn a_store_that_comes_to_another_cluster_goes_on_and_is_followed_in_order(f: Fixture) {
    let q = query(&[(&["A"], &["x:1"])]);
    for n in ["1", "2", "3"] {
        f.append(&[event("A", &["x:1"], n)], None).await;
    }
    f.flush().await;
    let token = f.read(&q).await.token;
    // Another cluster, in which the transactions of the events lie in the future.
    f.raw()
        .await
        .execute(
            "UPDATE epochs SET system_identifier = 1;
             UPDATE events SET xid = ((xid::text)::bigint + 1000000000000)::text::xid8 WHERE xid IS NOT NULL",
        )
        .await
        .unwrap();
    let moved = Store::new(&f.config).unwrap();
    let mine = [event("A", &["x:1"], "4")];
    assert_eq!(crate::fixture::append(&moved, &mine, Some((&q, &token))).await, Outcome::Appended);
    assert_eq!(crate::fixture::append(&moved, &mine, Some((&q, &token))).await, Outcome::Conflict);
    moved.refresh_settings().await.unwrap();
    let epochs: i64 =
        sqlx::query_scalar("SELECT count(*) FROM epochs").fetch_one(&mut f.raw().await).await.unwrap();
    assert!(epochs >= 2, "the move began one");
    assert_eq!(data(&f.read(&q).await), ["1", "2", "3", "4"]);
    f.raw().await.execute("SELECT flush(10)").await.unwrap();
    let expected = ["1", "2", "3", "4"];
    let first: Vec<_> = f.store.page(Cursor::START, &Filter::default(), 1).await.unwrap().events;
    let middle = first[0].cursor;
    // A cursor from the other cluster is a place in this one.
    for (from, expected) in [(Cursor::START, &expected[..]), (middle, &expected[1..])] {
        // Under `boundary` whatever else runs in the cluster may hold the last one back for a moment.
        let seen = loop {
            let events = f.follow(from, &Filter::default(), 2).await;
            if events.last().is_some_and(|last| last.data.as_str() == "4") {
                break events;
            }
            tokio::task::yield_now().await;
        };
        assert!(seen.iter().map(|event| event.data.as_str()).eq(expected.iter().copied()), "{seen:?}");
    }
}
