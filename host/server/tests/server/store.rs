//! Stores of the tests' own: a schema each, in one database or another.

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection, Postgres};
use tokio::runtime::Runtime;
use uuid::Uuid;

/// Where a host keeps its log. Dropped with all that is in it, so make it before the host that uses it.
pub(crate) struct Store {
    pub(crate) url: String,
    pub(crate) schema: String,
}

impl Store {
    /// A new one on the server that all tests share.
    pub(crate) fn new() -> Self {
        let url = std::env::var("WEIR_TEST_DATABASE_URL")
            .expect("WEIR_TEST_DATABASE_URL names no database; `cargo xtask test` starts one and sets it");
        Self::on(url)
    }

    /// A new one in the database that `url` names.
    pub(crate) fn on(url: String) -> Self {
        Self { url, schema: format!("t_{}", Uuid::new_v4().simple()) }
    }

    /// A connection that goes around the host.
    pub(crate) fn session(&self) -> Session {
        Session::open(&self.url, &self.schema).unwrap()
    }

    /// Waits until all that was accepted has its position.
    pub(crate) fn drained(&self) {
        let mut session = self.session();
        crate::patience::eventually("staging is drained", || {
            (session.ask::<i64>("SELECT count(*) FROM staging") == 0).then_some(())
        });
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // A server that a test has stopped takes its schemas with it.
        if let Ok(mut session) = Session::open(&self.url, &self.schema) {
            let _ = session.execute(format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema));
        }
    }
}

/// A connection in a store's schema.
pub(crate) struct Session {
    runtime: Runtime,
    connection: PgConnection,
}

impl Session {
    fn open(url: &str, schema: &str) -> sqlx::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let options: PgConnectOptions = url.parse()?;
        let options = options.options([("search_path", schema)]);
        let connection = runtime.block_on(PgConnection::connect_with(&options))?;
        Ok(Self { runtime, connection })
    }

    pub(crate) fn run(&mut self, statements: &str) {
        self.execute(statements.to_owned()).unwrap();
    }

    /// The one value that a query answers with.
    pub(crate) fn ask<T>(&mut self, query: &'static str) -> T
    where
        T: for<'r> sqlx::Decode<'r, Postgres> + sqlx::Type<Postgres> + Send + Unpin,
    {
        self.runtime.block_on(sqlx::query_scalar(query).fetch_one(&mut self.connection)).unwrap()
    }

    /// Lets every append get as far as its locks and no further, until [`let_on`](Self::let_on) or the end of
    /// this session. Statements of hosts wait for locks half as long as `--statement-seconds`.
    pub(crate) fn hold_up_appends(&mut self) {
        self.run("BEGIN; LOCK TABLE staged_keys IN SHARE MODE");
    }

    pub(crate) fn let_on(&mut self) {
        self.run("COMMIT");
    }

    /// Waits until at least so many appends are held up, behind this session or behind one another.
    pub(crate) fn held_up(&mut self, wanted: i64) {
        crate::patience::eventually("the appends have come as far as their locks", || {
            // A transaction sees one snapshot of other sessions' activity, unless it asks for a new one.
            self.run("SELECT pg_stat_clear_snapshot()");
            let waiting: i64 = self.ask(
                "WITH RECURSIVE held_up (pid) AS (
                     SELECT pid FROM pg_locks WHERE NOT granted AND relation = 'staged_keys'::regclass
                      UNION
                     SELECT l.pid FROM pg_locks l JOIN held_up h ON h.pid = ANY (pg_blocking_pids(l.pid))
                      WHERE NOT l.granted)
                 SELECT count(*) FROM held_up JOIN pg_stat_activity USING (pid) WHERE query LIKE '%append(%'",
            );
            (waiting >= wanted).then_some(())
        });
    }

    fn execute(&mut self, statements: String) -> sqlx::Result<()> {
        let run = sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut self.connection);
        self.runtime.block_on(run).map(drop)
    }
}
