//! Many writers at once: as many succeed as the rule allows, and no more wait than must.

use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;
use weir_store::Outcome;

use crate::fixture::{Fixture, append, event, query};

every_strategy! {
    sixty_four_writers_on_one_boundary_take_exactly_the_places_there_are,
    sixty_four_writers_on_disjoint_boundaries_have_no_conflict_at_all,
}

const WRITERS: usize = 64;
const PLACES: usize = 20;

async fn sixty_four_writers_on_one_boundary_take_exactly_the_places_there_are(f: Fixture) {
    let shutdown = CancellationToken::new();
    let flusher = tokio::spawn(f.flusher().run(shutdown.clone()));
    let b = query(&[(&["Booked"], &["room:1"])]);
    let writers = (0..WRITERS).map(|writer| {
        let (store, b) = (f.store.clone(), b.clone());
        tokio::spawn(async move {
            loop {
                let read = store.read(&b).await.unwrap();
                if read.events.len() >= PLACES {
                    return false;
                }
                let mine = [event("Booked", &["room:1", &format!("guest:{writer}")], &writer.to_string())];
                if append(&store, &mine, Some((&b, &read.token))).await == Outcome::Appended {
                    return true;
                }
            }
        })
    });
    let admitted = join_all(writers).await.into_iter().filter(|w| *w.as_ref().unwrap()).count();
    shutdown.cancel();
    flusher.await.unwrap();
    assert_eq!(admitted, PLACES);
    let log = f.log().await;
    assert_eq!(log.len(), PLACES);
    if f.strategy().await.gap_free() {
        assert!(log.iter().map(|(position, ..)| *position).eq(1..=PLACES as u64));
    }
}

async fn sixty_four_writers_on_disjoint_boundaries_have_no_conflict_at_all(f: Fixture) {
    let shutdown = CancellationToken::new();
    let flusher = tokio::spawn(f.flusher().run(shutdown.clone()));
    let conflicts = std::sync::Arc::new(AtomicU32::new(0));
    let writers = (0..WRITERS).map(|writer| {
        let (store, conflicts) = (f.store.clone(), conflicts.clone());
        tokio::spawn(async move {
            let tag = format!("room:{writer}");
            let b = query(&[(&["Booked"], &[&tag])]);
            for round in 0..5 {
                let read = store.read(&b).await.unwrap();
                assert_eq!(read.events.len(), round);
                let mine = [event("Booked", &[&tag], &round.to_string())];
                if append(&store, &mine, Some((&b, &read.token))).await == Outcome::Conflict {
                    conflicts.fetch_add(1, Ordering::Relaxed);
                }
            }
        })
    });
    for writer in join_all(writers).await {
        writer.unwrap();
    }
    shutdown.cancel();
    flusher.await.unwrap();
    assert_eq!(conflicts.load(Ordering::Relaxed), 0);
    assert_eq!(f.log().await.len(), WRITERS * 5);
}
