//! Reads that are too long for one statement: page by page, and yet one snapshot.

use weir_store::{ImportedEvent, Origin, Outcome, Query, ReadOptions, SequencedEvent};

use crate::fixture::{Fixture, event, query};

every_strategy! {
    a_long_read_comes_in_order_across_its_items_and_stays_what_it_was,
    a_long_read_of_everything_leaves_out_what_came_later,
    a_part_of_the_log_is_read_from_either_end,
    large_events_come_in_small_pages,
}

const COUNT: usize = 25_000;

/// Many events by way of an import: numbers as data, of types A and B in turn, every third one with a tag of its own.
pub(crate) async fn fill(f: &Fixture, count: usize) {
    let origin = Origin {
        command_id: "import".into(),
        correlation_id: "import".into(),
        causation_id: None,
        handler: None,
    };
    let imported = |n: usize| ImportedEvent {
        event: match n % 3 {
            0 => event(["A", "B"][n % 2], &["all", &format!("own:{n}")], &n.to_string()),
            _ => event(["A", "B"][n % 2], &["all"], &n.to_string()),
        },
        recorded_at: time::OffsetDateTime::UNIX_EPOCH,
        origin: origin.clone(),
    };
    let events: Vec<_> = (0..count).map(imported).collect();
    let mut head = f.store.head().await.unwrap();
    for part in events.chunks(5000) {
        head = f.store.import(head, part).await.unwrap();
    }
}

async fn numbers(f: &Fixture, query: &Query, options: ReadOptions) -> (Vec<usize>, usize) {
    let mut reading = f.store.begin_read(query, options).await.unwrap();
    let (mut events, mut pages): (Vec<SequencedEvent>, _) = (Vec::new(), 0);
    while let Some(page) = reading.next().await.unwrap() {
        events.extend(page);
        pages += 1;
    }
    assert!(reading.is_done());
    (events.iter().map(|event| event.data.as_str().parse().unwrap()).collect(), pages)
}

async fn a_long_read_comes_in_order_across_its_items_and_stays_what_it_was(f: Fixture) {
    fill(&f, COUNT).await;
    f.append(&[event("B", &["own:3"], "20000"), event("A", &["all"], "20001")], None).await;
    // One item has many events and the other two, of which one comes after all of those.
    let q = query(&[(&["B"], &["own:3"]), (&["A"], &["all"])]);
    let mut reading = f.store.begin_read(&q, ReadOptions::default()).await.unwrap();
    let mut seen = reading.next().await.unwrap().unwrap();
    assert!(!reading.is_done());
    f.append(&[event("A", &["all"], "30000")], None).await;
    f.flush().await;
    while let Some(page) = reading.next().await.unwrap() {
        seen.extend(page);
    }
    let seen: Vec<usize> = seen.iter().map(|event| event.data.as_str().parse().unwrap()).collect();
    let mut expected: Vec<usize> = (0..COUNT).filter(|n| n % 2 == 0 || *n == 3).collect();
    expected.extend([20000, 20001]);
    assert_eq!(seen, expected);
    let mine = [event("C", &[], "1")];
    let token = reading.token().clone();
    assert_eq!(f.append(&mine, Some((&q, &token))).await, Outcome::Conflict, "30000 came later");
    let token = f.read(&q).await.token;
    assert_eq!(f.append(&mine, Some((&q, &token))).await, Outcome::Appended);
}

async fn a_long_read_of_everything_leaves_out_what_came_later(f: Fixture) {
    fill(&f, COUNT).await;
    let mut reading = f.store.begin_read(&Query::everything(), ReadOptions::default()).await.unwrap();
    f.append(&[event("A", &["all"], "30000")], None).await;
    f.flush().await;
    let mut seen = Vec::new();
    while let Some(page) = reading.next().await.unwrap() {
        seen.extend(page);
    }
    assert_eq!(seen.len(), COUNT);
    assert!(seen.iter().map(|event| event.position.unwrap()).eq(1..=COUNT as u64));
}

async fn a_part_of_the_log_is_read_from_either_end(f: Fixture) {
    fill(&f, COUNT).await;
    f.append(&[event("A", &["all"], "20000")], None).await;
    let q = query(&[(&["A"], &["all"])]);
    let all: Vec<usize> = (0..COUNT).filter(|n| n % 2 == 0).chain([20000]).collect();
    let (seen, pages) = numbers(&f, &q, ReadOptions { backwards: true, ..ReadOptions::default() }).await;
    assert!(seen.iter().eq(all.iter().rev()) && pages > 1);
    let options = ReadOptions { after: 1001, before: Some(1006), ..ReadOptions::default() };
    assert_eq!(numbers(&f, &q, options).await.0, [1002, 1004], "positions begin with 1, and numbers with 0");
    let backwards = ReadOptions { backwards: true, ..options };
    assert_eq!(numbers(&f, &q, backwards).await.0, [1004, 1002]);
    let (seen, _) =
        numbers(&f, &Query::everything(), ReadOptions { after: COUNT as u64 - 1, ..ReadOptions::default() })
            .await;
    assert_eq!(seen, [COUNT - 1, 20000]);
}

async fn large_events_come_in_small_pages(f: Fixture) {
    let large = format!("\"{}\"", "x".repeat(1_000_000));
    for _ in 0..3 {
        f.append(&vec![event("A", &["x:1"], &large); 4], None).await;
    }
    f.flush().await;
    let q = query(&[(&["A"], &["x:1"])]);
    let mut reading = f.store.begin_read(&q, ReadOptions::default()).await.unwrap();
    let mut count = 0;
    while let Some(page) = reading.next().await.unwrap() {
        assert!(page.len() <= 5, "{} events of a megabyte in one page", page.len());
        count += page.len();
    }
    assert_eq!(count, 12);
}
