//! Conditions with items that have no type or no tag.

use weir_store::{Append, Condition, Error, Outcome, Provenance, Query, ReadToken, Unscoped};

use crate::fixture::{Fixture, data, event, query};

every_strategy! {
    an_unscoped_condition_is_refused_unless_the_store_allows_it,
    an_allowed_unscoped_condition_sees_what_it_did_not_read,
    an_unscoped_condition_waits_for_an_append_that_shares_no_key_with_it,
    nothing_seen_is_no_wildcard,
}

async fn an_unscoped_condition_is_refused_unless_the_store_allows_it(f: Fixture) {
    let b = query(&[(&["A"], &["x:1"]), (&["Invoice"], &[])]);
    let token = f.read(&b).await.token;
    let provenance = Provenance::default();
    let mine = [event("A", &["x:1"], "1")];
    let append = || {
        let condition = Some(Condition { query: &b, token: &token });
        f.store.append(Append {
            events: &mine,
            condition,
            provenance: &provenance,
            idempotency: None,
            builds_on: &[],
        })
    };
    let error = append().await.unwrap_err();
    assert!(matches!(&error, Error::Unscoped(Unscoped::NoTag(1, types)) if types == "Invoice"), "{error}");
    f.store.allow_unscoped_conditions(true).await.unwrap();
    assert_eq!(append().await.unwrap(), Outcome::Appended);
    f.store.allow_unscoped_conditions(false).await.unwrap();
    assert!(append().await.is_err());
}

async fn an_allowed_unscoped_condition_sees_what_it_did_not_read(f: Fixture) {
    f.store.allow_unscoped_conditions(true).await.unwrap();
    let cases = [
        (query(&[(&["A"], &[])]), event("A", &["z:1"], "0"), event("B", &["z:1"], "0")),
        (query(&[(&[], &["x:1"])]), event("C", &["x:1", "y:1"], "0"), event("C", &["y:1"], "0")),
        (query(&[(&[], &["x:1"]), (&["D"], &["x:2"])]), event("D", &["x:2"], "0"), event("C", &["x:2"], "0")),
    ];
    let mine = [event("Mine", &[], "1")];
    for (b, matching, other) in cases {
        let token = f.read(&b).await.token;
        f.append(&[other], None).await;
        assert_eq!(f.append(&mine, Some((&b, &token))).await, Outcome::Appended, "{b:?}");
        f.append(&[matching], None).await;
        assert_eq!(f.append(&mine, Some((&b, &token))).await, Outcome::Conflict, "{b:?}");
        let token = f.read(&b).await.token;
        f.flush().await;
        assert_eq!(f.append(&mine, Some((&b, &token))).await, Outcome::Appended, "{b:?}: all of it was read");
    }
    let everything = Query::everything();
    let token = f.read(&everything).await.token;
    assert_eq!(f.append(&mine, Some((&everything, &token))).await, Outcome::Appended);
    assert_eq!(f.append(&mine, Some((&everything, &token))).await, Outcome::Conflict);
}

/// Write skew: each condition looks at what the other writes, and no key is shared.
async fn an_unscoped_condition_waits_for_an_append_that_shares_no_key_with_it(f: Fixture) {
    f.store.allow_unscoped_conditions(true).await.unwrap();
    let theirs = event("A", &["x:1"], "1");
    f.append(std::slice::from_ref(&theirs), None).await;
    let b = query(&[(&["A"], &[])]);
    let token = f.read(&b).await.token;
    let outcome = f.outcome_beside(&theirs, event("B", &["y:1"], "2"), &b, &token).await;
    assert_eq!(outcome, Outcome::Conflict);
}

async fn nothing_seen_is_no_wildcard(f: Fixture) {
    let b = query(&[(&["A"], &["x:1"])]);
    let first = [event("A", &["x:1"], "1")];
    let nothing = ReadToken::nothing_seen();
    assert_eq!(f.append(&first, Some((&b, &nothing))).await, Outcome::Appended);
    assert_eq!(f.append(&first, Some((&b, &nothing))).await, Outcome::Conflict);
    f.flush().await;
    assert_eq!(f.append(&first, Some((&b, &nothing))).await, Outcome::Conflict);
    assert_eq!(data(&f.read(&b).await), ["1"]);
}
