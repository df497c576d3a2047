//! The properties by which the strategies differ, each found out by an experiment and held against what is said of them.

use sqlx::{Connection, Executor};
use weir_store::Cursor;

use crate::fixture::{Fixture, event, raw_append};

every_strategy! {
    positions_have_gaps_where_it_is_said_of_them,
    boundaries_commit_in_parallel_where_it_is_said_of_them,
    a_position_is_a_cursor_where_it_is_said_to_be_one,
}

async fn positions_have_gaps_where_it_is_said_of_them(f: Fixture) {
    let e = event("A", &["x:1"], "1");
    f.append(std::slice::from_ref(&e), None).await;
    let mut connection = f.raw().await;
    let mut given_up = connection.begin().await.unwrap();
    raw_append(&mut given_up, &e).await;
    given_up.rollback().await.unwrap();
    f.append(std::slice::from_ref(&e), None).await;
    f.flush().await;
    let positions: Vec<u64> = f.log().await.into_iter().map(|(position, ..)| position).collect();
    assert_eq!(positions == [1, 2], f.strategy().await.gap_free(), "{positions:?}");
}

async fn boundaries_commit_in_parallel_where_it_is_said_of_them(f: Fixture) {
    let (mine, theirs) = (event("A", &["x:1"], "1"), event("A", &["y:1"], "1"));
    f.append(&[mine.clone(), theirs.clone()], None).await;
    let (mut one, mut other) = (f.raw().await, f.raw().await);
    let mut open = one.begin().await.unwrap();
    raw_append(&mut open, &mine).await;
    other.execute("SET lock_timeout = '300ms'").await.unwrap();
    let append = async {
        let mut transaction = other.begin().await.unwrap();
        let store = "SELECT strategy FROM store";
        let strategy: String = sqlx::query_scalar(store).fetch_one(&mut *transaction).await.unwrap();
        let keys: Vec<i64> = vec![42];
        let append = sqlx::query_scalar(crate::fixture::RAW_APPEND).bind(strategy).bind(keys).bind("B");
        let append: Result<String, _> = append.bind(vec!["z:1"]).bind("1").fetch_one(&mut *transaction).await;
        append.is_ok()
    };
    let in_parallel = append.await;
    open.rollback().await.unwrap();
    assert_eq!(in_parallel, f.strategy().await.parallel());
}

async fn a_position_is_a_cursor_where_it_is_said_to_be_one(f: Fixture) {
    f.append(&[event("A", &["x:1"], "1")], None).await;
    f.flush().await;
    let last = f.follow(Cursor::START, &weir_store::Filter::default(), 10).await.remove(0);
    assert_eq!(last.cursor == Cursor::at(last.position), f.strategy().await.gap_free());
}
