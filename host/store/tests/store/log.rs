//! Reading the log in pages.

use weir_store::{Cursor, Filter, Provenance, Strategy};

use crate::fixture::{Fixture, event};

fn filter(types: &[&str], tags: &[&str]) -> Filter {
    Filter {
        event_types: types.iter().map(|name| name.parse().unwrap()).collect(),
        tags: tags.iter().map(|tag| tag.parse().unwrap()).collect(),
    }
}

every_strategy! {
    a_page_of_large_events_is_bounded_in_bytes_and_none_is_skipped,
    the_end_of_the_log_lies_behind_what_is_there_and_before_what_comes,
    pages_of_any_size_and_filter_add_up_to_what_matches,
    an_event_carries_where_it_came_from,
    beyond_the_end_of_the_log_there_is_nothing,
}

async fn all(f: &Fixture, filter: &Filter, limit: u32) -> Vec<u64> {
    f.follow(Cursor::START, filter, limit).await.iter().map(|event| event.position).collect()
}

async fn pages_of_any_size_and_filter_add_up_to_what_matches(f: Fixture) {
    let mut events = Vec::new();
    for n in 0..60u64 {
        let parity = if n % 2 == 0 { "n:even" } else { "n:odd" };
        let third = format!("third:{}", n % 3);
        events.push(event(if n % 5 == 0 { "Fifth" } else { "Other" }, &[parity, &third], &n.to_string()));
    }
    f.append(&events, None).await;
    f.flush().await;
    let positions =
        |matches: &dyn Fn(u64) -> bool| (0..60).filter(|n| matches(*n)).map(|n| n + 1).collect::<Vec<_>>();
    for limit in [1, 7, 1000] {
        assert_eq!(all(&f, &filter(&[], &[]), limit).await, positions(&|_| true));
        assert_eq!(all(&f, &filter(&["Fifth"], &[]), limit).await, positions(&|n| n % 5 == 0));
        assert_eq!(all(&f, &filter(&["Fifth", "Other"], &[]), limit).await, positions(&|_| true));
        assert_eq!(all(&f, &filter(&[], &["n:even"]), limit).await, positions(&|n| n % 2 == 0));
        assert_eq!(all(&f, &filter(&[], &["n:even", "third:1"]), limit).await, positions(&|n| n % 6 == 4));
        assert_eq!(
            all(&f, &filter(&["Fifth"], &["third:0", "n:odd"]), limit).await,
            positions(&|n| n % 30 == 15)
        );
        assert_eq!(all(&f, &filter(&[], &["n:none"]), limit).await, positions(&|_| false));
    }
}

#[tokio::test]
async fn what_is_staged_has_no_place_in_the_log_yet() {
    let f = Fixture::new(Strategy::Staging).await;
    f.append(&[event("A", &["x:1"], "1")], None).await;
    let page = f.store.page(Cursor::START, &Filter::default(), 10).await.unwrap();
    assert_eq!((page.events.len(), page.next, page.caught_up), (0, Cursor::START, true));
    assert!(f.store.knows_tag(&"x:1".parse().unwrap()).await.unwrap(), "but its tag is known");
    f.flush().await;
    assert_eq!(f.store.head().await.unwrap(), 1);
    assert!(f.store.knows_tag(&"x:1".parse().unwrap()).await.unwrap());
    assert!(!f.store.knows_tag(&"x:2".parse().unwrap()).await.unwrap());
}

async fn beyond_the_end_of_the_log_there_is_nothing(f: Fixture) {
    let page = f.store.page(Cursor::START, &Filter::default(), 10).await.unwrap();
    assert_eq!((page.events.len(), page.next, page.caught_up), (0, Cursor::START, true));
    f.append(&[event("A", &[], "1")], None).await;
    f.flush().await;
    let last = f.follow(Cursor::START, &Filter::default(), 10).await[0].cursor;
    let page = f.store.page(last, &Filter::default(), 10).await.unwrap();
    assert_eq!((page.events.len(), page.next, page.caught_up), (0, last, true));
}

async fn an_event_carries_where_it_came_from(f: Fixture) {
    let provenance = Provenance {
        command_id: "command-1".into(),
        correlation_id: None,
        causation_id: Some("event-9".into()),
        version_id: None,
    };
    let append = weir_store::Append {
        events: &[event("A", &[], "1")],
        condition: None,
        provenance: &provenance,
        idempotency: None,
        builds_on: &[],
    };
    f.store.append(append).await.unwrap();
    f.flush().await;
    let page = f.store.page(Cursor::START, &Filter::default(), 10).await.unwrap();
    let logged = &page.events[0];
    assert_eq!(logged.origin.command_id, "command-1");
    assert_eq!(
        logged.origin.correlation_id, "command-1",
        "a command that nothing caused begins a conversation"
    );
    assert_eq!(logged.origin.causation_id.as_deref(), Some("event-9"));
    assert_eq!(logged.origin.handler, None);
}

async fn the_end_of_the_log_lies_behind_what_is_there_and_before_what_comes(f: Fixture) {
    let mut places = Vec::new();
    for strategy in [f.strategy().await, Strategy::Boundary, Strategy::Staging] {
        f.store.set_strategy(strategy).await.unwrap();
        f.append(&[event("A", &["x:1"], "1")], None).await;
        f.flush().await;
        let end = f.store.end().await.unwrap();
        f.append(&[event("A", &["x:1"], "2")], None).await;
        f.flush().await;
        let seen = f.follow(Cursor::START, &Filter::default(), 10).await;
        places.push((seen.len(), end));
    }
    let seen = f.follow(Cursor::START, &Filter::default(), 10).await;
    for (count, end) in places {
        let before = seen.iter().filter(|event| !event.cursor.is_past(&end)).count();
        assert_eq!(before, count - 1, "{end}");
    }
}

async fn a_page_of_large_events_is_bounded_in_bytes_and_none_is_skipped(f: Fixture) {
    let large = format!("\"{}\"", "x".repeat(1_000_000));
    for _ in 0..2 {
        f.append(&vec![event("A", &["x:1"], &large); 7], None).await;
    }
    f.flush().await;
    for filter in [filter(&[], &[]), filter(&["A"], &[]), filter(&[], &["x:1"])] {
        let page = f.store.page(Cursor::START, &filter, 500).await.unwrap();
        assert!((1..=5).contains(&page.events.len()), "{} megabytes in one page", page.events.len());
        assert_eq!(all(&f, &filter, 500).await.len(), 14);
    }
}
