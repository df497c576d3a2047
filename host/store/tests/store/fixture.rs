//! What the tests share: a store of their own, short words for its values, and a second, raw connection that can
//! hold a transaction open where the store never does.

use std::time::Duration;

use sqlx::{Connection, PgConnection, Row, postgres::PgConnectOptions};
use uuid::Uuid;
use weir_store::{
    Append, Boundary, Condition, DecisionRead, Flusher, Json, NewEvent, Outcome, Provenance, QueryItem,
    ReadToken, SchemaName, Store, StoreConfig,
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
    pub(crate) async fn new() -> Self {
        let config = config();
        weir_store::migrate(&config).await.unwrap();
        let store = Store::new(&config).unwrap();
        Self { config, store }
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
        condition: Option<(&Boundary, &ReadToken)>,
    ) -> Outcome {
        append(&self.store, events, condition).await
    }

    pub(crate) async fn read(&self, boundary: &Boundary) -> DecisionRead {
        self.store.read(boundary).await.unwrap()
    }

    /// Flushes everything, as the leader.
    pub(crate) async fn flush(&self) {
        let mut connection = self.raw().await;
        while flush(&mut connection).await > 0 {}
    }

    pub(crate) fn flusher(&self) -> Flusher {
        Flusher::new(self.store.clone())
    }

    /// The whole log as (position, type, data).
    pub(crate) async fn log(&self) -> Vec<(u64, String, String)> {
        let page = self.store.page(0, &weir_store::Filter::default(), 1_000_000).await.unwrap();
        assert_eq!(page.next, page.head, "the log is longer than these tests expect");
        let parts =
            |e: weir_store::LoggedEvent| (e.position, e.event_type.to_string(), e.data.as_str().to_owned());
        page.events.into_iter().map(parts).collect()
    }

    /// Waits until some backend of this test's connections waits for an advisory lock.
    pub(crate) async fn until_someone_waits(&self, connection: &mut PgConnection) {
        let waiting = "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
                        WHERE l.locktype = 'advisory' AND NOT l.granted AND a.query LIKE '%append(%'
                          AND l.pid IN (SELECT pid FROM pg_stat_activity WHERE application_name = $1))";
        for _ in 0..2000 {
            let row = sqlx::query(waiting).bind("weir").fetch_one(&mut *connection).await.unwrap();
            if row.get(0) {
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
    condition: Option<(&Boundary, &ReadToken)>,
) -> Outcome {
    let condition = condition.map(|(boundary, token)| Condition { boundary, token });
    let provenance = Provenance { command_id: "c".into(), ..Provenance::default() };
    store.append(Append { events, condition, provenance: &provenance }).await.unwrap()
}

pub(crate) async fn flush(connection: &mut PgConnection) -> i32 {
    sqlx::query("SELECT flushed FROM flush(1000)").fetch_one(connection).await.unwrap().get(0)
}

/// Appends one event in whatever transaction the connection has open, as append() does.
pub(crate) async fn raw_append(connection: &mut PgConnection, event: &NewEvent) {
    // The keys are the store's secret; two appends of the same event take the same ones, so read them off a
    // row that the store wrote itself.
    let sql = "SELECT append(keys, array_fill(true, ARRAY[cardinality(keys)]), '{}', '{}', '{}', 0, '{}',
                             ARRAY[$1], ARRAY[$2::text[]::text], ARRAY[keys::text], ARRAY[$3], 'raw', NULL, NULL, NULL)
                 FROM (SELECT keys FROM staging WHERE type = $1 AND tags = $2 LIMIT 1) AS k";
    let tags: Vec<String> = event.tags().iter().map(ToString::to_string).collect();
    let status: String = sqlx::query(sql)
        .bind(event.event_type().as_str())
        .bind(tags)
        .bind(event.data().as_str())
        .fetch_one(connection)
        .await
        .unwrap()
        .get(0);
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

pub(crate) fn boundary(items: &[(&[&str], &[&str])]) -> Boundary {
    Boundary::new(items.iter().map(|(types, tags)| item(types, tags)).collect()).unwrap()
}

/// The data of a read's events, in order.
pub(crate) fn data(read: &DecisionRead) -> Vec<&str> {
    read.events.iter().map(|event| event.data.as_str()).collect()
}
