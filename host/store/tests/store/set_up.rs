//! Setting a store up, and saying what is wrong with one.

use sqlx::Executor;
use weir_store::{Error, MigrateError, SchemaName, Store, Strategy};

use crate::fixture::{Fixture, config};

#[tokio::test]
async fn migrating_is_repeatable_and_several_may_do_it_at_once() {
    let config = config();
    let results = futures_util::future::join_all((0..4).map(|_| weir_store::migrate(&config))).await;
    for result in results {
        result.unwrap();
    }
    weir_store::check_migrated(&config).await.unwrap();
    Store::new(&config).unwrap().ready().await.unwrap();
}

#[tokio::test]
async fn a_schema_without_a_store_says_to_migrate() {
    let config = config();
    let error = weir_store::check_migrated(&config).await.unwrap_err();
    assert!(matches!(error, MigrateError::Store(Error::NotMigrated)), "{error}");
    let error = Store::new(&config).unwrap().ready().await.unwrap_err();
    assert!(error.to_string().contains("weir migrate"), "{error}");
}

#[tokio::test]
async fn a_store_of_a_newer_version_is_left_alone() {
    let f = Fixture::new(Strategy::Staging).await;
    f.raw()
        .await
        .execute("INSERT INTO _sqlx_migrations VALUES (9999, 'from the future', now(), true, '', 0)")
        .await
        .unwrap();
    for error in [
        weir_store::migrate(&f.config).await.unwrap_err(),
        weir_store::check_migrated(&f.config).await.unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(matches!(error, MigrateError::Newer { version: 9999, .. }), "{text}");
        assert!(text.contains("use a newer weir"), "{text}");
    }
}

#[tokio::test]
async fn a_database_that_is_not_there_is_unavailable_and_says_so_in_time() {
    let mut config = config();
    config.deadline = std::time::Duration::from_secs(1);
    config.url = "postgres://nobody@127.0.0.1:1/none".into();
    let store = Store::new(&config).unwrap();
    assert!(matches!(store.read(&weir_store::Query::default()).await, Err(Error::Unavailable(_))));
    config.url = "mysql://what".into();
    let error = Store::new(&config).unwrap_err().to_string();
    assert!(error.contains("postgres://user:password@host:5432/name"), "{error}");
}

#[test]
fn a_schema_name_needs_no_quotes() {
    for good in ["weir", "shop_2", &"a".repeat(50)] {
        good.parse::<SchemaName>().unwrap();
    }
    for bad in ["", "Weir", "2x", "a-b", "a b", "pg_weir", "x;drop", &"a".repeat(51)] {
        bad.parse::<SchemaName>().unwrap_err();
    }
}
