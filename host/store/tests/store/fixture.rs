//! What the tests share: a store of their own, short words for its values, and a second, raw connection that can
//! hold a transaction open where the store never does.

use std::time::Duration;

use sqlx::{Connection, PgConnection, Row, postgres::PgConnectOptions};
use uuid::Uuid;
use weir_store::{
    Append, Condition, Cursor, DecisionRead, Filter, Flusher, Json, LoggedEvent, NewEvent, Outcome,
    Provenance, Query, QueryItem, ReadToken, SchemaName, Store, StoreConfig, Strategy,
};

pub(crate) fn config() -> StoreConfig {
    let url = std::env::var("WEIR_TEST_DATABASE_URL")
        .expect("WEIR_TEST_DATABASE_URL names no database; `cargo xtask test` starts one and sets it");
    let schema: SchemaName = format!("t_{}", Uuid::new_v4().simple()).parse().unwrap();
    StoreConfig { url, schema, connections: 8, deadline: Duration::from_secs(20) }
}

pub(crate) struct Fixture {
    pub(crate) config: StoreConfig,
    pub(crate) store: Store,
}

impl Fixture {
    pub(crate) async fn new(strategy: Strategy) -> Self {
        let config = config();
        weir_store::migrate(&config).await.unwrap();
        let store = Store::new(&config).unwrap();
        store.set_strategy(strategy).await.unwrap();
        Self { config, store }
    }

    pub(crate) async fn strategy(&self) -> Strategy {
        self.store.settings().await.unwrap().strategy
    }

    /// All that match and can be followed now, in pages of at most `limit`.
    pub(crate) async fn follow(&self, after: Cursor, filter: &Filter, limit: u32) -> Vec<LoggedEvent> {
        let (mut place, mut events) = (after, Vec::new());
        loop {
            let page = self.store.page(place, filter, limit).await.unwrap();
            assert!(page.events.len() <= limit as usize);
            events.extend(page.events);
            if page.caught_up {
                return events;
            }
            assert_ne!(page.next, place, "a page must get on");
            place = page.next;
        }
    }

    /// A connection in the store's schema.
    pub(crate) async fn raw(&self) -> PgConnection {
        let options: PgConnectOptions = self.config.url.parse().unwrap();
        let options = options.options([("search_path", self.config.schema.as_str())]);
        PgConnection::connect_with(&options).await.unwrap()
    }

    pub(crate) async fn append(
        &self,
        events: &[NewEvent],
        condition: Option<(&Query, &ReadToken)>,
    ) -> Outcome {
        append(&self.store, events, condition).await
    }

    pub(crate) async fn read(&self, query: &Query) -> DecisionRead {
        self.store.read(query).await.unwrap()
    }

    /// Flushes everything, as the leader, and waits until it can be followed: under `boundary` any transaction of the
    /// cluster, another test's too, holds that up for as long as it runs.
    pub(crate) async fn flush(&self) {
        let mut connection = self.raw().await;
        while flush(&mut connection).await > 0 {}
        let held_back =
            "SELECT EXISTS (SELECT FROM events WHERE xid >= pg_snapshot_xmin(pg_current_snapshot()))";
        while sqlx::query_scalar(held_back).fetch_one(&mut connection).await.unwrap() {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn flusher(&self) -> Flusher {
        Flusher::new(self.store.clone())
    }

    /// The whole log as (position, type, data), in the order of positions.
    pub(crate) async fn log(&self) -> Vec<(u64, String, String)> {
        let sql = "SELECT position, type, data::text FROM events ORDER BY position";
        let rows = sqlx::query(sql).fetch_all(&mut self.raw().await).await.unwrap();
        rows.iter().map(|row| (row.get::<i64, _>(0).cast_unsigned(), row.get(1), row.get(2))).collect()
    }

    /// How `mine` ends if it is checked while an append of `theirs` holds its locks, which then commits. One like `theirs`
    /// must be in the store (see [`raw_append`]).
    pub(crate) async fn outcome_beside(
        &self,
        theirs: &NewEvent,
        mine: NewEvent,
        query: &Query,
        token: &ReadToken,
    ) -> Outcome {
        let (mut connection, mut observer) = (self.raw().await, self.raw().await);
        let mut transaction = connection.begin().await.unwrap();
        raw_append(&mut transaction, theirs).await;
        let (store, query, token) = (self.store.clone(), query.clone(), token.clone());
        let mine = tokio::spawn(async move { append(&store, &[mine], Some((&query, &token))).await });
        self.until_waiting(&mut observer, "advisory").await;
        transaction.commit().await.unwrap();
        mine.await.unwrap()
    }

    /// Waits until an append of this store waits for a change of the settings.
    pub(crate) async fn until_someone_waits_for_the_store(&self, observer: &mut PgConnection) {
        self.until_waiting(observer, "relation").await;
    }

    async fn until_waiting(&self, observer: &mut PgConnection, kind: &str) {
        // Only a backend that has used, or wants, this store's tables in its transaction is this test's.
        let waiting = "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
                        WHERE l.locktype = $1 AND NOT l.granted AND a.query LIKE '%append(%'
                          AND EXISTS (SELECT FROM pg_locks t JOIN pg_class c ON c.oid = t.relation
                                       WHERE t.pid = l.pid AND c.relnamespace = current_schema()::regnamespace))";
        for _ in 0..20_000 {
            if sqlx::query_scalar(waiting).bind(kind).fetch_one(&mut *observer).await.unwrap() {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("nobody came to wait");
    }
}

pub(crate) async fn append(
    store: &Store,
    events: &[NewEvent],
    condition: Option<(&Query, &ReadToken)>,
) -> Outcome {
    let condition = condition.map(|(query, token)| Condition { query, token });
    let provenance = Provenance { command_id: "c".into(), ..Provenance::default() };
    store
        .append(Append { events, condition, provenance: &provenance, idempotency: None, builds_on: &[] })
        .await
        .unwrap()
}

pub(crate) async fn flush(connection: &mut PgConnection) -> i32 {
    sqlx::query("SELECT flushed FROM flush(1000)").fetch_one(connection).await.unwrap().get(0)
}

/// Appends one event without a condition, whatever strategy the store has, by a statement of its own; `$1` its strategy, `$2`
/// its keys, `$3` type, `$4` tags, `$5` data.
pub(crate) const RAW_APPEND: &str = "SELECT (append($1, $2, array_fill(true, ARRAY[cardinality($2)]),
                                         '{}', '{}', '{}', '{}', '{}', '{}', '{\"{}\"}', '{\"{}\"}',
                                         '{raw}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{1}',
                                         ARRAY[$3], ARRAY[$4::text[]::text], ARRAY[$2::text], ARRAY[$5], '{NULL}', NULL)).statuses[1]";

/// The status of an append of some event under a strategy.
pub(crate) async fn raw_status(connection: &mut PgConnection, strategy: Strategy) -> String {
    let append = sqlx::query_scalar(RAW_APPEND).bind(strategy.as_str()).bind(vec![1_i64]);
    append.bind("A").bind(vec!["x"]).bind("1").fetch_one(connection).await.unwrap()
}

/// Appends an event in whatever transaction the connection has open, as a host would. One like it must be in the
/// store: the keys are the store's secret, so they are read off that one.
pub(crate) async fn raw_append(connection: &mut PgConnection, event: &NewEvent) {
    let like_it = "SELECT (SELECT strategy FROM store), keys
                     FROM (SELECT array_agg(k.key) AS keys FROM event_keys k
                            WHERE k.position = (SELECT min(position) FROM events WHERE type = $1 AND tags = $2)
                           UNION ALL
                           SELECT keys FROM staging WHERE type = $1 AND tags = $2) AS found
                    WHERE keys IS NOT NULL LIMIT 1";
    let tags: Vec<String> = event.tags().iter().map(ToString::to_string).collect();
    let (strategy, keys): (String, Vec<i64>) = sqlx::query_as(like_it)
        .bind(event.event_type().as_str())
        .bind(&tags)
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    let append = sqlx::query_scalar(RAW_APPEND).bind(strategy).bind(keys).bind(event.event_type().as_str());
    let status: String = append.bind(tags).bind(event.data().as_str()).fetch_one(connection).await.unwrap();
    assert_eq!(status, "appended");
}

pub(crate) fn event(event_type: &str, tags: &[&str], data: &str) -> NewEvent {
    let tags = tags.iter().map(|tag| tag.parse().unwrap()).collect();
    NewEvent::new(event_type.parse().unwrap(), tags, Json::try_from(data.to_owned()).unwrap()).unwrap()
}

pub(crate) fn item(types: &[&str], tags: &[&str]) -> QueryItem {
    QueryItem {
        event_types: types.iter().map(|name| name.parse().unwrap()).collect(),
        tags: tags.iter().map(|tag| tag.parse().unwrap()).collect(),
    }
}

pub(crate) fn query(items: &[(&[&str], &[&str])]) -> Query {
    Query::new(items.iter().map(|(types, tags)| item(types, tags)).collect()).unwrap()
}

/// The data of a read's events, in order.
pub(crate) fn data(read: &DecisionRead) -> Vec<&str> {
    read.events.iter().map(|event| event.data.as_str()).collect()
}

/// The contract suite: runs each of these functions against every strategy, as a test of its own.
macro_rules! every_strategy {
    ($($name:ident),+ $(,)?) => { $(
        mod $name {
            use crate::fixture::Fixture;
            use weir_store::Strategy;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn global() {
                super::$name(Fixture::new(Strategy::Global).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn boundary() {
                super::$name(Fixture::new(Strategy::Boundary).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn hybrid() {
                super::$name(Fixture::new(Strategy::Hybrid).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn staging() {
                super::$name(Fixture::new(Strategy::Staging).await).await;
            }
        }
    )+ };
}
