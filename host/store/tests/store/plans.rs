//! What the functions of the database touch: only rows that matter, whatever lies beside them.

use sqlx::{Connection, PgConnection, Row};
use weir_store::Strategy;

use crate::fixture::Fixture;
use crate::pages::fill;

/// Rows of a table that the transaction has fetched so far, by an index and by a scan.
async fn touched(connection: &mut PgConnection, table: &str) -> (i64, i64) {
    let counts = "SELECT coalesce(idx_tup_fetch, 0), seq_tup_read FROM pg_stat_xact_user_tables WHERE relid = $1::regclass";
    let row = sqlx::query(counts).bind(table).fetch_one(connection).await.unwrap();
    (row.get(0), row.get(1))
}

/// Index entries of a table that the transaction has looked at so far.
async fn entries(connection: &mut PgConnection, index: &str) -> i64 {
    sqlx::query_scalar("SELECT pg_stat_get_xact_tuples_returned($1::regclass)")
        .bind(index)
        .fetch_one(connection)
        .await
        .unwrap()
}

/// A log in which a tag is on every event, and the keys of a clause that names it first and a rare one after it.
async fn skewed() -> (Fixture, String) {
    let f = Fixture::new(Strategy::Staging).await;
    fill(&f, 20_000).await;
    // Position 601 has a tag of its own beside the common one. Under which key lies more tells them apart.
    let keys =
        "SELECT array_agg(k.key ORDER BY (SELECT count(*) FROM event_keys c WHERE c.key = k.key) DESC)::text
                  FROM event_keys k WHERE k.position = 601";
    let keys = sqlx::query_scalar(keys).fetch_one(&mut f.raw().await).await.unwrap();
    (f, keys)
}

#[tokio::test]
async fn a_read_of_a_common_tag_and_a_rare_one_touches_what_matches() {
    let (f, keys) = skewed().await;
    let mut connection = f.raw().await;
    let mut transaction = connection.begin().await.unwrap();
    let read = "SELECT position FROM decision_read(ARRAY[$1], '{A}', '{\"{all,own:600}\"}', '{0}', '{\"{}\"}', 1000, false)";
    let rows = sqlx::query(read).bind(&keys).fetch_all(&mut *transaction).await.unwrap();
    assert_eq!(rows.len(), 2, "the token, and the one event");
    let (fetched, scanned) = touched(&mut transaction, "events").await;
    assert!(fetched <= 4 && scanned == 0, "{fetched} fetched, {scanned} scanned");
    let looked_at = entries(&mut transaction, "event_keys_pkey").await;
    assert!(looked_at < 400, "{looked_at} index entries for one event among 20,000");
}

#[tokio::test]
async fn a_check_of_the_whole_log_costs_no_more_than_its_rarest_tag() {
    let (f, keys) = skewed().await;
    let mut connection = f.raw().await;
    for (tags, status) in [("{all,own:600}", "conflict"), ("{all,own:600,missing}", "appended")] {
        let keys = if status == "conflict" { keys.clone() } else { keys.replace('}', ",42}") };
        let mut transaction = connection.begin().await.unwrap();
        let append = "SELECT (append('staging', '{1}', '{t}', ARRAY[$1], '{A}', ARRAY[$2], '{0}', '{\"{}\"}', '{NULL}',
                                     '{\"{1}\"}', '{\"{}\"}', '{c}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}',
                                     '{1}', '{Z}', '{\"{z}\"}', '{\"{1}\"}', '{1}', '{NULL}', NULL)).statuses[1]";
        let said: String =
            sqlx::query_scalar(append).bind(&keys).bind(tags).fetch_one(&mut *transaction).await.unwrap();
        assert_eq!(said, status);
        let (fetched, scanned) = touched(&mut transaction, "events").await;
        assert!(fetched <= 4 && scanned == 0, "{fetched} fetched, {scanned} scanned");
        let looked_at = entries(&mut transaction, "event_keys_pkey").await;
        assert!(looked_at < 400, "{looked_at} index entries");
        transaction.rollback().await.unwrap();
    }
}

#[tokio::test]
async fn dead_rows_beside_a_long_snapshot_cost_a_flush_and_a_check_nothing() {
    let f = Fixture::new(Strategy::Staging).await;
    // Somebody's snapshot from before, which keeps every flushed row from being removed.
    let mut old = f.raw().await;
    let mut snapshot = old.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    sqlx::query("SELECT count(*) FROM events").execute(&mut *snapshot).await.unwrap();
    for _ in 0..10 {
        f.append(&vec![crate::fixture::event("A", &["x:1"], "1"); 200], None).await;
        f.flush().await;
    }
    let mut connection = f.raw().await;
    let (highest, running): (i64, Vec<String>) =
        sqlx::query_as("SELECT highest, running FROM floor_candidate()")
            .fetch_one(&mut connection)
            .await
            .unwrap();
    assert_eq!(highest, 2000);
    let raised: bool = sqlx::query_scalar("SELECT raise_floor($1, $2)")
        .bind(highest)
        .bind(running)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert!(raised);
    f.append(&[crate::fixture::event("A", &["x:1"], "2")], None).await;

    let mut transaction = connection.begin().await.unwrap();
    let before = entries(&mut transaction, "staging_pkey").await;
    assert_eq!(crate::fixture::flush(&mut transaction).await, 1);
    let looked_at = entries(&mut transaction, "staging_pkey").await - before;
    assert!(looked_at < 10, "{looked_at} entries for one staged row");
    transaction.rollback().await.unwrap();
    let mut transaction = connection.begin().await.unwrap();
    crate::fixture::raw_append(&mut transaction, &crate::fixture::event("A", &["x:1"], "3")).await;
    let read = "SELECT position FROM decision_read((SELECT ARRAY[keys::text] FROM staging WHERE id > 2000 LIMIT 1), '{A}', '{\"{x:1}\"}',
                                                   '{1999}', '{\"{}\"}', 1000, false)";
    let before = entries(&mut transaction, "staged_keys_pkey").await;
    assert_eq!(sqlx::query(read).fetch_all(&mut *transaction).await.unwrap().len(), 4);
    let looked_at = entries(&mut transaction, "staged_keys_pkey").await - before;
    assert!(looked_at < 10, "{looked_at} entries for two staged rows");
}

#[tokio::test]
async fn the_floor_waits_for_appends_that_may_still_stage_below_it() {
    let f = Fixture::new(Strategy::Staging).await;
    let e = crate::fixture::event("A", &["x:1"], "1");
    f.append(std::slice::from_ref(&e), None).await;
    let (mut slow, mut connection) = (f.raw().await, f.raw().await);
    let mut transaction = slow.begin().await.unwrap();
    crate::fixture::raw_append(&mut transaction, &e).await;
    f.append(&[crate::fixture::event("B", &["y:1"], "2")], None).await;
    f.flush().await;
    let candidate: (i64, Vec<String>) = sqlx::query_as("SELECT highest, running FROM floor_candidate()")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!((candidate.0, candidate.1.len()), (3, 1));
    let raise = async |connection: &mut PgConnection| -> bool {
        let raise = sqlx::query_scalar("SELECT raise_floor($1, $2)").bind(candidate.0).bind(&candidate.1);
        raise.fetch_one(connection).await.unwrap()
    };
    assert!(!raise(&mut connection).await, "2 is still to come");
    transaction.commit().await.unwrap();
    assert!(!raise(&mut connection).await, "it has come, and is staged");
    f.flush().await;
    assert!(raise(&mut connection).await);
    assert_eq!(f.log().await.len(), 3);
}
