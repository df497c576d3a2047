//! Several appends in one transaction, each with a condition and an outcome of its own.

use weir_store::{
    Append, Condition, Error, Idempotency, NewEvent, Outcome, Place, Provenance, Query, ReadRequest,
    ReadToken,
};

use crate::fixture::{Fixture, data, event, query};

every_strategy! {
    requests_of_a_batch_have_outcomes_of_their_own,
    a_request_conflicts_with_what_an_earlier_one_of_its_batch_appends_unless_it_has_seen_it,
    a_request_that_builds_on_one_that_fails_falls_with_it,
    an_id_that_comes_twice_in_a_batch_is_taken_once,
    an_unscoped_request_of_a_batch_is_refused_alone,
    a_batch_as_a_whole_is_one_append_to_those_outside,
    reads_of_a_batch_are_one_snapshot_and_each_sees_its_own,
    a_read_that_goes_on_shows_only_what_is_new_and_not_what_its_reader_has_written,
}

/// A request of a batch, as a test puts it.
struct Request<'a> {
    events: Vec<NewEvent>,
    condition: Option<(&'a Query, &'a ReadToken)>,
    builds_on: Vec<usize>,
    id: Option<&'a str>,
}

fn request<'a>(event: NewEvent, condition: Option<(&'a Query, &'a ReadToken)>) -> Request<'a> {
    Request { events: vec![event], condition, builds_on: Vec::new(), id: None }
}

async fn outcomes(f: &Fixture, requests: &[Request<'_>]) -> Vec<Result<Outcome, Error>> {
    let provenances: Vec<_> = requests
        .iter()
        .map(|r| Provenance { command_id: r.id.unwrap_or("c").to_owned(), ..Provenance::default() })
        .collect();
    let idempotency = Idempotency { fingerprint: [7; 32], answer: "1".into() };
    let appends: Vec<_> = requests
        .iter()
        .zip(&provenances)
        .map(|(r, provenance)| Append {
            events: &r.events,
            condition: r.condition.map(|(query, token)| Condition { query, token }),
            provenance,
            idempotency: r.id.map(|_| &idempotency),
            builds_on: &r.builds_on,
        })
        .collect();
    let appended = f.store.append_batch(&appends, None).await.unwrap();
    appended.into_iter().map(|appended| appended.map(|(outcome, _)| outcome)).collect()
}

fn values(outcomes: Vec<Result<Outcome, Error>>) -> Vec<Outcome> {
    outcomes.into_iter().map(Result::unwrap).collect()
}

async fn requests_of_a_batch_have_outcomes_of_their_own(f: Fixture) {
    let (x, y) = (query(&[(&["A"], &["x:1"])]), query(&[(&["A"], &["y:1"])]));
    let (x_token, y_token) = (f.read(&x).await.token, f.read(&y).await.token);
    f.append(&[event("A", &["x:1"], "0")], None).await;
    let batch = [
        request(event("A", &["x:1"], "1"), Some((&x, &x_token))),
        request(event("A", &["y:1"], "2"), Some((&y, &y_token))),
        request(event("B", &["x:1", "y:1"], "3"), None),
    ];
    let expected = [Outcome::Conflict, Outcome::Appended, Outcome::Appended];
    assert_eq!(values(outcomes(&f, &batch).await), expected);
    f.flush().await;
    let log: Vec<_> = f.log().await.into_iter().map(|(_, _, data)| data).collect();
    assert_eq!(log, ["0", "2", "3"], "in their order, and nothing of the one that failed");
}

async fn a_request_conflicts_with_what_an_earlier_one_of_its_batch_appends_unless_it_has_seen_it(f: Fixture) {
    let x = query(&[(&["A"], &["x:1", "z:1"]), (&["B"], &["x:2"])]);
    let token = f.read(&x).await.token;
    let mine = |n: &str| request(event("A", &["z:1", "x:1"], n), Some((&x, &token)));
    let mut seen = mine("3");
    seen.builds_on = vec![0];
    let batch = [mine("1"), mine("2"), seen, request(event("A", &["x:1"], "4"), Some((&x, &token)))];
    let expected = [Outcome::Appended, Outcome::Conflict, Outcome::Appended, Outcome::Conflict];
    assert_eq!(values(outcomes(&f, &batch).await), expected);
    assert_eq!(data(&f.read(&x).await), ["1", "3"]);
}

async fn a_request_that_builds_on_one_that_fails_falls_with_it(f: Fixture) {
    let x = query(&[(&["A"], &["x:1"])]);
    let stale = f.read(&x).await.token;
    f.append(&[event("A", &["x:1"], "0")], None).await;
    let token = f.read(&x).await.token;
    let built = |n: &str, on: &[usize], token| {
        let mut request = request(event("A", &["x:1"], n), Some((&x, token)));
        request.builds_on = on.to_vec();
        request
    };
    let batch = [
        built("1", &[], &stale),
        built("2", &[0], &token),
        built("3", &[0, 1], &token),
        built("4", &[], &token),
    ];
    let expected = [Outcome::Conflict, Outcome::Undermined, Outcome::Undermined, Outcome::Appended];
    assert_eq!(values(outcomes(&f, &batch).await), expected);
    assert_eq!(data(&f.read(&x).await), ["0", "4"]);
}

async fn an_id_that_comes_twice_in_a_batch_is_taken_once(f: Fixture) {
    let with_id = |n: &str| Request { id: Some("same"), ..request(event("A", &["x:1"], n), None) };
    let expected = [Outcome::Appended, Outcome::Repeated];
    assert_eq!(values(outcomes(&f, &[with_id("1"), with_id("2")]).await), expected);
    assert_eq!(values(outcomes(&f, &[with_id("3")]).await), [Outcome::Repeated]);
    assert_eq!(data(&f.read(&query(&[(&["A"], &["x:1"])])).await), ["1"]);
}

async fn an_unscoped_request_of_a_batch_is_refused_alone(f: Fixture) {
    let all = query(&[(&["A"], &[])]);
    let token = f.read(&all).await.token;
    let batch =
        [request(event("B", &["x:1"], "1"), Some((&all, &token))), request(event("B", &["x:1"], "2"), None)];
    let mut said = outcomes(&f, &batch).await.into_iter();
    assert!(matches!(said.next(), Some(Err(Error::Unscoped(_)))));
    assert!(matches!(said.next(), Some(Ok(Outcome::Appended))));

    f.store.allow_unscoped_conditions(true).await.unwrap();
    let batch = [
        request(event("A", &["x:1"], "3"), Some((&all, &token))),
        request(event("A", &["y:1"], "4"), Some((&all, &token))),
    ];
    assert_eq!(values(outcomes(&f, &batch).await), [Outcome::Appended, Outcome::Conflict]);
}

async fn a_batch_as_a_whole_is_one_append_to_those_outside(f: Fixture) {
    let (x, y) = (query(&[(&["A"], &["x:1"])]), query(&[(&["A"], &["y:1"])]));
    let (x_token, y_token) = (f.read(&x).await.token, f.read(&y).await.token);
    let batch = [request(event("A", &["x:1"], "1"), None), request(event("A", &["y:1"], "2"), None)];
    assert_eq!(values(outcomes(&f, &batch).await), [Outcome::Appended; 2]);
    for (query, token) in [(&x, &x_token), (&y, &y_token)] {
        let mine = [event("B", &[], "3")];
        assert_eq!(f.append(&mine, Some((query, token))).await, Outcome::Conflict);
    }
}

async fn reads_of_a_batch_are_one_snapshot_and_each_sees_its_own(f: Fixture) {
    f.append(&[event("A", &["x:1"], "1"), event("A", &["y:1"], "2")], None).await;
    f.flush().await;
    f.append(&[event("A", &["x:1", "y:1"], "3"), event("B", &["y:1"], "4")], None).await;
    let (x, y) = (query(&[(&["A"], &["x:1"])]), query(&[(&["A", "B"], &["y:1"]), (&["A"], &["x:1", "y:1"])]));
    let requests = [&x, &y, &x].map(|query| ReadRequest { query, since: None });
    let batch = f.store.read_batch(&requests).await.unwrap();
    assert_eq!(batch.events.len(), 4, "each event once, whoever wants it");
    for (read, (query, expected)) in
        batch.reads.iter().zip([(&x, &["1", "3"][..]), (&y, &["2", "3", "4"]), (&x, &["1", "3"])])
    {
        assert!(read.is_whole);
        let seen: Vec<_> = read.events.iter().map(|at| batch.events[*at].data.as_str()).collect();
        assert_eq!(seen, expected);
        let mine = [event("C", &[], "0")];
        assert_eq!(f.append(&mine, Some((query, &read.token))).await, Outcome::Appended);
    }
}

async fn a_read_that_goes_on_shows_only_what_is_new_and_not_what_its_reader_has_written(f: Fixture) {
    let q = query(&[(&["A"], &["x:1"]), (&["B"], &["y:1"])]);
    f.append(&[event("A", &["x:1"], "1")], None).await;
    f.flush().await;
    f.append(&[event("B", &["y:1"], "2")], None).await;
    let mut token = f.read(&q).await.token;
    // Round by round: somebody else writes and a flush may come between, or not; then the reader reads on and writes itself.
    for round in 0..6 {
        let (theirs, mine) = (format!("{round}.1"), format!("{round}.2"));
        f.append(&[event("A", &["x:1"], &theirs), event("A", &["z:1"], "0")], None).await;
        if round % 2 == 0 {
            f.flush().await;
        }
        let on = f.store.read_batch(&[ReadRequest { query: &q, since: Some(&token) }]).await.unwrap();
        let seen: Vec<_> = on.reads[0].events.iter().map(|at| on.events[*at].data.as_str()).collect();
        assert_eq!(seen, [theirs.as_str()], "round {round}");
        token = on.reads[0].token.clone();

        let events = [event("B", &["y:1"], &mine), event("Other", &[], "0")];
        let condition = Some(Condition { query: &q, token: &token });
        let provenance = Provenance::default();
        let append =
            Append { events: &events, condition, provenance: &provenance, idempotency: None, builds_on: &[] };
        let (outcome, places): (_, Vec<Place>) =
            f.store.append_batch(&[append], None).await.unwrap().remove(0).unwrap();
        assert_eq!((outcome, places.len()), (Outcome::Appended, 2));
        for (event, place) in events.iter().zip(places) {
            token.and_own(&q, event, place);
        }
        if round % 3 == 0 {
            f.flush().await;
        }
        assert!(
            f.store
                .read_batch(&[ReadRequest { query: &q, since: Some(&token) }])
                .await
                .unwrap()
                .events
                .is_empty()
        );
        let probe = [event("C", &[], "0")];
        assert_eq!(
            f.append(&probe, Some((&q, &token))).await,
            Outcome::Appended,
            "round {round}: all of it was seen"
        );
    }
}
