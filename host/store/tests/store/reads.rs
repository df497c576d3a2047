//! The decision read: all that matches, flushed or not, in one snapshot.

use futures_util::future::join;
use sqlx::Connection;
use weir_store::{Outcome, Strategy};

use crate::fixture::{Fixture, data, event, flush, query};

every_strategy! {
    a_read_shows_flushed_and_staged_events_once_and_in_order,
    an_item_matches_any_of_its_types_and_all_of_its_tags,
    data_and_names_come_back_as_they_went_in,
    reads_beside_a_busy_flusher_see_all_that_was_acknowledged_and_nothing_twice,
}

async fn a_read_shows_flushed_and_staged_events_once_and_in_order(f: Fixture) {
    f.append(&[event("A", &["x:1"], "1"), event("B", &["x:1", "y:1"], "2")], None).await;
    f.flush().await;
    f.append(&[event("A", &["x:1", "y:1"], "3"), event("A", &["x:2"], "4")], None).await;

    let read = f.read(&query(&[(&["A", "B"], &["x:1"]), (&["A"], &["x:1", "y:1"])])).await;
    assert_eq!(data(&read), ["1", "2", "3"], "an event that matches two items comes once");
    let third = if f.strategy().await == Strategy::Staging { None } else { Some(3) };
    assert_eq!(read.events.iter().map(|e| e.position).collect::<Vec<_>>(), [Some(1), Some(2), third]);
}

async fn an_item_matches_any_of_its_types_and_all_of_its_tags(f: Fixture) {
    f.append(
        &[
            event("A", &["x:1"], "1"),
            event("A", &["x:1", "y:1"], "2"),
            event("B", &["y:1", "x:1", "z:1"], "3"),
            event("C", &["x:1", "y:1"], "4"),
            event("A", &["y:1"], "5"),
        ],
        None,
    )
    .await;
    let both = query(&[(&["A", "B"], &["x:1", "y:1"])]);
    assert_eq!(data(&f.read(&both).await), ["2", "3"]);
    f.flush().await;
    assert_eq!(data(&f.read(&both).await), ["2", "3"]);
    assert!(f.read(&query(&[])).await.events.is_empty(), "the empty boundary is matched by nothing");
}

async fn data_and_names_come_back_as_they_went_in(f: Fixture) {
    let (odd_type, odd_tag) = ("NULL \"{type}\" \\", "key:{\"a\",NULL}\\ ' straße\u{1F600}");
    let text = "{ \"b\" : 1.00,\t\"a\":\"\\u0000 \\\\ '\",\n\"b\":2 }";
    f.append(&[event(odd_type, &[odd_tag, "NULL"], text)], None).await;
    for _ in 0..2 {
        let read = f.read(&query(&[(&[odd_type], &[odd_tag])])).await;
        assert_eq!(data(&read), [text]);
        assert_eq!(read.events[0].event_type.as_str(), odd_type);
        assert_eq!(
            read.events[0].tags.iter().map(weir_store::Tag::as_str).collect::<Vec<_>>(),
            [odd_tag, "NULL"]
        );
        f.flush().await;
    }
}

#[tokio::test]
async fn a_read_during_a_flush_sees_each_event_exactly_once() {
    let f = Fixture::new(Strategy::Staging).await;
    let b = query(&[(&["A"], &["x:1"])]);
    f.append(&[event("A", &["x:1"], "1"), event("A", &["x:1"], "2")], None).await;
    let mut connection = f.raw().await;

    let mut transaction = connection.begin().await.unwrap();
    assert_eq!(flush(&mut transaction).await, 2);
    let during = f.read(&b).await;
    assert_eq!(data(&during), ["1", "2"]);
    assert!(during.events.iter().all(|e| e.position.is_none()), "the flush has not committed");
    transaction.commit().await.unwrap();
    let after = f.read(&b).await;
    assert_eq!(data(&after), ["1", "2"]);
    assert!(after.events.iter().all(|e| e.position.is_some()));

    // The flush between read and append is no conflict, nor is it one the other way round.
    let next = event("A", &["x:1"], "3");
    assert_eq!(f.append(&[next], Some((&b, &during.token))).await, Outcome::Appended);
}

async fn reads_beside_a_busy_flusher_see_all_that_was_acknowledged_and_nothing_twice(f: Fixture) {
    let b = query(&[(&["A"], &["x:1"])]);
    let (acknowledged, count) = tokio::sync::watch::channel(0usize);
    let writer = async {
        for n in 0..300 {
            f.append(&[event("A", &["x:1"], &n.to_string())], None).await;
            acknowledged.send_replace(n + 1);
        }
    };
    let flusher = async {
        let mut connection = f.raw().await;
        while *count.borrow() < 300 {
            flush(&mut connection).await;
        }
    };
    let reader = async {
        while *count.borrow() < 300 {
            let before = *count.borrow();
            let read = f.read(&b).await;
            let expected: Vec<String> = (0..read.events.len()).map(|n| n.to_string()).collect();
            assert_eq!(data(&read), expected);
            assert!(
                read.events.len() >= before,
                "{before} were acknowledged, {} are shown",
                read.events.len()
            );
        }
    };
    join(writer, join(flusher, reader)).await;
}
